"""Special functions: SciPy's, and what is faster than SciPy's.

SciPy is imported when first used, for it takes longer to import than all the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.backend.openblas import before_loading
from chainrule.backend.numpy_kernels.complex_numbers import complex_sigmoid
from chainrule.backend.numpy_kernels.operands import Operand

__all__ = [
    "airy_ai",
    "airy_ai_slope",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "gammainc",
    "gammaincc",
    "hyp0f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "lgamma",
    "log_ndtr",
    "logit",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "ndtr",
    "ndtri",
    "polygamma",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "sigmoid",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]


def special(name: str) -> Callable[..., np.ndarray]:
    """A function of ``scipy.special``, imported when it is first called."""
    loaded: list[Callable[..., np.ndarray]] = []

    def function(*args: Any) -> np.ndarray:
        if not loaded:
            before_loading("scipy.special")
            import scipy.special

            loaded.append(getattr(scipy.special, name))
        # SciPy has no float16 and would answer in a wider type.
        out = loaded[0](*args)
        return out.astype(np.float16) if args[-1].dtype.char == "e" else out

    function.__name__ = name
    return function


_erf, erfc, erfinv = special("erf"), special("erfc"), special("erfinv")
_gammaln, digamma, _xlogy = special("gammaln"), special("psi"), special("xlogy")
logit = special("logit")
_zeta, _expit = special("zeta"), special("expit")
entr, erfcx = special("entr"), special("erfcx")
ndtr, log_ndtr, ndtri = special("ndtr"), special("log_ndtr"), special("ndtri")
i0, i0e, i1, i1e = special("i0"), special("i0e"), special("i1"), special("i1e")
bessel_j0, bessel_j1 = special("j0"), special("j1")
bessel_y0, bessel_y1 = special("y0"), special("y1")
modified_bessel_k0, modified_bessel_k1 = special("k0"), special("k1")
scaled_modified_bessel_k0, scaled_modified_bessel_k1 = special("k0e"), special("k1e")
_gammainc, _gammaincc, _xlog1py = special("gammainc"), special("gammaincc"), special("xlog1py")
_gamma, _hyp0f1 = special("gamma"), special("hyp0f1")

# From these sizes on, several passes of NumPy are faster than one loop of SciPy (measured: sigmoid
# 4, erf 8 times on 256k random float32 numbers).
_MANY, _VERY_MANY = 512, 4096


def sigmoid(a: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-a)); where exp overflows, the quotient is 0."""
    if a.dtype.kind == "c":
        return complex_sigmoid(a)
    if a.size < _MANY or a.dtype.char == "e":
        return _expit(a)
    out = np.negative(a)
    np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


# The rational approximation of erf in [-4, 4] that Eigen uses for float32: x p(x^2) / q(x^2), with
# an error below 4e-7.
_ERF_P = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_ERF_Q = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)


def erf(a: np.ndarray) -> np.ndarray:
    """2 / sqrt(pi) times the integral of exp(-t^2) from 0 to a."""
    if a.size < _VERY_MANY or a.dtype.char != "f":
        return _erf(a)
    x = np.clip(a, -4, 4)
    square_of_x = x * x
    numerator = _polynomial(_ERF_P, square_of_x)
    numerator *= x
    numerator /= _polynomial(_ERF_Q, square_of_x)
    return numerator


def _polynomial(coefficients: tuple[float, ...], a: np.ndarray) -> np.ndarray:
    """The polynomial with these coefficients, the highest power first."""
    out = a * coefficients[0]
    for c in coefficients[1:-1]:
        out += c
        out *= a
    out += coefficients[-1]
    return out


def _alike(a: Operand, b: Operand) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays of one type: SciPy takes a Python number for a float64, NumPy does not."""
    dtype = np.result_type(a, b)
    return np.asarray(a, dtype), np.asarray(b, dtype)


def xlogy(a: Operand, b: Operand) -> np.ndarray:
    """a log(b), and 0 where a is 0, whatever b is."""
    return _xlogy(*_alike(a, b))


def xlog1py(a: Operand, b: Operand) -> np.ndarray:
    """a log(1 + b), and 0 where a is 0, whatever b is."""
    return _xlog1py(*_alike(a, b))


def gammainc(a: Operand, b: Operand) -> np.ndarray:
    """The integral of t^(a-1) exp(-t) from 0 to b, over gamma(a)."""
    return _gammainc(*_alike(a, b))


def gammaincc(a: Operand, b: Operand) -> np.ndarray:
    """1 - gammainc(a, b), exact where that is small."""
    return _gammaincc(*_alike(a, b))


def zeta(a: Operand, b: Operand) -> np.ndarray:
    """The sum of 1 / (k + b)^a over k = 0, 1, ..."""
    return _zeta(*_alike(a, b))


def lgamma(a: np.ndarray) -> np.ndarray:
    """log |gamma(a)|, infinite at both infinities (SciPy: -inf at -inf)."""
    out = _gammaln(a)
    return np.where(np.isinf(out), out.dtype.type(np.inf), out)


def spherical_bessel_j0(a: np.ndarray) -> np.ndarray:
    """sin(a) / a, 1 at 0 and 0 at infinities."""
    inner = np.isfinite(a) & (a != 0)
    safe = np.where(inner, a, a.dtype.type(1))
    ends = np.where(a == 0, a.dtype.type(1), np.where(np.isnan(a), a, a.dtype.type(0)))
    return np.where(inner, np.sin(safe) / safe, ends)


# Beyond this SciPy gives NaN: Ai has underflowed on the right, and its phase, which grows like
# |a|^1.5, is known to few digits on the left.
_AIRY_FAR = 1e5


def airy_ai(a: np.ndarray) -> np.ndarray:
    """The Airy function Ai."""
    return _airy(a, 0)


def airy_ai_slope(a: np.ndarray) -> np.ndarray:
    """The derivative of Ai."""
    return _airy(a, 1)


def _airy(a: np.ndarray, order: int) -> np.ndarray:
    before_loading("scipy.special")
    from scipy.special import airy

    size = np.abs(a.astype(np.float64))
    far = size > _AIRY_FAR
    if not far.any():
        out = airy(a)[order]
    else:
        near = airy(np.where(far, 0, a))[order]
        root = np.sqrt(np.sqrt(size))
        phase = 2 / 3 * size * np.sqrt(size) + np.pi / 4
        left = np.sin(phase) / root if order == 0 else -np.cos(phase) * root
        out = np.where(far, np.where(a > 0, 0.0, left / np.sqrt(np.pi)), near)
    return np.asarray(out).astype(a.dtype)


def polygamma(a: np.ndarray, n: int) -> np.ndarray:
    """The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, a)."""
    if n == 0:
        return digamma(a)
    order = a.dtype.type(n + 1)
    return a.dtype.type((-1.0) ** (n + 1)) * _gamma(order) * zeta(order, a)


def hyp0f1(a: np.ndarray, b: float) -> np.ndarray:
    """sum_k a^k / (b (b + 1) ... (b + k - 1) k!)"""
    return _hyp0f1(b, a)
