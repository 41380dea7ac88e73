"""Where the system grants no more threads, the work is done by those there are, and alike."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chainrule import backend

PROGRAM = Path(__file__).with_name("limited.py")
# Without compiled kernels products are NumPy's alone: OpenBLAS ends the process, or waits for ever,
# where it gets no memory for its buffers.
LIMITS = ["EPERM", "nproc", "cgroup", *([] if backend.why_not_native else ["memory"])]


def run(*limits: str) -> Any:
    """What the program printed."""
    command = [sys.executable, str(PROGRAM), *limits]
    pipe = subprocess.PIPE
    program = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    try:
        out, err = program.communicate(timeout=100)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)  # with the processes that it forked
        program.communicate()
        raise
    assert program.returncode == 0, err
    return json.loads(out)


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    """By the limit."""
    if sys.platform != "linux":
        pytest.skip("the limits are those of Linux")
    return run("none", *LIMITS) | run("EAGAIN")


@pytest.mark.parametrize("limit", ["EAGAIN", *LIMITS])
def test_results_are_those_without_a_limit(limit: str, outcomes: dict[str, Any]) -> None:
    free, limited = outcomes["none"], outcomes[limit]
    if "skip" in limited:
        pytest.skip(limited["skip"])
    assert "errors" not in limited, limited["errors"]
    assert limited.pop("threads") is (limit == "memory"), "the limit does not hold"
    assert limited == {name: free[name] for name in limited}


@pytest.mark.skipif(backend.why_not_native != "", reason="there are no compiled kernels")
def test_what_is_computed_without_a_limit(outcomes: dict[str, Any]) -> None:
    free = outcomes["none"]
    assert free["threads"]
    assert free["here"] == free["again"] == free["child"] == free["after"]
    assert free["loaded"] == [sum(range(i, i + 100_000)) for i in range(0, 400_000, 100_000)]
