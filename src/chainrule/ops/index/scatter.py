"""Elements of one tensor put into another along a dimension: replaced, added, reduced by groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.ops.core.arguments import placed_like
from chainrule.backend import K, dtypes
from chainrule.ops.core.synonyms import numpy_names, takes_out
from chainrule.ops.index.assignment import as_value, shaped
from chainrule.ops.index.choice import (
    gather_along,
    gather_place,
    scatter_along,
    slice_view,
)
from chainrule.ops.elementwise.functions import floor_divide
from chainrule.ops.elementwise.logic import isnan, where
from chainrule.ops.index.reading import (
    check_index_shape,
    check_range,
    integer_index,
    with_dimensions,
)
from chainrule.ops.core.promotion import cast, check_kind
from chainrule.ops.core.primitive import Primitive, broadcast_to
from chainrule.ops.shape.views import canonical_dim, reshape
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Gradients, Number, Tangents, V, Value

__all__ = [
    "index_reduce",
    "scatter",
    "scatter_add",
    "scatter_reduce",
]
METHODS = tuple(__all__)
INPLACE = tuple(__all__)


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


@takes_out()
@numpy_names
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
    return shaped(scatter_along(input, source, index, dim=d), shape)


@takes_out()
@numpy_names
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``input`` with the elements of ``src`` added where ``index`` says along ``dim``.

    >>> import chainrule
    >>> chainrule.scatter_add(chainrule.zeros(2), 0, chainrule.tensor([1, 1, 0]), chainrule.ones(3))
    tensor([1., 2.])
    """
    shape = tuple(input.shape)
    input, index, d, src = _checked("scatter_add", input, dim, index, src)
    return shaped(input + _placed(src, index, d, input), shape)


def _placed(src: V, index: V, dim: int, input: Value) -> V:
    return gather_place(src, index, dim=dim, shape=tuple(input.shape))


@takes_out()
@numpy_names
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
    if reduce in ("amax", "amin"):
        check_kind("scatter_reduce", "biuf", input.array.dtype)
    shape = tuple(input.shape)
    input, index, d, src = _checked("scatter_reduce", input, dim, index, src)
    out = _REDUCTIONS[reduce](input, src, index, d, include_self)
    return shaped(cast(out, input.dtype), shape)


@takes_out()
@numpy_names
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """:func:`scatter_reduce` of whole slices: those of ``source`` along ``dim``, grouped by a
    vector of integers, reduced by "prod", "mean", "amax" or "amin".

    >>> import chainrule
    >>> x, i = chainrule.tensor([2.0, 3.0, 4.0]), chainrule.tensor([0, 1, 0])
    >>> chainrule.index_reduce(chainrule.ones(2), 0, i, x, "prod")
    tensor([8., 3.])
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"index_reduce: reduce argument must be either prod, mean, amax or amin, got {reduce!r}"
        )
    shape, own = tuple(input.shape), tuple(source.shape)
    d = canonical_dim("index_reduce", dim, input.ndim)
    places = integer_index("index_reduce", index, among=input)
    rest = [n for i, n in enumerate(shape, -len(shape)) if i != d]
    if places.ndim > 1 or rest != [n for i, n in enumerate(own, -len(own)) if i != d]:
        raise IndexError(
            f"index_reduce: for input {shape} and dimension {dim}, index must be a vector and "
            f"source have the same sizes but there, got {tuple(index.shape)} and {own}"
        )
    if (own[d] if own else 1) != places.numel():
        raise IndexError(
            f"index_reduce: number of indices ({places.numel()}) should be equal to the size of "
            f"source along dimension {dim}, whose shape is {own}"
        )
    places = reshape(places, (-1, *[1] * (-d - 1))) if own else reshape(places, ())
    if not source.numel():
        return input.clone()
    return scatter_reduce(
        input, d, broadcast_to(places, shape=own), source, reduce, include_self=include_self
    )


def _ones(like: V) -> V:
    """Ones of the shape and type of ``like``, tensor or bare array."""
    ones = K.ones(tuple(like.shape), (like.array if isinstance(like, Tensor) else like).dtype)
    return placed_like(like, of_array(ones)) if isinstance(like, Tensor) else ones


def _own(input: V, src: V, index: V, dim: int, include_self: bool) -> V:
    """``input``, with zeros where a group does not count it."""
    if include_self:
        return input
    return where(_placed(_ones(src), index, dim, input) != 0, _ones(input) * 0, input)


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
