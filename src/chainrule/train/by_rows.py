"""An epoch over rows of tensors, whose updates run from a record, many in one call."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from chainrule import optim
from chainrule.data.dataset import rows
from chainrule.data.loader import DataLoader, Rows
from chainrule.tensor import Tensor, of_array
from chainrule.train.batches import Batch, batches
from chainrule.train.packing import Layout, layout_of
from chainrule.train.placing import on_host
from chainrule.train.progress import Shown
from chainrule.train.updates import LossNotFinite, Parts, Sums

if TYPE_CHECKING:
    from chainrule.train.repeating import Repeater

__all__ = ["ByRows", "cut"]

SECONDS = 0.1  # between looks at a bar


def cut(data: Sequence[Tensor], size: int) -> list[Batch]:
    """Inputs, targets and weights as batches of this size, as one if it is 0."""
    count = int(data[0].shape[0])
    found = []
    for i in range(0, count, size or max(1, count)):
        x, y, *weight = data if not size else [t[i : i + size] for t in data]
        found.append(Batch((x,), y, weight[0] if weight else None))
    return found


class ByRows:
    """One epoch."""

    def __init__(self, repeater: Repeater, loader: DataLoader, rows: Rows, sums: Sums, bar: Shown):
        self.repeater, self.trainer = repeater, repeater.trainer
        self.loader, self.rows, self.sums, self.bar = loader, rows, sums, bar
        first = next(batches([list(rows.tensors)]))  # or the error that says what is wrong
        self.data = [*first.inputs, first.target]
        if first.weight is not None:
            self.data.append(first.weight)
        self.resident = repeater.resident(self.data)
        self.each: int = loader.batch_size  # type: ignore[assignment]
        self.size = self.each * self.trainer.accumulate  # samples of an update
        self.done = self.handed = 0  # samples
        self.shown = getattr(bar, "bar", bar) is not None
        self._pace = 16  # updates between looks at the bar

    def run(self) -> None:
        """All updates."""
        repeater, count = self.repeater, self.rows.samples
        repeater.look()
        size = self.each if self.trainer.accumulate > 1 else 0
        if repeater.step.size != size:
            repeater.step.size = size
            repeater.rows.forget()
        try:
            if repeater.layout is None and count >= self.size:
                repeater.layout = layout_of(self._one(self.size), self.each)
            layout = repeater.layout
            while layout is not None and layout.fits and not repeater.reason:
                left = (count - self.done) // self.size
                if not left:
                    break
                paced = self.shown and not repeater.there  # a device has one program for a number
                self._many(min(left, self._pace) if paced else left, layout)
            while self.done < count:
                self._one(min(self.size, count - self.done))
        except BaseException:
            self.loader.end_rows(-(-max(self.done, self.handed) // self.each), whole=False)
            raise
        self.loader.end_rows(0, whole=True)

    def _group(self, first: int, size: int) -> list[Batch]:
        put = self.trainer.placing.put
        return [put(batch) for batch in cut(self._taken(first, size, self.data), self.each)]

    def _taken(self, first: int, size: int, data: Sequence[Tensor]) -> list[Tensor]:
        order = self.rows.order
        return [
            rows(t, slice(first, first + size) if order is None else order[first : first + size])
            for t in data
        ]

    def _one(self, size: int) -> Parts:
        """An update by itself."""
        self.handed = self.done + size
        group = self._group(self.done, size)
        parts = self.repeater.update(group, -(-self.handed // self.each) - 1, self.sums)
        self.done = self.handed
        self._show(len(group))
        return parts

    def _many(self, updates: int, layout: Layout) -> None:
        """Some updates in one call."""
        first, samples = self.done, updates * self.size
        taken, began = self.trainer.optimizer._steps_taken, time.perf_counter()
        order, given = self.rows.order, self.resident
        if order is None:
            given = [t[first : first + samples] for t in given]
        else:
            order = of_array(order.array[first : first + samples])
        try:
            values = self.repeater.rows.epoch(
                *given, batch_size=self.size, order=order, schedule=self.repeater.schedule
            )
            values = on_host(values)  # a device says when numbers are read whether all was finite
        except BaseException as error:
            self.done += (self.trainer.optimizer._steps_taken - taken) * self.size
            if isinstance(error, (LossNotFinite, optim.NotFiniteError)):
                self._diverged(error)
            raise
        self.done += samples
        seconds = max(time.perf_counter() - began, 1e-9)
        self._pace = max(1, min(10 * updates, int(updates * SECONDS / seconds)))
        self.repeater.reason = self.repeater.rows.why
        self._note(values, layout, first, samples)

    def _diverged(self, error: Exception) -> None:
        """The error of an update that was not taken."""
        self.handed = self.done + self.size
        group = self._group(self.done, self.size)
        self.trainer.batch, number = group[-1], self.handed // self.each - 1
        if isinstance(error, LossNotFinite):
            self.trainer._diverged("the loss", group[error.place], number)
        self.trainer._diverged("a gradient", group[-1], number)

    def _note(self, values: Tensor, layout: Layout, first: int, samples: int) -> None:
        """Adds what the updates left to the sums of the epoch."""
        if layout.shapes:
            self.sums.outputs.append(on_host(layout.outputs(values)))
            self.sums.targets += on_host(self._taken(first, samples, self.data[1:2]))
            self.sums.sizes.append(samples)
        names, each, numbers = layout.names, self.each, layout.numbers(values)
        if not self.shown and layout.batches == 1:  # each sum by itself, in the same order
            for name, column in zip(names, zip(*numbers, strict=True), strict=True):
                total = self.sums.totals[name]
                for value in column:
                    total += value * each
                self.sums.totals[name] = total
            self.sums.samples += samples
            numbers = []
        for row in numbers:
            own = dict.fromkeys(names, 0.0)
            for i, value in enumerate(row):
                own[names[i % len(names)]] += value * each
            self.sums.add_values(own, self.size)
            self._show(layout.batches)
        self.trainer._late_batch = lambda: self._group(first + samples - each, each)[0]

    def _show(self, batches: int) -> None:
        if self.shown:
            for _ in range(batches):
                self.bar.batch_done(self.sums.totals["loss"], self.sums.samples, self.sums.measured)
