"""Reductions: many numbers to one, over all elements or along some dimensions.

A reduction is declared by its differential, like an elementwise function: the change of the output
that a change ``d`` of each element makes. Read backward, ``d`` is the gradient of the output,
repeated along the reduced dimensions; read forward, it is the tangent of the input, and the changes
are summed. A differential is linear in ``d``; that of a real function of complex numbers (a
variance, a norm) is its gradient times a real ``d``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from chainrule.backend import K, dtypes
from chainrule.ops.core.out import into
from chainrule.ops.core.synonyms import (
    NumPyNames,
    in_words_of_pytorch,
    numpy_names,
    takes_out,
)
from chainrule.ops.elementwise.complex_numbers import conj, real
from chainrule.ops.elementwise.derived import isclose
from chainrule.ops.elementwise.functions import exp
from chainrule.ops.elementwise.logic import isnan, where
from chainrule.ops.core.promotion import cast, is_complex_value, to_floating
from chainrule.ops.core.recording import one
from chainrule.ops.core.primitive import Linear, Nondifferentiable, Primitive
from chainrule.ops.shape.views import canonical_dims, reshape
from chainrule.graph import mode
from chainrule.tensor import OtherLayout, Tensor, check_layout
from chainrule.typing import Array, DType, Dims, V, Value

__all__ = [
    "all", "allclose", "any", "count_nonzero", "equal", "logsumexp", "mean", "nanmean",
    "nansum", "std", "std_mean", "sum", "var", "var_mean",
]  # fmt: skip
METHODS = tuple(name for name in __all__ if name not in ("std_mean", "var_mean"))
INPLACE: tuple[str, ...] = ()

# --- primitives -----------------------------------------------------------------------------------

# Sum and spread are each other's transposes.
_sum = Linear(
    "sum",
    lambda g, shape_in, dim, keepdim: _spread(g, shape=tuple(shape_in), dim=dim, keepdim=keepdim),
)
_spread = Linear(
    "spread",
    lambda g, shape_in, shape, dim, keepdim: _sum(g, dim=dim, keepdim=keepdim),
    batch="shape",
    is_view=True,
    may_copy=True,
)
# A primitive of its own for speed: one node and one small division.
_mean = Linear(
    "mean",
    lambda g, shape_in, dim, keepdim: _spread(
        g / _count(shape_in, dim), shape=tuple(shape_in), dim=dim, keepdim=keepdim
    ),
)


def _count(shape: tuple[int, ...], dim: tuple[int, ...]) -> int:
    return math.prod([shape[d] for d in dim])


def kept(v: V, x: Value, dim: tuple[int, ...], keepdim: bool) -> V:
    """A reduced value with the reduced dimensions of ``x`` as dimensions of size 1."""
    if keepdim or not dim:
        return v
    return reshape(v, tuple([1 if i in dim else n for i, n in enumerate(x.shape, -x.ndim)]))


def reduction(name: str, differential: Callable[..., Value], reads_out: bool = True) -> Primitive:
    """Declares a reduction ``name(x, dim, keepdim, **params)`` by ``differential(d, x, out, dim,
    **params)``, in which ``d`` and ``out`` have dimensions of size 1 where ``x`` was reduced."""

    def vjp(
        g: Value,
        out: Value | None,
        x: Value,
        needs: Sequence[bool],
        dim: tuple[int, ...],
        keepdim: bool,
        **params: Any,
    ) -> tuple[Value]:
        value = None if out is None else kept(out, x, dim, keepdim)
        return (differential(kept(g, x, dim, keepdim), x, value, dim, **params),)

    def jvp(
        tangents: Sequence[Value],
        out: Value,
        x: Value,
        dim: tuple[int, ...],
        keepdim: bool,
        **params: Any,
    ) -> Value:
        value = kept(out, x, dim, keepdim)
        if is_complex_value(x) and not is_complex_value(out):
            # Of a real function the differential at 1 is the gradient, of which a change is the
            # inner product with that of x.
            changes = real(conj(differential(1.0, x, value, dim, **params)) * tangents[0])
        else:
            changes = differential(tangents[0], x, value, dim, **params)
        return _sum(changes, dim=dim, keepdim=keepdim)

    return Primitive(name, vjp, jvp, batch="carry", saves_out=reads_out)


_logsumexp = reduction("logsumexp", lambda d, x, out, dim: d * exp(x - out))
_var = reduction(
    "var",
    lambda d, x, out, dim, correction: 2 * _deviation(d, x, dim, correction),
    reads_out=False,
)
_std = reduction(
    "std",
    lambda d, x, out, dim, correction: _deviation(_over(d, out), x, dim, correction),
)
_all = Nondifferentiable("all", "carry")
_any = Nondifferentiable("any", "carry")
_count_nonzero = Nondifferentiable("count_nonzero", "carry")


def _deviation(d: Value, x: Value, dim: tuple[int, ...], correction: float) -> Value:
    """d (x - mean(x)) / (n - correction)"""
    n = max(_count(x.shape, dim) - correction, 0)
    return d * (1 / n if n else math.inf) * (x - _mean(x, dim=dim, keepdim=True))


def _over(d: Value, out: Value) -> Value:
    """d / out, and 0 where out is 0: the subgradient of a root at zero."""
    zero = out == 0
    return where(zero, 0.0, d / where(zero, 1.0, out))


# --- arguments ------------------------------------------------------------------------------------


def array_of(op: str, input: Value) -> Array:
    """The array of a tensor; a bare array (inside a rule) is its own."""
    if isinstance(input, Tensor):
        return input.array
    if hasattr(input, "dtype"):
        array: Any = input
        return array
    raise TypeError(
        f"{op}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}; "
        "convert it with chainrule.tensor(...)"
    )


def as_summands(op: str, input: V, dtype: DType | None) -> V:
    """``input`` in the type in which it is added or multiplied up: int64 for integers."""
    if dtype is not None:
        array_of(op, input)
        return cast(input, dtype)
    return cast(input, dtypes.int64) if array_of(op, input).dtype.kind in "iub" else input


def need_floating(op: str, input: Value) -> None:
    """Refuses integers and booleans, as PyTorch does where a fraction would come out."""
    d = array_of(op, input).dtype
    if d.kind in "iub":
        raise RuntimeError(
            f"{op}: expected a tensor of floating point or complex dtype, got "
            f"{dtypes.from_array_dtype(d)}; convert it with .float() first"
        )


# --- sums -----------------------------------------------------------------------------------------

# The types that are summed as they are: of float32, float64 and complex numbers. Integers become
# int64; float16 and bfloat16 are summed in float32.
WIDE = "fdFD"


@numpy_names
def sum(
    input: V,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    **names: Unpack[NumPyNames],
) -> V:
    """The sum over all elements, or along some dimensions; integers are summed as int64.

    >>> import chainrule
    >>> chainrule.ones(2, 3).sum(dim=1)
    tensor([3., 3.])
    """
    if names:
        if "out" in names:
            out = names.pop("out")
            total = sum(input, dim, keepdim, dtype=dtype, **names)
            return total if out is None else into("sum", out, total, (input,))
        dim, keepdim = in_words_of_pytorch("sum", names, dim, keepdim)
    if input.__class__ is not Tensor and isinstance(input, OtherLayout):
        return _of_other_layout(_sum, input, dim, keepdim, dtype)
    array = input.array if input.__class__ is Tensor else array_of("sum", input)
    if dtype is not None or array.dtype.char not in WIDE:
        input = as_summands("sum", input, dtype)
        if array_of("sum", input).dtype.itemsize == 2:
            return _sum(input, dim=canonical_dims("sum", dim, array.ndim), keepdim=keepdim)
    return _reduce(_sum, input, canonical_dims("sum", dim, array.ndim), keepdim)


@numpy_names
def mean(
    input: V,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    **names: Unpack[NumPyNames],
) -> V:
    """The mean over all elements, or along some dimensions.

    >>> import chainrule
    >>> chainrule.tensor([[1.0, 3.0], [5.0, 7.0]]).mean(dim=0)
    tensor([3., 5.])
    """
    if names:
        if "out" in names:
            out = names.pop("out")
            total = mean(input, dim, keepdim, dtype=dtype, **names)
            return total if out is None else into("mean", out, total, (input,))
        dim, keepdim = in_words_of_pytorch("mean", names, dim, keepdim)
    if input.__class__ is not Tensor and isinstance(input, OtherLayout):
        return _of_other_layout(_mean, input, dim, keepdim, dtype)
    array = input.array if input.__class__ is Tensor else array_of("mean", input)
    if dtype is not None or array.dtype.char not in WIDE:
        input = _as_averaged(input, dtype)
        if array_of("mean", input).dtype.itemsize == 2:
            return _mean(input, dim=canonical_dims("mean", dim, array.ndim), keepdim=keepdim)
    return _reduce(_mean, input, canonical_dims("mean", dim, array.ndim), keepdim)


def _of_other_layout(op: Linear, x: Any, dim: Dims, keepdim: bool, dtype: DType | None) -> Any:
    """A sparse tensor knows how it is summed."""
    return op(x.to(dtype or x.dtype), dim=canonical_dims(op.name, dim, x.dim()), keepdim=keepdim)


def _reduce(op: Linear, input: V, dim: tuple[int, ...], keepdim: bool) -> V:
    """Applies a linear reduction: what ``apply`` does, written out for the ordinary case."""
    flags = mode.flags
    if flags > 1 or not isinstance(input, Tensor):
        return op(input, dim=dim, keepdim=keepdim)
    array = op.raw(input.array, dim, keepdim)
    return one(op, input, array, flags, {"dim": dim, "keepdim": keepdim})


def _as_averaged(input: V, dtype: DType | None) -> V:
    which = "Input" if dtype is None else "Optional"
    d = input.dtype if dtype is None else dtypes.as_dtype(dtype)
    if dtypes.to_array_dtype(d).kind in "iub":
        raise RuntimeError(
            f"mean: could not infer output dtype. {which} dtype must be either a floating point or "
            f"complex dtype. Got: {d}; use .float().mean() or mean(dtype=chainrule.float32)"
        )
    array_of("mean", input)
    return cast(input, d)


@takes_out()
@numpy_names
def nansum(input: V, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> V:
    """The sum with NaN counted as zero."""
    kind = K.kind_of(array_of("nansum", input).dtype)
    if kind == "c":
        raise RuntimeError("nansum: does not support complex inputs; sum real and imag separately")
    numbers = where(isnan(input), 0.0, input) if kind == "f" else input
    dims = canonical_dims("nansum", dim, input.ndim)
    return _sum(as_summands("nansum", numbers, dtype), dim=dims, keepdim=keepdim)


@takes_out()
@numpy_names
def nanmean(input: V, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> V:
    """The mean of the elements that are not NaN."""
    need_floating("nanmean", input)
    dims = canonical_dims("nanmean", dim, input.ndim)
    total = nansum(input, dims, keepdim, dtype=dtype)
    return total / _sum(cast(~isnan(input), total.dtype), dim=dims, keepdim=keepdim)


@takes_out()
@numpy_names
def logsumexp(input: V, dim: Dims, keepdim: bool = False) -> V:
    """log(sum(exp(input))), without overflow.

    >>> import chainrule
    >>> chainrule.tensor([1000.0, 1000.0]).logsumexp(dim=0)
    tensor(1000.6932)
    """
    array_of("logsumexp", input)
    if dim is None:
        raise TypeError("logsumexp(): argument 'dim' must be int or tuple of ints, not None")
    dims = canonical_dims("logsumexp", dim, input.ndim)
    return _logsumexp(to_floating(input), dim=dims, keepdim=keepdim)


# --- variance -------------------------------------------------------------------------------------


def _spread_arguments(
    op: str, input: Value, dim: Dims, unbiased: bool | None, correction: float | None
) -> tuple[tuple[int, ...], float]:
    """The dimensions and the correction, from both of PyTorch's ways to give them."""
    need_floating(op, input)
    if isinstance(dim, bool):  # var(x, False) is var(x, unbiased=False)
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"{op}(): takes either 'unbiased' or 'correction', got both")
    if unbiased is not None:
        correction = int(unbiased)
    dims = canonical_dims(op, dim, input.ndim)
    correction = 1 if correction is None else correction
    if _count(input.shape, dims) <= correction:
        warnings.warn(
            f"{op}(): degrees of freedom is <= 0: {_count(input.shape, dims)} elements and "
            f"correction {correction}; the correction should be less than the number of elements",
            stacklevel=3,
        )
    return dims, correction


