"""Scans: running sums, products and extremes along a dimension; differences and integrals."""

from __future__ import annotations

from typing import Any

from chainrule.backend import K, dtypes
from chainrule.ops.core.synonyms import numpy_names, takes_out
from chainrule.ops.elementwise.functions import exp
from chainrule.ops.elementwise.logic import logical_xor, where
from chainrule.ops.reduce.order import Selection, ValuesIndices, select
from chainrule.ops.core.promotion import NUMBERS
from chainrule.ops.core.primitive import Linear, Op, Primitive
from chainrule.ops.reduce.reductions import array_of, as_summands, sum
from chainrule.ops.index.reading import narrow
from chainrule.ops.shape.views import canonical_dim, reshape
from chainrule.ops.shape.stacking import cat
from chainrule.typing import DType, Tangents, V, Value
from chainrule.tensor import Tensor

__all__ = [
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "diff",
    "logcumsumexp",
    "trapezoid",
    "trapz",
]
METHODS = ("cummax", "cummin", "cumprod", "cumsum", "diff", "logcumsumexp")
INPLACE = ("cumprod", "cumsum")

# --- primitives -----------------------------------------------------------------------------------

_cumsum = Linear(
    "cumsum", lambda g, shape_in, dim, reverse: _cumsum(g, dim=dim, reverse=not reverse)
)
# x[i-1] (by = 1) or x[i+1] (by = -1) in the place of x[i], and ``fill`` at the end left empty.
_shift = Primitive(
    "shift_along",
    lambda g, out, x, needs, dim, by, fill: (_shift(g, dim=dim, by=-by, fill=0),),
    lambda tangents, out, x, dim, by, fill: _shift(tangents[0], dim=dim, by=by, fill=0),
    batch="carry",
    saves_out=False,
)
_cummax, _cummin = Selection("cummax"), Selection("cummin")


def _previous(x: V, dim: int, reverse: bool, fill: float = 0) -> V:
    """The neighbour that a scan in this direction visits before."""
    return _shift(x, dim=dim, by=-1 if reverse else 1, fill=fill)


# The linear recurrence h[i] = a[i] h[i-1] + b[i] differentiates into itself, and without a
# division: with it the derivatives of a running product are exact also at zeros, and those of a
# running logsumexp do not overflow. The tangent follows it forward, the gradient backward.
_linear_scan = Primitive(
    "linear_scan",
    lambda g, out, a, b, needs, dim, reverse: _linear_scan_vjp(g, out, a, dim, reverse),
    lambda tangents, out, a, b, dim, reverse: _linear_scan_jvp(tangents, out, a, dim, reverse),
    batch="carry",
)


def _backward_scan(g: V, a: V, dim: int, reverse: bool) -> V:
    """The gradient that each h[i] receives: l[i] = g[i] + a[i+1] l[i+1]."""
    following = _previous(a, dim, not reverse)
    return _linear_scan(following, g, dim=dim, reverse=not reverse)


def _linear_scan_vjp(
    g: Value, out: Value, a: Value, dim: int, reverse: bool
) -> tuple[Value, Value]:
    received = _backward_scan(g, a, dim, reverse)
    return received * _previous(out, dim, reverse), received


def _linear_scan_jvp(tangents: Tangents, out: Value, a: Value, dim: int, reverse: bool) -> Value:
    ta, tb = tangents
    if ta is not None:
        change = ta * _previous(out, dim, reverse)
        tb = change if tb is None else tb + change
    return _linear_scan(a, tb, dim=dim, reverse=reverse)


# y[i] = x[i] y[i-1], with 1 before the first.
_cumprod = Primitive(
    "cumprod",
    lambda g, out, x, needs, dim, reverse: (
        _backward_scan(g, x, dim, reverse) * _previous(out, dim, reverse, 1),
    ),
    lambda tangents, out, x, dim, reverse: _linear_scan(
        x, tangents[0] * _previous(out, dim, reverse, 1), dim=dim, reverse=reverse
    ),
    batch="carry",
)


