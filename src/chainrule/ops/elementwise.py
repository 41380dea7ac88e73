"""Elementwise functions: a page of calculus.

Each line is a whole function: its name, its differential (the change of the output for a change
``d`` of an input; ``x`` and ``y`` are the inputs and ``out`` the output) and what it is. Simple
ones first, the trickier ones below.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule.backend import K, dtypes
from chainrule.ops.pointwise import (
    Number, binary, broadcast_shapes, cast, check_kind, comparison, promote, result_type,
    to_floating, unary,
)  # fmt: skip
from chainrule.ops.apply import apply, as_operand
from chainrule.ops.primitive import Elementwise, Op, Primitive
from chainrule.tensor import Tensor

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "addcdiv", "addcmul", "angle", "arccos", "arccosh",
    "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh",
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "ceil", "clamp", "clamp_max", "clamp_min", "clip", "conj", "copysign", "cos",
    "cosh", "deg2rad", "digamma", "div", "divide", "eq", "erf", "erfc", "erfinv", "exp", "exp2",
    "expm1", "fix", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac", "ge", "greater",
    "greater_equal", "gt", "heaviside", "hypot", "imag", "isclose", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "le", "lerp", "less", "less_equal", "lgamma", "log", "log10", "log1p",
    "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor",
    "logit", "lt", "maximum", "minimum", "mul", "multiply", "nan_to_num", "ne", "neg", "negative",
    "not_equal", "polygamma", "positive", "pow", "rad2deg", "real", "reciprocal", "remainder",
    "round", "rsqrt", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "softplus",
    "sqrt", "square", "sub", "subtract", "tan", "tanh", "true_divide", "trunc", "where", "xlogy",
]  # fmt: skip

METHODS = tuple(name for name in __all__ if name not in ("where", "polygamma", "softplus"))
INPLACE = tuple(
    name
    for name in METHODS
    if name not in ("real", "imag", "angle", "conj", "isclose", "positive", "round")
    and not name.startswith("is")
)


def zeros_like_of(x: Any) -> Any:
    """Zeros like ``x``, tensor or bare array: the differential of a step function."""
    if isinstance(x, Tensor):
        return Tensor(K.zeros(x.array.shape, x.array.dtype))
    return K.zeros(x.shape, x.dtype)


# --- one input ------------------------------------------------------------------------------------

neg = unary("neg", lambda d: -d, "-x", floating=False)
_real_abs = unary("abs", lambda d, x: d * sign(x), "The absolute value of x.", floating=False)
square = unary("square", lambda d, x: d * (x + x), "x * x", floating=False)
exp = unary("exp", lambda d, out: d * out, "e to the power x.")
exp2 = unary("exp2", lambda d, out: d * (out * math.log(2)), "2 to the power x.")
expm1 = unary("expm1", lambda d, out: d * out + d, "exp(x) - 1, exact for small x.")
log = unary("log", lambda d, x: d / x, "The natural logarithm of x.")
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
tanh = unary("tanh", lambda d, out: d * (1 - out * out), "The hyperbolic tangent of x.")
asinh = unary("asinh", lambda d, x: d * rsqrt(x * x + 1), "The inverse hyperbolic sine of x.")
acosh = unary("acosh", lambda d, x: d * rsqrt(x * x - 1), "The inverse hyperbolic cosine of x.")
atanh = unary("atanh", lambda d, x: d / (1 - x * x), "The inverse hyperbolic tangent of x.")
sigmoid = unary("sigmoid", lambda d, out: d * (out - out * out), "1 / (1 + exp(-x))")
softplus = unary("softplus", lambda d, x: d * sigmoid(x), "log(1 + exp(x)), without overflow.")
erf = unary("erf", lambda d, x: d * (_2_SQRTPI * exp(-x * x)), "The error function of x.")
erfc = unary("erfc", lambda d, x: d * (-_2_SQRTPI * exp(-x * x)), "1 - erf(x)")
erfinv = unary(
    "erfinv", lambda d, out: d * (0.5 * _SQRTPI * exp(out * out)), "The inverse of erf at x."
)
lgamma = unary("lgamma", lambda d, x: d * digamma(x), "log |gamma(x)|")
digamma = unary("digamma", lambda d, x: d * polygamma(1, x), "The derivative of lgamma at x.")
sinc = unary("sinc", lambda d, x, out: d * _sinc_slope(x, out), "sin(pi x) / (pi x), 1 at 0.")
sign = unary("sign", lambda d: zeros_like_of(d), "-1, 0 or 1, by the sign of x.", floating=False)
floor = unary("floor", lambda d: zeros_like_of(d), "The integer at or below x.", floating=False)
ceil = unary("ceil", lambda d: zeros_like_of(d), "The integer at or above x.", floating=False)
trunc = unary("trunc", lambda d: zeros_like_of(d), "x without its fraction.", floating=False)
frac = unary("frac", lambda d: d, "x - trunc(x)", floating=False)
isnan = unary("isnan", None, "Whether x is not a number.", floating=False)
isinf = unary("isinf", None, "Whether x is infinite.", floating=False)
isfinite = unary("isfinite", None, "Whether x is neither infinite nor NaN.", floating=False)
isposinf = unary("isposinf", None, "Whether x is +inf.", floating=False)
isneginf = unary("isneginf", None, "Whether x is -inf.", floating=False)
signbit = unary("signbit", None, "Whether the sign bit of x is set.", floating=False)
logical_not = unary("logical_not", None, "Whether x is zero.", floating=False)
bitwise_not = unary("bitwise_not", None, "x with every bit flipped.", floating=False)

_SQRTPI = math.sqrt(math.pi)
_2_SQRTPI = 2 / _SQRTPI


def _sinc_slope(x: Any, out: Any) -> Any:
    """(cos(pi x) - sinc(x)) / x, and its limit near 0, where the difference would cancel."""
    z = math.pi * x
    near = abs(z) < 1e-3
    safe = where(near, 1.0, x)
    return where(near, -(math.pi**2) / 3 * x * (1 - z * z / 10), (cos(z) - out) / safe)


# --- two inputs -----------------------------------------------------------------------------------

_add = binary("add", lambda d: d, lambda d: d, "x + y")
_sub = binary(
    "sub", lambda d: d, lambda d: -d, "x - y",
    refuses_bool="use ^ or logical_xor for the difference, or ~ to invert",
)  # fmt: skip
mul = binary("mul", lambda d, y: d * y, lambda d, x: d * x, "x * y")
true_divide = binary(
    "div", lambda d, y: d / y, lambda d, y, out: -d * out / y, "x / y", floating=True
)
pow = binary(
    "pow",
    lambda d, x, y: d * _power_slope(x, y),
    lambda d, x, y, out: d * _exponent_slope(x, y, out),
    "x to the power y.",
)
atan2 = binary(
    "atan2",
    lambda d, x, y: d * y / _squared_radius(x, y),
    lambda d, x, y: -d * x / _squared_radius(x, y),
    "The angle of the point (y, x): ``atan2(input, other)`` is the angle whose tangent is x / y.",
    floating=True,
)
hypot = binary(
    "hypot", lambda d, x, out: d * x / out, lambda d, y, out: d * y / out, "sqrt(x*x + y*y)"
)
maximum = binary(
    "maximum", lambda d, x, y: _share(d, x, y), lambda d, x, y: _share(d, y, x),
    "The larger of x and y; at a tie each gets half of the gradient.",
)  # fmt: skip
minimum = binary(
    "minimum", lambda d, x, y: _share(d, y, x), lambda d, x, y: _share(d, x, y),
    "The smaller of x and y; at a tie each gets half of the gradient.",
)  # fmt: skip
fmax = binary(
    "fmax", lambda d, x, y: where((x >= y) | (y != y), d, 0.0),
    lambda d, x, y: where((x >= y) | (y != y), 0.0, d),
    "The larger of x and y; the number if the other is NaN.",
)  # fmt: skip
fmin = binary(
    "fmin", lambda d, x, y: where((x <= y) | (y != y), d, 0.0),
    lambda d, x, y: where((x <= y) | (y != y), 0.0, d),
    "The smaller of x and y; the number if the other is NaN.",
)  # fmt: skip
fmod = binary(
    "fmod", lambda d: d, lambda d, x, y: -d * trunc(x / y), "The rest of x / y with the sign of x."
)
remainder = binary(
    "remainder", lambda d: d, lambda d, x, y: -d * floor_divide(x, y),
    "The rest of x / y with the sign of y.",
)  # fmt: skip
logaddexp = binary(
    "logaddexp", lambda d, x, y: d * sigmoid(x - y), lambda d, x, y: d * sigmoid(y - x),
    "log(exp(x) + exp(y)), without overflow.",
)  # fmt: skip
logaddexp2 = binary(
    "logaddexp2",
    lambda d, x, y: d * sigmoid((x - y) * math.log(2)),
    lambda d, x, y: d * sigmoid((y - x) * math.log(2)),
    "log2(2**x + 2**y), without overflow.",
)
xlogy = binary(
    "xlogy",
    lambda d, x, y: _times_log(d, x, y),
    lambda d, x, y: d * x / y,
    "x * log(y), 0 where x is 0.",
    floating=True,
)
copysign = binary(
    "copysign",
    lambda d, x, out: d * where(x == 0, 0.0, out / where(x == 0, 1.0, x)),
    lambda d: zeros_like_of(d),
    "The magnitude of x with the sign of y.",
    floating=True,
)
floor_divide = binary("floor_divide", None, None, "floor(x / y)")
trunc_divide = binary("trunc_divide", None, None, "trunc(x / y)")
heaviside = binary("heaviside", None, None, "0 for x < 0, y at x = 0, 1 for x > 0.")

eq = comparison("eq", "Whether x equals y.")
ne = comparison("ne", "Whether x differs from y.")
lt = comparison("lt", "Whether x < y.")
le = comparison("le", "Whether x <= y.")
gt = comparison("gt", "Whether x > y.")
ge = comparison("ge", "Whether x >= y.")
logical_and = comparison("logical_and", "Whether x and y are both nonzero.")
logical_or = comparison("logical_or", "Whether x or y is nonzero.")
logical_xor = comparison("logical_xor", "Whether exactly one of x and y is nonzero.")
bitwise_and = comparison("bitwise_and", "The bits set in both x and y.")
bitwise_or = comparison("bitwise_or", "The bits set in x or y.")
bitwise_xor = comparison("bitwise_xor", "The bits set in exactly one of x and y.")
bitwise_left_shift = comparison("bitwise_left_shift", "x shifted left by y bits.")
bitwise_right_shift = comparison("bitwise_right_shift", "x shifted right by y bits.")


def _power_slope(x: Any, y: Any) -> Any:
    """y x^(y-1), and 0 where y is 0 (also at x = 0, where the formula has no value)."""
    if isinstance(y, Number):
        if y == 2:
            return x + x
        return y * pow(x, y - 1) if y != 0 else zeros_like_of(x)
    return where(y == 0, 0.0, y * pow(x, y - 1))


def _exponent_slope(x: Any, y: Any, out: Any) -> Any:
    """x^y log(x), and 0 at x = 0 where y >= 0."""
    if isinstance(x, (int, float)):
        return out * math.log(x) if x > 0 else where((y >= 0) & (x == 0), 0.0, out * math.nan)
    at_zero = (x == 0) & (y >= 0)
    return where(at_zero, 0.0, out * log(where(at_zero, 1.0, x)))


def _squared_radius(x: Any, y: Any) -> Any:
    """x*x + y*y, infinite at the origin, where the angle has no derivative and gets 0."""
    r = x * x + y * y
    return where(r == 0, math.inf, r)


def _share(d: Any, x: Any, y: Any) -> Any:
    """d where x is larger, half of it at ties, 0 where it is smaller."""
    return where(x == y, 0.5 * d, where(x < y, 0.0, d))


def _times_log(d: Any, x: Any, y: Any) -> Any:
    """d * log(y), and 0 where x * log(y) is 0 although log(y) has no value."""
    if isinstance(y, (int, float)):
        slope = math.log(y) if y > 0 else (-math.inf if y == 0 else math.nan)
    else:
        slope = log(y)
    return where((x == 0) & (y <= 0), 0.0, d * slope)


# --- with parameters ------------------------------------------------------------------------------

_where = Elementwise(
    "where",
    [None, lambda d, x: where(x, d, 0.0), lambda d, x: where(x, 0.0, d)],
)
_polygamma = Elementwise("polygamma", [lambda d, x, n: d * polygamma(n + 1, x)])
_round = Elementwise("round", [lambda d: zeros_like_of(d)])
_clamp = Elementwise("clamp", [lambda d, x, low, high: where(_inside(x, low, high), d, 0.0)])
_nan_to_num = Elementwise("nan_to_num", [lambda d, x: where(isfinite(x), d, 0.0)])


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """``input`` where the condition holds, ``other`` elsewhere; both are broadcast.

    >>> import chainrule
    >>> x = chainrule.tensor([-1.0, 2.0])
    >>> chainrule.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if not any(isinstance(v, Tensor) for v in (condition, input, other)):
        return K.where(condition, input, other)
    condition = as_operand(condition)
    if condition.array.dtype.kind != "b":
        raise RuntimeError(
            f"where: expected condition to be a boolean tensor, but got {condition.dtype}; "
            "compare first, for example x != 0"
        )
    if isinstance(input, Number) or isinstance(other, Number) or input.dtype != other.dtype:
        input, other = promote(input, other)
    input, other = as_operand(input), as_operand(other)
    broadcast_shapes(condition.array.shape, input.array.shape, other.array.shape, op="where")
    return apply(_where, (condition, input, other), {})