@takes_out()
@numpy_names
def var(
    input: V,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> V:
    """The variance: sum((x - mean(x))**2) / (n - correction), with correction 1 by default.

    ``unbiased=False`` is the older name for ``correction=0``.

    >>> import chainrule
    >>> chainrule.tensor([1.0, 2.0, 3.0]).var(correction=0)
    tensor(0.6667)
    """
    dims, correction = _spread_arguments("var", input, dim, unbiased, correction)
    return _var(input, dim=dims, keepdim=keepdim, correction=correction)


@takes_out()
@numpy_names
def std(
    input: V,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> V:
    """The standard deviation, the root of :func:`var`; its gradient is 0 where it is 0."""
    dims, correction = _spread_arguments("std", input, dim, unbiased, correction)
    return _std(input, dim=dims, keepdim=keepdim, correction=correction)


@numpy_names
def var_mean(
    input: V,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[V, V]:
    """The variance and the mean."""
    dims, correction = _spread_arguments("var_mean", input, dim, unbiased, correction)
    spread = _var(input, dim=dims, keepdim=keepdim, correction=correction)
    return spread, _mean(input, dim=dims, keepdim=keepdim)


@numpy_names
def std_mean(
    input: V,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[V, V]:
    """The standard deviation and the mean."""
    dims, correction = _spread_arguments("std_mean", input, dim, unbiased, correction)
    spread = _std(input, dim=dims, keepdim=keepdim, correction=correction)
    return spread, _mean(input, dim=dims, keepdim=keepdim)


# --- truth ----------------------------------------------------------------------------------------


@takes_out(exact=False)
@numpy_names
def all(input: V, dim: Dims = None, keepdim: bool = False) -> V:
    """Whether all elements (along some dimensions) are nonzero."""
    return _truth("all", _all, input, dim, keepdim)


@takes_out(exact=False)
@numpy_names
def any(input: V, dim: Dims = None, keepdim: bool = False) -> V:
    """Whether any element (along some dimensions) is nonzero."""
    return _truth("any", _any, input, dim, keepdim)


def _truth(name: str, op: Nondifferentiable, input: V, dim: Dims, keepdim: bool) -> V:
    kind = array_of(name, input).dtype
    # Here, unlike in a sum, no dimensions means none.
    dims = () if dim == () else canonical_dims(name, dim, input.ndim)
    out = op(input, dim=dims, keepdim=keepdim)
    return cast(out, dtypes.uint8) if kind == dtypes.uint8.array_dtype else out


@numpy_names
def count_nonzero(input: V, dim: Dims = None) -> V:
    """How many elements (along some dimensions) are not zero."""
    array_of("count_nonzero", input)
    dims = canonical_dims("count_nonzero", dim, input.ndim)
    return _count_nonzero(input, dim=dims, keepdim=False)


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements."""
    for position, x in enumerate((input, other), 1):
        if not isinstance(x, Tensor):
            check_layout("equal", x)
            name = "input" if position == 1 else "other"
            raise TypeError(
                f"equal(): argument '{name}' (position {position}) must be Tensor, not "
                f"{type(x).__name__}"
            )
    return input.shape == other.shape and bool(all(input == other))


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements satisfy |input - other| <= atol + rtol * |other|."""
    return bool(all(isclose(input, other, rtol, atol, equal_nan)))
