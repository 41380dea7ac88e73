"""New tensors from old ones with slices, chosen elements or masked ones replaced or added to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.ops.core.arguments import placed_like
from chainrule.ops.core.rounding import rounds_once
from chainrule.backend import K, dtypes
from chainrule.ops.core.synonyms import numpy_names, takes_out
from chainrule.ops.index.assignment import as_number, fitted, shaped, spread_to
from chainrule.ops.index.choice import (
    FULL,
    index_place,
)
from chainrule.ops.index.choice import index_put as put
from chainrule.ops.elementwise.logic import where
from chainrule.ops.index.reading import (
    check_mask,
    check_range,
    integer_index,
    take,
)
from chainrule.ops.core.promotion import broadcast_shapes, cast
from chainrule.ops.core.apply import apply
from chainrule.ops.core.primitive import REGISTRY, broadcast_to
from chainrule.ops.reduce.scan import cumsum
from chainrule.ops.shape.views import canonical_dim, reshape
from chainrule.ops.index.subscript import items_of, numbers_of, out_of_bounds, parse
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Number

__all__ = [
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "masked_fill",
    "masked_scatter",
]
METHODS = tuple(__all__)
INPLACE = tuple(__all__)


# --- slices named by a vector of integers ---------------------------------------------------------


def _vector(
    op: str, input: Tensor, dim: int, index: Tensor, low: int, error: type[Exception]
) -> tuple[int, Tensor, dict[str, Any]]:
    """Where a vector of integers points along a dimension."""
    index = integer_index(op, index, among=input)
    if index.ndim > 1:
        kind = RuntimeError if op == "index_fill" else IndexError
        raise kind(f"{op}: index is supposed to be a vector, got shape {tuple(index.shape)}")
    d = canonical_dim(op, dim, input.ndim)
    index = reshape(index, (1,)) if index.ndim == 0 else index
    n = input.shape[d] if input.ndim else 1
    check_range(op, index, n, d + input.ndim, -n if low else 0, error)
    return d, index, {"entries": (..., *[FULL] * (-d - 1)), "tail": -d - 1, "distinct": False}


def _check_source(op: str, input: Tensor, d: int, index: Tensor, source: Tensor) -> None:
    shape, own = tuple(input.shape) or (1,), tuple(source.shape)
    own, n = own if input.ndim else own or (1,), index.shape[0]
    at = d + len(shape)
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"{op}: self and source expected to have the same dtype, but got {input.dtype} and "
            f"{source.dtype}"
        )
    if (own[at] if at < len(own) else 1) != n:
        error = IndexError if op == "index_copy" else RuntimeError
        raise error(
            f"{op}: number of indices ({n}) should be equal to source.size({at}), but source has "
            f"shape {own}"
        )
    if len(own) != len(shape) or any(own[i] != shape[i] for i in range(-len(shape), 0) if i != d):
        raise RuntimeError(
            f"{op}: source tensor shape must match self tensor shape, excluding dimension "
            f"{at}; got self {shape} and source {own}"
        )


@takes_out()
@rounds_once
@numpy_names
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1
) -> Tensor:
    """``input`` with ``alpha`` times the slices of ``source`` added at the places in ``index``.

    >>> import chainrule
    >>> index = chainrule.tensor([1, 1])
    >>> chainrule.index_add(chainrule.zeros(2), 0, index, chainrule.ones(2), alpha=3)
    tensor([0., 6.])
    """
    d, index, params = _vector("index_add", input, dim, index, 0, RuntimeError)
    _check_source("index_add", input, d, index, source)
    shape = tuple(input.shape)
    if input.array.dtype.kind == "b":
        source = cast(source, dtypes.int64) * bool(alpha)
    elif alpha != 1:
        source = source * alpha
    source = source if source.ndim else reshape(source, (1,))
    return cast(
        input + shaped(index_place(source, index, shape=shape or (1,), **params), shape),
        input.dtype,
    )


@takes_out()
@numpy_names
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """``input`` with the slices at the places in ``index`` replaced by those of ``source``."""
    d, index, params = _vector("index_copy", input, dim, index, 0, IndexError)
    _check_source("index_copy", input, d, index, source)
    shape = tuple(input.shape)
    out = put(*[reshape(v, (1,)) if not shape else v for v in (input, source)], index, **params)
    return shaped(out, shape)


@numpy_names
def index_fill(input: Tensor, dim: int, index: Tensor, value: Number | Tensor) -> Tensor:
    """``input`` with the slices at the places in ``index`` filled with one number.

    >>> import chainrule
    >>> chainrule.index_fill(chainrule.zeros(3), 0, chainrule.tensor([0, 2]), 1.0)
    tensor([1., 0., 1.])
    """
    value = as_number("index_fill", input, value)
    d, index, params = _vector("index_fill", input, dim, index, 1, IndexError)
    n = input.shape[d] if input.ndim else 1
    # By a mask: a place that is named twice is filled once, and counts once for the derivative.
    ones = placed_like(input, of_array(K.ones(tuple(index.shape), "bool")))
    none = placed_like(input, of_array(K.zeros((n,), "bool")))
    mask = put(none, ones, index, **(params | {"entries": (...,), "tail": 0}))
    return shaped(where(reshape(mask, (n, *[1] * (-d - 1))), value, input), tuple(input.shape))


def index_put(
    input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False
) -> Tensor:
    """``input`` with ``input[indices] = values`` done, or ``+=`` with ``accumulate`` (where an
    element named twice gets both).

    >>> import chainrule
    >>> i = (chainrule.tensor([0, 0]),)
    >>> chainrule.index_put(chainrule.zeros(2), i, chainrule.ones(2), accumulate=True)
    tensor([2., 0.])
    """
    if not isinstance(indices, (tuple, list)) or not all(isinstance(i, Tensor) for i in indices):
        raise TypeError("index_put: argument 'indices' must be a tuple of Tensors")
    if values.dtype != input.dtype:
        raise RuntimeError(
            f"index_put: requires the source and destination dtypes match, got {input.dtype} for "
            f"the destination and {values.dtype} for the source"
        )
    shape = tuple(input.shape)
    target, items = items_of("index_put", input, tuple(indices))
    at = parse("index_put", target.shape, items)
    values = spread_to(fitted("index_put", values, at.shape), at)
    try:
        if accumulate:
            placed = index_place(values, *at.indices, shape=tuple(target.shape), **at.params)
            return input + shaped(placed, shape)
        return shaped(put(target, values, *at.indices, **at.params), shape)
    except IndexError:
        raise out_of_bounds("index_put", shape, at) from None


# --- masks ----------------------------------------------------------------------------------------


def masked_fill(input: Tensor, mask: Tensor, value: Number | Tensor) -> Tensor:
    """``input`` with one number where the mask holds; the mask is broadcast.

    >>> import chainrule
    >>> x = chainrule.tensor([1.0, 2.0])
    >>> chainrule.masked_fill(x, x > 1, 0.0)
    tensor([1., 0.])
    """
    check_mask("masked_fill", mask)
    value = as_number("masked_fill", input, value)
    broadcast_shapes(input.array.shape, mask.array.shape, op="masked_fill")
    return apply(REGISTRY["where"], (mask, value, input), {})  # one type, and the shapes fit


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``input`` with the elements of ``source``, in order, where the mask holds.

    >>> import chainrule
    >>> mask = chainrule.tensor([True, False, True])
    >>> chainrule.masked_scatter(chainrule.zeros(3), mask, chainrule.tensor([5.0, 6.0]))
    tensor([5., 0., 6.])
    """
    check_mask("masked_scatter", mask)
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {input.dtype} "
            f"and {source.dtype}"
        )
    shape = tuple(broadcast_shapes(input.shape, mask.shape, op="masked_scatter"))
    mask = broadcast_to(mask, shape=shape)
    # The n-th place where the mask holds takes the n-th element of the source.
    number = reshape(cumsum(cast(reshape(mask, (-1,)), dtypes.int64), 0), shape) - 1
    seen = numbers_of(mask)
    if seen is not None:
        held, given = int(seen.sum()), source.numel()
        if given < held:
            raise RuntimeError(
                f"masked_scatter: number of elements of source ({given}) < number of ones in mask "
                f"({held})"
            )
        if not given:
            return broadcast_to(input, shape=shape) * 1
    return where(mask, take(source, where(mask, number, 0)), input)
