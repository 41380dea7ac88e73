"""``docs/coverage.md`` says what exists: every name in it resolves, every test in it is there."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
STATES = ("done", "partly", "open")

# How many items each group of the curriculum has. They are numbered from 01; M39 and M45 were
# merged into other items.
COUNTS = {
    "M": 44,
    "L": 20,
    "A": 19,
    "S": 18,
    "I": 16,
    "O": 41,
    "C": 12,
    "R": 22,
    "G": 9,
    "N": 11,
    "P": 19,
    "E": 13,
    "D": 23,
    "V": 52,
    "H": 19,
    "T": 16,
    "F": 26,
    "X": 17,
    "Y": 11,
}
MERGED = {"M39", "M45"}


@dataclass(frozen=True)
class Row:
    id: str
    item: str
    state: str
    where: str
    test: str

    @property
    def names(self) -> list[str]:
        return re.findall(r"`([^`]*)`", self.where)

    @property
    def tests(self) -> list[str]:
        return re.findall(r"`([^`]*)`", self.test)


def rows(text: str) -> list[Row]:
    """The rows of all tables whose first cell is an id."""
    found = []
    for line in text.splitlines():
        if re.match(r"\|\s*[A-Z]\d+\s*\|", line):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            found.append(Row(*cells))
    return found


def resolve(name: str) -> Any:
    """The object of a dotted name such as ``chainrule.autograd.grad``, or a program's path."""
    if name.startswith("examples/") and (ROOT / name).is_file():
        return ROOT / name
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise ImportError(f"no module named {parts[0]}")


@cache
def statements(path: Path) -> list[ast.stmt]:
    """Of a file of tests, which many rows name."""
    return ast.parse(path.read_text("utf-8")).body


def has_test(node: str) -> bool:
    """Whether ``path::name`` (or ``path::Class::name``, parameters ignored) is in the sources."""
    path, *names = node.split("[")[0].split("::")
    if not (ROOT / path).is_file() or not names:
        return False
    body = statements(ROOT / path)
    for name in names:
        kinds = (ast.FunctionDef, ast.ClassDef)
        found = next((n for n in body if isinstance(n, kinds) and n.name == name), None)
        if found is None:
            return False
        body = found.body
    return True


def complaints(row: Row) -> list[str]:
    """What is wrong with a row."""
    found = []
    if row.state not in STATES:
        found.append(f"state {row.state!r} is none of {STATES}")
    if row.state == "done" and not row.names:
        found.append("done, but no name")
    if row.state == "done" and not row.tests:
        found.append("done, but no test")
    if row.state == "open" and (row.where or row.test):
        found.append("open, but with a name or a test")
    for name in row.names:
        try:
            resolve(name)
        except (ImportError, AttributeError) as error:
            found.append(f"{name}: {error}")
    found += [f"no test {node}" for node in row.tests if not has_test(node)]
    return [f"{row.id}: {complaint}" for complaint in found]


@pytest.fixture(scope="module")
def page() -> list[Row]:
    return rows((ROOT / "docs" / "coverage.md").read_text("utf-8"))


def test_every_item_is_listed_once(page: list[Row]) -> None:
    assert Counter(row.id[0] for row in page) == COUNTS
    for group, count in COUNTS.items():
        numbers = [f"{group}{n:02}" for n in range(1, count + len(MERGED) + 1)]
        expected = [n for n in numbers if n not in MERGED][:count]
        assert [row.id for row in page if row.id[0] == group] == expected


def test_every_claim_holds(page: list[Row]) -> None:
    found = [complaint for row in page for complaint in complaints(row)]
    assert not found, "\n".join(found)


def test_every_item_has_a_title(page: list[Row]) -> None:
    assert all(row.item for row in page)


HERE = "`tests/test_coverage_doc.py::test_every_claim_holds`"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (Row("D01", "x", "finished", "", ""), "none of"),
        (Row("D01", "x", "done", "", HERE), "no name"),
        (Row("D01", "x", "done", "`chainrule.autograd.grad`", ""), "no test"),
        (Row("D01", "x", "open", "`chainrule.autograd.grad`", ""), "open, but"),
        (Row("D01", "x", "done", "`chainrule.autograd.gard`", HERE), "gard"),
        (Row("D01", "x", "done", "`chainrool.grad`", HERE), "chainrool"),
        (Row("D01", "x", "partly", "", "`tests/test_coverage_doc.py::test_gone`"), "no test"),
        (Row("D01", "x", "partly", "", "`tests/gone.py::test_gone`"), "no test"),
    ],
)
def test_a_false_claim_is_caught(row: Row, complaint: str) -> None:
    assert any(complaint in c for c in complaints(row))


def test_a_true_claim_passes() -> None:
    assert not complaints(Row("D01", "x", "done", "`chainrule.autograd.grad`", HERE))
    assert not complaints(Row("D01", "x", "open", "", ""))
