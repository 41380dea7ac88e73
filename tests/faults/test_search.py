"""``chainrule fit --effort high`` that is killed goes on where it stopped, with the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from faults.test_fit import TABLE, Killed, end_of

import chainrule
from chainrule import train
from chainrule.cli import main
from chainrule.train.automatic import search
from chainrule.train.automatic.ensemble import Recipe
from chainrule.train.run_folder import RunCheckpoint

FIT = ["fit", "table.csv", "--effort", "high", "--json", "--out"]
SHAPES = (
    Recipe(hidden=(3,), pieces=0, lr=0.01, updates=24),
    Recipe(hidden=(4,), dropout=0.2, lr=0.01, updates=24),
)


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(TABLE)
    monkeypatch.setitem(search.RECIPES, "high", Recipe(hidden=(5,), dropout=0.1, updates=24))
    monkeypatch.setattr(search, "SHAPES", SHAPES)
    monkeypatch.setattr(search, "FACTORS", (0.5, 2.0))


def kill_at(write_number: int, monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    """Runs a fit that is killed when it has written so many checkpoints."""
    write, written = RunCheckpoint.write, []

    def dying(self: RunCheckpoint, trainer: train.Trainer) -> None:
        write(self, trainer)
        written.append(1)
        if len(written) == write_number:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(RunCheckpoint, "write", dying)
        with pytest.raises(Killed):
            main([*FIT, "out", "--checkpoint-every", "0", *more])


def sweeps_kept() -> int:
    (path,) = Path("out").glob("checkpoint-*")
    kept: Any = chainrule.load(path)
    return kept["search"]["sweeps"] if "search" in kept else 0


@pytest.mark.parametrize(("write", "sweeps"), [(1, 0), (3, 0), (4, 1), (5, 2)])
def test_resumed_bit_for_bit(monkeypatch: pytest.MonkeyPatch, write: int, sweeps: int) -> None:
    assert main([*FIT, "whole"]) == 0
    kill_at(write, monkeypatch)  # three epochs of the first network, then a write for each sweep
    assert sweeps_kept() == sweeps
    assert main([*FIT, "out", "--resume"]) == 0
    assert end_of("out")[:2] == end_of("whole")[:2]
    told = [train.FittedNetwork.load(name).about["trained"] for name in ("out", "whole")]
    assert told[0] == told[1]
    assert told[0]["networks"] == 5
    assert not list(Path("out").glob("checkpoint-*"))


def test_the_time_that_is_spent_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = ("--time-limit", "100h")
    kill_at(5, monkeypatch, *limit)
    (path,) = Path("out").glob("checkpoint-*")
    kept: Any = chainrule.load(path)
    assert kept["search"]["seconds"] > 0
    kept["search"]["seconds"] = 360_000.0
    chainrule.save(kept, path)
    assert main([*FIT, "out", "--resume", *limit]) == 0
    assert train.FittedNetwork.load("out").about["trained"]["networks"] == 5


def _without_share(kept: dict[str, Any]) -> None:
    del kept["others"][0]["share"]


def _another_shape(kept: dict[str, Any]) -> None:
    kept["others"][1]["recipe"]["hidden"] = [7]


def _far_too_large(kept: dict[str, Any]) -> None:
    kept["others"][1]["recipe"]["hidden"] = [10**12]


def _other_outputs(kept: dict[str, Any]) -> None:
    kept["others"][0]["output"] = chainrule.zeros(1)


def _negative(kept: dict[str, Any]) -> None:
    kept["sweeps"] = -1


@pytest.mark.parametrize(
    "damage", [_without_share, _another_shape, _far_too_large, _other_outputs, _negative]
)
def test_a_damaged_checkpoint_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], damage: Any
) -> None:
    kill_at(5, monkeypatch)
    (path,) = Path("out").glob("checkpoint-*")
    kept: Any = chainrule.load(path)
    damage(kept["search"])
    chainrule.save(kept, path)
    capsys.readouterr()
    assert main([*FIT, "out", "--resume"]) == 2
    told = capsys.readouterr().err
    assert "is damaged: its networks cannot be used" in told
    assert len(list(Path("out").iterdir())) == 1
