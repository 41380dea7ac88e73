"""Normalization: deviations from the mean over their standard deviation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from chainrule.backend.xla_kernels.elementwise import clamp
from chainrule.backend.xla_kernels.reduce import sum_to

__all__ = ["normalize", "normalize_backward", "normalize_parts", "scale_channels"]

Array = Any
Dims = tuple[int, ...]


def _mean(a: Array, dim: Dims, n: int) -> Array:
    return jnp.sum(a, dim, keepdims=True) / n


def _count(a: Array, dim: Dims) -> int:
    return max(math.prod([a.shape[d] for d in dim]), 1)


def _moments(x: Array, dim: Dims, n: int) -> tuple[Array, Array]:
    """The mean and the variance.

    Over other dimensions than the last ones, where every pass reads all of x from memory, both come
    from one pass: the sums of x - s and of (x - s)^2, with the first number as the shift s. That is
    one of those whose variance is asked for, so that little cancels.
    """
    dims = sorted([d % x.ndim for d in dim])
    if dims == list(range(x.ndim - len(dims), x.ndim)) or not x.size:
        mean = _mean(x, dim, n)
        return mean, _mean(jnp.square(x - mean), dim, n)
    shift = x[tuple([slice(1) if d in dims else slice(None) for d in range(x.ndim)])]
    d = x - shift
    first, second = _mean(d, dim, n), _mean(jnp.square(d), dim, n)
    return shift + first, jnp.maximum(second - jnp.square(first), 0)


def normalize(x: Array, *affine: Array, dim: Dims, eps: float, center: bool) -> Array:
    """w (x - mean) / sqrt(var + eps) + b, with w and b if they are given."""
    return normalize_parts(x, *affine, dim=dim, eps=eps, center=center)[0]


def normalize_parts(
    x: Array, *affine: Array, dim: Dims, eps: float, center: bool
) -> tuple[Array, Array | None, Array, Array]:
    """The result, the mean (None without ``center``), 1 / sqrt(var + eps), and the variance."""
    n = _count(x, dim)
    mean, var = _moments(x, dim, n) if center else (None, _mean(jnp.square(x), dim, n))
    d = x - mean if center else x
    rstd = 1 / jnp.sqrt(var + eps)
    out = d * rstd
    if affine:
        out = out * affine[0]
    if len(affine) > 1:
        out = out + affine[1]
    return out, mean, rstd, var


def normalize_backward(
    g: Array,
    x: Array,
    mean: Array | None,
    rstd: Array,
    weight: Array | None,
    dim: Dims,
    shapes: Sequence[tuple[int, ...]],
    needs: Sequence[bool],
) -> tuple[Array | None, ...]:
    """The gradients of the input, the weight and the bias; see the NumPy kernel."""
    d = x if mean is None else x - mean
    n = _count(d, dim)
    if mean is not None and all([_is_even(w, g.shape, dim) for w in (weight, mean, rstd)]):
        return _even_backward(g, d, n, rstd, weight, dim, shapes, needs)
    gx = gw = gb = None
    if len(needs) > 2 and needs[2]:
        gb = sum_to(g, shapes[2])
    if len(needs) > 1 and needs[1]:
        gw = sum_to(g * d * rstd, shapes[1])
    if needs[0]:
        h = g if weight is None else g * weight
        products = jnp.sum(h * d, dim, keepdims=True)
        gx = h - d * (products * (rstd * rstd / n))
        if mean is not None:
            gx = gx - _mean(h, dim, n)
        gx = gx * rstd
    return (gx, gw, gb)[: len(needs)]


def _is_even(weight: Array | None, shape: tuple[int, ...], dim: Dims) -> bool:
    """Whether a weight is the same for all that is summed over."""
    if weight is None:
        return True
    own = (1,) * (len(shape) - weight.ndim) + tuple(weight.shape)
    return all([own[d] == 1 for d in dim])


def _even_backward(
    g: Array,
    d: Array,
    n: int,
    rstd: Array,
    weight: Array | None,
    dim: Dims,
    shapes: Sequence[tuple[int, ...]],
    needs: Sequence[bool],
) -> tuple[Array | None, ...]:
    """The same where the weight does not vary along ``dim``: two sums serve all gradients."""
    total = jnp.sum(g, dim, keepdims=True)
    products = jnp.sum(g * d, dim, keepdims=True)
    gx = gw = gb = None
    if len(needs) > 2 and needs[2]:
        gb = sum_to(total, shapes[2])
    if len(needs) > 1 and needs[1]:
        gw = sum_to(products * rstd, shapes[1])
    if needs[0]:
        scale = rstd if weight is None else rstd * weight
        gx = scale * (g - total / n - d * (products * (rstd * rstd / n)))
    return (gx, gw, gb)[: len(needs)]


def scale_channels(
    x: Array, scale: Array, shift: Array, low: float | None = None, high: float | None = None
) -> Array:
    """x * scale + shift for x (N, C, ...) and vectors of C numbers, held between limits."""
    column = (-1, *[1] * (x.ndim - 2))
    return clamp(x * scale.reshape(column) + shift.reshape(column), low, high)
