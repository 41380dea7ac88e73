"""Timing side by side: candidates take turns, and the best and the median of many turns count.

Turns alternate so that whatever else the machine does falls on all candidates alike; the best turn
is the one that was disturbed least, the median is what one sees.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from statistics import median
from time import perf_counter
from typing import NamedTuple

__all__ = ["Times", "best_of", "row", "take_turns"]

Around = Callable[[], AbstractContextManager[object]]


class Times(NamedTuple):
    """Seconds per call."""

    best: float
    median: float


def _calls_for(work: Callable[[], object], seconds: float) -> int:
    """How many calls take about this long, after a first one that is not counted."""
    start = perf_counter()
    work()  # what a first call prepares is not counted
    if perf_counter() - start > 10 * seconds:
        return 1
    calls, spent = 1, 0.0
    while True:
        start = perf_counter()
        for _ in range(calls):
            work()
        spent = perf_counter() - start
        if spent > seconds / 4:
            return max(1, round(calls * seconds / spent))
        calls *= 2


def take_turns(
    candidates: Mapping[str, Callable[[], object]],
    repeats: int = 15,
    seconds: float = 0.05,
    around: Mapping[str, Around] | None = None,
    rest: float = 0.0,
    clock: Callable[[], float] = perf_counter,
) -> dict[str, Times]:
    """Times of each candidate, from ``repeats`` turns of about ``seconds`` each.

    ``around`` has contexts for the turns of some candidates. Before each turn comes a ``rest``, in
    which waiting threads of the last candidate's library go to sleep. Another ``clock`` than that
    of the wall (``time.process_time``) is for a busy machine and work of one thread.
    """
    contexts = {name: (around or {}).get(name, nullcontext) for name in candidates}
    calls = {}
    for name, work in candidates.items():
        with contexts[name]():
            calls[name] = _calls_for(work, seconds)
    spent: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, work in candidates.items():
            gc.collect()  # nobody pays for the other's garbage
            time.sleep(rest)
            with contexts[name]():
                count = calls[name]
                if count > 1:  # one long call warms itself
                    work()
                start = clock()
                for _ in range(count):
                    work()
                spent[name].append((clock() - start) / count)
    return {name: Times(min(of), median(of)) for name, of in spent.items()}


def best_of(
    candidates: Mapping[str, Callable[[], object]], repeats: int = 15, seconds: float = 0.05
) -> dict[str, float]:
    """Seconds per call of each candidate: the best of ``repeats`` turns of about ``seconds``."""
    return {name: t.best for name, t in take_turns(candidates, repeats, seconds).items()}


def row(title: str, best: Mapping[str, float], over: str, under: str) -> str:
    """One line of a table: the times in microseconds and the ratio ``over`` / ``under``."""
    times = "  ".join(f"{name} {seconds * 1e6:10.1f} us" for name, seconds in best.items())
    if over not in best or under not in best:
        return f"{title:<44} {times}"
    return f"{title:<44} {times}  {over}/{under} {best[over] / best[under]:5.2f}"
