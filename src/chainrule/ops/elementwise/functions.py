"""Elementwise functions: a page of calculus.

Each line is a whole function: its name, its differential (the change of the output for a change
``d`` of an input; ``x`` and ``y`` are the inputs and ``out`` the output) and what it is. Simple
ones first, the trickier ones below.
"""

from __future__ import annotations

import cmath
import math
from typing import Any

from chainrule.ops.core.synonyms import takes_out
from chainrule.backend import K
from chainrule.ops.core.arguments import placed_like
from chainrule.ops.core.pointwise import binary, unary
from chainrule.ops.core.promotion import NUMBERS, check_kind, is_complex_value, to_floating
from chainrule.ops.core.primitive import Differential, Elementwise
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Number, Real, V, Value

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "heaviside",
    "hypot",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "maximum",
    "minimum",
    "mul",
    "multiply",
    "neg",
    "negative",
    "polygamma",
    "pow",
    "reciprocal",
    "relu",
    "remainder",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinc",
    "sinh",
    "softplus",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
    "xlogy",
]

METHODS = tuple(name for name in __all__ if name not in ("polygamma", "softplus"))
INPLACE = METHODS


def zeros_like_of(x: V) -> V:
    """Zeros like ``x``, tensor or bare array: the differential of a step function."""
    if isinstance(x, Tensor):
        return placed_like(x, of_array(K.zeros(x.array.shape, x.array.dtype)))
    return K.zeros(x.shape, x.dtype)


def on_arrays(kernel: str, rule: Differential) -> Differential:
    """A differential ``rule(d)``, or one that reads x, y or out; on bare arrays one kernel."""

    def alone(d: Value) -> Value:
        return rule(d) if isinstance(d, Tensor) else getattr(K, kernel)(d)

    def of_x(d: Value, x: Value) -> Value:
        return rule(d, x) if isinstance(d, Tensor) else getattr(K, kernel)(d, x)

    def of_y(d: Value, y: Value) -> Value:
        return rule(d, y) if isinstance(d, Tensor) else getattr(K, kernel)(d, y)

    def of_out(d: Value, out: Value) -> Value:
        return rule(d, out) if isinstance(d, Tensor) else getattr(K, kernel)(d, out)

    differentials: dict[tuple[str, ...], Differential]
    differentials = {(): alone, ("x",): of_x, ("y",): of_y, ("out",): of_out}
    return differentials[rule.__code__.co_varnames[1 : rule.__code__.co_argcount]]


# --- one input ------------------------------------------------------------------------------------

