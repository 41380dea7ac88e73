"""The code that made an entry, from the sources themselves, and the public names in it."""

from __future__ import annotations

import ast
import copy
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

__all__ = ["code_of", "key_of", "key_of_function", "public_names"]

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


@functools.cache
def _nodes_of(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(textwrap.dedent(text))))


def _names_in(text: str) -> Iterator[str]:
    for node in _nodes_of(text):
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
    for home, other in dict.fromkeys(_attributes_in(parts[name], sys.modules[module])):
        _definitions(home, other, seen)
    del seen[module, name]
    seen[module, name] = parts[name]


def _attributes_in(text: str, module: ModuleType) -> Iterator[tuple[str, str]]:
    """What the text takes from modules of the atlas by a dot: their names, and what it takes."""
    for node in _nodes_of(text):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            home = getattr(module, node.value.id, None)
            if isinstance(home, ModuleType) and _is_of_entries(home.__name__):
                yield home.__name__, node.attr


def _is_of_entries(module: str) -> bool:
    return module.startswith("chainrule.atlas.") and not module.startswith("chainrule.atlas.core.")


@functools.cache
def _parts_of(module: str, name: str) -> dict[tuple[str, str], str]:
    """A definition below all of the atlas that it needs, by module and name."""
    seen: dict[tuple[str, str], str] = {}
    _definitions(module, name, seen)
    return seen


def code_of(entry: Entry) -> str:
    """The function of an entry, below the helpers and constants of the atlas that it uses."""
    parts = _parts_of(entry.function.__module__, entry.function.__name__)
    shown = {name for _, name in parts}
    imports = [
        line
        for module in dict.fromkeys(module for module, _ in parts)
        for line in _imports_of(module, _used_by(parts, module) - shown)
    ]
    # A line that gives several names is the part of each of them.
    return "\n\n\n".join(["\n".join(dict.fromkeys(imports)), *dict.fromkeys(parts.values())])


def _used_by(parts: dict[tuple[str, str], str], module: str) -> set[str]:
    """The names in the parts of a module."""
    return {each for (home, _), text in parts.items() if home == module for each in _names_in(text)}


@functools.cache
def _import_lines(module: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    found = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    return tuple(n for n in found if getattr(n, "module", "") != "__future__")


def _imports_of(module: str, used: set[str]) -> list[str]:
    """The imports of a module that give these names."""
    kept = []
    for node in _import_lines(module):
        names = [a for a in node.names if (a.asname or a.name.partition(".")[0]) in used]
        if names:
            needed = copy.copy(node)
            needed.names = names
            kept.append(ast.unparse(needed))
    return kept


def key_of(entry: Entry, full: bool) -> str:
    """What an entry was computed from: source, settings, version, and whether from files. Another
    key computes it again."""
    settings = json.dumps(entry.settings(full), sort_keys=True, default=str)
    files = "files" if full and entry.reads_files else ""
    return _digest(settings, files, code_of(entry))


def key_of_function(function: Callable[..., Any]) -> str:
    """The same for a function by itself, whatever its arguments."""
    return _digest(*_parts_of(function.__module__, function.__name__).values())


def _digest(*texts: str) -> str:
    text = "\n".join([str(FORMAT), __version__, *texts])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def public_names(entry: Entry) -> dict[str, Any]:
    """The functions and classes of the library that the code of an entry calls, by their whole
    names, such as ``chainrule.nn.SELU``."""
    return dict(_public_names(entry.function.__module__, entry.function.__name__))


@functools.cache
def _public_names(module: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (home, _), text in _parts_of(module, name).items():
        for node in _nodes_of(text):
            if isinstance(node, ast.Attribute):
                whole, value = _looked_up(sys.modules[home], ast.unparse(node))
                if not isinstance(value, ModuleType) and _is_public(value):
                    found[whole] = value
    return dict(sorted(found.items()))


def _looked_up(module: ModuleType, name: str) -> tuple[str, Any]:
    """What a dotted name means in a module, and its whole name; None if it is not the library's."""
    first, *rest = name.split(".")
    value: Any = getattr(module, first, None)
    if not isinstance(value, ModuleType) or not value.__name__.startswith("chainrule"):
        return name, None
    whole = ".".join([value.__name__, *rest])
    for part in rest:
        value = getattr(value, part, None)
    return whole, value


def _is_public(value: Any) -> bool:
    home = getattr(value, "__module__", "") or ""
    is_callable: Callable[[Any], bool] = callable
    return is_callable(value) and home.startswith("chainrule") and bool(value.__doc__)