def product_before(x: V, dim: int) -> V:
    """For each element the product of those before it."""
    return _previous(_cumprod(x, dim=dim, reverse=False), dim, False, 1)


def product_after(x: V, dim: int) -> V:
    """For each element the product of those after it."""
    return _previous(_cumprod(x, dim=dim, reverse=True), dim, True, 1)


# y[i] = log(exp(y[i-1]) + exp(x[i])): a change of y[i] is the mean of the changes of y[i-1] and
# x[i], weighted by their shares in the sum.
_logcumsumexp = Primitive(
    "logcumsumexp",
    lambda g, out, x, needs, dim: (
        _backward_scan(g, _share_of_previous(out, dim), dim, False) * exp(x - out),
    ),
    lambda tangents, out, x, dim: _linear_scan(
        _share_of_previous(out, dim), tangents[0] * exp(x - out), dim=dim, reverse=False
    ),
    batch="carry",
)


def _share_of_previous(out: V, dim: int) -> V:
    before = _previous(out, dim, False, float("-inf"))
    return where(before == out, 1.0, exp(before - out))


# --- running --------------------------------------------------------------------------------------


def _along(op: Op, name: str, input: V, dim: int, **params: Any) -> V:
    """Scans along ``dim``; a tensor without dimensions is its own scan."""
    d = canonical_dim(name, dim, input.ndim)
    if input.ndim == 0:
        return reshape(op(reshape(input, (1,)), dim=d, **params), ())
    return op(input, dim=d, **params)


@takes_out(exact=False)
@numpy_names
def cumsum(input: V, dim: int, *, dtype: DType | None = None) -> V:
    """The running sum: y[i] = x[0] + ... + x[i].

    >>> import chainrule
    >>> chainrule.tensor([1.0, 2.0, 3.0]).cumsum(dim=0)
    tensor([1., 3., 6.])
    """
    return _along(_cumsum, "cumsum", as_summands("cumsum", input, dtype), dim, reverse=False)


@takes_out(exact=False)
@numpy_names
def cumprod(input: V, dim: int, *, dtype: DType | None = None) -> V:
    """The running product: y[i] = x[0] * ... * x[i]; its gradient is exact also at zeros."""
    return _along(_cumprod, "cumprod", as_summands("cumprod", input, dtype), dim, reverse=False)


@takes_out()
@numpy_names
def logcumsumexp(input: V, dim: int) -> V:
    """The running logsumexp: y[i] = log(exp(x[0]) + ... + exp(x[i])), without overflow."""
    d = array_of("logcumsumexp", input).dtype
    if K.kind_of(d) not in "fc":
        raise NotImplementedError(
            f"logcumsumexp: not implemented for {dtypes.from_array_dtype(d)}; use .float() first"
        )
    return _along(_logcumsumexp, "logcumsumexp", input, dim)


@takes_out()
@numpy_names
def cummax(input: Tensor, dim: int) -> ValuesIndices:
    """The largest element so far and its (latest) index.

    >>> import chainrule
    >>> chainrule.tensor([1.0, 3.0, 2.0]).cummax(dim=0).values
    tensor([1., 3., 3.])
    """
    array_of("cummax", input)
    return select("cummax", _cummax, input, dim)


@takes_out()
@numpy_names
def cummin(input: Tensor, dim: int) -> ValuesIndices:
    """The smallest element so far and its (latest) index."""
    array_of("cummin", input)
    return select("cummin", _cummin, input, dim)


# --- differences and integrals --------------------------------------------------------------------