def polygamma(n: int, input: Any) -> Any:
    """The n-th derivative of digamma at ``input``."""
    if n < 0:
        raise RuntimeError(f"polygamma: n must be nonnegative, got {n}")
    return _polygamma(to_floating(input), n=n)


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest number with that many decimals; halves go to the even neighbour."""
    check_kind("round", input.array.dtype)
    return _round(input, decimals=decimals)


def nan_to_num(
    input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """``input`` with NaN replaced by ``nan`` and infinities by the given or largest numbers."""
    if input.dtype.category <= dtypes.INTEGER:
        return input.clone()
    return _nan_to_num(input, nan=nan, posinf=posinf, neginf=neginf)


# --- compositions ---------------------------------------------------------------------------------


def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """input + alpha * other"""
    return _add(input, other if alpha == 1 else _scaled("add", input, other, alpha))


def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """input - alpha * other"""
    return _sub(input, other if alpha == 1 else _scaled("sub", input, other, alpha))


def _scaled(op: str, input: Any, other: Any, alpha: float) -> Any:
    if isinstance(alpha, float) and result_type(input, other).category <= dtypes.INTEGER:
        raise RuntimeError(
            f"{op}: for integral input tensors, argument alpha must not be a floating point "
            f"number, got {alpha}; convert with .float() first"
        )
    return other * alpha


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """input / other, rounded towards zero (``"trunc"``) or down (``"floor"``) if asked."""
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


def positive(input: Tensor) -> Tensor:
    """``input`` itself."""
    if input.array.dtype.kind == "b":
        raise RuntimeError("positive: the + operator is not supported on a bool tensor")
    return input


def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """``input`` limited to [min, max]; the gradient is 1 inside and at the limits, 0 outside."""
    if min is None and max is None:
        raise RuntimeError("clamp: at least one of 'min' or 'max' must not be None")
    d = result_type(*[v for v in (input, min, max) if v is not None])
    out = cast(input, d)
    if not isinstance(min, Tensor) and not isinstance(max, Tensor):
        return _clamp(out, low=min, high=max)
    if min is not None:
        out = where(out < min, min, out)
    if max is not None:
        out = where(out > max, max, out)
    return out


def _inside(x: Any, low: Any, high: Any) -> Any:
    """Where x lies between the limits, of which one may be missing."""
    if low is None:
        return x <= high
    return x >= low if high is None else (x >= low) & (x <= high)


def clamp_min(input: Tensor, min: Any) -> Tensor:
    """``input``, at least ``min``."""
    return clamp(input, min=min)


def clamp_max(input: Tensor, max: Any) -> Tensor:
    """``input``, at most ``max``."""
    return clamp(input, max=max)


def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """input + weight * (end - input)"""
    return input + weight * (end - input)


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """input + value * tensor1 * tensor2"""
    product = tensor1 * tensor2
    return input + (product if value == 1 else value * product)


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """input + value * tensor1 / tensor2"""
    if not result_type(tensor1, tensor2).category > dtypes.INTEGER:
        raise RuntimeError(
            "addcdiv: integer division is not supported; convert with .float() first"
        )
    quotient = tensor1 / tensor2
    return input + (quotient if value == 1 else value * quotient)


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), with x first limited to [eps, 1 - eps] if ``eps`` is given."""
    x = to_floating(input) if eps is None else clamp(to_floating(input), eps, 1 - eps)
    return log(x) - log1p(-x)


