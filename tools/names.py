"""The lists of names: what a file exports at its home is exported by the package without a copy.

``chainrule/__init__.py``, ``nn/__init__.py``, ``nn/functional.py`` and ``nn/modules/__init__.py``
import names and list them in ``__all__``. An import marked ``# all of it`` has every name in the
``__all__`` of its module, and ``__all__`` has every public name that the file imports from the
package. ``make stub`` writes both; ``tests/test_names.py`` says whether they are current.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "chainrule"
LISTS = ("__init__.py", "nn/__init__.py", "nn/functional.py", "nn/modules/__init__.py")
MARK = "# all of it"
WIDTH = 100


def ordered(names: Iterable[str]) -> list[str]:
    """By the alphabet, upper and lower case alike."""
    return sorted(names, key=lambda name: (name.casefold(), name))


def exported(module: str, package: Path = PACKAGE) -> list[str]:
    """The public names in the ``__all__`` of a module, as its source has them."""
    path = package.joinpath(*module.split(".")[1:])
    source = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
    for node in ast.parse(source.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ordered(n for n in ast.literal_eval(node.value) if not n.startswith("_"))
    raise LookupError(f"{module} has no __all__")


def packed(names: list[str]) -> str:
    """The names in lines of the usual width."""
    text = ", ".join(names) + ","
    return textwrap.fill(text, WIDTH, initial_indent="    ", subsequent_indent="    ")


def import_of(module: str, names: list[str]) -> str:
    """A marked import."""
    line = f"from {module} import {', '.join(names)}  {MARK}"
    if len(line) <= WIDTH:
        return line
    return f"from {module} import (  {MARK}\n{packed(names)}\n)"


def public(node: ast.stmt, package: Path) -> list[str]:
    """The public names that a statement of a list imports from the package."""
    if isinstance(node, ast.If):
        return [name for part in node.body for name in public(part, package)]
    if not isinstance(node, ast.ImportFrom) or not f"{node.module}.".startswith("chainrule."):
        return []
    names = [alias.asname or alias.name for alias in node.names]
    return [name for name in names if not name.startswith("_") or name == "__version__"]


def current(source: str, package: Path = PACKAGE) -> str:
    """A list with its marked imports and its ``__all__`` as they should be."""
    lines = source.splitlines()
    body = ast.parse(source).body
    names: set[str] = set()
    changes: list[tuple[ast.stmt, str]] = []
    for node in body:
        if isinstance(node, ast.ImportFrom) and lines[node.lineno - 1].endswith(MARK):
            module = str(node.module)
            names.update(exported(module, package))
            changes.append((node, import_of(module, exported(module, package))))
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            found = [f'"{name}"' for name in ordered(names)]
            changes.append((node, f"__all__ = [\n{packed(found)}\n]"))
        else:
            names.update(public(node, package))
    for node, text in reversed(changes):
        lines[node.lineno - 1 : node.end_lineno] = text.splitlines()
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the lists that have changed."""
    for name in LISTS:
        path = PACKAGE / name
        before = path.read_text("utf-8")
        after = current(before)
        if after != before:
            path.write_text(after, "utf-8")
            print(f"{path.relative_to(PACKAGE.parent.parent)}: names written anew")


if __name__ == "__main__":
    main()
