"""The code that made an entry, from the sources themselves, and the public names in it."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from chainrule.atlas.core.registry import Entry
from chainrule.version import __version__

__all__ = ["code_of", "key_of", "public_names"]

FORMAT = 1  # of what is written for an entry: another number computes all again


@functools.cache
def _module_parts(name: str) -> dict[str, str]:
    """The top-level definitions of a module, as text by their names."""
    text = inspect.getsource(sys.modules[name])
    lines = text.splitlines()
    parts: dict[str, str] = {}
    for node in ast.parse(text).body:
        names: list[str] = []
        first = node.lineno
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
            first = min([first, *(d.lineno for d in node.decorator_list)])
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        for each in names:
            parts[each] = "\n".join(lines[first - 1 : node.end_lineno])
    return parts


def _names_in(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(textwrap.dedent(text))):
        if isinstance(node, ast.Name):
            yield node.id


def _definitions(module: str, name: str, seen: dict[tuple[str, str], str]) -> None:
    """Collects a definition after those of the atlas that it needs."""
    parts = _module_parts(module)
    if (module, name) in seen or name not in parts:
        return
    seen[module, name] = ""  # a name that needs itself ends here
    for other in dict.fromkeys(_names_in(parts[name])):
        value: Any = getattr(sys.modules[module], other, None)
        home = getattr(value, "__module__", None)
        if other in parts:
            _definitions(module, other, seen)
        elif isinstance(home, str) and _is_of_entries(home):
            _definitions(home, value.__name__, seen)
    del seen[module, name]
    seen[module, name] = parts[name]


def _is_of_entries(module: str) -> bool:
    return module.startswith("chainrule.atlas.") and not module.startswith("chainrule.atlas.core.")


def code_of(entry: Entry) -> str:
    """The function of an entry, below the helpers and constants of the atlas that it uses."""
    seen: dict[tuple[str, str], str] = {}
    _definitions(entry.function.__module__, entry.function.__name__, seen)
    imports = _imports_of(entry.function.__module__, "\n".join(seen.values()))
    return "\n\n\n".join([imports, *seen.values()])


def _imports_of(module: str, code: str) -> str:
    """The imports of the module that the code needs."""
    used = {*_names_in(code)}
    kept = []
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [a for a in node.names if (a.asname or a.name.partition(".")[0]) in used]
            if names and getattr(node, "module", "") != "__future__":
                node.names = names
                kept.append(ast.unparse(node))
    return "\n".join(kept)


def key_of(entry: Entry, full: bool) -> str:
    """What an entry was computed from: source, settings, version. Another key computes it again."""
    settings = json.dumps(entry.settings(full), sort_keys=True, default=str)
    text = "\n".join([str(FORMAT), __version__, settings, code_of(entry)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def public_names(entry: Entry) -> dict[str, Any]:
    """The functions, classes and modules of the library that the code of an entry names, as
    ``nn.SELU``, in their order."""
    found: dict[str, Any] = {}
    module = sys.modules[entry.function.__module__]
    for node in ast.walk(ast.parse(code_of(entry))):
        name = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        value = _looked_up(module, name) if name.replace(".", "").isidentifier() else None
        if value is not None and not isinstance(value, ModuleType) and _is_public(value):
            found.setdefault(name, value)
    return dict(sorted(found.items()))


def _looked_up(module: ModuleType, name: str) -> Any:
    first, *rest = name.split(".")
    value = getattr(module, first, None)
    if not isinstance(value, ModuleType) or not value.__name__.startswith("chainrule"):
        return None
    for part in rest:
        value = getattr(value, part, None)
    return value


def _is_public(value: Any) -> bool:
    home = getattr(value, "__module__", "") or ""
    is_callable: Callable[[Any], bool] = callable
    return is_callable(value) and home.startswith("chainrule") and bool(value.__doc__)
