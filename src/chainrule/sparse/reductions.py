"""Sums of sparse tensors, and softmax over their entries."""

from __future__ import annotations

from typing import Any, TypeVar

from chainrule.backend import K, dtypes
from chainrule.ops.core.promotion import cast
from chainrule.ops.elementwise.functions import exp, log
from chainrule.ops.index.scatter import scatter_reduce
from chainrule.ops.layers.softmax import log_softmax as dense_log_softmax
from chainrule.ops.layers.softmax import softmax as dense_softmax
from chainrule.ops.reduce.reductions import as_summands
from chainrule.ops.reduce.reductions import sum as dense_sum
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.shape.views import canonical_dim, canonical_dims, expand, reshape
from chainrule.sparse.base import Sparse, gathered, summed
from chainrule.sparse.structure import Structure
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array, Dims, DType

__all__ = ["log_softmax", "softmax", "sum_along"]

S = TypeVar("S", bound=Sparse)


def sum_along(x: S, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Any:
    """The sum of all elements, or along dimensions: sparse if a sparse one is left, else dense."""
    given = canonical_dims("sum", dim, x.ndim)
    dims = sorted(d + x.ndim for d in given)
    n = x.sparse_dim()
    values = as_summands("sum", x.entries, dtype)
    of_values = [d - n + 1 for d in dims if d >= n]
    kept = [d for d in range(n) if d not in dims]
    if not kept:
        out = dense_sum(values, [0, *of_values])
        if keepdim:
            out = reshape(out, tuple(1 if d in dims else s for d, s in enumerate(x.shape)))
        return out
    if of_values:
        values = dense_sum(values, of_values, keepdim)
    if len(kept) == n:
        shape = (*x.shape[:n], *values.shape[1:])
        s = x.structure
        return x.of(Structure(s.indices, shape, s.starts, s.is_coalesced), values)
    return _onto(x, values, kept, keepdim)


def _onto(x: S, values: Tensor, kept: list[int], keepdim: bool) -> S:
    """The entries with only some of their sparse dimensions, those at the same place summed."""
    n, places = x.sparse_dim(), x.structure.indices
    if keepdim:
        rest = K.asarray([[int(d in kept)] for d in range(n)])
        indices = places * rest
        shape = [s if d in kept else 1 for d, s in enumerate(x.shape[:n])]
    else:
        indices, shape = places[kept], [x.shape[d] for d in kept]
    out = x.of(Structure(indices, (*shape, *values.shape[1:])), values)
    return out.in_rows() if keepdim and x.structure.starts is not None else out.distinct()


# --- softmax --------------------------------------------------------------------------------------


def _prepared(op: str, x: S, dim: int, dtype: DType | None) -> tuple[S, int]:
    if dtype is not None:
        x = x.with_values(cast(x.entries, dtype))
    if x.dtype.category < dtypes.FLOATING:
        raise RuntimeError(f"{op}: not implemented for {x.dtype}; convert with .float() first")
    return x.distinct(), canonical_dim(op, dim, x.ndim) + x.ndim


def _shifted(x: Sparse, dim: int) -> tuple[Tensor, Array, Tensor]:
    """The values less the largest of their line, the lines, and the sums of exponentials."""
    group, count = x.structure.lines(dim)
    values = x.entries
    known = values.detach()
    index = reshape(of_array(group), (-1, *[1] * (values.ndim - 1)))
    start = zeros(count, *values.shape[1:], dtype=values.dtype, device=values.device)
    largest = scatter_reduce(
        start, 0, expand(index, *values.shape), known, "amax", include_self=False
    )
    shifted = values - gathered(largest, group)
    return shifted, group, summed(exp(shifted), group, count)


def softmax(x: S, dim: int, dtype: DType | None = None) -> S:
    """exp(x) / sum(exp(x)) along ``dim``, over the entries: what is no entry counts as -inf."""
    x, d = _prepared("sparse.softmax", x, dim, dtype)
    if d >= x.sparse_dim():
        return x.with_values(dense_softmax(x.entries, d - x.sparse_dim() + 1))
    shifted, group, sums = _shifted(x, d)
    return x.with_values(exp(shifted) / gathered(sums, group))


def log_softmax(x: S, dim: int, dtype: DType | None = None) -> S:
    """log(softmax(x)) along ``dim``, over the entries."""
    x, d = _prepared("sparse.log_softmax", x, dim, dtype)
    if d >= x.sparse_dim():
        return x.with_values(dense_log_softmax(x.entries, d - x.sparse_dim() + 1))
    shifted, group, sums = _shifted(x, d)
    return x.with_values(shifted - gathered(log(sums), group))
