"""Normalization: deviations from the mean over their standard deviation, in few passes.

The variance is that of the deviations (two passes over the numbers, not sum(x^2) - sum(x)^2), so
that a large mean costs no digits. Half precision is computed in single precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.backend import limits
from chainrule.backend.numpy_kernels.elementwise import clamp
from chainrule.backend.numpy_kernels.narrow import is_narrow
from chainrule.backend.numpy_kernels.operands import Result
from chainrule.backend.numpy_kernels.reduce import sum_to


__all__ = [
    "normalize",
    "normalize_backward",
    "normalize_parts",
    "rounding_error",
    "scale_channels",
]

Dims = tuple[int, ...]
_add: Any = np.add.reduce


def _wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) if a.dtype.itemsize == 2 else a


def _mean(a: np.ndarray, dim: Dims, n: int) -> np.ndarray:
    out = _add(a, dim, None, None, True)
    out /= n
    return out


def _count(a: np.ndarray, dim: Dims) -> int:
    return max(math.prod([a.shape[d] for d in dim]), 1)


def _is_constant_along(w: np.ndarray, dim: Dims) -> bool:
    """Whether a factor is the same for all numbers that are normalized together."""
    return all([-d > w.ndim or w.shape[d] == 1 for d in dim])


def normalize(
    x: np.ndarray, *affine: np.ndarray, dim: Dims, eps: float, center: bool
) -> np.ndarray:
    """w (x - mean) / sqrt(var + eps) + b, with w and b if they are given."""
    return normalize_parts(x, *affine, dim=dim, eps=eps, center=center)[0]


def normalize_parts(
    x: np.ndarray, *affine: np.ndarray, dim: Dims, eps: float, center: bool
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
    """The result, the mean (None without ``center``), 1 / sqrt(var + eps), and the variance."""
    a = _wide(x)
    n = _count(a, dim)
    mean, d = None, a
    if center:
        mean = _mean(a, dim, n)
        d = a - mean
    var = _mean(np.square(d), dim, n)
    rstd = var + eps
    np.sqrt(rstd, out=rstd)
    np.divide(1, rstd, out=rstd)
    if not affine:
        out = d * rstd
    elif _is_constant_along(affine[0], dim):
        out = d * (rstd * affine[0])
    else:
        out = d * rstd
        out *= affine[0]
    if len(affine) > 1:
        out += affine[1]
    return out.astype(x.dtype, copy=False), mean, rstd, var


def normalize_backward(
    g: np.ndarray,
    x: np.ndarray,
    mean: np.ndarray | None,
    rstd: np.ndarray,
    weight: np.ndarray | None,
    dim: Dims,
    shapes: Sequence[tuple[int, ...]],
    needs: Sequence[bool],
) -> tuple[Result | None, ...]:
    """The gradients of the input, the weight and the bias, as far as there are ``shapes`` of them.

    They are None where they are not needed. With h = g w, d = x - mean and z = d rstd, that of the
    input is rstd (h - mean(h) - z mean(h z)), that of the weight g z and that of the bias g.
    """
    d = _wide(x) if mean is None else _wide(x) - mean
    n, dtype, center = _count(d, dim), g.dtype, mean is not None
    g = _wide(g)
    gx = gw = gb = None
    if len(needs) > 2 and needs[2]:
        gb = sum_to(g, shapes[2])
    if weight is not None and _is_constant_along(weight, dim):
        # The sums that give the weight's gradient are those that the input's needs.
        products = _add(g * d, dim, None, None, True)
        if needs[1]:
            gw = sum_to(products * rstd, shapes[1])
        if needs[0]:
            gx = _projected(g, d, products * (rstd * rstd / n), dim, n, center)
            gx *= rstd * weight
    else:
        if len(needs) > 1 and needs[1]:
            z = g * d
            z *= rstd
            gw = sum_to(z, shapes[1])
        if needs[0]:
            h = g if weight is None else g * weight
            products = _add(h * d, dim, None, None, True)
            gx = _projected(h, d, products * (rstd * rstd / n), dim, n, center)
            gx *= rstd
    return tuple([_as(part, dtype) for part in (gx, gw, gb)[: len(needs)]])


def _projected(
    h: np.ndarray, d: np.ndarray, slope: np.ndarray, dim: Dims, n: int, center: bool
) -> np.ndarray:
    """h - d slope - mean(h): h without the directions that normalizing undoes."""
    out = d * slope
    np.subtract(h, out, out=out)
    if center:
        out -= _mean(h, dim, n)
    return out


def _as(a: Result | None, dtype: np.dtype) -> Result | None:
    return a if a is None else a.astype(dtype, copy=False)


def scale_channels(
    x: np.ndarray,
    scale: np.ndarray,
    shift: np.ndarray,
    low: float | None = None,
    high: float | None = None,
) -> np.ndarray:
    """x * scale + shift for x (N, C, ...) and vectors of C numbers, held between limits."""
    column = (-1, *[1] * (x.ndim - 2))
    return clamp(x * scale.reshape(column) + shift.reshape(column), low, high)


def rounding_error(dtype: np.dtype) -> float:
    """The distance from 1 to the next number of the type in which a floating type is computed."""
    return limits.finfo(np.float32 if is_narrow(dtype) else dtype).eps
