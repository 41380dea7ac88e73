"""What an update leaves, as one vector: losses, penalties, outputs for metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from chainrule.autograd.nested import flatten, unflatten
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.train.updates import Parts

__all__ = ["Layout", "layout_of", "packed"]


@dataclass
class Layout:
    """How a vector is made up: the numbers of each batch, then the parts of its output."""

    names: list[str]  # of the numbers of a batch: its loss and its penalties
    batches: int
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    description: Any = None  # of the structure of the output
    fits: bool = True  # whether all parts can stand in a vector

    def numbers(self, rows: Tensor) -> list[list[float]]:
        """The numbers of each update."""
        if rows.ndim == 1:
            return [[value] for value in rows.tolist()]
        found: list[list[float]] = rows[:, : self.batches * len(self.names)].tolist()
        return found

    def outputs(self, rows: Tensor) -> Any:
        """The outputs of all updates as one, samples after each other."""
        start, leaves = len(self.names), []
        for shape in self.shapes:
            stop = start + math.prod(shape)
            leaves.append(rows[:, start:stop].reshape(-1, *shape[1:]))
            start = stop
        return unflatten(leaves, self.description)


def _parts(parts: Parts) -> Iterator[Any]:
    for loss, penalties in zip(parts.losses, parts.penalties, strict=True):
        yield loss
        yield from penalties.values()
    for output in parts.outputs:
        yield from flatten(output)[0]


def packed(parts: Parts) -> Tensor:
    """The vector; the loss itself where there is nothing else."""
    found = list(_parts(parts))
    return found[0] if len(found) == 1 else cat([t.reshape(-1) for t in found])


def layout_of(parts: Parts, size: int) -> Layout:
    """The layout of an update from batches of this size."""
    names = ["loss", *parts.penalties[0]]
    layout = Layout(names, len(parts.losses))
    if parts.outputs:
        leaves, layout.description = flatten(parts.outputs[0])
        layout.shapes = [tuple(t.shape) if isinstance(t, Tensor) else () for t in leaves]
        layout.fits = all([s and s[0] and s[0] % size == 0 for s in layout.shapes])
    found = list(_parts(parts))
    tensors = [isinstance(t, Tensor) and t.dtype == parts.losses[0].dtype for t in found]
    single = [t.numel() == 1 for t in found[: layout.batches * len(names)]]
    layout.fits = layout.fits and all(tensors) and all(single)
    return layout
