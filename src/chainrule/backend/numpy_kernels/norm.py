"""Normalization: deviations from the mean over their standard deviation, in few passes.

The variance is that of the deviations (two passes over the numbers, not sum(x^2) - sum(x)^2), so
that a large mean costs no digits. Half precision is computed in single precision.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["normalize", "normalize_backward", "normalize_parts", "rounding_error"]

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
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any, np.ndarray]:
    """The result; the deviations, one over their root mean square, the mean and the variance."""
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
    return out.astype(x.dtype, copy=False), d, rstd, mean, var


def normalize_backward(
    g: np.ndarray,
    d: np.ndarray,
    rstd: np.ndarray,
    weight: np.ndarray | None,
    dim: Dims,
    center: bool,
    needs: tuple[bool, bool],
) -> tuple[Any, Any]:
    """The gradients of the input and of the weight (before broadcasting is undone).

    With h = g w and z = d rstd, that of the input is rstd (h - mean(h) - z mean(h z)).
    """
    n = _count(d, dim)
    dtype = g.dtype
    g = _wide(g)
    if weight is not None and _is_constant_along(weight, dim):
        # The sums that give the weight's gradient are those that the input's needs.
        products = _add(g * d, dim, None, None, True)
        gw = products * rstd if needs[1] else None
        if not needs[0]:
            return None, _as(gw, dtype)
        gx = _projected(g, d, products * (rstd * rstd / n), dim, n, center)
        gx *= rstd * weight
        return _as(gx, dtype), _as(gw, dtype)
    gw = None
    h = g if weight is None else g * weight
    if needs[1]:
        gw = g * d
        gw *= rstd
    if not needs[0]:
        return None, _as(gw, dtype)
    products = _add(h * d, dim, None, None, True)
    gx = _projected(h, d, products * (rstd * rstd / n), dim, n, center)
    gx *= rstd
    return _as(gx, dtype), _as(gw, dtype)


def _projected(
    h: np.ndarray, d: np.ndarray, slope: np.ndarray, dim: Dims, n: int, center: bool
) -> np.ndarray:
    """h - d slope - mean(h): h without the directions that normalizing undoes."""
    out = d * slope
    np.subtract(h, out, out=out)
    if center:
        out -= _mean(h, dim, n)
    return out


def _as(a: Any, dtype: Any) -> Any:
    return a if a is None else a.astype(dtype, copy=False)


def rounding_error(dtype: Any) -> float:
    """The distance from 1 to the next number of a floating type."""
    return float(np.finfo(dtype).eps)