neg = unary("neg", on_arrays("neg", lambda d: -d), "-x", floating=False, kinds="iufc")
real_abs = unary(
    "abs", lambda d, x: d * sign(x), "The absolute value of x.", floating=False, kinds="iuf"
)
square = unary("square", lambda d, x: _twice(d, x), "x * x", floating=False)
exp = unary("exp", on_arrays("mul", lambda d, out: d * out), "e to the power x.")
exp2 = unary("exp2", lambda d, out: d * (out * math.log(2)), "2 to the power x.")
expm1 = unary("expm1", lambda d, out: d * out + d, "exp(x) - 1, exact for small x.")
log = unary("log", on_arrays("div", lambda d, x: d / x), "The natural logarithm of x.")
log2 = unary("log2", lambda d, x: d / (x * math.log(2)), "The logarithm of x to base 2.")
log10 = unary("log10", lambda d, x: d / (x * math.log(10)), "The logarithm of x to base 10.")
log1p = unary("log1p", lambda d, x: d / (1 + x), "log(1 + x), exact for small x.")
sqrt = unary("sqrt", lambda d, out: d / (out + out), "The square root of x.")
rsqrt = unary("rsqrt", lambda d, out: d * (-0.5 * out * out * out), "1 / sqrt(x)")
reciprocal = unary("reciprocal", lambda d, out: -d * out * out, "1 / x")
sin = unary("sin", lambda d, x: d * cos(x), "The sine of x.")
cos = unary("cos", lambda d, x: -d * sin(x), "The cosine of x.")
tan = unary("tan", lambda d, out: d * (1 + out * out), "The tangent of x.")
asin = unary("asin", lambda d, x: d * rsqrt(1 - x * x), "The inverse sine of x.")
acos = unary("acos", lambda d, x: -d * rsqrt(1 - x * x), "The inverse cosine of x.")
atan = unary("atan", lambda d, x: d / (1 + x * x), "The inverse tangent of x.")
sinh = unary("sinh", lambda d, x: d * cosh(x), "The hyperbolic sine of x.")
cosh = unary("cosh", lambda d, x: d * sinh(x), "The hyperbolic cosine of x.")
tanh = unary(
    "tanh",
    on_arrays("tanh_backward", lambda d, out: d * (1 - square(out))),
    "The hyperbolic tangent of x.",
)
asinh = unary("asinh", lambda d, x: d * rsqrt(x * x + 1), "The inverse hyperbolic sine of x.")
acosh = unary("acosh", lambda d, x: d * rsqrt(x * x - 1), "The inverse hyperbolic cosine of x.")
atanh = unary("atanh", lambda d, x: d / (1 - x * x), "The inverse hyperbolic tangent of x.")
sigmoid = unary(
    "sigmoid",
    on_arrays("sigmoid_backward", lambda d, out: d * (out - square(out))),
    "1 / (1 + exp(-x))",
)
softplus = unary(
    "softplus",
    on_arrays("softplus_backward", lambda d, x: d * sigmoid(x)),
    "log(1 + exp(x)), without overflow.",
    kinds="biuf",
)
# The slope at 0 is 0; not ``out > 0``, so that a NaN passes the gradient on, as in PyTorch.
relu = unary(
    "relu",
    on_arrays("relu_backward", lambda d, out: where(out != 0, d, 0.0)),
    "max(x, 0)",
    floating=False,
    kinds="iuf",
)
erf = unary(
    "erf",
    on_arrays("erf_backward", lambda d, x: d * (_2_SQRTPI * exp(-x * x))),
    "The error function of x.",
    kinds="biuf",
)
erfc = unary("erfc", lambda d, x: d * (-_2_SQRTPI * exp(-x * x)), "1 - erf(x)", kinds="biuf")
erfinv = unary(
    "erfinv",
    lambda d, x: d * (0.5 * _SQRTPI * exp(square(erfinv(x)))),
    "The inverse of erf at x.",
    kinds="biuf",
)
lgamma = unary("lgamma", lambda d, x: d * digamma(x), "log |gamma(x)|", kinds="biuf")
digamma = unary(
    "digamma", lambda d, x: d * polygamma(1, x), "The derivative of lgamma at x.", kinds="biuf"
)
sinc = unary("sinc", lambda d, x: d * _sinc_slope(x), "sin(pi x) / (pi x), 1 at 0.")
sign = unary(
    "sign",
    lambda d: zeros_like_of(d),
    "-1, 0 or 1, by the sign of x.",
    floating=False,
    kinds="biuf",
)
floor = unary(
    "floor", lambda d: zeros_like_of(d), "The integer at or below x.", floating=False, kinds="iuf"
)
ceil = unary(
    "ceil", lambda d: zeros_like_of(d), "The integer at or above x.", floating=False, kinds="iuf"
)
trunc = unary(
    "trunc", lambda d: zeros_like_of(d), "x without its fraction.", floating=False, kinds="iuf"
)
frac = unary("frac", lambda d: d, "x - trunc(x)", floating=False, kinds="f")
_SQRTPI = math.sqrt(math.pi)
_2_SQRTPI = 2 / _SQRTPI


def _sinc_slope(x: Value) -> Value:
    """(cos(pi x) - sinc(x)) / x, and its limit near 0, where the difference would cancel."""
    z = math.pi * x
    near = abs(z) < 1e-3
    safe = where(near, 1.0, x)
    return where(near, -(math.pi**2) / 3 * x * (1 - z * z / 10), (cos(z) - sinc(x)) / safe)


