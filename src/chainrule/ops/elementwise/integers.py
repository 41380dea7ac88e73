"""Divisors and multiples of integers, and floating-point numbers as what they are made of."""

from __future__ import annotations

from chainrule.ops.core.rounding import rounds_once
from chainrule.ops.core.synonyms import takes_out
from chainrule.backend import dtypes
from chainrule.ops.core.pointwise import binary, unary
from chainrule.ops.core.promotion import cast
from chainrule.ops.elementwise.complex_numbers import imag
from chainrule.ops.elementwise.functions import exp2, pow, zeros_like_of
from chainrule.ops.elementwise.logic import isnan
from chainrule.tensor import Tensor
from chainrule.typing import Number

__all__ = ["float_power", "frexp", "gcd", "isreal", "lcm", "ldexp", "nextafter"]
METHODS = tuple(__all__)
INPLACE = ("float_power", "gcd", "lcm", "ldexp", "nextafter")

gcd = binary("gcd", None, None, "The greatest common divisor of x and y.", kinds="iu")
lcm = binary("lcm", None, None, "The least common multiple of x and y.", kinds="iu")
_exponent = unary("frexp_exponent", None, "The exponent of x.", floating=False, kinds="f")
nextafter = binary(
    "nextafter",
    lambda d: d,
    lambda d: zeros_like_of(d),
    "The number next to x in direction of y, which moves with x.",
    kinds="f",
)
nextafter.op.rounds = False  # the next number of the type itself


@takes_out(exact=False)
@rounds_once
def ldexp(input: Tensor, other: Tensor | Number) -> Tensor:
    """input * 2**other

    >>> import chainrule
    >>> chainrule.ldexp(chainrule.tensor([1.0]), chainrule.tensor([3]))
    tensor([8.])
    """
    return input * (exp2(other) if isinstance(other, Tensor) else 2.0**other)


@takes_out()
@rounds_once
def frexp(input: Tensor) -> tuple[Tensor, Tensor]:
    """The mantissa, in [0.5, 1), and the int32 exponent of each number.

    >>> import chainrule
    >>> chainrule.frexp(chainrule.tensor([8.0]))
    (tensor([0.5000]), tensor([4], dtype=chainrule.int32))
    """
    if not input.is_floating_point():
        raise RuntimeError(f"frexp: only supports floating-point dtypes, got {input.dtype}")
    exponent = _exponent(input)
    half = exponent // 2  # in two factors, for 2**exponent may overflow
    return ldexp(ldexp(input, -half), half - exponent), exponent


@takes_out(exact=False)
def float_power(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """``input`` to the power ``exponent``, in float64 (complex128 for complex numbers)."""
    return pow(_wide(input), _wide(exponent))


def _wide(x: Tensor | Number) -> Tensor | Number:
    return cast(x, dtypes.promote_types(x.dtype, dtypes.float64)) if isinstance(x, Tensor) else x


def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part of each element is 0."""
    return imag(input) == 0 if input.is_complex() else ~isnan(input) | isnan(input)
