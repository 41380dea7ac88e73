"""The programs in the README and in ``docs/`` run and print what the page says.

Each page is one program: its ``python`` blocks share one namespace, in order. Results are written
as ``expression  # -> value`` (or ``print(...)  # -> text``), or as an interactive session with
``>>>``.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import re
import tokenize
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

_BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[int, str]]:
    """The Python blocks of a page, each with the number of the line before it."""
    return [(text.count("\n", 0, m.start(1)), m.group(1)) for m in _BLOCK.finditer(text)]


def promises(source: str) -> dict[int, str]:
    """The text behind ``# ->``, by line."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT}
    return {n: c.split("->", 1)[1].strip() for n, c in comments.items() if c.startswith("# ->")}


def agree(expected: str, got: str) -> bool:
    return doctest.OutputChecker().check_output(f"{expected}\n", f"{got.strip()}\n", FLAGS)


def outcome(statement: ast.stmt, name: str, space: dict[str, Any]) -> str:
    """Runs a statement; what it printed, or else the value that it showed or assigned."""
    printed = io.StringIO()
    shown = None
    with contextlib.redirect_stdout(printed):
        if isinstance(statement, ast.Expr):
            shown = eval(compile(ast.Expression(statement.value), name, "eval"), space)
        else:
            exec(compile(ast.Module([statement], []), name, "exec"), space)
            if isinstance(statement, ast.Assign):
                shown = eval(ast.unparse(statement.targets[0]), space)
    return printed.getvalue() or repr(shown)


def run_program(source: str, name: str, line: int, space: dict[str, Any]) -> None:
    """Runs a block and checks its promises."""
    expected = promises(source)
    tree = ast.parse(source)
    for statement in tree.body:
        last = statement.end_lineno or statement.lineno
        place = f"{name}:{line + last}"
        got = outcome(statement, place, space)
        if last in expected:
            promise = expected.pop(last)
            assert agree(promise, got), f"{place}: says {promise}, gives {got}"
    assert not expected, f"{name}: '# ->' at lines {sorted(expected)} of a block ends no statement"


def run_session(source: str, name: str, line: int, space: dict[str, Any]) -> None:
    """Runs an interactive session with doctest."""
    test = doctest.DocTestParser().get_doctest(source, space, name, name, line)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=report.write, clear_globs=False)
    space.update(test.globs)
    assert not runner.failures, report.getvalue()


def run_page(text: str, name: str) -> None:
    space: dict[str, Any] = {"__name__": "__page__"}
    for line, source in blocks(text):
        run = run_session if source.lstrip().startswith(">>>") else run_program
        run(source, name, line, space)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_page_runs(page: Path) -> None:
    run_page(page.read_text("utf-8"), page.name)


PAGE = """
```python
x = 2
x + 1  # -> 3
```
```python
>>> x * 10
{}
```
```python
print("sum", x)  # -> {}
```
"""


def test_right_promises_pass() -> None:
    run_page(PAGE.format("20", "sum 2"), "page")


@pytest.mark.parametrize("results", [("21", "sum 2"), ("20", "sum 3")])
def test_wrong_promises_are_caught(results: tuple[str, str]) -> None:
    with pytest.raises(AssertionError):
        run_page(PAGE.format(*results), "page")


def test_local_links_lead_somewhere() -> None:
    missing = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not missing, "\n".join(missing)
