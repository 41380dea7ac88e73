"""``chainrule fit`` is one transaction: killed, resumed, on a full disk, it loses nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import chainrule
from chainrule import train
from chainrule.cli import main
from chainrule.train.run_folder import RunCheckpoint

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


# --- resumed --------------------------------------------------------------------------------------

LONGER = ["--hidden", "4", "--dropout", "0.2", "--epochs", "12", "--batch-size", "8", "--json"]


class Killed(BaseException):
    """In place of a signal, which nothing in the program catches."""


def end_of(out: str) -> tuple[str, list[dict[str, object]], str]:
    """What a run came to: the name of its weights (their checksum), history, and report."""
    told = json.loads(Path(out, "model.json").read_text())
    rows = [
        {k: v for k, v in row.items() if k != "seconds"}
        for row in train.FittedNetwork.load(out).history
    ]
    return told["weights"], rows, Path(out, "report.html").read_text()


def kill_after(epoch: int, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    """Runs a fit that is killed when the checkpoint of an epoch is written."""
    write = RunCheckpoint.write

    def dying(self: RunCheckpoint, trainer: train.Trainer) -> None:
        write(self, trainer)
        if trainer.epoch == epoch:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(RunCheckpoint, "write", dying)
        with pytest.raises(Killed):
            main([*arguments, "--checkpoint-every", "0"])


def images() -> None:
    chance = np.random.default_rng(0)
    for name, low in (("dark", 0), ("light", 90)):
        Path("images", name).mkdir(parents=True)
        for i in range(9):
            pixels = chance.integers(low, low + 99, (8, 8)).astype("u1")
            Image.fromarray(pixels).save(Path("images", name, f"{i}.png"))


@pytest.mark.parametrize(
    ("data", "epoch", "options"),
    [
        ("table.csv", 1, []),
        ("table.csv", 7, ["--optimizer", "sgd", "--norm", "batch"]),
        ("iris", 5, ["--patience", "2", "--lr", "0.3"]),  # which stops early
        ("images", 3, ["--hidden", "3", "--epochs", "5"]),
    ],
)
def test_resumed_bit_for_bit(
    monkeypatch: pytest.MonkeyPatch, data: str, epoch: int, options: list[str]
) -> None:
    if data == "images":
        images()
    fit = ["fit", data, *LONGER, *options, "--out"]
    assert main([*fit, "out"]) == 0
    whole = end_of("out")
    shutil.rmtree("out")
    kill_after(epoch, monkeypatch, [*fit, "out"])
    assert [p.name.startswith("checkpoint-") for p in Path("out").iterdir()] == [True]
    assert main([*fit, "out", "--resume"]) == 0
    assert end_of("out")[:2] == whole[:2]
    assert end_of("out")[2] == whole[2]
    assert len(list(Path("out").iterdir())) == 4  # and no checkpoint


def test_every_epoch_of_a_run_that_stops_early_can_be_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fit = ["fit", "iris", *LONGER, "--patience", "2", "--lr", "0.3", "--out"]
    assert main([*fit, "whole"]) == 0
    epochs = len(train.FittedNetwork.load("whole").history)
    assert epochs < 12
    for epoch in range(1, epochs + 1):
        kill_after(epoch, monkeypatch, [*fit, "out"])
        assert main([*fit, "out", "--resume"]) == 0
        assert end_of("out")[:2] == end_of("whole")[:2]


def test_what_differs_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = ["fit", "table.csv", *LONGER, "--out", "out"]
    kill_after(2, monkeypatch, fit)
    before = {p: p.read_bytes() for p in Path("out").iterdir()}

    def refused(*more: str) -> str:
        capsys.readouterr()
        assert main([*fit, *more, "--resume"]) == 2
        told = capsys.readouterr().err
        assert len(told.splitlines()) == 1
        assert {p: p.read_bytes() for p in Path("out").iterdir()} == before
        return told

    assert "lr was None, is 0.1; seed was 0, is 3" in refused("--lr", "0.1", "--seed", "3")
    assert "target was 'b', is 'a'" in refused("--target", "a")
    Path("table.csv").write_text(TABLE.replace("\n7,", "\n7.5,"))
    assert "is of another fit: its data are others" in refused()
    assert "there is nothing to resume: new holds no checkpoint" in refused("--out", "new")


def test_a_checkpoint_that_is_left_is_told_of_and_stays(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = ["fit", "table.csv", *LONGER, "--out", "out"]
    kill_after(2, monkeypatch, fit)
    assert main([*fit, "--seed", "5"]) == 0
    assert "--resume goes on from it" in capsys.readouterr().err
    assert len(list(Path("out").glob("checkpoint-*"))) == 1
    assert main([*fit, "--resume"]) == 0
    assert not list(Path("out").glob("checkpoint-*"))


def test_the_time_between_checkpoints_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[int, float]] = []
    monkeypatch.setattr(
        RunCheckpoint, "write", lambda self, trainer: written.append((trainer.epoch, clock[0]))
    )
    clock = [0.0]

    def tick() -> float:
        clock[0] += 1.0
        return clock[0]

    monkeypatch.setattr("chainrule.train.callbacks.time.monotonic", tick)
    for seconds, expected in (("0", 12), ("3.5", 3), ("inf", 0)):
        written.clear()
        fit = ["fit", "table.csv", *LONGER, "--out", "out"]
        assert main([*fit, "--checkpoint-every", seconds]) == 0
        assert len(written) == expected, written
    assert main(["fit", "table.csv", "--checkpoint-every", "-1"]) == 2
    assert main(["fit", "table.csv", "--checkpoint-every", "nan"]) == 2


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_real_kill_is_resumed() -> None:
    fit = ["fit", "table.csv", *LONGER, "--epochs", "40", "--patience", "40", "--out"]
    command = [sys.executable, "-m", "chainrule", *fit, "out", "--checkpoint-every", "0"]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
    while process.poll() is None and not list(Path("out").glob("checkpoint-*")):
        time.sleep(0.005)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert main([*fit, "out", "--resume"]) == 0
    assert main([*fit, "whole"]) == 0
    assert end_of("out")[:2] == end_of("whole")[:2]
    assert len(list(Path("out").iterdir())) == 4
