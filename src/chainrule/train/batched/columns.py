"""The data of many networks at once: what they share, and what is stacked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chainrule.ops.creation.patterns import arange
from chainrule.ops.reduce.reductions import sum as sum_of
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array

__all__ = ["Columns", "Data"]

Data = tuple[Tensor, Tensor, Tensor | None]  # inputs, targets, weights of the samples


class Columns:
    """Inputs, targets and weights of some networks: shared by all, or stacked from theirs."""

    def __init__(self, parts: Sequence[Data]):
        columns = list(zip(*parts, strict=True))
        self.n = int(parts[0][0].shape[0])
        self.shared = [all(part is column[0] for part in column) for column in columns]
        self.columns = [
            column[0] if shared else stack(list(column))
            for column, shared in zip(columns, self.shared, strict=True)
        ]
        self.rows = reshape(arange(len(parts)), (-1, 1)).array
        self.own = [column is None for column in self.columns]  # what all share after a pick
        # An epoch's data may be put into its order at once, if it does not take much memory.
        numbers = math.prod(self.columns[0].shape[0 if self.shared[0] else 1 :])
        self.small = numbers * len(parts) < 1 << 22

    def batches(
        self, size: int, order: Array | None = None
    ) -> Iterator[tuple[list[Any], list[bool]]]:
        """The arguments of a step, and which of them all networks share.

        Args:
            size: of a batch.
            order: an array with the order of each network's samples, if it is not their own.
        """
        if order is None and size >= self.n:
            yield self.columns, self.shared
            return
        # On bare arrays: small networks take less time for a step than tensors for this.
        arrays = [None if c is None else c.array for c in self.columns]
        if order is None:
            for start in range(0, self.n, size):
                yield self._tensors(self._cut(arrays, start, start + size)), self.shared
        elif not self.small:
            for start in range(0, self.n, size):
                yield self._tensors(self._picked(arrays, order[:, start : start + size])), self.own
        else:
            for batch in self._in_order(arrays, size, order):
                yield self._tensors(batch), self.own

    def _cut(self, arrays: list[Any], start: int, stop: int) -> list[Any]:
        """Some samples of each network, in one piece."""
        return [
            None if a is None else a[start:stop] if s else a[:, start:stop].copy()
            for a, s in zip(arrays, self.shared, strict=True)
        ]

    def _in_order(self, arrays: list[Any], size: int, order: Array) -> Iterator[list[Any]]:
        """The batches of an epoch, which are put into their order at once, each in one piece."""
        whole = self.n // size
        if whole:
            numbers = order[:, : whole * size].reshape(len(order), whole, size).swapaxes(0, 1)
            picked = self._picked(arrays, numbers.copy())  # the result lies in memory as these do
            for k in range(whole):
                yield [None if a is None else a[k] for a in picked]
        if whole * size < self.n:
            yield self._picked(arrays, order[:, whole * size :])

    def _picked(self, arrays: list[Any], order: Array) -> list[Any]:
        """The samples of each network in an order of its own."""
        return [
            None if a is None else a[order] if s else a[self.rows, order]
            for a, s in zip(arrays, self.shared, strict=True)
        ]

    @staticmethod
    def _tensors(arrays: list[Any]) -> list[Any]:
        return [None if a is None else of_array(a) for a in arrays]

    def sizes(self, args: Sequence[Any], shared: Sequence[bool], count: int) -> list[float]:
        """What a batch of each network counts: its samples, or the sum of their weights."""
        x, _, w = args
        if w is None:
            return [float(x.shape[0 if shared[0] else 1])] * count
        return [float(sum_of(w))] * count if shared[2] else sum_of(w, 1).tolist()

    def targets(self, order: Array | None = None) -> Callable[[int], Tensor]:
        """The targets of a network, in the order in which it saw them."""
        y: Any = self.columns[1]

        def of(i: int) -> Tensor:
            own = y if self.shared[1] else y[i]
            return own if order is None else of_array(own.array[order[i]])

        return of
