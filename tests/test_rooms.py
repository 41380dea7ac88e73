"""A module imports only from its own room and from the rooms below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import chainrule

PACKAGE = Path(chainrule.__file__).parent

# From the roof down. ``chainrule/__init__.py`` lies on top of all: it may import everything, and
# nothing may import it.
ROOMS = (
    ("cli", "__main__"),
    ("estimators",),
    ("train",),
    ("files",),
    ("inspect",),
    ("data",),
    ("models",),
    ("problems",),
    ("regularize",),
    ("optim",),
    ("information",),
    ("curvature",),
    ("nn",),
    ("clustering",),
    ("func",),
    ("autograd",),
    ("linalg",),
    ("ops",),
    ("tensor", "graph", "printing", "typing"),
    ("backend",),
    ("random",),
)
FLOOR = {name: floor for floor, room in enumerate(reversed(ROOMS)) for name in room}


def is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below this one, without what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and is_type_checking(child.test):
            for other in child.orelse:
                yield other
                yield from executed(other)
        else:
            yield child
            yield from executed(child)


def imported_names(source: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a module imports, wherever in it."""
    for node in executed(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.lineno, f"{'.' * node.level}{node.module or ''}.{alias.name}"


def violations(module: str, source: str) -> list[str]:
    """What a module (``ops.shape``) imports although it lies above it or belongs to no room."""
    room = module.split(".")[0]
    if room not in FLOOR:
        return [f"{module} belongs to no room; say in which it is"]
    found = []
    for line, name in imported_names(source):
        parts = name.split(".")
        if parts[0] != "chainrule":
            continue
        if len(parts) == 1 or parts[1] not in FLOOR:
            found.append(f"{module}:{line} imports {name}, which no room holds (the roof?)")
        elif FLOOR[parts[1]] > FLOOR[room]:
            found.append(f"{module}:{line} imports {name}, which lies above {room}")
    return found


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def test_imports_go_down() -> None:
    found = [v for path in modules() for v in violations(dotted(path), path.read_text("utf-8"))]
    assert not found, "\n".join(found)


def test_all_modules_are_seen() -> None:
    names = {dotted(path) for path in modules()}
    assert {"tensor", "ops", "ops.core.primitive", "autograd.engine", "backend.dtypes"} <= names


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tensor", "from chainrule.ops.shape.views import reshape"),
        ("tensor", "def f():\n    from chainrule import autograd"),
        ("ops.shape", "import chainrule.autograd.engine"),
        ("backend.dtypes", "from chainrule.tensor import Tensor"),
        ("random", "from chainrule.backend import K"),
        ("autograd.engine", "from chainrule import func"),
        ("ops.shape", "import chainrule"),
        ("ops.shape", "from chainrule import Tensor"),
        ("attic", "import os"),
    ],
)
def test_a_wrong_import_is_caught(module: str, source: str) -> None:
    assert violations(module, source)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ops.shape", "from chainrule.ops.core import primitive"),
        ("func", "from chainrule.autograd import grad"),
        ("tensor", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import chainrule.nn"),
        ("cli", "import json\nfrom chainrule import backend"),
    ],
)
def test_a_right_import_passes(module: str, source: str) -> None:
    assert not violations(module, source)
