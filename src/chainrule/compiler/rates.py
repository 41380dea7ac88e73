"""The numbers of updates for steps to come, asked of Python before them."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

from chainrule.backend import K, dtypes
from chainrule.compiler.updates import Update

__all__ = ["Numbers"]


class Numbers:
    """A table for each update, with a row for each step: its rate, and the constants that move.

    A schedule then stands where it stands after all steps; ``put_back`` is for those that were not
    taken. ``tables`` is None where more than numbers change from step to step.

    Args:
        updates: pairs of the number of a step of the tape and its update.
        times: how many steps.
        schedule: of rates (and momenta), if there is one, which steps after each.
    """

    def __init__(self, updates: Sequence[tuple[int, Update]], times: int, schedule: Any = None):
        self.updates, self.schedule = updates, schedule
        if schedule is not None:
            self.groups = schedule.optimizer.param_groups
            self._state = copy.deepcopy(schedule.state_dict())
            self._before = [dict(group) for group in self.groups]
        self._scalars: list[list[dict[str, float]]] = [[] for _ in updates]  # after each step
        self.first: list[tuple[dict[str, Any], float | None]] = []  # of the first step
        self.tables: tuple[Any, ...] | None = None
        try:
            self.tables = self._tables(times)
        finally:
            if self.tables is None:
                self.put_back(0)

    @staticmethod
    def needed(updates: Sequence[tuple[int, Update]]) -> bool:
        """Whether numbers do not follow from that of the step alone."""
        held = {id(u.held[0]) for _, u in updates}
        return len(held) < len(updates) or any([u.moving() is None for _, u in updates])

    def _tables(self, times: int) -> tuple[Any, ...] | None:
        if self.schedule is not None and any([u.rates is not None for _, u in self.updates]):
            return None  # it would change them at once
        rows: list[list[dict[str, Any]]] = [[] for _ in self.updates]
        # Several updates may go on from one state.
        states = {id(u.held[0]): dict(u.held[0]) for _, u in self.updates}
        for _ in range(times):
            for i, (_, u) in enumerate(self.updates):
                if not u.has_form():
                    return None
                state = states[id(u.held[0])]
                constants, rate = u.foreseen(state)
                if not rows[i]:
                    self.first.append((constants, rate))
                rows[i].append({"lr": rate, **constants})
                if u.optimizer.scalar_states:
                    scalars = {name: state[name] for name in u.optimizer.scalar_states}
                    self._scalars[i].append(scalars)
            if self.schedule is not None:
                self.schedule.step()
        tables = [_table(n, own) for (n, _), own in zip(self.updates, rows, strict=True)]
        return None if any([table is None for table in tables]) else tuple(tables)

    def leave(self, update: int, steps: int) -> None:
        """The scalar states of an update after so many steps."""
        if steps and self._scalars[update]:
            for state in self.updates[update][1].held:
                state.update(self._scalars[update][steps - 1])

    def put_back(self, steps: int) -> None:
        """Has the schedule stand where it stands after so many steps."""
        if self.schedule is None:
            return
        self.schedule.load_state_dict(self._state)
        for group, before in zip(self.groups, self._before, strict=True):
            group.update(before)
        for _ in range(steps):
            self.schedule.step()


def _table(number: int, rows: list[dict[str, Any]]) -> Any:
    """The columns of what moves; None if that is no number."""
    names = [name for name, value in rows[0].items() if any([r[name] != value for r in rows])]
    moving = [[_number(name, row[name]) for name in names] for row in rows]
    if any([v is None for row in moving for v in row]):
        return None
    return number, tuple(names), K.asarray(moving, dtype=dtypes.float64.array_dtype)


def _number(name: str, value: Any) -> float | None:
    """A constant as compiled rules take it: RAdam's trust is NaN while there is none."""
    if value is None and name == "trust":
        return math.nan
    return value if value.__class__ in (int, float) and value == value else None
