"""Reductions and scans. ``dim`` is counted from the end, as in the NumPy kernels."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "linear_scan",
    "logcumsumexp",
    "logsumexp",
    "max_along",
    "mean",
    "median",
    "median_along",
    "min_along",
    "mode_along",
    "pnorm",
    "prod",
    "shift_along",
    "spread",
    "std",
    "sum",
    "sum_to",
    "var",
]

Array = Any
Dims = tuple[int, ...]
Chosen = tuple[Array, Array]


def _count(a: Array, dim: Dims) -> int:
    return math.prod([a.shape[d] for d in dim])


def sum(a: Array, dim: Dims, keepdim: bool) -> Array:
    """The sum over the dimensions."""
    if a.dtype == bool:
        return jnp.any(a, dim, keepdims=keepdim)
    return jnp.sum(a, dim, dtype=a.dtype, keepdims=keepdim)


def mean(a: Array, dim: Dims, keepdim: bool) -> Array:
    """The sum over the dimensions by the number of elements."""
    if a.dtype.kind in "biu":
        a = a.astype(np.float64)
    return jnp.sum(a, dim, keepdims=keepdim) / _count(a, dim)


def spread(a: Array, shape: tuple[int, ...], dim: Dims, keepdim: bool) -> Array:
    """The transpose of a sum: ``a`` repeated along the summed dimensions."""
    n = len(shape)
    if not keepdim and len(dim) < n:
        a = a.reshape([1 if i in dim else s for i, s in enumerate(shape, -n)])
    return jnp.broadcast_to(a, shape)


def sum_to(a: Array, shape: tuple[int, ...]) -> Array:
    """The transpose of broadcasting ``shape`` to ``a.shape``."""
    extra = a.ndim - len(shape)
    axes = tuple([i for i in range(a.ndim) if i < extra or shape[i - extra] != a.shape[i]])
    if 0 in shape:
        return jnp.zeros(shape, a.dtype)
    return jnp.sum(a, axes, dtype=a.dtype).reshape(shape)


def prod(a: Array, dim: Dims, keepdim: bool) -> Array:
    """The product over the dimensions."""
    return jnp.prod(a, dim, dtype=a.dtype, keepdims=keepdim)


def var(a: Array, dim: Dims, keepdim: bool, correction: float) -> Array:
    """The squares of the deviations from the mean, over the count less the correction."""
    n = _count(a, dim)
    d = a - jnp.sum(a, dim, keepdims=True) / n
    squares = jnp.square(d) if a.dtype.kind == "f" else d.real**2 + d.imag**2
    # As an array, so that 0 / 0 is NaN and no error of Python's.
    rest = np.asarray(max(n - correction, 0), squares.dtype)
    return jnp.sum(squares, dim, keepdims=keepdim) / rest


def std(a: Array, dim: Dims, keepdim: bool, correction: float) -> Array:
    """sqrt(var)"""
    return jnp.sqrt(var(a, dim, keepdim, correction))


def pnorm(a: Array, dim: Dims, keepdim: bool, p: float) -> Array:
    """(sum |a|^p)^(1/p); the number of nonzero elements for p = 0."""
    size = jnp.abs(a)
    if p == 0:
        return jnp.sum(a != 0, dim, dtype=size.dtype, keepdims=keepdim)
    if p == 1:
        return jnp.sum(size, dim, keepdims=keepdim)
    if p == 2:
        return jnp.sqrt(jnp.sum(jnp.square(size), dim, keepdims=keepdim))
    return jnp.sum(jnp.power(size, p), dim, keepdims=keepdim) ** (1 / p)


def logsumexp(a: Array, dim: Dims, keepdim: bool) -> Array:
    """log(sum(exp(a))) about the largest (real part), so that nothing overflows."""
    top = jnp.max(a.real, dim, keepdims=True, initial=-np.inf)
    shift = jnp.where(jnp.isfinite(top), top, jnp.zeros((), top.dtype))
    out = jnp.log(jnp.sum(jnp.exp(a - shift), dim, keepdims=True)) + shift
    return out if keepdim else jnp.squeeze(out, dim)


def all(a: Array, dim: Dims, keepdim: bool) -> Array:
    """Whether no element is 0."""
    return jnp.all(a, dim, keepdims=keepdim)


def any(a: Array, dim: Dims, keepdim: bool) -> Array:
    """Whether some element is not 0."""
    return jnp.any(a, dim, keepdims=keepdim)


def count_nonzero(a: Array, dim: Dims, keepdim: bool) -> Array:
    """How many elements are not 0, as int64."""
    return jnp.sum(a != 0, dim, dtype=np.int64, keepdims=keepdim)


# --- choices --------------------------------------------------------------------------------------


def amax(a: Array, dim: Dims, keepdim: bool) -> Array:
    """The largest element; NaN if there is one."""
    return jnp.max(a, dim, keepdims=keepdim)


def amin(a: Array, dim: Dims, keepdim: bool) -> Array:
    """The smallest element; NaN if there is one."""
    return jnp.min(a, dim, keepdims=keepdim)


def argmax(a: Array, dim: int, keepdim: bool) -> Array:
    """The first place of the largest element (or of NaN)."""
    return jnp.argmax(a, dim, keepdims=keepdim)


def argmin(a: Array, dim: int, keepdim: bool) -> Array:
    """The first place of the smallest element (or of NaN)."""
    return jnp.argmin(a, dim, keepdims=keepdim)


def max_along(a: Array, dim: int, keepdim: bool) -> Chosen:
    """The largest element (or NaN) and its first place."""
    return jnp.max(a, dim, keepdims=keepdim), argmax(a, dim, keepdim)


def min_along(a: Array, dim: int, keepdim: bool) -> Chosen:
    """The smallest element (or NaN) and its first place."""
    return jnp.min(a, dim, keepdims=keepdim), argmin(a, dim, keepdim)


def _take(a: Array, index: Array, dim: int, keepdim: bool) -> Chosen:
    values = jnp.take_along_axis(a, index, dim)
    return (values, index) if keepdim else (jnp.squeeze(values, dim), jnp.squeeze(index, dim))


def median_along(a: Array, dim: int, keepdim: bool, skip_nan: bool) -> Chosen:
    """The lower median (the first of equal elements); NaN of a row with NaN, unless skipped."""
    ordered, isnan = jnp.sort(a, axis=dim), a != a
    count = jnp.sum(~isnan, dim, dtype=np.int64, keepdims=True)
    place = jnp.where((count == a.shape[dim]) | skip_nan, (count - 1) // 2, a.shape[dim] - 1)
    middle = jnp.take_along_axis(ordered, jnp.maximum(place, 0), dim)
    chosen = (a == middle) | (isnan & (middle != middle))
    return _take(a, jnp.argmax(chosen, dim, keepdims=True), dim, keepdim)


def median(a: Array, dim: Dims, keepdim: bool, skip_nan: bool) -> Array:
    """The value of ``median_along`` over the one dimension of ``dim``."""
    return median_along(a, dim[0], keepdim, skip_nan)[0]


def mode_along(a: Array, dim: int, keepdim: bool) -> Chosen:
    """The most frequent element (the smallest of several), where it stands last."""
    rows = jnp.moveaxis(a, dim, -1)
    order = jnp.argsort(rows, axis=-1, stable=True)
    ordered = jnp.take_along_axis(rows, order, -1)
    places = jnp.arange(a.shape[dim])
    first = jnp.ones((*rows.shape[:-1], 1), bool)
    begins = jnp.concatenate([first, ordered[..., 1:] != ordered[..., :-1]], -1)
    starts = jax.lax.cummax(jnp.where(begins, places, 0), axis=rows.ndim - 1)
    longest = jnp.take_along_axis(order, jnp.argmax(places - starts, -1, keepdims=True), -1)
    return _take(a, jnp.moveaxis(longest, -1, dim), dim, keepdim)


# --- scans ----------------------------------------------------------------------------------------


def cumsum(a: Array, dim: int, reverse: bool) -> Array:
    """out[i] = a[0] + ... + a[i] along ``dim``, a[i] + ... + a[n-1] if ``reverse``."""
    return jax.lax.cumsum(a, dim + a.ndim, reverse)


def cumprod(a: Array, dim: int, reverse: bool) -> Array:
    """out[i] = a[0] * ... * a[i] along ``dim``, a[i] * ... * a[n-1] if ``reverse``."""
    return jax.lax.cumprod(a, dim + a.ndim, reverse)


def logcumsumexp(a: Array, dim: int) -> Array:
    """out[i] = log(exp(a[0]) + ... + exp(a[i])) along ``dim``, without overflow."""
    if a.dtype.kind != "c":
        return jax.lax.cumlogsumexp(a, dim + a.ndim)
    from chainrule.backend.xla_kernels.elementwise import logaddexp

    return jax.lax.associative_scan(logaddexp, a, axis=dim + a.ndim) if a.size else a


def cummax(a: Array, dim: int, keepdim: bool) -> Chosen:
    """The largest element (or NaN) so far, where it stands latest."""
    return _latest(a, jax.lax.associative_scan(jnp.maximum, a, axis=dim + a.ndim), dim)


def cummin(a: Array, dim: int, keepdim: bool) -> Chosen:
    """The smallest element (or NaN) so far, where it stands latest."""
    return _latest(a, jax.lax.associative_scan(jnp.minimum, a, axis=dim + a.ndim), dim)


def _latest(a: Array, best: Array, dim: int) -> Chosen:
    places = jnp.arange(a.shape[dim]).reshape([-1] + [1] * (-dim - 1))
    found = jnp.where((a == best) | (a != a), places, 0)
    return best, jax.lax.cummax(found, axis=dim + a.ndim)


def shift_along(a: Array, dim: int, by: int, fill: float) -> Array:
    """``a`` moved by one place along ``dim`` (``by`` is 1 or -1); ``fill`` takes the empty one."""
    source = jnp.moveaxis(a, dim, 0)
    empty = jnp.full((1, *source.shape[1:]), fill, a.dtype)
    parts = [empty, source[:-1]] if by > 0 else [source[1:], empty]
    return jnp.moveaxis(jnp.concatenate(parts), 0, dim)


def linear_scan(a: Array, b: Array, dim: int, reverse: bool) -> Array:
    """h[i] = a[i] h[i-1] + b[i] along ``dim``, from the other end if ``reverse``."""
    if b.size == 0:
        return b
    a = jnp.broadcast_to(a, b.shape)

    def step(h: Array, ab: tuple[Array, Array]) -> tuple[Array, Array]:
        h = ab[0] * h + ab[1]
        return h, h

    rows = jnp.moveaxis(a, dim, 0), jnp.moveaxis(b, dim, 0)
    first = jnp.zeros(rows[1].shape[1:], b.dtype)
    return jnp.moveaxis(jax.lax.scan(step, first, rows, reverse=reverse)[1], 0, dim)
