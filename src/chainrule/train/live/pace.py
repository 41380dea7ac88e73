"""How often a picture may be drawn, so that drawing takes next to nothing of a run."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Pace"]


class Pace:
    """Lets something be done now and then: seldom, and for a small share of the time that passed.

    It is due when ``interval`` seconds have passed since the last time, and when doing it once
    more, for as long as the longest time took, leaves all of it below ``share`` of the time since
    the beginning.
    """

    def __init__(
        self,
        interval: float = 0.5,
        share: float = 0.01,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self.interval, self.share, self.clock = interval, share, clock
        self.began = self.last = clock()
        self.spent, self.longest = 0.0, share * interval  # as the first one may take

    def due(self) -> bool:
        """Whether it may be done now."""
        now = self.clock()
        if now - self.last < self.interval:
            return False
        return self.spent + self.longest <= self.share * (now - self.began)

    def do(self, work: Callable[[], object]) -> None:
        """Does it, and notes how long it took."""
        start = self.clock()
        work()
        self.last = self.clock()
        self.spent += self.last - start
        self.longest = max(self.longest, self.last - start)
