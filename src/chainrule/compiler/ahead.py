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
        columns: each number of ``flat`` for so many steps, where they follow from the first ones
            and how many steps there were.
    """

    def __init__(
        self,
        updates: Sequence[Update],
        flat: Callable[[Any], list[float] | None],
        columns: Callable[[Any, int], list[list[float]]],
    ):
        self.updates, self.flat, self.columns = updates, flat, columns
        self.table: Any = None
        self.rows: list[list[float]] = []
        self.next, self.length = 0, 1
        self.counts = all([not u.optimizer.scalar_states for u in updates])
        self.step = 0  # of the first update, at which the next row is taken,
        self.seen: list[int] = []  # and the settings that it was foreseen with

    def follows(self) -> bool:
        """Whether the next row was foreseen, and nothing has changed that it follows from, as the
        guards have just seen it."""
        if not self.counts or not 0 < self.next < len(self.rows) or self._step() != self.step:
            return False
        return self.seen == [u.seen for u in self.updates]

    def go_on(self) -> None:
        """Takes the row that was foreseen; the steps are counted."""
        for u in self.updates:
            u.skip(1)
        self.next += 1
        self.step = self._step()

    def _step(self) -> int:
        state: dict[str, Any] = self.updates[0].held[0]
        return state.get("step", 0)

    def take(self, numbers: list[float], place: Any) -> Any:
        """The table whose next row has these numbers, and the place of the row; None is the place
        that the last step returned."""
        self.step, self.seen = self._step(), [u.seen for u in self.updates]
        if self.next < len(self.rows) and self.rows[self.next] == numbers:
            self.next += 1
            return self.table, None
        self.length = min(2 * self.length, MOST) if self.next == len(self.rows) else 1
        self.rows = [numbers, *self._foreseen(self.length - 1)]
        self.table, first = xla.foreseen(self.rows, MOST, place)
        self.next = 1
        return self.table, first

    def _foreseen(self, steps: int) -> list[list[float]]:
        if not steps:
            return []
        states = {id(u.held[0]): dict(u.held[0]) for u in self.updates}
        if len(states) == len(self.updates) and all([u.moving() is not None for u in self.updates]):
            first = [u.foreseen(states[id(u.held[0])]) for u in self.updates]
            if self.flat(first) is None:
                return []
            return [list(row) for row in zip(*self.columns(first, steps), strict=True)]
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
