"""Elementwise functions made of others: their derivatives follow."""

from __future__ import annotations

import math

from chainrule.ops.core.rounding import rounds_once
from chainrule.ops.core.synonyms import takes_out
from chainrule.backend import dtypes
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.logic import eq, isfinite, isnan
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.core.pointwise import unary
from chainrule.ops.core.promotion import result_type, to_floating
from chainrule.tensor import Tensor, check_layout
from chainrule.typing import Number, Real

__all__ = [
    "addcdiv",
    "addcmul",
    "clamp_max",
    "clamp_min",
    "deg2rad",
    "isclose",
    "lerp",
    "logit",
    "positive",
    "rad2deg",
]

METHODS = tuple(__all__)
INPLACE = tuple(name for name in __all__ if name not in ("isclose", "positive"))


# A primitive for accuracy: log(x) - log1p(-x) loses all digits near 1/2.
_logit = unary("logit", lambda d, x: d / (x * (1 - x)), "log(x / (1 - x))", kinds="biuf")


def positive(input: Tensor) -> Tensor:
    """``input`` itself."""
    if input.array.dtype.kind == "b":
        raise RuntimeError("positive: the + operator is not supported on a bool tensor")
    return input


@takes_out(exact=False)
def clamp_min(input: Tensor, min: Tensor | Real) -> Tensor:
    """``input``, at least ``min``."""
    return clamp(input, min=min)


@takes_out(exact=False)
def clamp_max(input: Tensor, max: Tensor | Real) -> Tensor:
    """``input``, at most ``max``."""
    return clamp(input, max=max)


@takes_out(exact=False)
def lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """input + weight * (end - input)"""
    change = end - input
    if change.array.dtype.itemsize == 2:
        return _narrow_lerp(input, end, weight)
    return input + weight * change


@rounds_once
def _narrow_lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    return input + weight * (end - input)


@takes_out(exact=False)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """input + value * tensor1 * tensor2"""
    product = tensor1 * tensor2
    return input + (product if value == 1 else value * product)


@takes_out(exact=False)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """input + value * tensor1 / tensor2"""
    if not result_type(tensor1, tensor2).category > dtypes.INTEGER:
        raise RuntimeError(
            "addcdiv: integer division is not supported; convert with .float() first"
        )
    quotient = tensor1 / tensor2
    return input + (quotient if value == 1 else value * quotient)


@takes_out(exact=False)
@rounds_once
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), with x first limited to [eps, 1 - eps] if ``eps`` is given."""
    return _logit(input if eps is None else clamp(to_floating(input), eps, 1 - eps))


@takes_out(exact=False)
def deg2rad(input: Tensor) -> Tensor:
    """Degrees to radians."""
    return to_floating(input) * (math.pi / 180)


@takes_out(exact=False)
def rad2deg(input: Tensor) -> Tensor:
    """Radians to degrees."""
    return to_floating(input) * (180 / math.pi)


def isclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """Whether |input - other| <= atol + rtol * |other|, element by element."""
    if not isinstance(other, Tensor):
        check_layout("isclose", other)
        raise TypeError(f"isclose(): argument 'other' must be Tensor, not {type(other).__name__}")
    if input.dtype != other.dtype:
        raise RuntimeError(
            f"isclose: {input.dtype} did not match {other.dtype}; convert one of them"
        )
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise RuntimeError(
                f"isclose: {name} must be greater than or equal to zero, but got {tolerance}"
            )
    input, other = input.detach(), other.detach()
    close = eq(input, other)
    if input.dtype.category > dtypes.INTEGER:
        finite = isfinite(input) & isfinite(other)
        close = close | (finite & (abs(input - other) <= atol + rtol * abs(other)))
        if equal_nan:
            close = close | (isnan(input) & isnan(other))
    elif input.dtype.category == dtypes.INTEGER:
        close = close | (abs(input - other) <= atol + rtol * abs(other))
    return close
