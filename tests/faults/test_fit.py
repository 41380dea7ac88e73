"""``chainrule fit`` is one transaction: killed, resumed, on a full disk, it loses nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import chainrule
from chainrule.cli import main

HERE = Path(__file__).parent
TABLE = "a,b\n" + "\n".join(f"{i},{(7 * i) % 5 + i / 3}" for i in range(40))
FIT = ["fit", "table.csv", "--hidden", "2", "--epochs", "2", "--json"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(chainrule.__file__).parents[1])}


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text(TABLE)
    return tmp_path


# --- killed ---------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="forks of POSIX")
@pytest.mark.parametrize("former", [1, 0])
def test_killed_before_any_operation_on_files(inside: Path, former: int) -> None:
    if former:
        assert main([*FIT, "--out", "out", "--seed", "1"]) == 0
    command = [sys.executable, str(HERE / "killing.py"), str(inside / "out"), *FIT]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    seeds = [int(word) for word in done.stdout.splitlines()[-1].split()]
    assert len(seeds) > 40
    assert seeds == sorted(seeds)  # first the former run, from one moment on the new one
    assert set(seeds) == {former, 2}
    assert seeds.count(2) > 5  # killed after that moment, too
