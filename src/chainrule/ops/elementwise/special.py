"""Special functions: each line is a function, its differential and what it is.

Bessel functions, the normal distribution's, incomplete gamma functions and their relatives. A
derivative that has no formula in functions of this page is refused, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

from chainrule.ops.core.pointwise import binary, unary
from chainrule.ops.elementwise.functions import cos, exp, lgamma, log, log1p, sign
from chainrule.ops.elementwise.gamma import log_gamma_density, log_gamma_slope
from chainrule.ops.elementwise.logic import where
from chainrule.typing import V, Value

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "entr",
    "erfcx",
    "gammainc",
    "gammaincc",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log_ndtr",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
    "xlog1py",
    "zeta",
]

REAL = "biuf"
_SQRT_2, _SQRT_PI, _SQRT_2PI = math.sqrt(2), math.sqrt(math.pi), math.sqrt(2 * math.pi)


def _over(y: V, x: V, limit: float) -> V:
    """y / x, and its limit where x is 0."""
    return where(x == 0, limit, y / where(x == 0, 1.0, x))


# --- Bessel and Airy functions --------------------------------------------------------------------

i0 = unary("i0", lambda d, x: d * i1(x), "The modified Bessel function of order 0.", kinds=REAL)
i1 = unary(
    "i1",
    lambda d, x, out: d * (i0(x) - _over(out, x, 0.5)),
    "The modified Bessel function of order 1.",
    kinds=REAL,
)
i0e = unary("i0e", lambda d, x, out: d * (i1e(x) - sign(x) * out), "exp(-|x|) i0(x)", kinds=REAL)
i1e = unary(
    "i1e",
    lambda d, x, out: d * (i0e(x) - sign(x) * out - _over(out, x, 0.5)),
    "exp(-|x|) i1(x)",
    kinds=REAL,
)
bessel_j0 = unary(
    "bessel_j0", lambda d, x: -d * bessel_j1(x), "The Bessel function J of order 0.", kinds=REAL
)
bessel_j1 = unary(
    "bessel_j1",
    lambda d, x, out: d * (bessel_j0(x) - _over(out, x, 0.5)),
    "The Bessel function J of order 1.",
    kinds=REAL,
)
bessel_y0 = unary(
    "bessel_y0", lambda d, x: -d * bessel_y1(x), "The Bessel function Y of order 0.", kinds=REAL
)
bessel_y1 = unary(
    "bessel_y1",
    lambda d, x, out: d * (bessel_y0(x) - out / x),
    "The Bessel function Y of order 1.",
    kinds=REAL,
)
modified_bessel_k0 = unary(
    "modified_bessel_k0",
    lambda d, x: -d * modified_bessel_k1(x),
    "The modified Bessel function K of order 0.",
    kinds=REAL,
)
modified_bessel_k1 = unary(
    "modified_bessel_k1",
    lambda d, x, out: -d * (modified_bessel_k0(x) + out / x),
    "The modified Bessel function K of order 1.",
    kinds=REAL,
)
scaled_modified_bessel_k0 = unary(
    "scaled_modified_bessel_k0",
    lambda d, x, out: d * (out - scaled_modified_bessel_k1(x)),
    "exp(x) modified_bessel_k0(x)",
    kinds=REAL,
)
scaled_modified_bessel_k1 = unary(
    "scaled_modified_bessel_k1",
    lambda d, x, out: d * (out - scaled_modified_bessel_k0(x) - out / x),
    "exp(x) modified_bessel_k1(x)",
    kinds=REAL,
)
airy_ai = unary("airy_ai", lambda d, x: d * _airy_slope(x), "The Airy function Ai.", kinds=REAL)
_airy_slope = unary("airy_ai_slope", lambda d, x: d * x * airy_ai(x), "The derivative of Ai.")


spherical_bessel_j0 = unary(
    "spherical_bessel_j0",
    lambda d, x: d * _spherical_slope(x),
    "sin(x) / x, 1 at 0.",
    kinds=REAL,
)


def _spherical_slope(x: Value) -> Value:
    """(cos(x) - sin(x) / x) / x, and its series near 0, where the difference would cancel."""
    y: Any = x
    near = abs(y) < 1e-2
    square = y * y
    series = -y / 3 * (1 - square / 10 * (1 - square / 28))
    return where(near, series, (cos(y) - spherical_bessel_j0(y)) / where(near, 1.0, y))


# --- the normal distribution, entropy -------------------------------------------------------------

erfcx = unary(
    "erfcx", lambda d, x, out: d * (2 * x * out - 2 / _SQRT_PI), "exp(x^2) erfc(x)", kinds=REAL
)
ndtr = unary(
    "ndtr",
    lambda d, x: d * (exp(-0.5 * x * x) / _SQRT_2PI),
    "The share of a standard normal distribution below x.",
    kinds=REAL,
)
log_ndtr = unary(
    "log_ndtr",
    lambda d, x: d * (2 / _SQRT_2PI / erfcx(x * (-1 / _SQRT_2))),
    "log(ndtr(x)), exact far below 0.",
    kinds=REAL,
)
ndtri = unary(
    "ndtri",
    lambda d, out: d * (_SQRT_2PI * exp(0.5 * out * out)),
    "The number below which the share x of a standard normal distribution lies.",
    kinds=REAL,
)
entr = unary("entr", lambda d, x: -d * (log(x) + 1), "-x log(x), 0 at 0, -inf below.", kinds=REAL)

# --- gamma functions, two arguments ---------------------------------------------------------------


def _refused(op: str, name: str) -> Callable[..., NoReturn]:
    def differential(d: Any) -> NoReturn:
        raise NotImplementedError(
            f"{op}: the derivative with respect to {name!r} is not implemented; detach() it"
        )

    return differential


def _gamma_density(a: V, x: V) -> V:
    """x^(a-1) exp(-x) / gamma(a): the derivative of gammainc with respect to x."""
    return exp((a - 1) * log(x) - x - lgamma(a))


def _by_shape(a: V, x: V) -> V:
    """The derivative of gammainc with respect to a."""
    y = log(x)
    return -log_gamma_slope(a, y) * log_gamma_density(a, y)


gammainc = binary(
    "gammainc",
    lambda d, x, y: d * _by_shape(x, y),
    lambda d, x, y: d * _gamma_density(x, y),
    "The regularized lower incomplete gamma function of shape x at y.",
    floating=True,
    kinds=REAL,
)
gammaincc = binary(
    "gammaincc",
    lambda d, x, y: -d * _by_shape(x, y),
    lambda d, x, y: -d * _gamma_density(x, y),
    "The regularized upper incomplete gamma function of shape x at y.",
    floating=True,
    kinds=REAL,
)
zeta = binary(
    "zeta",
    _refused("zeta", "input"),
    lambda d, x, y: -d * (x * zeta(x + 1, y)),
    "The Hurwitz zeta function: the sum of 1 / (k + y)^x over k = 0, 1, ...",
    floating=True,
    kinds=REAL,
)
xlog1py = binary(
    "xlog1py",
    lambda d, x, y: _times_log1p(d, x, y),
    lambda d, x, y: d * x / (1 + y),
    "x * log1p(y), 0 where x is 0.",
    floating=True,
    kinds=REAL,
)


def _times_log1p(d: Value, x: Any, y: Any) -> Value:
    """d * log1p(y), and 0 where x * log1p(y) is 0 although log1p(y) has no value."""
    if isinstance(y, (int, float)):
        slope: Any = math.log1p(y) if y > -1 else (-math.inf if y == -1 else math.nan)
    else:
        slope = log1p(y)
    return where((x == 0) & (y <= -1), 0.0, d * slope)


def multigammaln(input: V, p: int) -> V:
    """The logarithm of the gamma function of p dimensions: p (p - 1) / 4 log(pi) + the sum of
    lgamma(x - i / 2) over i < p."""
    if p < 1:
        raise RuntimeError(f"multigammaln: p must be greater than or equal to 1, got {p}")
    total = lgamma(input) + p * (p - 1) / 4 * math.log(math.pi)
    for i in range(1, p):
        total = total + lgamma(input - i / 2)
    return total
