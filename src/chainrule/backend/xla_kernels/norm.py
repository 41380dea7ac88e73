"""Normalization: deviations from the mean over their standard deviation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from chainrule.backend.xla_kernels.reduce import sum_to

__all__ = ["normalize", "normalize_backward", "normalize_parts", "scale_channels"]

Array = Any
Dims = tuple[int, ...]


def _mean(a: Array, dim: Dims, n: int) -> Array:
    return jnp.sum(a, dim, keepdims=True) / n


def _count(a: Array, dim: Dims) -> int:
    return max(math.prod([a.shape[d] for d in dim]), 1)


def normalize(x: Array, *affine: Array, dim: Dims, eps: float, center: bool) -> Array:
    """w (x - mean) / sqrt(var + eps) + b, with w and b if they are given."""
    return normalize_parts(x, *affine, dim=dim, eps=eps, center=center)[0]


def normalize_parts(
    x: Array, *affine: Array, dim: Dims, eps: float, center: bool
) -> tuple[Array, Array | None, Array, Array]:
    """The result, the mean (None without ``center``), 1 / sqrt(var + eps), and the variance."""
    n = _count(x, dim)
    mean = _mean(x, dim, n) if center else None
    d = x - mean if center else x
    var = _mean(jnp.square(d), dim, n)
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


def scale_channels(x: Array, scale: Array, shift: Array) -> Array:
    """x * scale + shift for x (N, C, ...) and vectors of C numbers."""
    column = (-1, *[1] * (x.ndim - 2))
    return x * scale.reshape(column) + shift.reshape(column)
