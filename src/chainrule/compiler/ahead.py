"""The numbers of updates for some steps ahead, on the device before they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.backend import xla_programs as xla
from chainrule.compiler.updates import Update

__all__ = ["Ahead"]

MOST = 256  # steps


class Ahead:
    """A table with a row of numbers for each of the next steps, and the place of the next one.

    What a step takes is known when it comes; if that is the row that was foreseen, nothing has to
    be sent to the device. Where it was foreseen wrongly (a schedule moves the rate), the next table
    has one row.

    Args:
        updates: those of a step, in their order.
        flat: constants and rates of all updates as one list of numbers, None if they have another
            form than before.
    """

    def __init__(self, updates: Sequence[Update], flat: Callable[[Any], list[float] | None]):
        self.updates, self.flat = updates, flat
        self.table: Any = None
        self.rows: list[list[float]] = []
        self.next, self.length = 0, 1

    def take(self, numbers: list[float], place: Any) -> Any:
        """The table whose next row has these numbers, and the place of the row; None is the place
        that the last step returned."""
        if self.next < len(self.rows) and self.rows[self.next] == numbers:
            self.next += 1
            return self.table, None
        self.length = min(2 * self.length, MOST) if self.next == len(self.rows) else 1
        self.rows = [numbers, *self._foreseen(self.length - 1)]
        self.table, first = xla.foreseen(self.rows, MOST, place)
        self.next = 1
        return self.table, first

    def _foreseen(self, steps: int) -> list[list[float]]:
        states = {id(u.held[0]): dict(u.held[0]) for u in self.updates}
        found: list[list[float]] = []
        for _ in range(steps):
            numbers = self.flat([u.foreseen(states[id(u.held[0])]) for u in self.updates])
            if numbers is None:
                break
            found.append(numbers)
        return found

    def forget(self) -> None:
        """The numbers have another form from now on."""
        self.rows.clear()
        self.next, self.length = 0, 1
