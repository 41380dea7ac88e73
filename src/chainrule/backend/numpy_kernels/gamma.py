"""The incomplete gamma function and its derivatives by the shape a.

With x = e^y, P(a, x) is the distribution function of the logarithm y of a gamma number, whose
density is q(y) = exp(a y - x) / Gamma(a). SciPy has P; its derivatives by a are computed here.
"""

from __future__ import annotations

import math

import numpy as np

from chainrule.backend.numpy_kernels.special import digamma, polygamma, special

__all__ = ["gammaincinv", "log_gamma_slope"]

gammaincinv = special("gammaincinv")

_SMALL = 1.5  # below this x the series needs few terms, above it the integrals are smooth
_TERMS = 32

# Nodes s and weights of a double exponential rule for integrals of decaying functions from 0 on:
# s = exp(u - exp(-u)) with equidistant u.
_U = np.arange(-3.8, 4.7, 0.08)
_NODES = np.exp(_U - np.exp(-_U))
_WEIGHTS = 0.08 * (1 + np.exp(-_U)) * _NODES


def log_gamma_slope(a: np.ndarray, y: np.ndarray, n: int = 1) -> np.ndarray:
    """-(d/da)^n P(a, e^y) / q(y); for n = 1 how a quantile y moves with a.

    By the power series of P where x = e^y is small. Elsewhere d^n q / da^n is integrated over the
    tail on whose side of its mean y lies: for n = 1 nothing cancels there.
    """
    dtype = np.result_type(a, y)
    a, y = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(y, np.float64))
    out = np.full(a.shape, np.nan)
    x, mean = np.exp(y), digamma(a)
    small = x < _SMALL
    lower = ~small & (y < mean)
    upper = ~small & (y >= mean)
    out[small] = _by_series(a[small], y[small], n)
    out[lower] = _by_integral(a[lower], y[lower], n, -1)
    out[upper] = _by_integral(a[upper], y[upper], n, 1)
    return out.astype(dtype, copy=False)


def _by_series(a: np.ndarray, y: np.ndarray, n: int) -> np.ndarray:
    """P = q S / a with S = sum_k x^k / ((a + 1) ... (a + k)), differentiated term by term."""
    x = np.exp(y)
    term = [np.ones_like(a)] + [np.zeros_like(a)] * n  # Taylor coefficients in a
    total = list(term)
    for k in range(1, _TERMS):
        before = np.zeros_like(a)
        for i in range(n + 1):
            before = term[i] = (x * term[i] - before) / (a + k)
            total[i] = total[i] + before
    bell = _bell(y - digamma(a + 1), a + 1, n)
    parts = [math.comb(n, i) * math.factorial(i) * total[i] * bell[n - i] for i in range(n + 1)]
    return -np.sum(parts, axis=0) / a


def _by_integral(a: np.ndarray, y: np.ndarray, n: int, side: int) -> np.ndarray:
    """The integral of d^n q / da^n over all t beyond y on a side, divided by q(y)."""
    x, center = np.exp(y), y - digamma(a)
    width = 1 / (np.abs(x - a) + np.sqrt(x))
    out = np.zeros_like(a)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        s = side * width * node
        out += weight * np.exp(a * s - x * np.expm1(s)) * _bell(center + s, a, n)[n]
    return side * width * out


def _bell(first: np.ndarray, a: np.ndarray, n: int) -> list[np.ndarray]:
    """(d/da)^k f / f for k = 0..n, where (log f)' = first and (log f)'' = -digamma'(a)."""
    rates = [first] + [-polygamma(a, k) for k in range(1, n)]
    out = [np.ones_like(a)]
    for k in range(n):
        out.append(sum(math.comb(k, i) * out[k - i] * rates[i] for i in range(k + 1)))
    return out
