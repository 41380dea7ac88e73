"""``chainrule launch`` with programs that need no JAX."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from chainrule.backend.processes.messages import listen
from chainrule.cli import main

COMMAND = [sys.executable, "-m", "chainrule", "launch"]


def launched(tmp_path: Path, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "program.py"
    script.write_text(program)
    command = [*COMMAND, *options, str(script), "--its", "own"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_each_process_gets_its_variables(tmp_path: Path) -> None:
    names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR"]
    program = f"import os, sys\nprint(*[os.environ[n] for n in {names}], *sys.argv[1:])"
    run = launched(tmp_path, program, "--processes", "2")
    assert run.returncode == 0, run.stderr
    assert sorted(run.stdout.splitlines()) == [
        f"[{r}] {r} 2 {r} 2 127.0.0.1 --its own" for r in (0, 1)
    ]
    several = ["--processes", "2", "--nodes", "3", "--node-rank", "1"]
    run = launched(tmp_path, program, *several, "--master-addr", "far", "--master-port", "99")
    assert sorted(run.stdout.splitlines()) == [
        f"[{r}] {r} 6 {r - 2} 2 far --its own" for r in (2, 3)
    ]


def test_a_module_with_arguments(tmp_path: Path) -> None:
    command = [*COMMAND, "--processes", "1", "--json", "-m", "json.tool", "--help"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0
    assert "[0] usage: python -m json.tool" in run.stdout
    assert '"processes": 1' in run.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("end", "status", "message"),
    [
        ("raise KeyError('gone')", 1, r"ended with exit status 1: KeyError: 'gone'"),
        ("print('no data', file=sys.stderr); sys.exit(7)", 7, "ended with exit status 7: no data"),
        ("os.kill(os.getpid(), 9)", 137, "was ended by SIGKILL"),
        ("os.kill(os.getpid(), 11)", 139, "was ended by SIGSEGV"),
    ],
)
def test_one_that_fails_ends_all(tmp_path: Path, end: str, status: int, message: str) -> None:
    program = (
        "import os, sys, time\n"
        "print('pid', os.getpid(), flush=True)\n"
        f"if os.environ['RANK'] == '1':\n    {end}\n"
        "time.sleep(100)"
    )
    begin = time.monotonic()
    run = launched(tmp_path, program, "--processes", "3")
    assert time.monotonic() - begin < 20
    assert run.returncode == status
    lines = [line for line in run.stderr.splitlines() if line.startswith("chainrule")]
    whole = rf"chainrule launch: error: process 1 \(pid \d+\) {message}; ended the other 2"
    assert len(lines) == 1
    assert re.fullmatch(whole, lines[0])
    for pid in re.findall(r"pid (\d+)", run.stdout):
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_one_that_does_not_hear_is_killed(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.environ['RANK'] == '0':\n    time.sleep(0.5)\n    sys.exit(3)\n"
        "time.sleep(100)"
    )
    begin = time.monotonic()
    assert launched(tmp_path, program, "--processes", "2").returncode == 3
    assert time.monotonic() - begin < 25


@pytest.mark.parametrize(
    ("number", "status", "last"),
    [
        (signal.SIGINT, 130, "chainrule: interrupted"),
        (signal.SIGTERM, 143, "chainrule launch: error: ended by SIGTERM"),
    ],
)
def test_signals_end_all(tmp_path: Path, number: int, status: int, last: str) -> None:
    script = tmp_path / "program.py"
    script.write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(100)")
    run = subprocess.Popen(
        [*COMMAND, "--processes", "2", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    pids = [int(run.stdout.readline().split()[1]) for _ in range(2)]
    run.send_signal(number)
    _, errors = run.communicate(timeout=30)
    assert run.returncode == status
    assert errors.splitlines()[-1] == last
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--processes", "0"], "--processes 0: there is at least one"),
        (["--processes", "1", "--timeout", "0"], "--timeout 0.0: expected seconds"),
        (["--processes", "1", "--nodes", "0"], "--nodes 0: there is at least one"),
        (["--processes", "1", "--nodes", "2"], "needs --node-rank, --master-addr, --master-port"),
        (["--processes", "1", "--node-rank", "1"], "--node-rank 1: with --nodes 1 machines are"),
        (["--processes", "1", "--master-port", "70000"], "expected a number from 1 to 65535"),
    ],
)
def test_bad_options(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "program.py"
    script.write_text("")
    assert main(["launch", *options, str(script)]) == 2
    assert message in capsys.readouterr().err


def test_a_port_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "program.py"
    script.write_text("")
    with listen("127.0.0.1") as taken:
        port = str(taken.getsockname()[1])
        assert main(["launch", "--processes", "1", "--master-port", port, str(script)]) == 2
    assert f"--master-port {port}: the port is taken" in capsys.readouterr().err


def test_a_program_that_is_not_there(capsys: Any) -> None:
    assert main(["launch", "--processes", "2", "nothing.py"]) == 2
    assert "there is no file 'nothing.py'; name a program" in capsys.readouterr().err
