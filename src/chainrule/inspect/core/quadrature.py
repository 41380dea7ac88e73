"""Sums that are integrals."""

from __future__ import annotations

import functools

from chainrule.ops.creation.patterns import arange
from chainrule.ops.linalg.decompositions import eigh
from chainrule.ops.shape.diagonal import diag

__all__ = ["gauss_legendre"]


@functools.cache
def gauss_legendre(count: int) -> tuple[tuple[float, float], ...]:
    """Points in (0, 1) and weights: the weighted sum of a polynomial of degree below 2 ``count`` is
    its integral.

    The points are the eigenvalues of a tridiagonal matrix (Golub and Welsch, 1969).

    >>> [(round(t, 4), w) for t, w in gauss_legendre(1)]
    [(0.5, 1.0)]
    """
    if count < 1:
        raise ValueError(f"gauss_legendre: there must be at least one point, got {count}")
    if count == 1:
        return ((0.5, 1.0),)
    k = arange(1, count, dtype="float64")
    off = k / (4 * k * k - 1).sqrt()
    values, vectors = eigh(diag(off, 1) + diag(off, -1))
    points, weights = (values + 1) / 2, vectors[0] ** 2
    return tuple(zip(points.tolist(), weights.tolist(), strict=True))
