"""Processes that train together: the losses of one, other numbers of them, kills (``make xla``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("jax")

PROGRAM = Path(__file__).with_name("train_together.py")
LAUNCH = [sys.executable, "-m", "chainrule", "launch", "--processes"]
NEAR = 1e-6  # of losses


def losses(count: int, folder: Path, epochs: int, way: str, *arguments: str) -> list[float]:
    """What a training in so many processes comes to, the same in all of them."""
    folder.mkdir(exist_ok=True)
    command = [*LAUNCH, str(count), str(PROGRAM), str(folder), str(epochs), way, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    (line,) = [text for text in run.stdout.splitlines() if "[Gloo]" not in text]
    found: list[float] = json.loads(line.removeprefix("[0] "))
    return found


def test_two_processes_are_as_one(tmp_path: Path) -> None:
    """Dropout, batch normalization and Adam, eager and compiled, beside the kernels of the CPU."""
    alone = losses(1, tmp_path, 8, "host")
    assert len(alone) == 8
    for way in ("eager", "compiled"):
        assert losses(2, tmp_path, 8, way) == pytest.approx(alone, abs=NEAR, rel=0), way


@pytest.mark.parametrize("way", ["trainer", "sampler"])
def test_any_number_of_processes_goes_on(way: str, tmp_path: Path) -> None:
    """Two epochs in two processes, two in one, two in two; the process of rank 0 writes."""
    whole = losses(1, tmp_path / "whole", 6, way)
    losses(2, tmp_path / "parts", 2, way)
    losses(1, tmp_path / "parts", 4, way, "--resume")
    found = losses(2, tmp_path / "parts", 6, way, "--resume")
    assert found == pytest.approx(whole, abs=NEAR, rel=0)


def test_a_process_that_is_killed_ends_the_training(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import os\n"
        "from chainrule import distributed as dist, nn, ones, train\n"
        "dist.init_process_group()\n"
        "def end(trainer):\n"
        "    if dist.get_rank() == 1 and trainer.epoch == 2:\n"
        "        os.kill(os.getpid(), 9)\n"
        "look = train.LambdaCallback(on_epoch_end=end)\n"
        "trainer = train.Trainer(nn.Linear(2, 1), 'mse', callbacks=[look], devices='xla')\n"
        "trainer.fit((ones(40, 2), ones(40, 1)), epochs=10**6, batch_size=10)\n"
    )
    command = [*LAUNCH, "2", str(script)]
    begin = time.monotonic()
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert time.monotonic() - begin < 60  # of which the start is the most
    assert run.returncode == 137
    last = run.stderr.splitlines()[-1]
    assert "error: process 1 (pid " in last
    assert last.endswith("was ended by SIGKILL; ended the other 1")


def test_a_share_that_does_not_divide_names_drop_last(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "from chainrule import data, distributed as dist, nn, ones, train\n"
        "dist.init_process_group()\n"
        "rows = data.TensorDataset(ones(10, 2), ones(10, 1))\n"
        "sampler = data.DistributedSampler(rows)\n"
        "loader = data.DataLoader(rows, 2, sampler=sampler)\n"
        "trainer = train.Trainer(nn.Linear(2, 1), 'mse', devices='xla')\n"
        "trainer.fit(loader, epochs=1)\n"
    )
    env = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    run = subprocess.run(
        [*LAUNCH, "2", str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **env},
    )
    assert run.returncode == 1
    said = "a batch of 1 samples in each of 2 processes cannot be cut among 4 devices; leave such "
    assert said + "a last batch out with drop_last=True" in run.stderr


def test_the_command_in_two_processes(tmp_path: Path) -> None:
    """One network, which the process of rank 0 writes."""
    fit = ["-m", "chainrule", "fit", "iris", "--hidden", "8", "--epochs", "3", "--quiet"]
    told = []
    for count, devices in (("1", "1"), ("2", "xla")):
        out = tmp_path / count
        command = [*LAUNCH, count, *fit, "--devices", devices, "--out", str(out)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=240)
        assert run.returncode == 0, run.stderr
        assert run.stdout.count("model, history.csv and report.html are in") == 1
        rows = (out / "history.csv").read_text().splitlines()
        names = rows[0].split(",")
        told.append([float(row.split(",")[names.index("loss")]) for row in rows[1:]])
    assert told[0] == pytest.approx(told[1], abs=NEAR, rel=0)
