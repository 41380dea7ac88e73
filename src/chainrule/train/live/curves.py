"""What is drawn of a run: the loss of each step and the numbers of each epoch, over epochs."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["STEP", "Curves", "Points"]

Points = list[tuple[float, float]]  # epochs, value
STEP = "each step"
UNDRAWN = ("epoch", "lr", "seconds")


class Curves:
    """The numbers of a run, in a room that does not grow with the number of steps.

    A point is the mean of some steps: of two as soon as there are more than ``most``, then of four,
    and so on. Steps stand between the epochs that they belong to, so that what is known of each
    step and of each epoch has one axis.

    Args:
        rows: of the history so far, which have no steps.
        batches: how many an epoch has, if that is known.
        most: points that are kept.
    """

    def __init__(
        self, rows: Iterable[Mapping[str, Any]], batches: int | None = None, most: int = 2000
    ):
        self.rows = list(rows)
        self.before, self.batches, self.most = len(self.rows), batches, most
        self.steps = 0
        self.ends = [0]  # steps at the end of each epoch
        self._width, self._sum, self._count = 1, 0.0, 0
        self._means: list[float] = []

    def add_step(self, loss: float) -> None:
        """Notes the loss of a step."""
        self.steps += 1
        self._sum += loss
        self._count += 1
        if self._count == self._width:
            self._means.append(self._sum / self._width)
            self._sum, self._count = 0.0, 0
            if len(self._means) >= self.most:
                pairs = zip(self._means[::2], self._means[1::2], strict=True)
                self._means = [(a + b) / 2 for a, b in pairs]
                self._width *= 2

    def add_epoch(self, row: Mapping[str, Any]) -> None:
        """Notes the numbers of an epoch, whose steps are those since the last one."""
        self.rows.append(row)
        self.ends.append(self.steps)

    def panels(self) -> dict[str, dict[str, Points]]:
        """The curves by what they show: ``panels["loss"]["val_loss"]``; the loss comes first."""
        found: dict[str, dict[str, Points]] = {"loss": {}}
        if len(self._means) > 1:
            found["loss"][STEP] = [
                (self._epochs((i + 0.5) * self._width), mean) for i, mean in enumerate(self._means)
            ]
        for name in dict.fromkeys(name for row in self.rows for name in row):
            if name in UNDRAWN:
                continue
            points = [(float(i), row.get(name)) for i, row in enumerate(self.rows, 1)]
            known = [(x, float(y)) for x, y in points if y is not None and math.isfinite(y)]
            if known:
                found.setdefault(name.removeprefix("val_"), {})[name] = known
        return {name: curves for name, curves in found.items() if curves}

    def _epochs(self, step: float) -> float:
        """The place of a step on an axis of epochs."""
        i = min(bisect.bisect_left(self.ends, step), len(self.ends))
        start = self.ends[i - 1]
        if i < len(self.ends):
            length = self.ends[i] - start
        else:  # the present epoch: as long as the last one, or as it is
            length = self.batches or (start - self.ends[i - 2] if i > 1 else 0)
            length = max(length, self.steps - start)
        return self.before + i - 1 + (step - start) / length
