"""Samples in batches, for many calls of one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.backend import K, dtypes, xla_programs as xla
from chainrule.backend.placed import Placed
from chainrule.ops.creation.from_data import as_tensor
from chainrule.tensor import Tensor, of_array

__all__ = ["Batches"]


class Batches:
    """The whole batches of some tensors with a common first dimension.

    >>> import chainrule
    >>> x = chainrule.arange(7)
    >>> batches = Batches([x], 3, chainrule.tensor([6, 5, 4, 3, 2, 1, 0]))
    >>> len(batches), batches[1]
    (2, (tensor([3, 2, 1]),))
    """

    def __init__(self, data: Sequence[Tensor], batch_size: int, order: Tensor | None):
        if not data:
            raise TypeError("epoch: there are no samples; use repeat for a step without arguments")
        counts = {int(t.shape[0]) if t.ndim else 0 for t in data}
        if len(counts) > 1:
            raise ValueError(f"epoch: tensors of {sorted(counts)} samples do not belong together")
        (self.count,) = counts
        if batch_size < 1:
            raise ValueError(f"epoch: batch_size must be at least 1, got {batch_size}")
        self.data = [of_array(K.to_contiguous(t.detach().array)) for t in data]
        self.batch_size = batch_size
        self.order = None if order is None else self._checked(as_tensor(order))

    def _checked(self, order: Tensor) -> Tensor:
        if order.ndim != 1 or order.dtype.is_floating_point:
            raise TypeError("epoch: the order is a vector of the numbers of samples")
        if len(order) and not K.all_in_range(order.array, 0, self.count - 1):
            raise IndexError(
                f"epoch: the order names samples from {int(order.min())} to {int(order.max())}, "
                f"but there are {self.count}"
            )
        return of_array(K.to_contiguous(order.to(dtypes.int64).array))

    def __len__(self) -> int:
        return (self.count if self.order is None else len(self.order)) // self.batch_size

    def __getitem__(self, number: int) -> tuple[Tensor, ...]:
        rows = slice(number * self.batch_size, (number + 1) * self.batch_size)
        if self.order is None:
            return tuple([t[rows] for t in self.data])
        return tuple([t[self.order[rows]] for t in self.data])

    def like(self, number: int) -> tuple[Tensor, ...]:
        """Tensors of the form of a batch: views where that is possible, whatever their values."""
        if self.count < self.batch_size:
            return self[number]
        return tuple([of_array(self._shown(t.array)) for t in self.data])

    def _shown(self, array: Any) -> Any:
        if array.__class__ is Placed:  # a slice would be computed
            return xla.empty((self.batch_size, *array.shape[1:]), array.dtype, array.place)
        return array[: self.batch_size]

    def rest(self, first: int) -> tuple[tuple[Any, ...], Any]:
        """The arrays from a batch on, or all of them and the rest of the order."""
        start = first * self.batch_size
        if self.order is None:
            return tuple([t.array[start:] if start else t.array for t in self.data]), None
        return tuple([t.array for t in self.data]), self._order_from(start)

    def _order_from(self, start: int) -> Any:
        order: Any = self.order
        return order.array[start:] if start else order.array
