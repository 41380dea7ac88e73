"""A module imports only from its own room and from the rooms below it."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import house
import pytest

import chainrule

PACKAGE = Path(chainrule.__file__).parent

# From the roof down. ``chainrule/__init__.py`` lies on top of all: it may import everything, and
# nothing may import it.
ROOMS = (
    ("cli", "__main__", "__config__"),
    ("atlas",),
    ("serve",),
    ("estimators",),
    ("train",),
    (
        "accelerator",
        "amp",
        "backends",
        "compiler",
        "cpu",
        "cuda",
        "distributed",
        "fx",
        "hub",
        "jit",
        "onnx",
        "serialization",
        "settings",
        "testing",
        "utils",
    ),
    ("files",),
    ("inspect",),
    ("metrics",),
    ("data",),
    ("models",),
    ("problems",),
    ("regularize",),
    ("optim",),
    ("information",),
    ("curvature",),
    ("interop",),
    ("nn",),
    ("distributions",),
    ("clustering",),
    ("func",),
    ("autograd",),
    ("sparse",),
    ("linalg", "special", "fft", "signal"),
    ("ops",),
    ("tensor", "graph", "printing", "typing", "attributes", "placement", "charts"),
    ("backend",),
    ("random",),
    ("absent", "version"),
)
# Its entries are programs as a reader writes them, so they import the roof, which never imports it.
PROGRAMS = "atlas"
FLOOR = {name: floor for floor, room in enumerate(reversed(ROOMS)) for name in room}


def violations(module: str, tree: ast.Module) -> list[str]:
    """What a module (``ops.shape``) imports although it lies above it or belongs to no room."""
    room = module.split(".")[0]
    if room not in FLOOR:
        return [f"{module} belongs to no room; say in which it is"]
    found = []
    for line, name in house.imported_names(tree):
        parts = name.split(".")
        of_roof = len(parts) == 1 or parts[1] not in FLOOR
        if parts[0] != "chainrule" or (of_roof and room == PROGRAMS):
            continue
        if of_roof:
            found.append(f"{module}:{line} imports {name}, which no room holds (the roof?)")
        elif FLOOR[parts[1]] > FLOOR[room]:
            found.append(f"{module}:{line} imports {name}, which lies above {room}")
    return found


def test_imports_go_down() -> None:
    inside = [s for s in house.sources() if s.name]
    found = [v for s in inside for v in violations(s.name, s.tree)]
    assert not found, "\n".join(found)


def test_no_two_modules_import_each_other() -> None:
    """Not even inside functions: what needs each other belongs together, or shares a part."""
    assert house.cycles(house.import_graph(house.sources())) == []


def test_a_cycle_is_found(tmp_path: Path) -> None:
    """Through several modules, and with an import inside a function."""
    (tmp_path / "a.py").write_text("from chainrule.b import x")
    (tmp_path / "b.py").write_text("import chainrule.c")
    (tmp_path / "c.py").write_text("def f():\n    from chainrule.a import y")
    (tmp_path / "d.py").write_text("import chainrule.a")
    graph = house.import_graph(house.sources(tmp_path))
    assert house.cycles(graph) == [["chainrule.a", "chainrule.b", "chainrule.c"]]


def test_all_modules_are_seen() -> None:
    names = {s.name for s in house.sources()}
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
        ("serve", "import chainrule"),
        ("atlas.errata.rules", "from chainrule import cli"),
    ],
)
def test_a_wrong_import_is_caught(module: str, source: str) -> None:
    assert violations(module, ast.parse(source))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ops.shape", "from chainrule.ops.core import primitive"),
        ("func", "from chainrule.autograd import grad"),
        ("tensor", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import chainrule.nn"),
        ("cli", "import json\nfrom chainrule import backend"),
        ("atlas.errata.rules", "import chainrule\nfrom chainrule import Tensor, nn"),
    ],
)
def test_a_right_import_passes(module: str, source: str) -> None:
    assert not violations(module, ast.parse(source))


# --- the page that shows them ---------------------------------------------------------------------

DOCS = Path(__file__).resolve().parent.parent / "docs"


def rooms_of_table(page: str, heading: str) -> tuple[tuple[str, ...], ...]:
    """The names in the first column of the table with this heading, row by row."""
    lines = page[page.index(f"\n| {heading} |") :].splitlines()[3:]
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return tuple(tuple(re.findall(r"`([^`]+)`", row.split("|")[1])) for row in rows)


def sub_rooms(room: str) -> set[str]:
    return {path.parent.name for path in (PACKAGE / room).glob("*/__init__.py")}


def test_the_page_lists_the_rooms_in_their_order() -> None:
    page = (DOCS / "architecture.md").read_text("utf-8")
    assert rooms_of_table(page, "room") == ROOMS
    _, after = page.split("rooms of their own. `ops`:")
    of_ops, of_nn = after.split("and `nn`:")
    for room, text in (("ops", of_ops), ("nn", of_nn)):
        names = [name for row in rooms_of_table(text, "sub-room") for name in row]
        assert sorted(names) == sorted(sub_rooms(room))


def test_the_picture_shows_the_rooms_in_their_order() -> None:
    """From left to right and from the top down, as they are written in the file."""
    picture = (DOCS / "rooms.svg").read_text("utf-8")
    shown = re.findall(r'<text class="(?:middle )?room[^"]*"[^>]*>([^<]+)</text>', picture)
    assert tuple(shown) == tuple(name for room in ROOMS for name in room)
    for room in ("ops", "nn"):
        parts = re.findall(rf'<text class="middle sub {room}"[^>]*>([^<]+)</text>', picture)
        assert sorted(parts) == sorted(sub_rooms(room))


# --- tests ----------------------------------------------------------------------------------------

TESTS = Path(__file__).parent
# Of the whole; rooms that are one file have theirs beside these.
WHOLE = {
    "contributing",
    "course_examples",
    "coverage_doc",
    "curriculum",
    "docs",
    "errata_doc",
    "examples",
    "house",
    "mnist",
    "names",
    "rooms",
    "scale",
    "stub",
    "threads",
    "tiny",
    "programs",
    "typed",
}
# Records, and other ways to divide.
BESIDE = {
    "devices",
    "faults",
    "layers",
    "looking",
    "meshes",
    "native",
    "parity",
    "programs",
    "samples",
    "typed",
}


def test_tests_mirror_the_rooms() -> None:
    rooms = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    folders = {p.parent.name for p in TESTS.glob("*/*.py")}
    # A folder "signal" would hide Python's module of that name: its tests are in ops.
    assert rooms - folders - {"files", "signal"} <= set(), "rooms without tests"
    assert folders - rooms - BESIDE == set(), "tests of no room"
    files = {p.stem for p in PACKAGE.glob("*.py")}
    assert {p.stem.removeprefix("test_") for p in TESTS.glob("test_*.py")} <= WHOLE | files


def test_no_folder_is_a_hall() -> None:
    """A folder that a newcomer can take in at a glance."""
    flat = {p: house.count(p) for p in PACKAGE.rglob("*") if p.is_dir()}
    assert max(flat.values()) <= 36, flat
