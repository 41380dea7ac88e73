"""The rates of steps to come, asked of a schedule before them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from chainrule.backend import K, dtypes
from chainrule.compiler.program import Update

__all__ = ["Rates"]


class Rates:
    """A table with a row for each step, and a column for each update in it.

    The schedule then stands where it stands after all steps; ``put_back`` is for those that were
    not taken. ``table`` is None where more than numbers change from step to step.
    """

    def __init__(self, schedule: Any, updates: Sequence[Update], times: int):
        self.schedule, self.groups = schedule, schedule.optimizer.param_groups
        self._state = copy.deepcopy(schedule.state_dict())
        self._before = [dict(group) for group in self.groups]
        self.table: Any = None
        rows = []
        for _ in range(times):
            rows.append([u.optimizer._rates(u.group, u.params) for u in updates])
            if not all([isinstance(rate, float) for rate in rows[-1]]) or self._others_changed():
                self.put_back(0)
                return
            schedule.step()
        if self._others_changed():
            self.put_back(0)
            return
        self.table = K.asarray(rows, dtype=dtypes.float64.array_dtype)

    def _others_changed(self) -> bool:
        """Whether the schedule moves more than rates: a momentum, for example."""
        return any(
            [
                group[key] is not value and group[key] != value
                for group, before in zip(self.groups, self._before, strict=True)
                for key, value in before.items()
                if key not in ("lr", "params")
            ]
        )

    def put_back(self, steps: int) -> None:
        """Has the schedule stand where it stands after so many steps."""
        self.schedule.load_state_dict(self._state)
        for group, before in zip(self.groups, self._before, strict=True):
            group.update(before)
        for _ in range(steps):
            self.schedule.step()
