"""Ctrl-C: the first keeps what was learned, the second always ends the program with a word."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from faults.test_fit import HERE, TABLE, environment

from chainrule.cli import main
from chainrule.train import FittedNetwork

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
FIT = ["fit", "table.csv", "--hidden", "2", "--epochs", "30", "--quiet", "--out", "out"]


CASES = {
    "reading": ["reading"],
    "first batch": ["first batch"],
    "report": ["report"],
    "saving": ["saving"],
    "epoch": ["epoch"],
    "epoch, report": ["epoch", "report"],
    "epoch, saving": ["epoch", "saving"],
    "epoch, published": ["epoch", "published"],
}
ONE, TWO = "chainrule: interrupted\n", "\nchainrule: interrupted again, ended at once\n"
Outcome = tuple[Path, int, str]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """For each case its folder, the exit status and the output; over a former run of seed 9."""
    home = tmp_path_factory.mktemp("signals")
    (home / "table.csv").write_text(TABLE)
    with contextlib.chdir(home):
        assert main([*FIT, "--epochs", "1", "--seed", "9"]) == 0
    folders = [home / name for name in CASES]
    for folder in folders:
        folder.mkdir()
        shutil.copy(home / "table.csv", folder)
        shutil.copytree(home / "out", folder / "out")
    arguments = [*FIT, "--checkpoint-every", "0"]
    cases = [
        (places, arguments, str(folder))
        for places, folder in zip(CASES.values(), folders, strict=True)
    ]
    command = [sys.executable, str(HERE / "interrupting.py")]
    done = subprocess.run(
        command, input=json.dumps(cases), capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {
        name: (folder, *outcome)
        for name, folder, outcome in zip(CASES, folders, found, strict=True)
    }


def is_new(folder: Path) -> bool:
    """Whether the folder holds the interrupted run, and not the former one; it is one of them."""
    new = FittedNetwork.load(folder / "out").about["settings"]["seed"] == 0
    assert ("--seed 9" not in (folder / "out" / "report.html").read_text()) == new
    left = [p for p in (folder / "out").iterdir() if not p.name.startswith("checkpoint-")]
    assert len(left) == 4
    return new


@pytest.mark.parametrize("case", ["reading", "first batch", "report", "saving"])
def test_one_outside_of_the_training_ends_the_program(
    outcomes: dict[str, Outcome], case: str
) -> None:
    folder, status, told = outcomes[case]
    assert (status, told) == (130, ONE)
    assert not is_new(folder)


def test_the_first_in_the_training_keeps_the_best_epoch(
    outcomes: dict[str, Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, status, told = outcomes["epoch"]
    assert status == 0
    assert "interrupted by the user" in told
    assert is_new(folder)
    assert len(FittedNetwork.load(folder / "out").history) == 4
    monkeypatch.chdir(folder)
    assert main([*FIT, "--resume"]) == 0  # its checkpoint is there to go on from
    assert len(FittedNetwork.load("out").history) == 30


@pytest.mark.parametrize("case", ["epoch, report", "epoch, saving", "epoch, published"])
def test_the_second_always_ends_the_program(outcomes: dict[str, Outcome], case: str) -> None:
    folder, status, told = outcomes[case]
    assert (status, told) == (130, TWO)
    assert is_new(folder) == case.endswith("published")