# --- two inputs -----------------------------------------------------------------------------------

plus = binary("add", lambda d: d, lambda d: d, "x + y")
minus = binary(
    "sub",
    lambda d: d,
    on_arrays("neg", lambda d: -d),
    "x - y",
    refuses_bool="use ^ or logical_xor for the difference, or ~ to invert",
)
mul = binary(
    "mul", on_arrays("mul", lambda d, y: d * y), on_arrays("mul", lambda d, x: d * x), "x * y"
)
# The quotient is computed again, so that it is not saved and may be changed in place.
true_divide = binary(
    "div",
    on_arrays("div", lambda d, y: d / y),
    lambda d, x, y: -d * (x / y) / y,
    "x / y",
    floating=True,
)
pow = binary(
    "pow",
    lambda d, x, y: _power_change(d, x, y),
    lambda d, x, y, out: d * _exponent_slope(x, y, out),
    "x to the power y.",
    kinds="iufc",
    second="exponent",
)
atan2 = binary(
    "atan2",
    lambda d, x, y: d * y / _squared_radius(x, y),
    lambda d, x, y: -d * x / _squared_radius(x, y),
    "The angle of the point (y, x): ``atan2(input, other)`` is the angle whose tangent is x / y.",
    floating=True,
    kinds="biuf",
)
hypot = binary(
    "hypot",
    lambda d, x, out: d * x / out,
    lambda d, y, out: d * y / out,
    "sqrt(x*x + y*y)",
    kinds="f",
)
maximum = binary(
    "maximum",
    lambda d, x, y: _share(d, x, y),
    lambda d, x, y: _share(d, y, x),
    "The larger of x and y; at a tie each gets half of the gradient.",
    kinds="biuf",
)
minimum = binary(
    "minimum",
    lambda d, x, y: _share(d, y, x),
    lambda d, x, y: _share(d, x, y),
    "The smaller of x and y; at a tie each gets half of the gradient.",
    kinds="biuf",
)
fmax = binary(
    "fmax",
    lambda d, x, y: where((x >= y) | (y != y), d, 0.0),
    lambda d, x, y: where((x >= y) | (y != y), 0.0, d),
    "The larger of x and y; the number if the other is NaN.",
    kinds="biuf",
)
fmin = binary(
    "fmin",
    lambda d, x, y: where((x <= y) | (y != y), d, 0.0),
    lambda d, x, y: where((x <= y) | (y != y), 0.0, d),
    "The smaller of x and y; the number if the other is NaN.",
    kinds="biuf",
)
fmod = binary(
    "fmod",
    lambda d: d,
    lambda d, x, y: -d * trunc(x / y),
    "The rest of x / y with the sign of x.",
    kinds="iuf",
)
remainder = binary(
    "remainder",
    lambda d: d,
    lambda d, x, y: -d * floor_divide(x, y),
    "The rest of x / y with the sign of y.",
    kinds="iuf",
)
logaddexp = binary(
    "logaddexp",
    lambda d, x, y: d * sigmoid(x - y),
    lambda d, x, y: d * sigmoid(y - x),
    "log(exp(x) + exp(y)), without overflow; of complex numbers, y + log1p(exp(x - y)) for the y "
    "with the larger real part.",
    kinds="fc",
)
logaddexp2 = binary(
    "logaddexp2",
    lambda d, x, y: d * sigmoid((x - y) * math.log(2)),
    lambda d, x, y: d * sigmoid((y - x) * math.log(2)),
    "log2(2**x + 2**y), without overflow.",
    kinds="f",
)
xlogy = binary(
    "xlogy",
    lambda d, x, y: _times_log(d, x, y),
    lambda d, x, y: d * x / y,
    "x * log(y), 0 where x is 0.",
    floating=True,
    kinds="biuf",
)
copysign = binary(
    "copysign",
    lambda d, x, out: d * where(x == 0, 0.0, out / where(x == 0, 1.0, x)),
    lambda d: zeros_like_of(d),
    "The magnitude of x with the sign of y.",
    floating=True,
    kinds="biuf",
)
floor_divide = binary(
    "floor_divide",
    lambda d: zeros_like_of(d),
    lambda d: zeros_like_of(d),
    "floor(x / y)",
    kinds="iuf",
)
trunc_divide = binary(
    "trunc_divide",
    lambda d: zeros_like_of(d),
    lambda d: zeros_like_of(d),
    "trunc(x / y)",
    kinds="iuf",
)
heaviside = binary(
    "heaviside", None, None, "0 for x < 0, y at x = 0, 1 for x > 0.", kinds="biuf", second="values"
)