@takes_out()
@numpy_names
def diff(
    input: V, n: int = 1, dim: int = -1, prepend: V | None = None, append: V | None = None
) -> V:
    """The n-th differences along ``dim``: x[i+1] - x[i], n times.

    >>> import chainrule
    >>> chainrule.tensor([1, 3, 6]).diff()
    tensor([2, 3])
    """
    array_of("diff", input)
    if input.ndim == 0:
        raise RuntimeError("diff: expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"diff: order must be non-negative but got {n}")
    d = canonical_dim("diff", dim, input.ndim)
    parts = [x for x in (prepend, input, append) if x is not None]
    for x in parts:
        _check_fits(input, x, d)
    out = cat(parts if n else [input], d)
    for _ in range(n):
        out = _differences(out, d)
    return out


def _check_fits(input: Value, other: Value, dim: int) -> None:
    if other.ndim != input.ndim:
        raise RuntimeError(
            "diff: expects prepend or append to be the same dimension as input, got shapes "
            f"{tuple(other.shape)} and {tuple(input.shape)}"
        )
    for i, (n, m) in enumerate(zip(input.shape, other.shape, strict=True), -input.ndim):
        if n != m and i != dim:
            raise RuntimeError(
                "diff: expects the shape of tensor to prepend or append to match that of input "
                f"except along the differencing dimension, got {tuple(other.shape)} and "
                f"{tuple(input.shape)}"
            )


def _differences(x: V, dim: int) -> V:
    first, second = _neighbours(x, dim)
    return logical_xor(second, first) if array_of("diff", x).dtype.kind == "b" else second - first


def _neighbours(x: V, dim: int) -> tuple[V, V]:
    """All elements along ``dim`` but the last, and all but the first."""
    count = max(x.shape[dim] - 1, 0)
    return narrow(x, dim, 0, count), narrow(x, dim, x.shape[dim] - count, count)


@numpy_names
def trapezoid(y: V, x: V | None = None, *, dx: float | None = None, dim: int = -1) -> V:
    """The integral of samples ``y`` by the trapezoidal rule along ``dim``.

    The samples lie at ``x`` (as many as along ``dim``, or a shape that broadcasts with y) or ``dx``
    apart.

    >>> import chainrule
    >>> chainrule.trapezoid(chainrule.tensor([1.0, 3.0, 6.0]))
    tensor(6.5000)
    """
    areas, d = _areas("trapezoid", y, x, dx, dim)
    return sum(areas, d)


@numpy_names
def cumulative_trapezoid(y: V, x: V | None = None, *, dx: float | None = None, dim: int = -1) -> V:
    """The running integral of samples ``y`` by the trapezoidal rule along ``dim``."""
    areas, d = _areas("cumulative_trapezoid", y, x, dx, dim)
    return cumsum(areas, d)


def _areas(op: str, y: V, x: V | None, dx: float | None, dim: int) -> tuple[V, int]:
    """The area between each two neighbouring samples, and the dimension they lie along."""
    if x is not None and dx is not None:
        raise TypeError(f"{op}(): takes either 'x' or 'dx', got both")
    for name, values in (("y", y), ("x", x)):
        if values is not None and array_of(op, values).dtype.kind == "b":
            raise RuntimeError(f"{op}: received a bool input for `{name}`; bool is not supported")
    if y.ndim == 0:
        raise IndexError(f"{op}: dimension specified as {dim} but tensor has no dimensions")
    d = canonical_dim(op, dim, y.ndim)
    first, second = _neighbours(y, d)
    if x is None:
        dx = 1.0 if dx is None else dx
        return (first + second) * ((dx if isinstance(dx, NUMBERS) else float(dx)) / 2), d
    return (first + second) * _widths(op, y, x, d) / 2, d


def _widths(op: str, y: Value, x: V, dim: int) -> V:
    """The distances between neighbouring sample points, in a shape that broadcasts with y."""
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(
                f"{op}: there must be one `x` value for each sample point, got {x.shape[0]} values "
                f"and {y.shape[dim]} points"
            )
        return reshape(_differences(x, -1), (-1,) + (1,) * (-dim - 1))
    # A missing leading dimension is one of size 1, as in broadcasting.
    shape = (1,) * (y.ndim - x.ndim) + tuple(x.shape)
    return _differences(reshape(x, shape), dim)


trapz = trapezoid
