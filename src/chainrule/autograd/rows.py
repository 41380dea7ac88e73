"""A linear map taken for many vectors at once: the rows of Jacobians and Hessians."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from chainrule.ops.core.arguments import placed_like
from chainrule.autograd.nested import flatten, map_tree, unflatten
from chainrule.autograd.vmap import vmap
from chainrule.backend import K
from chainrule.ops.shape.views import unsqueeze
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor, of_array
from chainrule.typing import ArrayDType

__all__ = ["for_rows", "for_units", "map_rows"]

R = TypeVar("R")  # a tensor, or a tree of them; of many vectors, the same with a dimension in front


def for_rows(
    function: Callable[[Tensor], R],
    rows: Callable[[int, int], Tensor],
    count: int,
    chunk_size: int | None = None,
) -> R:
    """What a function makes of each of ``count`` vectors, along dimension 0.

    ``rows(start, stop)`` makes some of the vectors, those of one chunk at a time (of all, unless
    ``chunk_size`` says how many). The function returns a tensor, or a tree of them.
    """
    chunk = chunk_size or max(count, 1)
    parts = []
    for start in range(0, max(count, 1), chunk):
        some = rows(start, min(start + chunk, count))
        if some.array.shape[0] == 1:  # a batch of one needs no batch
            parts.append(map_tree(lambda x: unsqueeze(x, 0), function(some[0])))
        else:
            parts.append(vmap(function)(some))
    return parts[0] if len(parts) == 1 else _joined(parts)


def _joined(trees: list[R]) -> R:
    """Trees of one structure as one, its tensors put together along dimension 0."""
    structure = flatten(trees[0])[1]
    columns = zip(*[flatten(tree)[0] for tree in trees], strict=True)
    return unflatten([cat(list(column)) for column in columns], structure)


def map_rows(function: Callable[[Tensor], R], rows: Tensor, chunk_size: int) -> R:
    """What a function makes of each row of a matrix, along dimension 0."""
    return for_rows(function, lambda start, stop: rows[start:stop], rows.shape[0], chunk_size)


def for_units(
    function: Callable[[Tensor], R],
    shape: tuple[int, ...],
    like: Tensor | ArrayDType,
    chunk_size: int | None = None,
) -> R:
    """What a function makes of each unit vector of a space of tensors, along dimension 0.

    They are of a type, or of the type of a tensor and where that one is.

    The unit vectors are made for one chunk at a time: together they are a matrix, too.
    """
    size = math.prod(shape)
    dtype = like.array.dtype if isinstance(like, Tensor) else like

    def units(start: int, stop: int) -> Tensor:
        basis = K.eye(stop - start, size, start, dtype=dtype)
        unit = of_array(basis.reshape((stop - start, *shape)))
        return placed_like(like, unit) if isinstance(like, Tensor) else unit

    return for_rows(function, units, size, chunk_size)