def _twice(d: Value, x: Value) -> Value:
    """2 d x: the change of a square."""
    return d * (x + x) if isinstance(d, Tensor) else K.mul(d, K.add(x, x))


def _power_change(d: Value, x: Value, y: Value | Number) -> Value:
    is_square = isinstance(y, NUMBERS) and y == 2
    return _twice(d, x) if is_square else d * _power_slope(x, y)


def _power_slope(x: Value, y: Value | Number) -> Value:
    """y x^(y-1), and 0 where y is 0 (also at x = 0, where the formula has no value)."""
    if isinstance(y, NUMBERS):
        return y * pow(x, y - 1) if y != 0 else zeros_like_of(x)
    return where(y == 0, 0.0, y * pow(x, y - 1))


def _exponent_slope(x: Value | Number, y: Value, out: Value) -> Value:
    """x^y log(x), and 0 at x = 0 where y >= 0."""
    if isinstance(x, NUMBERS):
        if x == 0:
            return where(_is_nonnegative(y), 0.0, out * math.nan)
        return out * _log_of_number(x, is_complex_value(out))
    at_zero = (x == 0) & _is_nonnegative(y)
    return where(at_zero, 0.0, out * log(where(at_zero, 1.0, x)))


def _is_nonnegative(y: Any) -> Any:
    """Where y >= 0, which no complex number is that is not real."""
    return y == abs(y)


def _log_of_number(x: Number, as_complex: bool) -> Number:
    if isinstance(x, complex) or (x < 0 and as_complex):
        return cmath.log(x)
    return math.log(x) if x > 0 else math.nan


def _squared_radius(x: Value, y: Value) -> Value:
    """x*x + y*y, infinite at the origin, where the angle has no derivative and gets 0."""
    r = x * x + y * y
    return where(r == 0, math.inf, r)


def _share(d: Value, x: Value, y: Value) -> Value:
    """d where x is larger, half of it at ties, 0 where it is smaller."""
    return where(x == y, 0.5 * d, where(x < y, 0.0, d))


def _times_log(d: Value, x: Value, y: Value | Real) -> Value:
    """d * log(y), and 0 where x * log(y) is 0 although log(y) has no value."""
    slope: Value | float
    if isinstance(y, (int, float)):
        slope = math.log(y) if y > 0 else (-math.inf if y == 0 else math.nan)
    else:
        slope = log(y)
    return where((x == 0) & (y <= 0), 0.0, d * slope)


# --- with a parameter -----------------------------------------------------------------------------

_polygamma = Elementwise("polygamma", [lambda d, x, n: d * polygamma(n + 1, x)])


@takes_out(exact=False)
def polygamma(n: int, input: V) -> V:
    """The n-th derivative of digamma at ``input``."""
    if n < 0:
        raise RuntimeError(f"polygamma: n must be nonnegative, got {n}")
    check_kind("polygamma", "biuf", (input.array if isinstance(input, Tensor) else input).dtype)
    return _polygamma(to_floating(input), n=n)


# --- other names ----------------------------------------------------------------------------------

negative, multiply, fix = neg, mul, trunc
arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
arcsinh, arccosh, arctanh = asinh, acosh, atanh
