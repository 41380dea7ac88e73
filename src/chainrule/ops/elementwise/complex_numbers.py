"""Absolute value, sign and parts of real and complex numbers."""

from __future__ import annotations

import math

from chainrule.backend import dtypes
from chainrule.ops.core.out import into
from chainrule.ops.core.synonyms import takes_out
from chainrule.ops.elementwise.functions import atan2, real_abs, sign, zeros_like_of
from chainrule.ops.elementwise.logic import isnan, where
from chainrule.ops.core.primitive import Linear, Op, Primitive
from chainrule.ops.core.arguments import tensor_argument
from chainrule.ops.core.promotion import broadcast_shapes, cast, is_complex_value, to_floating
from chainrule.tensor import Tensor
from chainrule.typing import V

__all__ = [
    "abs",
    "absolute",
    "angle",
    "complex",
    "conj",
    "imag",
    "real",
    "sgn",
]

METHODS = ("abs", "absolute", "angle", "conj", "sgn")
INPLACE = ("abs", "absolute", "sgn")


class RealLinear(Primitive):
    """Linear over the real numbers only: its reverse rule needs no conjugation around it."""

    def on_complex_numbers(self) -> Op:
        return self


_conj = RealLinear(
    "conj",
    lambda g, out, x, needs: (conj(g),),
    lambda t, out, x: conj(t[0]),
    "align",
    saves_out=False,
)
_complex = RealLinear(
    "complex",
    lambda g, out, x, y, needs: (real(g), imag(g)),
    lambda t, out, x, y: _complex(_or_zero(t[0], x), _or_zero(t[1], y)),
    "align",
    kernel="make_complex",
    saves_out=False,
)
_real = Linear("real", lambda g, shape_in: _complex(g, zeros_like_of(g)), is_view=True)
_imag = Linear("imag", lambda g, shape_in: _complex(zeros_like_of(g), g), is_view=True)
_complex_abs = Primitive(
    "complex_abs",
    lambda g, out, x, needs: (cast(g, x.dtype) * _direction(x, out),),
    lambda t, out, x: real(conj(_direction(x, out)) * t[0]),
    "align",
    kernel="abs",
)


def _direction(x: V, magnitude: V) -> V:
    """x / |x|, 0 at 0, and so is its derivative there."""
    return x / cast(where(magnitude == 0, math.inf, magnitude), x.dtype)


def abs(input: V, *, out: Tensor | None = None) -> V:
    """The absolute value of each element."""
    if out is not None:
        return into("abs", out, abs(input), (input,))
    return _complex_abs(input) if is_complex_value(input) else real_abs(input)


@takes_out(exact=False)
def sgn(input: V) -> V:
    """The sign, and for complex numbers x / |x| (0 at 0)."""
    return _direction(input, abs(input)) if is_complex_value(input) else sign(input)


def conj(input: V) -> V:
    """The complex conjugate; a real tensor is returned as it is."""
    return _conj(input) if is_complex_value(input) else input


def real(input: V) -> V:
    """The real part, a view; a real tensor is returned as it is."""
    return _real(input) if is_complex_value(input) else input


def imag(input: V) -> V:
    """The imaginary part of a complex tensor, a view of it."""
    if not is_complex_value(input):
        raise RuntimeError(
            f"imag: is not implemented for tensors with non-complex dtypes, got {input.dtype}"
        )
    return _imag(input)


@takes_out(exact=False)
def angle(input: V) -> V:
    """The angle in the complex plane: pi for negative numbers, 0 for positive ones."""
    x = to_floating(input)
    if is_complex_value(x):
        return atan2(imag(x), real(x))
    return where(isnan(x), x, where(x < 0, math.pi, zeros_like_of(x)))


@takes_out()
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers from their real and imaginary parts."""
    real, imag = tensor_argument("complex", real), tensor_argument("complex", imag)
    if not (real.dtype.is_floating_point and imag.dtype.is_floating_point):
        raise RuntimeError(
            "complex: expected both inputs to be floating tensors but got "
            f"{real.dtype} and {imag.dtype}"
        )
    if real.dtype is dtypes.bfloat16:
        raise RuntimeError("complex: not implemented for bfloat16; convert with .float() first")
    if real.dtype is not imag.dtype:
        raise RuntimeError(
            f"complex: expected {real.dtype}, as of real, but got {imag.dtype} for argument 'imag'"
        )
    broadcast_shapes(real.shape, imag.shape, op="complex")
    return _complex(real, imag)


def _or_zero(tangent: V | None, x: V) -> V:
    return zeros_like_of(x) if tangent is None else tangent


absolute = abs
