"""Special functions that JAX has; those that it has not are computed on the host (``table.py``)."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special as jsp

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "gammainc",
    "gammaincc",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "lgamma",
    "log_ndtr",
    "logit",
    "ndtr",
    "polygamma",
    "sigmoid",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]

Array = Any

entr, erf, erfc = jsp.entr, jsp.erf, jsp.erfc
i0, i0e, i1, i1e = jsp.i0, jsp.i0e, jsp.i1, jsp.i1e
logit = jsp.logit


def sigmoid(a: Array) -> Array:
    """1 / (1 + exp(-a)); where exp overflows, the quotient is 0."""
    if a.dtype.kind == "c":
        return 0.5 + 0.5 * jnp.tanh(0.5 * a)
    return jax.lax.logistic(a)


def _alike(a: Array, b: Array) -> tuple[Array, Array]:
    dtype = jnp.result_type(a, b)
    return jnp.asarray(a, dtype), jnp.asarray(b, dtype)


def xlogy(a: Array, b: Array) -> Array:
    """a log(b), and 0 where a is 0, whatever b is."""
    a, b = _alike(a, b)
    out = a * jnp.log(jnp.where(a == 0, jnp.ones((), b.dtype), b))
    return jnp.where((a == 0) & ~jnp.isnan(b), jnp.zeros((), out.dtype), jnp.where(b != b, b, out))


def xlog1py(a: Array, b: Array) -> Array:
    """a log(1 + b), and 0 where a is 0, whatever b is."""
    a, b = _alike(a, b)
    out = a * jnp.log1p(jnp.where(a == 0, jnp.zeros((), b.dtype), b))
    return jnp.where((a == 0) & ~jnp.isnan(b), jnp.zeros((), out.dtype), jnp.where(b != b, b, out))


def gammainc(a: Array, b: Array) -> Array:
    """The integral of t^(a-1) exp(-t) from 0 to b, over gamma(a)."""
    return jsp.gammainc(*_alike(a, b))


def gammaincc(a: Array, b: Array) -> Array:
    """1 - gammainc(a, b), exact where that is small."""
    return jsp.gammaincc(*_alike(a, b))


def zeta(a: Array, b: Array) -> Array:
    """The sum of 1 / (k + b)^a over k = 0, 1, ..."""
    return jsp.zeta(*_alike(a, b))


def digamma(a: Array) -> Array:
    """The derivative of log(gamma)."""
    return jsp.digamma(a)


def lgamma(a: Array) -> Array:
    """log |gamma(a)|, infinite at both infinities."""
    return jax.lax.lgamma(a)


def ndtr(a: Array) -> Array:
    """The probability that a standard normal number is below a."""
    return jsp.ndtr(a)


def log_ndtr(a: Array) -> Array:
    """The logarithm of :func:`ndtr`."""
    return jsp.log_ndtr(a)


def polygamma(a: Array, n: int) -> Array:
    """The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, a)."""
    if n == 0:
        return digamma(a)
    factor = np.asarray((-1.0) ** (n + 1) * math.gamma(n + 1), a.dtype)
    return factor * zeta(np.asarray(n + 1, a.dtype), a)


def spherical_bessel_j0(a: Array) -> Array:
    """sin(a) / a, 1 at 0 and 0 at infinities."""
    one, zero = jnp.ones((), a.dtype), jnp.zeros((), a.dtype)
    inner = jnp.isfinite(a) & (a != 0)
    safe = jnp.where(inner, a, one)
    ends = jnp.where(a == 0, one, jnp.where(jnp.isnan(a), a, zero))
    return jnp.where(inner, jnp.sin(safe) / safe, ends)
