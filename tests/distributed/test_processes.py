"""Processes that compute together, are killed, fail, leave, do not come (``make xla``)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("jax")

from chainrule.backend.processes import free_port

PROGRAM = Path(__file__).with_name("every_call.py")
LAUNCH = [sys.executable, "-m", "chainrule", "launch"]
BEGIN = "from chainrule import distributed as dist, ones\nimport os, sys, time\n"
START = BEGIN + "dist.init_process_group()\nrank = dist.get_rank()\n"


@pytest.mark.parametrize("count", [1, 3])
def test_every_call(count: int) -> None:
    command = [*LAUNCH, "--processes", str(count), str(PROGRAM)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert sorted(run.stdout.splitlines()) == [f"[{r}] all is right" for r in range(count)]


class Started:
    """Processes that no launcher looks after."""

    def __init__(self, tmp_path: Path, program: str, ranks: dict[int, int], **more: str):
        script = tmp_path / "program.py"
        script.write_text(program)
        usual = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port("127.0.0.1"))}
        self.runs = {
            rank: subprocess.Popen(
                [sys.executable, str(script)],
                env={**os.environ, **usual, "RANK": str(rank), "WORLD_SIZE": str(size), **more},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank, size in ranks.items()
        }

    def wait_for(self, word: str) -> None:
        for run in self.runs.values():
            assert run.stdout is not None
            line = run.stdout.readline()
            while line.startswith("[Gloo]"):
                line = run.stdout.readline()
            assert line.strip() == word, run.communicate(timeout=60)

    def ends(self, rank: int) -> tuple[int, str]:
        """Exit status and errors of a process."""
        _, errors = self.runs[rank].communicate(timeout=60)
        return self.runs[rank].returncode, errors


@pytest.mark.parametrize(
    ("victim", "where"),
    [(0, "elsewhere"), (0, "in a call"), (1, "in a program of XLA")],
)
def test_a_killed_process_ends_the_others(tmp_path: Path, victim: int, where: str) -> None:
    """Within 30 s, with one line that says who it was."""
    what = {
        "in a call": "dist.all_reduce(ones(3))",
        "elsewhere": "time.sleep(100)",
        "in a program of XLA": (
            "import jax, numpy as np\n"
            "    mesh = jax.make_mesh((2,), ('x',))\n"
            "    shards = jax.NamedSharding(mesh, jax.P('x'))\n"
            "    x = jax.make_array_from_process_local_data(shards, np.ones(1))\n"
            "    jax.jit(lambda x: x.sum())(x).block_until_ready()"
        ),
    }[where]
    program = f"{START}print('up', flush=True)\nif rank != {victim}:\n    {what}\ntime.sleep(100)"
    started = Started(tmp_path, program, {0: 2, 1: 2})
    started.wait_for("up")
    time.sleep(1)
    begin = time.monotonic()
    started.runs[victim].kill()
    status, errors = started.ends(1 - victim)
    assert time.monotonic() - begin < 30
    assert status == 1
    pid = started.runs[victim].pid
    lines = [line for line in errors.splitlines() if "ended without a word" in line]
    assert len(lines) == 1, errors
    assert re.search(rf"process {victim} of 2 \(pid {pid} on .*\) ended without a word", lines[0])
    assert "Check failure stack trace" not in errors
    assert started.ends(victim)[0] == -signal.SIGKILL


@pytest.mark.parametrize("victim", [0, 1])
def test_a_process_killed_between_steps_is_named(tmp_path: Path, victim: int) -> None:
    """Also where the sum over processes fails before it is known who is gone."""
    program = (
        f"{START}from chainrule import nn, randn\n"
        "net = nn.parallel.DistributedDataParallel(nn.BatchNorm1d(4).to('xla'))\n"
        "x = randn(8, 4).to('xla')\nnet(x)\nprint('up', flush=True)\nfor _ in range(9999): net(x)"
    )
    started = Started(tmp_path, program, {0: 2, 1: 2})
    started.wait_for("up")
    begin = time.monotonic()
    started.runs[victim].kill()
    status, errors = started.ends(1 - victim)
    assert time.monotonic() - begin < 30
    assert status == 1
    last = errors.splitlines()[-1]
    assert re.search(rf"ends, because process {victim} of 2 .* ended without a word", last), errors
    started.ends(victim)


def test_a_process_that_fails_ends_the_others(tmp_path: Path) -> None:
    victim = 0
    program = (
        f"{START}print('up', flush=True)\nif rank == {victim}: raise KeyError('no data')\n"
        "time.sleep(100)"
    )
    started = Started(tmp_path, program, {0: 2, 1: 2})
    begin = time.monotonic()
    status, errors = started.ends(1 - victim)
    assert time.monotonic() - begin < 30
    assert status == 1
    assert f"process {victim} of 2" in errors
    assert "failed: KeyError: 'no data'" in errors
    status, errors = started.ends(victim)
    assert status == 1
    assert errors.splitlines()[-1] == "KeyError: 'no data'"


def test_a_process_that_has_left_is_not_waited_for(tmp_path: Path) -> None:
    program = f"{START}\nif rank == 1: sys.exit()\ndist.all_reduce(ones(3))"
    started = Started(tmp_path, program, {0: 2, 1: 2})
    status, errors = started.ends(0)
    assert status == 1
    assert "all_reduce: process 1 has left" in errors.splitlines()[-1]
    assert started.ends(1)[0] == 1


def test_processes_at_their_end_wait_for_those_that_work(tmp_path: Path) -> None:
    program = f"{START}if rank == 0: time.sleep(2)\nprint('done')"
    started = Started(tmp_path, program, {0: 2, 1: 2})
    assert [started.ends(rank) for rank in (0, 1)] == [(0, ""), (0, "")]


def test_too_few_processes(tmp_path: Path) -> None:
    started = Started(tmp_path, START, {0: 3, 1: 3}, CHAINRULE_START_TIMEOUT="4")
    for rank in (0, 1):
        status, errors = started.ends(rank)
        assert status == 1
        last = errors.splitlines()[-1]
        assert "init_process_group: 2 of 3 processes have come within 4 s; missing: 2." in last


def test_sizes_that_differ(tmp_path: Path) -> None:
    started = Started(tmp_path, START, {0: 2, 1: 3})
    for rank in (0, 1):
        status, errors = started.ends(rank)
        assert status == 1
        assert "process 1" in errors.splitlines()[-1]
        assert "was started for 3 processes and process 0 for 2" in errors.splitlines()[-1]


def test_jax_that_has_computed_before(tmp_path: Path) -> None:
    program = f"import jax\njax.numpy.ones(1)\n{START}"
    status, errors = Started(tmp_path, program, {0: 1}).ends(0)
    assert status == 1
    assert "call init_process_group first, before anything is put" in errors.splitlines()[-1]


def test_gpus_that_are_not_there(tmp_path: Path) -> None:
    program = f"{BEGIN}dist.init_process_group('nccl')"
    status, errors = Started(tmp_path, program, {0: 1}).ends(0)
    assert status == 1
    assert "backend='nccl' needs GPUs, and JAX sees none" in errors.splitlines()[-1]


def test_the_launcher_tells_who_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        f"{START}print('up', flush=True)\nif rank == 1: os.kill(os.getpid(), 9)\n"
        "dist.all_reduce(ones(3))"
    )
    begin = time.monotonic()
    command = [*LAUNCH, "--processes", "2", str(script)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert time.monotonic() - begin < 30
    assert run.returncode == 137
    line = r"chainrule launch: error: process 1 \(pid \d+\) was ended by SIGKILL; ended the other 1"
    assert re.fullmatch(line, run.stderr.strip())


def test_processes_end_with_their_launcher(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(f"{START}print(os.getpid(), flush=True)\ntime.sleep(100)")
    command = [*LAUNCH, "--processes", "2", str(script)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stdout is not None
        pids = [int(run.stdout.readline().split()[1]) for _ in range(2)]
        run.kill()
        begin = time.monotonic()
        while any(is_running(pid) for pid in pids):
            assert time.monotonic() - begin < 30
            time.sleep(0.1)


def is_running(pid: int) -> bool:
    """Not one that has ended and that nobody has asked about."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_one_process_writes_and_any_number_goes_on(tmp_path: Path) -> None:
    """The losses of three epochs are those of two in two processes and a third in one."""

    def losses(count: int, folder: str, *arguments: str) -> str:
        program = str(PROGRAM.with_name("one_writer.py"))
        (tmp_path / folder).mkdir(exist_ok=True)
        command = [*LAUNCH, "--processes", str(count), program, str(tmp_path / folder), *arguments]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        return run.stdout

    whole = losses(1, "whole", "3")
    assert whole.count(",") == 2
    losses(2, "parts", "2")
    assert losses(1, "parts", "3", "--resume") == whole
