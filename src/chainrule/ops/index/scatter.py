"""New tensors from old ones with some elements replaced, added to or reduced by groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.backend import K, dtypes
from chainrule.ops.index.assignment import as_number, as_value, fitted, spread_to
from chainrule.ops.index.choice import (
    FULL,
    gather_along,
    gather_place,
    index_place,
    scatter_along,
    slice_view,
)
from chainrule.ops.index.choice import index_put as put
from chainrule.ops.elementwise.functions import floor_divide, isnan, where
from chainrule.ops.index.reading import (
    check_index_shape,
    check_mask,
    check_range,
    integer_index,
    take,
    with_dimensions,
)
from chainrule.ops.core.promotion import broadcast_shapes, cast
from chainrule.ops.core.primitive import Primitive, broadcast_to
from chainrule.ops.reduce.scan import cumsum
from chainrule.ops.shape.views import canonical_dim, reshape
from chainrule.ops.index.subscript import items_of, numbers_of, out_of_bounds, parse
from chainrule.tensor import Tensor
from chainrule.typing import Gradients, Number, Tangents, V, Value

__all__ = [
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "masked_fill",
    "masked_scatter",
    "scatter",
    "scatter_add",
    "scatter_reduce",
]
METHODS = tuple(__all__)
INPLACE = tuple(__all__)


# --- scatter --------------------------------------------------------------------------------------


def _checked(
    op: str, input: Tensor, dim: int, index: Tensor, src: Tensor
) -> tuple[Tensor, Tensor, int, Tensor]:
    """Input, index, dimension from the end, and the source cut to the size of the index."""
    index = integer_index(op, index)
    if input.dtype != src.dtype:
        raise RuntimeError(
            f"{op}: expected self.dtype to be equal to src.dtype, got {input.dtype} and {src.dtype}"
        )
    d = canonical_dim(op, dim, input.ndim)
    src = reshape(src, (1,)) if src.ndim == 0 and index.ndim == 0 else src
    input, index, _ = with_dimensions(input, index)
    own, given = tuple(index.shape), tuple(src.shape)
    if own != (0,):
        check_index_shape(op, input, d, index)
        if len(own) != len(given) or any(a > b for a, b in zip(own, given, strict=True)):
            raise RuntimeError(
                f"{op}: expected index {own} to be no larger than src {given} in every dimension"
            )
    else:
        index = reshape(index, (*[1] * (input.ndim - 1), 0))
        own = tuple(index.shape)
    if own != given:
        src = slice_view(src, entries=tuple(slice(0, n, 1) for n in own))
    check_range(op, index, input.shape[d], d + input.ndim, error=RuntimeError)
    return input, index, d, src


def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | Number | None = None,
    *,
    value: Number | Tensor | None = None,
    reduce: str | None = None,
) -> Tensor:
    """``input`` with the elements that ``index`` names along ``dim`` replaced by those of ``src``
    (or by a number): ``out[index[i][j]][j] = src[i][j]`` for ``dim=0``.

    >>> import chainrule
    >>> index, src = chainrule.tensor([2, 0]), chainrule.tensor([5.0, 6.0])
    >>> chainrule.scatter(chainrule.zeros(3), 0, index, src)
    tensor([6., 0., 5.])
    """
    given = src if value is None else value
    if given is None or (src is not None and value is not None):
        raise TypeError("scatter: give either src (a tensor) or value (a number)")
    if value is None and isinstance(given, Tensor):
        source = given
    else:
        source = broadcast_to(as_value("scatter", input, given), shape=tuple(index.shape))
    if reduce == "add":
        return scatter_add(input, dim, index, source)
    if reduce == "multiply":
        return scatter_reduce(input, dim, index, source, "prod")
    if reduce is not None:
        raise RuntimeError(
            f"scatter: reduce argument must be either add or multiply, got {reduce!r}"
        )
    shape = tuple(input.shape)
    input, index, d, source = _checked("scatter", input, dim, index, source)
    return _shaped(scatter_along(input, source, index, dim=d), shape)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``input`` with the elements of ``src`` added where ``index`` says along ``dim``.

    >>> import chainrule
    >>> chainrule.scatter_add(chainrule.zeros(2), 0, chainrule.tensor([1, 1, 0]), chainrule.ones(3))
    tensor([1., 2.])
    """
    shape = tuple(input.shape)
    input, index, d, src = _checked("scatter_add", input, dim, index, src)
    return _shaped(input + _placed(src, index, d, input), shape)


