"""The programs on the pages run and print what the page says; what they quote and name is there.

Each page is one program: its ``python`` blocks share one namespace, in order. Results are written
as ``expression  # -> value`` (or ``print(...)  # -> text``), or as an interactive session with
``>>>``. Where a page shows a picture that it draws (see ``tools/pictures.py``), the picture can be
read. Blocks that quote the source are marked (see ``tools/quote.py``).
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import re
import tokenize
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pictures
import pytest
import quote
from looking.drawn import assert_drawn_well, figure_of
from test_rooms import ROOMS

ROOT = Path(__file__).resolve().parent.parent
PAGES = quote.pages()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


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


@pytest.fixture(autouse=True, scope="module")
def _no_window() -> None:
    if find_spec("matplotlib"):
        importlib.import_module("matplotlib").use("agg")


def check_picture(drawn: Any, file: Path) -> None:
    """What a page's expression drew; the file is what its readers see."""
    plt = pytest.importorskip("matplotlib.pyplot")
    assert file.exists(), "run tools/pictures.py"
    assert file.stat().st_size < 100_000, "a page is read on a phone"
    if not hasattr(drawn, "svg"):
        assert_drawn_well(drawn)
        plt.close(figure_of(drawn))


def run_page(text: str, name: str, folder: Path = ROOT) -> None:
    space: dict[str, Any] = {"__name__": "__page__"}
    for part in pictures.parts(text):
        source = part["code"]
        if source is None:
            check_picture(eval(part["draw"], space), folder / part["file"])
            continue
        run = run_session if source.lstrip().startswith(">>>") else run_program
        run(source, name, text.count("\n", 0, part.start("code")), space)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_page_runs(page: Path) -> None:
    run_page(page.read_text("utf-8"), page.name, page.parent)


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


SHOWN = """
```python
import matplotlib.pyplot as plt
_, ax = plt.subplots()
{}
```
<!-- picture: ax -->
![a figure](figure.png)
"""


@pytest.mark.parametrize(
    ("line", "size", "complaint"),
    [
        ("ax.set_title('a title')", 1000, None),
        ("ax.set_title('a title')", 100_000, "on a phone"),
        ("ax.set_title('a title')", None, "run tools/pictures.py"),
        ("ax.set_xlabel('no title')", 1000, "no title"),
    ],
)
def test_a_picture_is_looked_at(
    line: str, size: int | None, complaint: str | None, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    if size is not None:
        (tmp_path / "figure.png").write_bytes(bytes(size))
    told = pytest.raises(AssertionError, match=complaint) if complaint else contextlib.nullcontext()
    with told:
        run_page(SHOWN.format(line), "page", tmp_path)


def test_local_links_lead_somewhere() -> None:
    missing = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not missing, "\n".join(missing)


# --- paths ----------------------------------------------------------------------------------------

# A folder, a path below one, or a file with an ending of ours.
PATH = re.compile(
    r"[\w.*-]+(?:/[\w.*-]+)*/|[\w.*-]+(?:/[\w.*-]+)+"
    r"|[\w.*-]+\.(?:pyi?|md|hpp|cpp|inc|toml|svg|ya?ml|sh)"
)


def paths(page: str) -> list[str]:
    """What a page names as files and folders, in the text and in its tables."""
    text = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    marked = [word.split("::")[0] for word in re.findall(r"`([^`\n]+)`", text)]
    return [word for word in marked if PATH.fullmatch(word)]


def missing_paths(page: str, *folders: Path) -> list[str]:
    """The paths that none of the folders has. A word in capitals stands for any."""
    return [
        path
        for path in paths(page)
        if not any(any(folder.glob(re.sub("[A-Z]{3,}", "*", path))) for folder in folders)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_paths_exist(page: Path) -> None:
    """From the root, from the package, or from the folder of the kernels."""
    folders = (ROOT, ROOT / "src" / "chainrule", ROOT / "native")
    assert missing_paths(page.read_text("utf-8"), *folders) == []


@pytest.mark.parametrize("name", [".pre-commit-config.yaml", ".github/workflows/ci.yml"])
def test_what_hooks_and_workflows_run_exists(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    named = set(re.findall(r"(?<![\w/])(?:tools|tests|\.ci)/[\w/.]+", text))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_readme_lists_the_parts() -> None:
    """Each one that it names is there; those that it leaves out are not for users."""
    text = (ROOT / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (`chainrule[^|]*) \|", text, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`chainrule\.(\w+)`", row)]
    package = importlib.import_module("chainrule")
    missing = [n for n in names if not hasattr(package, n) and not find_spec(f"chainrule.{n}")]
    assert missing == []
    inside = {
        "__config__",
        "__main__",
        "absent",
        "attributes",
        "charts",
        "cli",
        "files",
        "graph",
        "ops",
        "placement",
        "printing",
        "random",
        "settings",
        "tensor",
        "version",
    }
    assert {name for room in ROOMS for name in room} - set(names) == inside


def test_a_path_that_is_not_there_is_found() -> None:
    page = "See `ops/core/`, `ops/gone.py`, `tests/gone/`, `graph.py`, `tests/test_docs.py::test`."
    assert paths(page)[-1] == "tests/test_docs.py"
    assert missing_paths(page, ROOT, ROOT / "src" / "chainrule") == ["ops/gone.py", "tests/gone/"]
    assert missing_paths("`FAMILY.hpp` `FAMILY.hop/`", ROOT / "native") == ["FAMILY.hop/"]
    assert paths("A `number / 2`, `x.y`, `chainrule.ops`.\n```py\nx = `a/b`\n```\n") == []


# --- quotations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_quotations_are_the_source(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.count("<!-- from:") == len(quote.QUOTATION.findall(text))
    assert quote.current(text) == text, "run python tools/quote.py"


def test_the_tour_quotes() -> None:
    text = (ROOT / "docs" / "tour.md").read_text("utf-8")
    assert len(quote.QUOTATION.findall(text)) >= 3


SOURCE = """
LIMIT: int = 3
first, second = 1, 2

@decorated
def function():
    return 1

class Class:
    def method(self):
        return 2
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LIMIT", "LIMIT: int = 3\n"),
        ("second", "first, second = 1, 2\n"),
        ("function", "@decorated\ndef function():\n    return 1\n"),
        ("Class.method", "def method(self):\n    return 2\n"),
    ],
)
def test_a_definition_is_found(name: str, expected: str) -> None:
    assert quote.definition(SOURCE, name) == expected


def test_a_name_that_is_gone_is_an_error() -> None:
    with pytest.raises(LookupError, match="no gone"):
        quote.definition(SOURCE, "gone")


def test_a_changed_quotation_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE)
    page = "Text.\n\n<!-- from: a.py: LIMIT -->\n```py\n{}\n```\nMore.\n"
    assert quote.current(page.format("LIMIT = 2"), tmp_path) == page.format("LIMIT: int = 3")
