"""Elementwise functions with options: a factor, a rounding, limits.

They check what they are told and then apply one of several primitives.
"""

from __future__ import annotations

from chainrule.ops.core.synonyms import takes_out
from chainrule.backend import dtypes
from chainrule.backend.limits import finfo
from chainrule.ops.core.out import into
from chainrule.ops.core.primitive import Elementwise
from chainrule.ops.core.promotion import cast, check_kind, result_type
from chainrule.ops.elementwise.functions import (
    plus,
    minus,
    floor_divide,
    true_divide,
    trunc_divide,
    zeros_like_of,
)
from chainrule.ops.elementwise.logic import isfinite, isnan, where
from chainrule.tensor import Tensor
from chainrule.typing import Number, Real, V, Value

__all__ = [
    "add",
    "clamp",
    "clip",
    "div",
    "divide",
    "nan_to_num",
    "round",
    "sub",
    "subtract",
]

METHODS = tuple(__all__)
INPLACE = tuple(__all__)

_round = Elementwise("round", [lambda d: zeros_like_of(d)])
_clamp = Elementwise("clamp", [lambda d, x, low, high: where(_inside(x, low, high), d, 0.0)])
_nan_to_num = Elementwise("nan_to_num", [lambda d, x: where(isfinite(x), d, 0.0)])


@takes_out(exact=False)
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest number with that many decimals; halves go to the even neighbour."""
    check_kind("round", "iuf", input.array.dtype)
    return _round(input, decimals=decimals)


@takes_out(exact=False)
def nan_to_num(
    input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """``input`` with NaN replaced by ``nan`` and infinities by the given or largest numbers."""
    if input.dtype.category <= dtypes.INTEGER:
        return input.clone()
    if input.itemsize == 2:  # computed in float32, whose largest number is another
        largest = finfo(input.dtype).max
        posinf = largest if posinf is None else posinf
        neginf = -largest if neginf is None else neginf
    return _nan_to_num(input, nan=nan, posinf=posinf, neginf=neginf)


def add(input: V | Number, other: V | Number, *, alpha: Number = 1, out: Tensor | None = None) -> V:
    """input + alpha * other"""
    if out is not None:
        return into("add", out, add(input, other, alpha=alpha), (input, other))
    return plus(input, other if alpha == 1 else _scaled("add", input, other, alpha))


def sub(input: V | Number, other: V | Number, *, alpha: Number = 1, out: Tensor | None = None) -> V:
    """input - alpha * other"""
    if out is not None:
        return into("sub", out, sub(input, other, alpha=alpha), (input, other))
    return minus(input, other if alpha == 1 else _scaled("sub", input, other, alpha))


def _scaled(op: str, input: Value | Number, other: V | Number, alpha: Number) -> V | Number:
    if isinstance(alpha, float) and result_type(input, other).category <= dtypes.INTEGER:
        raise RuntimeError(
            f"{op}: for integral input tensors, argument alpha must not be a floating point "
            f"number, got {alpha}; convert with .float() first"
        )
    return other * alpha


def div(
    input: V | Number,
    other: V | Number,
    *,
    rounding_mode: str | None = None,
    out: Tensor | None = None,
) -> V:
    """input / other, rounded towards zero (``"trunc"``) or down (``"floor"``) if asked."""
    if out is not None:
        result = div(input, other, rounding_mode=rounding_mode)
        return into("div", out, result, (input, other))
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode == "trunc":
        return trunc_divide(input, other)
    raise RuntimeError(
        f"div: expected rounding_mode to be one of None, 'trunc' or 'floor' but found "
        f"{rounding_mode!r}"
    )


def clamp(
    input: Tensor,
    min: Tensor | Real | None = None,
    max: Tensor | Real | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """``input`` limited to [min, max]; the gradient is 1 inside and at the limits, 0 outside.

    Where a limit is NaN, so is the result.
    """
    if out is not None:
        return into("clamp", out, clamp(input, min, max), (input, min, max))
    if min is None and max is None:
        raise RuntimeError("clamp: at least one of 'min' or 'max' must not be None")
    d = result_type(*[v for v in (input, min, max) if v is not None])
    check_kind("clamp", "biuf", d.array_dtype)
    x = cast(input, d)
    if not isinstance(min, Tensor) and not isinstance(max, Tensor):
        return _clamp(x, low=min, high=max)
    if min is not None:
        x = where(x < min, min, x)
    if max is not None:
        x = where(x > max, max, x)
    for limit in (min, max):
        if isinstance(limit, Tensor) and limit.is_floating_point():
            x = where(isnan(limit), limit.detach(), x)
    return x


def _inside(x: Value, low: Real | None, high: Real | None) -> Value:
    """Where x lies between the limits, of which one may be missing."""
    if low is None:
        return x <= high
    return x >= low if high is None else (x >= low) & (x <= high)


clip, divide, subtract = clamp, div, sub