def _shaped(out: Tensor, shape: tuple[int, ...]) -> Tensor:
    return out if tuple(out.shape) == shape else reshape(out, shape)


def _placed(src: V, index: V, dim: int, input: Value) -> V:
    return gather_place(src, index, dim=dim, shape=tuple(input.shape))


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Groups of ``src`` by ``index`` along ``dim``, each reduced to one element: by "sum", "prod",
    "mean", "amax" or "amin". ``include_self`` counts the element of ``input`` as one of its group.

    >>> import chainrule
    >>> x, i = chainrule.tensor([1.0, 5.0, 3.0]), chainrule.tensor([0, 1, 0])
    >>> chainrule.scatter_reduce(chainrule.zeros(2), 0, i, x, "mean", include_self=False)
    tensor([2., 5.])
    """
    if reduce not in _REDUCTIONS:
        raise RuntimeError(
            "scatter_reduce: reduce argument must be either sum, prod, mean, amax or amin, got "
            f"{reduce!r}"
        )
    shape = tuple(input.shape)
    input, index, d, src = _checked("scatter_reduce", input, dim, index, src)
    return _shaped(_REDUCTIONS[reduce](input, src, index, d, include_self), shape)


def _ones(like: V) -> V:
    """Ones of the shape and type of ``like``, tensor or bare array."""
    ones = K.ones(tuple(like.shape), (like.array if isinstance(like, Tensor) else like).dtype)
    return Tensor(ones) if isinstance(like, Tensor) else ones


def _own(input: V, src: V, index: V, dim: int, include_self: bool) -> V:
    """``input``, with zeros where a group does not count it."""
    if include_self:
        return input
    return where(_placed(_ones(src), index, dim, input) > 0, _ones(input) * 0, input)


def _sum(input: Tensor, src: Tensor, index: Tensor, dim: int, include_self: bool) -> Tensor:
    return _own(input, src, index, dim, include_self) + _placed(src, index, dim, input)


def _mean(input: Tensor, src: Tensor, index: Tensor, dim: int, include_self: bool) -> Tensor:
    count = _placed(_ones(src), index, dim, input) + (1 if include_self else 0)
    count = where(count == 0, _ones(count), count)
    total = _sum(input, src, index, dim, include_self)
    return total / count if total.dtype.category > dtypes.INTEGER else floor_divide(total, count)


def _product(input: Tensor, src: Tensor, index: Tensor, dim: int, include_self: bool) -> Tensor:
    return _scatter_product(input, src, index, dim=dim, include_self=include_self)


def _largest(input: Tensor, src: Tensor, index: Tensor, dim: int, include_self: bool) -> Tensor:
    return _extreme(input, src, index, dim=dim, largest=True, include_self=include_self)


def _smallest(input: Tensor, src: Tensor, index: Tensor, dim: int, include_self: bool) -> Tensor:
    return _extreme(input, src, index, dim=dim, largest=False, include_self=include_self)


_REDUCTIONS = {
    "sum": _sum,
    "mean": _mean,
    "prod": _product,
    "amax": _largest,
    "amin": _smallest,
}


def _grouped(
    weights: Callable[..., tuple[Value, Value]],
) -> tuple[Callable[..., Gradients], Callable[..., Value | None]]:
    """The rules of a reduction by groups from ``weights``: the derivative of each group's result
    with respect to its element of the input and to the elements of the source."""

    def vjp(
        g: Value,
        out: Value,
        x: Value,
        src: Value,
        index: Value,
        *,
        needs: Sequence[bool],
        dim: int,
        **params: Any,
    ) -> Gradients:
        of_x, of_src = weights(out, x, src, index, dim, **params)
        return g * of_x, gather_along(g, index, dim=dim) * of_src, None

    def jvp(
        tangents: Tangents,
        out: Value,
        x: Value,
        src: Value,
        index: Value,
        *,
        dim: int,
        **params: Any,
    ) -> Value | None:
        of_x, of_src = weights(out, x, src, index, dim, **params)
        total = None if tangents[0] is None else tangents[0] * of_x
        if tangents[1] is not None:
            part = _placed(tangents[1] * of_src, index, dim, x)
            total = part if total is None else total + part
        return total

    return vjp, jvp


def _extreme_weights(
    out: Value, x: Value, src: Value, index: Value, dim: int, largest: bool, include_self: bool
) -> tuple[Value, Value]:
    """The elements that equal the result share its derivative evenly."""
    among_src = cast(_same(src, gather_along(out, index, dim=dim)), src.dtype)
    among_x = cast(_same(x, out), x.dtype)
    among_x = _own(among_x, src, index, dim, include_self)
    share = 1 / (among_x + _placed(among_src, index, dim, x))
    return among_x * share, among_src * gather_along(share, index, dim=dim)


def _same(a: Value, b: Value) -> Value:
    return (a == b) | (isnan(a) & isnan(b))


def _product_weights(
    out: Value, x: Value, src: Value, index: Value, dim: int, include_self: bool
) -> tuple[Value, Value]:
    """The product of the others in the group."""
    own = _own(_ones(x), src, index, dim, include_self)  # 1 where x counts in its group

    def grouped(f: Callable[[Value], Value]) -> Value:
        return f(x) * own + _placed(f(src), index, dim, x)

    zeros = grouped(lambda v: cast(v == 0, v.dtype))
    zero = grouped(lambda v: where(v == 0, v, 0 * v))
    rest = _scatter_product(_nonzero(x), _nonzero(src), index, dim=dim, include_self=include_self)
    of_src = [gather_along(v, index, dim=dim) for v in (zeros, zero, rest)]
    return _others(x, zeros, zero, rest) * own, _others(src, *of_src)


def _nonzero(v: V) -> V:
    return where(v == 0, _ones(v), v)


def _others(v: Value, zeros: Value, zero: Value, rest: Value) -> Value:
    """The product of a group without ``v``, where ``zeros`` counts the zeros in the group, ``zero``
    is their sum and ``rest`` the product of the others: exact, with its first derivative, zeros or
    not."""
    is_zero = v == 0
    without = rest / _nonzero(v)
    one = where(is_zero, rest, zero * without)
    two = where(is_zero, (zero - v) * rest, 0 * v)
    return where(zeros == 0, without, where(zeros == 1, one, where(zeros == 2, two, 0 * v)))


_extreme = Primitive("scatter_extreme", *_grouped(_extreme_weights), batch="carry")
_scatter_product = Primitive("scatter_product", *_grouped(_product_weights), batch="carry")

# --- slices named by a vector of integers ---------------------------------------------------------


def _vector(
    op: str, input: Tensor, dim: int, index: Tensor, low: int, error: type[Exception]
) -> tuple[int, Tensor, dict[str, Any]]:
    """Where a vector of integers points along a dimension."""
    index = integer_index(op, index)
    if index.ndim > 1:
        kind = RuntimeError if op == "index_fill" else IndexError
        raise kind(f"{op}: index is supposed to be a vector, got shape {tuple(index.shape)}")
    d = canonical_dim(op, dim, input.ndim)
    index = reshape(index, (1,)) if index.ndim == 0 else index
    n = input.shape[d] if input.ndim else 1
    check_range(op, index, n, d + input.ndim, -n if low else 0, error)
    return d, index, {"entries": (..., *[FULL] * (-d - 1)), "tail": -d - 1, "distinct": False}


def _check_source(op: str, input: Tensor, d: int, index: Tensor, source: Tensor) -> None:
    shape, own, n = tuple(input.shape), tuple(source.shape), index.shape[0]
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
    source = source if alpha == 1 else source * alpha
    if not shape:
        return input + source
    return input + index_place(source, index, shape=shape, **params)


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """``input`` with the slices at the places in ``index`` replaced by those of ``source``."""
    d, index, params = _vector("index_copy", input, dim, index, 0, IndexError)
    _check_source("index_copy", input, d, index, source)
    shape = tuple(input.shape)
    out = put(*[reshape(v, (1,)) if not shape else v for v in (input, source)], index, **params)
    return _shaped(out, shape)


def index_fill(input: Tensor, dim: int, index: Tensor, value: Number | Tensor) -> Tensor:
    """``input`` with the slices at the places in ``index`` filled with one number.

    >>> import chainrule
    >>> chainrule.index_fill(chainrule.zeros(3), 0, chainrule.tensor([0, 2]), 1.0)
    tensor([1., 0., 1.])
    """
    value = as_number("index_fill", input, value)
    d, index, params = _vector("index_fill", input, dim, index, 1, IndexError)
    shape = list(input.shape) or [1]
    whole = tuple(shape)
    shape[d] = index.shape[0]
    out = put(reshape(input, whole), broadcast_to(value, shape=tuple(shape)), index, **params)
    return _shaped(out, tuple(input.shape))


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
            return input + _shaped(placed, shape)
        return _shaped(put(target, values, *at.indices, **at.params), shape)
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
    broadcast_shapes(input.shape, mask.shape, op="masked_fill")
    return where(mask, value, input)


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
