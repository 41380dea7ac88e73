"""Timing side by side: candidates take turns, and the best of many turns counts.

Turns alternate so that whatever else the machine does falls on all candidates alike; the best turn
is the one that was disturbed least.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from time import perf_counter

__all__ = ["best_of", "row"]


def _calls_for(work: Callable[[], object], seconds: float) -> int:
    """How many calls take about this long."""
    calls, spent = 1, 0.0
    while True:
        start = perf_counter()
        for _ in range(calls):
            work()
        spent = perf_counter() - start
        if spent > seconds / 4:
            return max(1, round(calls * seconds / spent))
        calls *= 2


def best_of(
    candidates: Mapping[str, Callable[[], object]], repeats: int = 15, seconds: float = 0.05
) -> dict[str, float]:
    """Seconds per call of each candidate: the best of ``repeats`` turns of about ``seconds``."""
    calls = {name: _calls_for(work, seconds) for name, work in candidates.items()}
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(repeats):
        for name, work in candidates.items():
            gc.collect()  # nobody pays for the other's garbage
            count = calls[name]
            start = perf_counter()
            for _ in range(count):
                work()
            best[name] = min(best[name], (perf_counter() - start) / count)
    return best


def row(title: str, best: Mapping[str, float], over: str, under: str) -> str:
    """One line of a table: the times in microseconds and the ratio ``over`` / ``under``."""
    times = "  ".join(f"{name} {seconds * 1e6:10.1f} us" for name, seconds in best.items())
    if over not in best or under not in best:
        return f"{title:<44} {times}"
    return f"{title:<44} {times}  {over}/{under} {best[over] / best[under]:5.2f}"
