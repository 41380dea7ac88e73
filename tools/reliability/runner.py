"""Runs many cases in a process of its own: if it hangs or dies that is a failure, and others go on.

A child has a limit of memory, and tells in shared memory which case it is at. The parent looks at
that from time to time, kills a child that stands still, and starts another behind the case.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import chainrule
from reliability.cases import SECONDS, Kind, fault_in

__all__ = ["IN_MEMORY", "Result", "run_cases"]

HANGS = 30.0  # after so many seconds nothing will come
COUNTS = struct.Struct("qqq")  # the case at hand, how many were refused, and how many loaded
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
KEPT = 50  # failures that are shown


@dataclass
class Result:
    """What came of the cases of one kind."""

    name: str
    tried: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def note(self, failure: str) -> None:
        """Keeps a failure; only the first are told in full."""
        self.failures.append(failure)
        if len(self.failures) <= KEPT:
            print(f"  {self.name}: {failure[:500]}", file=sys.stderr, flush=True)


def run_cases(kind: Kind, count: int, seed: int) -> Result:
    """Tries the cases 0 to ``count`` of a kind."""
    result, began = Result(kind.name), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="chainrule-faults-", dir=IN_MEMORY) as name:
        home = Path(name)
        kind.prepare(home)
        first = 0
        while first < count:
            first = _one_child(kind, first, count, seed, home, result)
    result.tried, result.seconds = count, time.perf_counter() - began
    return result


def _one_child(kind: Kind, first: int, count: int, seed: int, home: Path, result: Result) -> int:
    """Lets a child try cases from ``first`` on; returns the case to go on with."""
    with mmap.mmap(-1, COUNTS.size) as shared, (home / "failures").open("w+b") as told:
        COUNTS.pack_into(shared, 0, first, 0, 0)
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside kernels' threads
            child = os.fork()
        if child == 0:
            _try_all(kind, range(first, count), seed, home, shared, told)
        ended = _watched(child, shared, HANGS * kind.seconds / SECONDS)
        at, refused, _ = COUNTS.unpack_from(shared, 0)
        result.refused += refused
        told.seek(0)
        for line in told:
            result.note(json.loads(line))
    if ended == 0:
        return count
    what = "hung" if ended is None else f"ended with status {ended}"
    result.note(f"case {at}: the process {what}")
    return at + 1


def _watched(child: int, shared: mmap.mmap, longest: float) -> int | None:
    """Waits for a child; its exit code (negative: its signal), None if it stood still."""
    last, since = None, time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        at = COUNTS.unpack_from(shared, 0)[0]
        if at != last:
            last, since = at, time.monotonic()
        elif time.monotonic() - since > longest:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.02)


def _try_all(
    kind: Kind, numbers: range, seed: int, home: Path, shared: mmap.mmap, told: IO[bytes]
) -> None:
    """The child: never returns."""
    status = 1
    try:
        warnings.simplefilter("ignore")
        chainrule.set_num_threads(1)
        kind.begin()
        _limit_memory(kind.memory)
        refused = loaded = 0
        for number in numbers:
            COUNTS.pack_into(shared, 0, number, refused, loaded)
            was_refused, fault = one_case(kind, number, seed, home)
            refused, loaded = refused + was_refused, loaded + (not was_refused)
            if fault:
                told.write(json.dumps(f"case {number}: {fault}"[:2000]).encode() + b"\n")
                told.flush()
        COUNTS.pack_into(shared, 0, numbers.stop, refused, loaded)
        status = 0
    except BaseException:  # noqa: BLE001 - told here: what called this must not go on twice
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(status)


def one_case(kind: Kind, number: int, seed: int, home: Path) -> tuple[bool, str]:
    """Whether a case was refused, and what is wrong with what came of it."""
    r = random.Random(f"{kind.name}/{seed}/{number}")
    case = kind.case(r, home)
    began = time.process_time()
    refused, fault = fault_in(case)
    took = time.process_time() - began
    if not fault and took > kind.seconds:
        fault = f"took {took:.1f} s"
    return refused, fault


def _limit_memory(more: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
