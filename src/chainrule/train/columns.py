"""The data of many networks at once: what they share, and what is stacked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chainrule.ops.creation import arange
from chainrule.ops.reduce import sum as sum_of
from chainrule.ops.shape import reshape, stack
from chainrule.tensor import Tensor

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

    def batches(self, size: int, order: Any = None) -> Iterator[tuple[list[Any], list[bool]]]:
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
        shared = self.shared
        if order is not None and self.small:
            arrays, shared, order = self._picked(arrays, order), self.own, None
        for start in range(0, self.n, size):
            stop = start + size
            if order is not None:
                cut, shared = self._picked(arrays, order[:, start:stop]), self.own
            else:
                cut = [
                    None if a is None else a[start:stop] if s else a[:, start:stop]
                    for a, s in zip(arrays, shared, strict=True)
                ]
            yield [None if a is None else Tensor(a) for a in cut], shared

    def _picked(self, arrays: list[Any], order: Any) -> list[Any]:
        """The samples of each network in an order of its own."""
        return [
            None if a is None else a[order] if s else a[self.rows, order]
            for a, s in zip(arrays, self.shared, strict=True)
        ]

    def sizes(self, args: Sequence[Any], shared: Sequence[bool], count: int) -> list[float]:
        """What a batch of each network counts: its samples, or the sum of their weights."""
        x, _, w = args
        if w is None:
            return [float(x.shape[0 if shared[0] else 1])] * count
        return [float(sum_of(w))] * count if shared[2] else sum_of(w, 1).tolist()

    def targets(self, order: Any = None) -> Callable[[int], Tensor]:
        """The targets of a network, in the order in which it saw them."""
        y: Any = self.columns[1]

        def of(i: int) -> Tensor:
            own = y if self.shared[1] else y[i]
            return own if order is None else Tensor(own.array[order[i]])

        return of