def deg2rad(input: Tensor) -> Tensor:
    """Degrees to radians."""
    return to_floating(input) * (math.pi / 180)


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
        raise TypeError(f"isclose(): argument 'other' must be Tensor, not {type(other).__name__}")
    if input.dtype != other.dtype:
        raise RuntimeError(
            f"isclose: {input.dtype} did not match {other.dtype}; convert one of them"
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


# --- complex numbers ------------------------------------------------------------------------------


# These are linear over the real numbers only, so they carry their own transposes.
class Conjugate(Primitive):
    """Not complex differentiable, and its rule needs no conjugation around it."""

    def on_complex_numbers(self) -> Op:
        return self


_conj = Conjugate(
    "conj", lambda g, out, x, needs: (conj(g),), lambda t, out, x: conj(t[0]), "align",
    saves_out=False,
)  # fmt: skip
_real = Primitive(
    "real", lambda g, out, x, needs: (cast(g, x.dtype),), lambda t, out, x: real(t[0]), "align",
    saves_out=False,
)  # fmt: skip
_imag = Primitive(
    "imag", lambda g, out, x, needs: (cast(g, x.dtype) * 1j,), lambda t, out, x: imag(t[0]),
    "align", saves_out=False,
)  # fmt: skip
_complex_abs = Primitive(
    "complex_abs",
    lambda g, out, x, needs: (cast(g, x.dtype) * _direction(x, out),),
    lambda t, out, x: real(conj(_direction(x, out)) * t[0]),
    "align",
    kernel="abs",
)


def _direction(x: Any, magnitude: Any) -> Any:
    """x / |x|, 0 at 0."""
    return x / cast(where(magnitude == 0, 1.0, magnitude), x.dtype)


def _is_complex(x: Any) -> bool:
    return (x.array if isinstance(x, Tensor) else x).dtype.kind == "c"


def abs(input: Any) -> Any:
    """The absolute value of each element."""
    return _complex_abs(input) if _is_complex(input) else _real_abs(input)


def sgn(input: Any) -> Any:
    """The sign, and for complex numbers x / |x| (0 at 0)."""
    return _direction(input, abs(input)) if _is_complex(input) else sign(input)


def conj(input: Any) -> Any:
    """The complex conjugate; a real tensor is returned as it is."""
    return _conj(input) if _is_complex(input) else input


def real(input: Any) -> Any:
    """The real part; a real tensor is returned as it is."""
    return _real(input) if _is_complex(input) else input


def imag(input: Any) -> Any:
    """The imaginary part of a complex tensor."""
    if not _is_complex(input):
        raise RuntimeError(
            f"imag: is not implemented for tensors with non-complex dtypes, got {input.dtype}"
        )
    return _imag(input)


def angle(input: Any) -> Any:
    """The angle in the complex plane: pi for negative numbers, 0 for positive ones."""
    x = to_floating(input)
    if _is_complex(x):
        return atan2(imag(x), real(x))
    return where(isnan(x), x, where(x < 0, math.pi, zeros_like_of(x)))


# --- other names ----------------------------------------------------------------------------------

absolute, negative, multiply, divide, subtract = abs, neg, mul, div, sub
arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
arcsinh, arccosh, arctanh = asinh, acosh, atanh
clip, fix = clamp, trunc
greater, greater_equal, less, less_equal, not_equal = gt, ge, lt, le, ne
