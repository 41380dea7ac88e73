"""Type checkers see a user's program as it is: no fault where there is none, and every mistake."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import chainrule

TYPED = Path(__file__).parent / "typed"
SOURCES = Path(chainrule.__file__).parents[1]
Faults = dict[str, dict[int, str]]


def mypy(folder: Path) -> Faults:
    """The lines that mypy finds fault with in strict mode, by file, and what it says."""
    options = ["--strict", "--no-error-summary", "--output=json", f"--cache-dir={folder / 'cache'}"]
    command = [sys.executable, "-m", "mypy", *options, "program.py", "mistakes.py"]
    environment = {**os.environ, "MYPYPATH": str(SOURCES)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    faults: Faults = {}
    for line in done.stdout.splitlines():
        told = json.loads(line)
        faults.setdefault(Path(told["file"]).name, {})[told["line"]] = told["message"]
    return faults


def pyright(folder: Path) -> Faults:
    """The same of pyright."""
    settings = {
        "typeCheckingMode": "strict",
        "extraPaths": [str(SOURCES)],
        "reportUnusedExpression": False,  # a mistake stands alone in its line
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    faults: Faults = {}
    for told in json.loads(done.stdout)["generalDiagnostics"]:
        line = told["range"]["start"]["line"] + 1
        faults.setdefault(Path(told["file"]).name, {})[line] = told["message"]
    return faults


@pytest.mark.parametrize("check", [mypy, pyright])
def test_a_right_program_has_no_faults_and_every_mistake_is_found(
    check: Callable[[Path], Faults], tmp_path: Path
) -> None:
    for name in ("program.py", "mistakes.py"):
        shutil.copy(TYPED / name, tmp_path / name)
    lines = (TYPED / "mistakes.py").read_text("utf-8").splitlines()
    planted = {i for i, line in enumerate(lines, 1) if "# mistake" in line}
    assert len(planted) > 9
    faults = check(tmp_path)
    found = faults.pop("mistakes.py")
    assert set(found) == planted, found
    assert faults == {}


def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(TYPED / "program.py"))
    printed = capsys.readouterr().out
    assert printed.startswith(("0.", "1."))
    assert "chainrule.Size([5, 3])" in printed


def test_the_program_is_sixty_lines() -> None:
    lines = (TYPED / "program.py").read_text("utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) >= 50
