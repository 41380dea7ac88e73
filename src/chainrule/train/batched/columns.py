"""The data of many networks at once: what they share, and what is stacked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.ops.creation.patterns import arange
from chainrule.ops.reduce.reductions import sum as sum_of
from chainrule.ops.shape.stacking import stack
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array

__all__ = ["Batches", "Columns", "Data"]

Data = tuple[Tensor, Tensor, Tensor | None]  # inputs, targets, weights of the samples
LARGE = 1 << 22  # elements of inputs that are put into an order at once


class Batches:
    """Batches of one size of all networks, after each other.

    Args:
        parts: inputs, targets and weights (or None) with the rows of all batches.
        shared: for each part, whether it is that of all networks; else each row is a network's.
        rows: of a batch.
        size: samples of each network in a batch.
        fixed: whether there is one batch, which is the same in all epochs.
    """

    def __init__(
        self, parts: list[Any], shared: list[bool], rows: int, size: int, fixed: bool = False
    ):
        self.parts, self.shared, self.rows, self.size = parts, shared, rows, size
        self.fixed = fixed
        self.times = 1 if fixed else len(parts[0]) // rows

    def one(self, number: int) -> list[Any]:
        """The parts of a batch."""
        if self.fixed or self.times == 1:
            return self.parts
        begin, end = number * self.rows, (number + 1) * self.rows
        return [None if t is None else of_array(t.array[begin:end]) for t in self.parts]

    def some(self, first: int, times: int) -> list[Tensor]:
        """The parts that there are, of so many batches from one on."""
        begin, end = first * self.rows, (first + times) * self.rows
        return [of_array(t.array[begin:end]) for t in self.parts if t is not None]


class Columns:
    """Inputs, targets and weights of some networks: shared by all, or stacked from theirs."""

    def __init__(self, parts: Sequence[Data]):
        columns = list(zip(*parts, strict=True))
        self.n, self.count = int(parts[0][0].shape[0]), len(parts)
        self.shared = [all(part is column[0] for part in column) for column in columns]
        self.columns: list[Any] = [
            column[0] if shared else stack(list(column))
            for column, shared in zip(columns, self.shared, strict=True)
        ]
        self.rows = reshape(arange(len(parts)), (-1, 1)).array
        self.own = [column is None for column in self.columns]  # what all share after a pick
        self._fixed: dict[int, list[Batches]] = {}  # by the size of batches

    def batches(self, size: int, order: Array | None = None) -> Iterator[Batches]:
        """All samples in batches: the whole ones, and then what is left.

        Args:
            size: of a batch.
            order: an array with the order of each network's samples, if it is not their own.
        """
        if order is not None:
            yield from self._in_order(size, order)
            return
        if size not in self._fixed:
            self._fixed[size] = list(self._as_they_are(size))
        yield from self._fixed[size]

    def _as_they_are(self, size: int) -> Iterator[Batches]:
        if size >= self.n:
            x, y, w = self.columns
            shared = list(self.shared)
            if shared[1] and y.numel() * self.count < LARGE:
                # Kernels of losses take targets as large as the outputs faster.
                y, shared[1] = stack([y] * self.count), False
            yield Batches([x, y, w], shared, 1, self.n, fixed=True)
        elif all(self.shared):
            whole = self.n // size * size
            for begin, end in ((0, whole), (whole, self.n)):
                if begin < end:
                    parts = [None if t is None else t[begin:end] for t in self.columns]
                    each = min(size, end - begin)
                    yield Batches(parts, self.shared, each, each)
        else:
            order = arange(self.n).array[None].repeat(self.count, axis=0)
            yield from self._in_order(size, order)

    def _in_order(self, size: int, order: Array) -> Iterator[Batches]:
        """Batches that are put into their order at once, each in one piece."""
        arrays = [None if c is None else c.array for c in self.columns]
        whole = self.n // size
        each = math.prod(self.columns[0].shape[1 if self.shared[0] else 2 :]) * size * self.count
        some = max(1, LARGE // max(1, each))
        for first in range(0, whole, some):
            times = min(some, whole - first)
            chosen = order[:, first * size : (first + times) * size]
            numbers = chosen.reshape(self.count, times, size).swapaxes(0, 1)
            picked = self._picked(arrays, numbers.copy())  # lies in memory as these do
            shaped = [None if a is None else a.reshape(-1, *a.shape[2:]) for a in picked]
            yield self._of(shaped, size)
        if whole * size < self.n:
            yield self._of(self._picked(arrays, order[:, whole * size :]), self.n - whole * size)

    def _picked(self, arrays: list[Any], order: Array) -> list[Any]:
        """The samples of each network in an order of its own."""
        return [
            None if a is None else a[order] if s else a[self.rows, order]
            for a, s in zip(arrays, self.shared, strict=True)
        ]

    def _of(self, arrays: list[Any], size: int) -> Batches:
        tensors = [None if a is None else of_array(a) for a in arrays]
        return Batches(tensors, self.own, self.count, size)

    def sizes(self, args: Sequence[Any], shared: Sequence[bool]) -> list[float]:
        """What a batch of each network counts: its samples, or the sum of their weights."""
        x, _, w = args
        if w is None:
            return [float(x.shape[0 if shared[0] else 1])] * self.count
        return [float(sum_of(w))] * self.count if shared[2] else sum_of(w, 1).tolist()

    def targets(self, order: Array | None = None) -> Callable[[int], Tensor]:
        """The targets of a network, in the order in which it saw them."""
        y: Any = self.columns[1]

        def of(i: int) -> Tensor:
            own = y if self.shared[1] else y[i]
            return own if order is None else of_array(own.array[order[i]])

        return of

    @no_grad()
    def repeat(self, i: int, j: int) -> None:
        """Gives the i-th network the samples of the j-th."""
        for column, shared in zip(self.columns, self.shared, strict=True):
            if not shared:
                column[i] = column[j]
        self._fixed = {}
