"""Elementwise kernels: JAX's own, and a few compositions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from chainrule.backend.xla_kernels.checks import check, is_traced

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "angle",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cast",
    "cast_to_integer",
    "ceil",
    "clamp",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "div",
    "eq",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "frexp_exponent",
    "gcd",
    "ge",
    "gt",
    "heaviside",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "lcm",
    "le",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "nan_to_num",
    "ne",
    "neg",
    "nextafter",
    "pow",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "round",
    "rsqrt",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "softplus",
    "sqrt",
    "square",
    "sub",
    "tan",
    "tanh",
    "trunc",
    "trunc_divide",
    "where",
]

Array = Any  # jax.Array, or what is traced

abs, neg, conj = jnp.abs, jnp.negative, jnp.conjugate
exp, exp2, expm1 = jnp.exp, jnp.exp2, jnp.expm1
log, log2, log10 = jnp.log, jnp.log2, jnp.log10
sqrt = jnp.sqrt
sin, cos, tan = jnp.sin, jnp.cos, jnp.tan
asin, acos, atan = jnp.arcsin, jnp.arccos, jnp.arctan
sinh, cosh, tanh = jnp.sinh, jnp.cosh, jnp.tanh
asinh, acosh, atanh = jnp.arcsinh, jnp.arccosh, jnp.arctanh
floor, ceil, trunc = jnp.floor, jnp.ceil, jnp.trunc
isnan, isinf, isfinite, signbit = jnp.isnan, jnp.isinf, jnp.isfinite, jnp.signbit

add, sub, mul = jnp.add, jnp.subtract, jnp.multiply
atan2, hypot, copysign = jnp.arctan2, jnp.hypot, jnp.copysign
maximum, minimum, fmax, fmin = jnp.maximum, jnp.minimum, jnp.fmax, jnp.fmin
gcd, lcm, nextafter = jnp.gcd, jnp.lcm, jnp.nextafter
eq, ne, lt, le, gt, ge = (
    jnp.equal,
    jnp.not_equal,
    jnp.less,
    jnp.less_equal,
    jnp.greater,
    jnp.greater_equal,
)
logical_and, logical_or, logical_xor, logical_not = (
    jnp.logical_and,
    jnp.logical_or,
    jnp.logical_xor,
    jnp.logical_not,
)
bitwise_and, bitwise_or, bitwise_xor, bitwise_not = (
    jnp.bitwise_and,
    jnp.bitwise_or,
    jnp.bitwise_xor,
    jnp.invert,
)
bitwise_left_shift, bitwise_right_shift = jnp.left_shift, jnp.right_shift


def div(a: Array, b: Array) -> Array:
    """a / b; integers as float64."""
    a, b = jnp.asarray(a), jnp.asarray(b) if hasattr(b, "dtype") else b
    if not jnp.issubdtype(jnp.result_type(a, b), np.inexact):
        a = a.astype(np.float64)
    return jnp.true_divide(a, b)


def cast(a: Array, dtype: Any, source: Any) -> Array:
    """``a`` in another type; of complex numbers the real part."""
    if a.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        a = a.real
    return a.astype(dtype)


def cast_to_integer(a: Array, dtype: Any) -> Array:
    """A copy in an integer type, cut towards zero; of complex numbers the real part."""
    if np.dtype(dtype).kind == "b":
        return a != 0
    return (a.real if a.dtype.kind == "c" else a).astype(dtype)


def sign(a: Array) -> Array:
    """-1, 0 or 1; a truth value is its own sign."""
    return a if a.dtype == bool else jnp.sign(a)


def square(a: Array) -> Array:
    """a * a; truth values become integers."""
    return a.astype(np.int64) if a.dtype == bool else jnp.square(a)


def log1p(a: Array) -> Array:
    """log(1 + a), exact for small a."""
    if a.dtype.kind != "c":
        return jnp.log1p(a)
    x, y = a.real, a.imag
    size = jnp.where(
        jnp.hypot(x, y) < 0.5, 0.5 * jnp.log1p(x * (2 + x) + y * y), jnp.log(jnp.hypot(1 + x, y))
    )
    return jax.lax.complex(size, jnp.arctan2(y, 1 + x))


def logaddexp(a: Array, b: Array) -> Array:
    """log(exp(a) + exp(b)) without overflow."""
    a, b = jnp.asarray(a), jnp.asarray(b)
    if jnp.result_type(a, b).kind != "c":
        return jnp.logaddexp(a, b)
    larger = a.real > b.real
    high, low = jnp.where(larger, a, b), jnp.where(larger, b, a)
    equal = (high.real == low.real) & jnp.isinf(high.real)
    return jnp.where(equal & (high.real < 0), high, high + log1p(jnp.exp(low - high)))


def logaddexp2(a: Array, b: Array) -> Array:
    """log2(2^a + 2^b) without overflow."""
    high, low = jnp.maximum(a, b), jnp.minimum(a, b)
    apart = jnp.where(jnp.isinf(high) & (high == low), 0, low - high)
    return high + (jnp.log1p(jnp.exp2(apart)) * (1 / np.log(2))).astype(high.dtype)


def pow(a: Array, b: Array) -> Array:
    """a^b; integers to negative powers truncate to 0, 1 or -1."""
    # A number that is known is worth a product.
    if not is_traced(b) and getattr(b, "ndim", 1) == 0 and np.dtype(b.dtype).kind == "f":
        exponent = float(b)
        if exponent == 2:
            return jnp.square(a)
        if exponent == 3:
            return a * a * a
    x, y = jnp.asarray(a), jnp.asarray(b) if hasattr(b, "dtype") else b
    whole = x.dtype.kind in "iu" and (jnp.asarray(y).dtype.kind in "iu")
    if not whole:
        return jnp.power(x, y)
    if isinstance(b, np.generic) and int(b) < 0:
        raise RuntimeError(
            "pow: integers to negative integer powers are not allowed; use .float() first"
        )
    y = jnp.asarray(y)
    powered = jnp.power(x, jnp.maximum(y, 0))
    of_negative = jnp.where(x == 1, 1, jnp.where(x == -1, jnp.where(y % 2 == 0, 1, -1), 0))
    return jnp.where(y < 0, of_negative.astype(powered.dtype), powered)


def relu(a: Array) -> Array:
    """max(a, 0); NaN stays."""
    return jnp.maximum(a, 0)


def rsqrt(a: Array) -> Array:
    """1 / sqrt(a)"""
    return 1 / jnp.sqrt(a)


def reciprocal(a: Array) -> Array:
    """1 / a"""
    return 1 / a


def frac(a: Array) -> Array:
    """a - trunc(a), with the sign of a."""
    return a - jnp.trunc(a)


def _refuse_zero(op: str, b: Array) -> None:
    """Floating numbers have an answer to a division by zero, integers have none."""
    if hasattr(b, "dtype") and b.dtype.kind in "iu":
        error = RuntimeError(f"{op}: integer division by zero; convert with .float() first")
        check(jnp.all(jnp.asarray(b) != 0), lambda: error)


def floor_divide(a: Array, b: Array) -> Array:
    """floor(a / b); integers by zero are refused."""
    _refuse_zero("floor_divide", b)
    return jnp.floor_divide(a, b)


def remainder(a: Array, b: Array) -> Array:
    """a - b floor(a / b), with the sign of b; integers by zero are refused."""
    _refuse_zero("remainder", b)
    return jnp.remainder(a, b)


def fmod(a: Array, b: Array) -> Array:
    """a - b trunc(a / b), with the sign of a; integers by zero are refused."""
    _refuse_zero("fmod", b)
    return jnp.fmod(a, b)


def trunc_divide(a: Array, b: Array) -> Array:
    """trunc(a / b), which for integers needs no fraction; integers by zero are refused."""
    if jnp.result_type(a, b).kind in "iu":
        _refuse_zero("div", b)
        quotient = jnp.floor_divide(a, b)
        return quotient + ((jnp.remainder(a, b) != 0) & (quotient < 0))
    return jnp.trunc(jnp.true_divide(a, b))


def heaviside(a: Array, b: Array) -> Array:
    """0 where a is negative, b where it is 0, 1 where it is positive."""
    dtype = jnp.result_type(a, b)
    a, b = jnp.asarray(a, dtype), jnp.asarray(b, dtype)
    out = jnp.where(a < 0, jnp.zeros((), dtype), jnp.where(a > 0, jnp.ones((), dtype), b))
    return jnp.where(a != a, a, out)


def sinc(a: Array) -> Array:
    """sin(pi a) / (pi a), 1 at 0."""
    z = np.pi * jnp.where(a == 0, 1, a)
    return jnp.where(a == 0, jnp.ones((), a.dtype), jnp.sin(z) / z)


def softplus(a: Array) -> Array:
    """log(1 + exp(a)) without overflow."""
    return jnp.log1p(jnp.exp(-jnp.abs(a))) + jnp.maximum(a, 0)


def round(a: Array, decimals: int = 0) -> Array:
    """``a`` to this many digits after the point, halves to the even neighbor."""
    return jnp.round(a, decimals)


def nan_to_num(a: Array, nan: float, posinf: float | None, neginf: float | None) -> Array:
    """``a`` with finite numbers for NaN and for infinities (None: the largest of its type)."""
    return jnp.nan_to_num(a, nan=nan, posinf=posinf, neginf=neginf)


def clamp(a: Array, low: Array | None, high: Array | None) -> Array:
    """min(max(a, low), high); a limit of None is none."""
    if low is not None:
        a = jnp.maximum(a, low)
    return a if high is None else jnp.minimum(a, high)


def isposinf(a: Array) -> Array:
    """Where ``a`` is +inf."""
    return jnp.isinf(a) & (a > 0)


def isneginf(a: Array) -> Array:
    """Where ``a`` is -inf."""
    return jnp.isinf(a) & (a < 0)


def where(condition: Array, a: Array, b: Array) -> Array:
    """a where the condition holds, b elsewhere; all three are broadcast."""
    return jnp.where(condition, a, b)


# --- complex numbers ------------------------------------------------------------------------------


def real(a: Array) -> Array:
    """The real parts."""
    return jnp.real(a)


def imag(a: Array) -> Array:
    """The imaginary parts; zeros for real numbers."""
    return jnp.imag(a)


def angle(a: Array) -> Array:
    """The angle of a in the complex plane: of real numbers pi below 0, else 0, and NaN stays."""
    if a.dtype.kind == "c":
        return jnp.arctan2(a.imag, a.real)
    below = jnp.where(a < 0, jnp.asarray(np.pi, a.dtype), jnp.zeros((), a.dtype))
    return jnp.where(jnp.isnan(a), a, below)


def frexp_exponent(a: Array) -> Array:
    """The exponent e of a = m 2^e with m in [0.5, 1)."""
    return jnp.frexp(a)[1].astype(np.int32)
