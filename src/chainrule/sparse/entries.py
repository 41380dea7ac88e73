"""Parts of sparse tensors: dimensions in another order, chosen slices, places of another tensor."""

from __future__ import annotations

from types import EllipsisType
from typing import Any, TypeVar

from chainrule.backend import K
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.creation.patterns import arange
from chainrule.ops.index.reading import check_range, index_select, integer_index
from chainrule.ops.reduce.reductions import sum as dense_sum
from chainrule.ops.shape.views import canonical_dim, permute
from chainrule.sparse.base import Sparse, alias, gathered
from chainrule.sparse.creation import at_places
from chainrule.sparse.elementwise import to_dense
from chainrule.sparse.structure import Structure
from chainrule.tensor import Tensor
from chainrule.typing import Array

__all__ = ["chosen", "masked", "permuted", "select", "subscript"]

S = TypeVar("S", bound=Sparse)


def permuted(x: S, dims: tuple[int, ...]) -> S:
    """The dimensions in another order, counted from the front; a matrix in compressed rows comes
    out so, too."""
    n = x.sparse_dim()
    if sorted(dims[:n]) != list(range(n)):
        raise RuntimeError(
            f"permute: sparse dimensions (the first {n}) stay in front of dense ones, got {dims}"
        )
    if tuple(dims) == tuple(range(x.ndim)):
        return x
    structure = x.structure.permuted(tuple(dims[:n]))
    values = alias(x.entries)
    if x.dense_dim():
        values = permute(values, (0, *[d - n + 1 for d in dims[n:]]))
        sizes = (*structure.shape[:n], *values.shape[1:])
        structure = Structure(structure.indices, sizes)
    out = x.of(structure, values)
    return out if x.structure.starts is None else out.in_rows()


def chosen(x: S, dim: int, index: Tensor) -> S:
    """The slices along a dimension that a vector of integers names; a slice may come twice."""
    op = "index_select"
    d = canonical_dim(op, dim, x.ndim) + x.ndim
    index = integer_index(op, index)
    if index.ndim != 1:
        raise IndexError(f"{op}: index is supposed to be a vector, got shape {tuple(index.shape)}")
    check_range(op, index, x.shape[d], d)
    n, size = x.sparse_dim(), list(x.shape)
    size[d] = index.shape[0]
    if d >= n:
        s = x.structure
        structure = Structure(s.indices, tuple(size), s.starts, s.is_coalesced)
        return x.of(structure, index_select(x.entries, d - n + 1, index))
    x = x.distinct()
    numbers: Array = index._numbers(op)
    at, entry = K.matching_entries(numbers, x.structure.indices[d], x.shape[d])
    rows = [at[None] if k == d else x.structure.indices[k : k + 1, entry] for k in range(n)]
    structure = Structure(K.cat(*rows, dim=0), tuple(size))
    out = x.of(structure, gathered(x.entries, entry))
    return out.distinct() if x.structure.starts is None else out.in_rows()


def select(x: S, dim: int, index: int) -> Any:
    """One slice along a dimension: sparse if it has a sparse dimension left, else dense."""
    d = canonical_dim("select", dim, x.ndim) + x.ndim
    if not -x.shape[d] <= index < x.shape[d]:
        raise IndexError(
            f"select: index {index} is out of range for dimension {d} of shape {tuple(x.shape)}"
        )
    part = chosen(x, d, as_tensor([index % x.shape[d]]))
    if x.sparse_dim() == 1 and d == 0:
        return dense_sum(part.entries, 0)
    n = x.sparse_dim()
    others = [k for k in range(n) if k != d]
    size = tuple(s for k, s in enumerate(x.shape) if k != d)
    values = part.entries if d < n else part.entries.squeeze(d - n + 1)
    return x.of(Structure(part.structure.indices[others], size, None, True), values)


def subscript(x: S, index: Any) -> Any:
    """x[index]: a number, a slice, a vector of integers, or one of these for each dimension."""
    items = index if isinstance(index, tuple) else (index,)
    out: Any = x
    dim = 0
    for item in items:
        if not isinstance(out, Sparse):
            rest = items[items.index(item) :]
            return out[rest]
        if isinstance(item, slice):
            low, high, step = item.indices(out.shape[dim])
            if item != slice(None):
                out = chosen(out, dim, arange(low, max(low, high) if step > 0 else high, step))
            dim += 1
        elif item is None or isinstance(item, (EllipsisType, bool)):
            raise x.refusal(f"subscript {item!r}")
        elif hasattr(item, "__index__") and getattr(item, "ndim", 0) == 0:
            out = select(out, dim, item.__index__())
        else:
            out = chosen(out, dim, as_tensor(item))
            dim += 1
    return out


def masked(x: Any, mask: S) -> S:
    """What a tensor has at the places of a sparse one."""
    if not isinstance(mask, Sparse):
        raise TypeError(f"sparse_mask: mask must be a sparse tensor, got {type(mask).__name__}")
    if x.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask: operands have incompatible sizes; self has size {tuple(x.shape)} but "
            f"mask has size {tuple(mask.shape)}"
        )
    dense = to_dense(x) if isinstance(x, Sparse) else x
    return at_places(type(mask), dense, mask.structure)
