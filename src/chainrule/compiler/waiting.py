"""Steps on a device whose checks nobody has looked at yet.

The device counts, in an array that stays where it is: how many steps it was given, and how many of
them came to their end. A step whose check fails does not count, nor does any behind it, so that the
second number says which one it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import ReferenceType

from chainrule.backend import xla_programs as xla
from chainrule.backend.placed import Place, Placed

__all__ = ["LATE", "Call", "Redo", "Waiting"]

LATE = 64  # calls whose checks may still be open
HELD = 1 << 28  # bytes of inputs that they may hold


class Call(NamedTuple):
    """A call whose checks are open, of one step or of many: what it takes to do it again."""

    times: int
    nbytes: int  # of what it holds
    arguments: Any  # of one step; of many, their batches
    modes: Any  # of gradients and of types
    keys: Any  # of the updates of one step
    back: Callable[[], None]  # puts streams to where they were before
    results: Sequence[ReferenceType[Placed]]  # cells, if somebody still has them
    first: int | None = None  # of an epoch: how many steps were before these


class Redo(NamedTuple):
    """A call from whose step number ``done`` on nothing was changed."""

    call: Call
    done: int


class Waiting:
    """The calls whose checks are open, in their order, and what the device has counted."""

    def __init__(self, place: Place):
        self.place = place
        self.calls: list[Call] = []
        self.ticks: Any = xla.ticks(place)
        self._told = 0  # steps that are known to have come to their end
        self._asked: Any = None  # the counts after some of the calls, on their way to the host
        self._known = 0  # how many calls these are
        self.last: Any = None  # the counts after the last call of many steps, and its number

    def add(self, call: Call, counted: Any = None) -> bool:
        """Notes a call that was just sent; whether it is time to look at earlier ones.

        One of many steps comes with what the device has ``counted`` after it.
        """
        self.calls.append(call)
        if counted is not None:
            known, self.last = self.last, (counted, len(self.calls))
            if known is None:
                return False
            self._asked, self._known = known
            return True
        count = len(self.calls)
        if count == LATE // 2 or (self._asked is None and self._is_half()):
            self._ask()
        return count >= LATE or call.nbytes * count > HELD

    def _is_half(self) -> bool:
        """Whether half as much is open as may be."""
        count = len(self.calls)
        return count >= LATE // 2 or (count > 0 and self.calls[-1].nbytes * count > HELD // 2)

    def _ask(self) -> None:
        """Has the counts sent, to be there when they are looked at: to wait for them takes as long
        as some steps."""
        self._asked, self._known = xla.sent(self.ticks), len(self.calls)

    def done_of(self, times: int) -> int:
        """Waits for the last steps, which no other call is open before: how many of them came to
        their end."""
        done = (xla.whole_number(xla.sent(self.ticks)) - self._told) % (1 << 32)
        if done < times:
            self.ticks, self._told = xla.ticks(self.place), 0
        else:
            self._told += done
        return done

    def failed(self, wait: bool) -> list[Redo]:
        """The calls from the first one on that has a step whose check did not hold; none, if all
        did.

        Those that are not decided yet stay open, unless it is to ``wait``.
        """
        if not self.calls:
            return []
        if wait or self._asked is None:
            self._ask()
            self.last = None
        known = self._known
        done = (xla.whole_number(self._asked) - self._told) % (1 << 32)
        self._asked = None
        if done >= sum([call.times for call in self.calls[:known]]):
            del self.calls[:known]
            self._told += done
            if self.last is not None and self.last[1] > known:
                self.last = self.last[0], self.last[1] - known
                return []
            self.last = None
            if self._is_half():
                self._ask()
            return []
        found = []
        for call in self.calls:
            if done < call.times:
                found.append(Redo(call, done))
            done = max(0, done - call.times)
        self.calls, self._told, self.last = [], 0, None
        self.ticks = xla.ticks(self.place)
        return found
