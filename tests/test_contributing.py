"""The recipes of ``CONTRIBUTING.md`` work: applied to a copy of the sources they pass their checks.

Each recipe changes as many files as the page says; what is left out of one is missed, and a
mistake in one is found.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
PARTS = ("src", "tests", "tools", "docs", "native", "pyproject.toml")

_HEADING = re.compile(r"^### (?P<title>.+): (?P<count>\d) files$", re.MULTILINE)
_DIFF = re.compile(r"^```diff\n\+\+\+ (?P<path>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_CHECKS = re.compile(r"^Checks: `pytest (?P<args>[^`]+)`", re.MULTILINE)

# --- what the page says ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """How many files the page names, the changes of each, and the arguments of pytest."""

    count: int
    changes: dict[str, str]
    checks: list[str]


def recipes(page: str) -> dict[str, Recipe]:
    """The recipes by their titles, in lower case: "an operation"."""
    found = {}
    headings = list(_HEADING.finditer(page))
    ends = [h.start() for h in headings[1:]] + [page.index("\n## ", headings[-1].end())]
    for heading, end in zip(headings, ends, strict=True):
        text = page[heading.end() : end]
        changes = {m["path"]: m["text"] for m in _DIFF.finditer(text)}
        (checks,) = [m["args"].split() for m in _CHECKS.finditer(text)]
        found[heading["title"].lower()] = Recipe(int(heading["count"]), changes, checks)
    return found


def apply(change: str, source: str) -> str:
    """The source after a change; without ``@@`` the change is a whole new file."""
    if "@@" not in change.splitlines():
        return "".join(line[1:] + "\n" for line in change.splitlines())
    lines = source.splitlines()
    for part in re.split(r"^@@\n", change, flags=re.MULTILINE)[1:]:
        old = [line[1:] for line in part.splitlines() if not line.startswith("+")]
        new = [line[1:] for line in part.splitlines() if not line.startswith("-")]
        places = [i for i in range(len(lines)) if lines[i : i + len(old)] == old]
        if len(places) != 1:
            raise ValueError(f"these lines stand at {len(places)} places, not at one: {old}")
        lines[places[0] : places[0] + len(old)] = new
    return "\n".join(lines) + "\n"


RECIPES = recipes(PAGE)
# For each the most files it may take, and the test that misses what was left out.
KINDS = {
    "an operation": (3, "tests/ops/test_ops.py::test_every_public_function_has_a_record"),
    "a composed activation": (3, "tests/nn/test_layers.py::test_every_public_layer_has_a_record"),
    "a layer": (3, "tests/nn/test_layers.py::test_every_public_layer_has_a_record"),
    "an optimizer": (3, "tests/optim/test_records.py::test_every_optimizer_has_a_record"),
    "a kernel": (5, ""),  # it is not compiled here
    "an instrument": (3, "tests/inspect/test_contract.py::test_every_instrument_has_a_record"),
    "an entry of the atlas": (
        2,
        "tests/atlas/test_entries.py::test_every_recorded_verdict_is_of_an_entry",
    ),
}
TRIED = [kind for kind, (_, test) in KINDS.items() if test]
# Without the file that declares it, there is nothing to miss; without one of these there is.
BESIDES = [
    (kind, path)
    for kind in TRIED
    if kind != "a composed activation"  # whose record is a layer's
    for path in RECIPES[kind].changes
    if path.startswith("tests/") or path.endswith("__init__.py")
]

# --- a copy of the sources ------------------------------------------------------------------------


class Copy:
    """A copy of the project in which recipes are tried out."""

    def __init__(self, root: Path):
        self.root = root
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, root / part)
            else:
                shutil.copy(ROOT / part, root / part)

    def add(self, changes: dict[str, str]) -> None:
        for path, change in changes.items():
            file = self.root / path
            source = file.read_text("utf-8") if file.is_file() else ""
            file.write_text(apply(change, source), "utf-8")

    def run(self, *args: str) -> str:
        """What a Python program prints in the copy, an error if it fails."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        paths = [str(self.root / part) for part in ("src", "tests", "tools")]
        env["PYTHONPATH"] = os.pathsep.join(paths)
        done = subprocess.run(
            [sys.executable, *args], cwd=self.root, env=env, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        return done.stdout

    def pytest(self, *args: str) -> None:
        self.run("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *args)

    def complete(self, kind: str) -> None:
        """Whether all that is public has its record, for a kind of things."""
        path, test = KINDS[kind][1].split("::")
        self.run("-c", f"import runpy; runpy.run_path({path!r})[{test!r}]()")


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


# --- the recipes ----------------------------------------------------------------------------------


def test_every_kind_has_a_recipe() -> None:
    assert list(RECIPES) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_files_is_right(kind: str) -> None:
    recipe = RECIPES[kind]
    assert recipe.count == len(recipe.changes) <= KINDS[kind][0]
    assert f"\n| {kind} | {recipe.count} | " in PAGE


def with_completeness(kind: str) -> list[str]:
    """The checks that the page names, and whether all that is public has its record: at once."""
    *files, option, names = RECIPES[kind].checks
    path, test = KINDS[kind][1].split("::")
    assert (path in files, option) == (True, "-k")
    return [*files, option, f"{names} or {test}"]


@pytest.mark.parametrize("kind", TRIED)
def test_a_recipe_works(kind: str, copy: Copy) -> None:
    """The tests that the page names, the examples in docstrings, the linter."""
    copy.add(RECIPES[kind].changes)
    copy.run("tools/names.py")
    if kind == "an operation":
        copy.run("tools/stub.py")
    files = [path for path in RECIPES[kind].changes if path.endswith(".py")]
    copy.run("-m", "ruff", "check", "--no-cache", *files)
    copy.run("-m", "ruff", "format", "--no-cache", "--check", *files)
    examples = [p for p in files if p.startswith("src") and not p.endswith("__init__.py")]
    copy.pytest(*with_completeness(kind), *examples)


@pytest.mark.parametrize(("kind", "path"), BESIDES)
def test_what_is_left_out_is_missed(kind: str, path: str, copy: Copy) -> None:
    """A record, a list of names, a test."""
    copy.add({p: change for p, change in RECIPES[kind].changes.items() if p != path})
    copy.run("tools/names.py")
    with pytest.raises(RuntimeError, match="Error"):
        copy.complete(kind)


MISTAKE = """
import runpy
from samples import ALL
(sample,) = [s for s in ALL if s.name == "cbrt"]
runpy.run_path("tests/ops/test_ops.py")["test_first_derivatives"](sample)
"""


def test_a_mistake_in_a_recipe_is_found(copy: Copy) -> None:
    changes = dict(RECIPES["an operation"].changes)
    path = "src/chainrule/ops/elementwise/functions.py"
    assert "d / (3 * out * out)" in changes[path]
    changes[path] = changes[path].replace("(3 * out * out)", "(2 * out * out)")
    copy.add(changes)
    copy.run("tools/names.py")
    with pytest.raises(RuntimeError, match="GradcheckError"):
        copy.run("-c", MISTAKE)


# --- the kernel, which is not compiled here -------------------------------------------------------

ENTRY = re.compile(
    r' {4}EACH\(WITH, (\w+), \(.+\), (?:LIGHT|HEAVY), (?:both|single),\s+(?:\\\n\s+)?"[^"]+"\)'
)


TWIN = """
import chainrule
from chainrule.backend import K
calls, twin = [], K.sqrt_backward
K.sqrt_backward = lambda g, out: calls.append(1) or twin(g, out)
x = chainrule.tensor([4.0, 9.0], requires_grad=True)
x.sqrt().sum().backward()
print(len(calls), x.grad.tolist()[0])
"""


def test_the_kernel_has_a_twin_that_serves(copy: Copy) -> None:
    copy.add(RECIPES["a kernel"].changes)
    assert copy.run("-c", TWIN) == "1 0.25\n"


def test_the_kernel_has_an_entry_like_the_others() -> None:
    change = RECIPES["a kernel"].changes["native/elementwise.hpp"]
    before = (ROOT / "native" / "elementwise.hpp").read_text("utf-8")
    after = apply(change, before)
    names = ENTRY.findall(before)
    assert {"exp", "gelu", "relu_backward", "erf_backward"} <= set(names)
    assert set(ENTRY.findall(after)) == {*names, "sqrt_backward"}
    # The backslashes of the list stand below each other.
    (line,) = [line for line in after.splitlines() if "sqrt_backward" in line]
    (above,) = [line for line in after.splitlines() if "(WITH, relu_backward" in line]
    assert line.endswith(" \\")
    assert len(line) == len(above)


def test_the_kernel_is_called_at_random() -> None:
    change = RECIPES["a kernel"].changes["tests/native/valid_elementwise.py"]
    after = apply(change, (ROOT / "tests" / "native" / "valid_elementwise.py").read_text("utf-8"))
    made = [
        [ast.literal_eval(name) for name in decorator.args]
        for node in ast.walk(ast.parse(after))
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
    ]
    (together,) = [names for names in made if "sqrt_backward" in names]
    assert "tanh_backward" in together


# --- how changes are applied ----------------------------------------------------------------------

SOURCE = "a = 1\n\n\ndef f():\n    return a\n"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("@@\n a = 1\n+b = 2\n", "a = 1\nb = 2\n\n\ndef f():\n    return a\n"),
        ("@@\n-a = 1\n+a = 2\n@@\n-    return a\n+    return 3\n", None),
        ("+x = 1\n+\n+y = 2\n", "x = 1\n\ny = 2\n"),
    ],
)
def test_a_change_is_applied(change: str, expected: str | None) -> None:
    assert apply(change, SOURCE) == (expected or "a = 2\n\n\ndef f():\n    return 3\n")


@pytest.mark.parametrize("line", ["b = 1", " = 1", "a"])
def test_lines_that_are_not_there_are_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="at 0 places"):
        apply(f"@@\n {line}\n+c = 1\n", SOURCE)


def test_lines_that_stand_twice_are_an_error() -> None:
    with pytest.raises(ValueError, match="at 2 places"):
        apply("@@\n a\n+b\n", "a\na\n")
