"""Pooling in any number of dimensions: loops over the places of the window, never over pixels.

Indices count the elements of one channel in row-major order, as PyTorch's do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.backend.numpy_kernels.conv import Ints, extents, overlap, padded, strided

__all__ = [
    "adaptive_avg_pool",
    "adaptive_avg_pool_transpose",
    "adaptive_max_pool_indices",
    "avg_pool",
    "avg_pool_transpose",
    "checked_indices",
    "max_pool_indices",
    "pool_gather",
    "pool_scatter",
]


# --- averages -------------------------------------------------------------------------------------


def avg_pool(
    x: np.ndarray,
    size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    divisor: float | None,
    count_pad: bool,
) -> np.ndarray:
    """The sum of each window by ``divisor``, or (None) by the number of elements that count."""
    nd = len(size)
    by = divisor or _counts(x.shape[-nd:], size, kernel, stride, padding, dilation, count_pad, x)
    if x.size == 0:
        return np.zeros((*x.shape[:-nd], *size), x.dtype)
    total = padded(x, extents(size, kernel, stride, dilation), padding)
    for i in range(nd):
        total = _sum_along(total, i - nd, size[i], kernel[i], stride[i], dilation[i])
    return total / by


def _sum_along(
    x: np.ndarray, axis: int, n: int, kernel: int, stride: int, dilation: int
) -> np.ndarray:
    """Window sums along one dimension; one dimension after the other makes the whole window."""
    if n == 1:
        return np.add.reduce(x[_along(axis, 0, kernel, dilation)], axis=axis, keepdims=True)
    total = x[_along(axis, 0, n, stride)]
    if kernel > 1:
        total = total + x[_along(axis, dilation, n, stride)]
    for k in range(2, kernel):
        total += x[_along(axis, k * dilation, n, stride)]
    return total


def _along(axis: int, start: int, n: int, step: int) -> tuple[Any, ...]:
    """The index of n elements along one dimension."""
    return (..., slice(start, start + (n - 1) * step + 1, step), *[slice(None)] * (-axis - 1))


def avg_pool_transpose(
    g: np.ndarray,
    size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    divisor: float | None,
    count_pad: bool,
) -> np.ndarray:
    """Each output's share goes back to every element of its window; ``size`` is the input's."""
    nd = len(size)
    outputs = g.shape[-nd:]
    out = np.zeros((*g.shape[:-nd], *size), g.dtype)
    if g.size == 0:
        return out
    g = g / (divisor or _counts(size, outputs, kernel, stride, padding, dilation, count_pad, g))
    extent = extents(outputs, kernel, stride, dilation)
    for i in reversed(range(nd)):
        axis = i - nd
        wide = np.zeros((*g.shape[:axis], extent[i], *g.shape[g.ndim + axis + 1 :]), g.dtype)
        for k in range(kernel[i]):
            part = wide[_along(axis, k * dilation[i], outputs[i], stride[i])]
            part += g
        g = wide
    if extent == size and not any(padding):
        return g
    inside, own = overlap(size, extent, padding)
    target: tuple[Any, ...] = (..., *own)
    source: tuple[Any, ...] = (..., *inside)
    out[target] = g[source]
    return out


def _counts(
    spatial: Ints,
    size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    count_pad: bool,
    like: np.ndarray,
) -> np.ndarray:
    """How many elements of each window count: those of the input, or of the padded input."""
    counts = np.ones((1,) * len(size), like.dtype)
    for i, (n, o, k, s, p, d) in enumerate(
        zip(spatial, size, kernel, stride, padding, dilation, strict=True)
    ):
        at = np.arange(o)[:, None] * s + np.arange(k) * d - p
        inside = (at < n + p) if count_pad else (at >= 0) & (at < n)
        counts = counts * inside.sum(axis=1).reshape((-1,) + (1,) * (len(size) - i - 1))
    return np.maximum(counts, 1).astype(like.dtype)


# --- adaptive averages ----------------------------------------------------------------------------


def _bounds(n: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the windows of adaptive pooling begin and end: n elements in ``size`` parts."""
    i = np.arange(size)
    return i * n // size, -(-(i + 1) * n // size)


def _averaging(n: int, size: int, dtype: np.dtype) -> np.ndarray:
    """The matrix (size, n) whose rows average the windows."""
    start, stop = _bounds(n, size)
    at = np.arange(n)
    inside = (at >= start[:, None]) & (at < stop[:, None])
    return (inside / np.maximum(stop - start, 1)[:, None]).astype(dtype)


def _apply_along(matrix: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    rows = np.moveaxis(x, axis, -1)
    out = np.matmul(rows, matrix.T)
    if not np.isfinite(out).all():
        # Zero times infinity is NaN: what a window does not contain must not reach it.
        for i, weights in enumerate(matrix):
            at = np.flatnonzero(weights)
            out[..., i] = np.add.reduce(rows[..., at] * weights[at], axis=-1)
    return np.moveaxis(out, -1, axis)


def adaptive_avg_pool(x: np.ndarray, size: Ints) -> np.ndarray:
    """The averages of windows that share x (..., *space) out evenly into ``size`` parts."""
    for axis in range(-len(size), 0):
        x = _apply_along(_averaging(x.shape[axis], size[axis], x.dtype), x, axis)
    return np.ascontiguousarray(x)


def adaptive_avg_pool_transpose(g: np.ndarray, size: Ints) -> np.ndarray:
    """The gradient of x, of the spatial ``size``, from that of the averages."""
    for axis in range(-len(size), 0):
        g = _apply_along(_averaging(size[axis], g.shape[axis], g.dtype).T, g, axis)
    return np.ascontiguousarray(g)


# --- maxima ---------------------------------------------------------------------------------------


def _type_of_indices(narrow: bool) -> Any:
    return np.int32 if narrow else np.int64


def max_pool_indices(
    x: np.ndarray,
    size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    narrow: bool = False,
) -> np.ndarray:
    """Where the maximum of each window lies: the first of equal ones, the last NaN if there are.

    ``narrow`` indices have 32 bits.
    """
    nd, kind = len(size), _type_of_indices(narrow)
    if x.size == 0 or math.prod(size) == 0:
        return np.zeros((*x.shape[:-nd], *size), kind)
    spatial = x.shape[-nd:]
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    whole = padded(x, extents(size, kernel, stride, dilation), padding, least)
    places = list(itertools.product(*map(range, kernel)))
    values = [whole[strided(place, size, stride, dilation)] for place in places]
    best = _maximum(values)
    # The row-major index of a place is that of its window's first one and a constant.
    first, further = np.zeros((), np.int64), [0] * len(places)
    at = _coordinates(size, stride, padding)
    for a, n, d, column in zip(at, spatial, dilation, zip(*places, strict=True), strict=True):
        first = first * n + a
        further = [f * n + k * d for f, k in zip(further, column, strict=True)]
    outside = None
    if whole is not x and (best == least).any():
        # The value outside the input must not be chosen even if nothing is larger.
        outside = [~_inside(at, place, dilation, spatial) for place in places]
    index = np.array(further).take(_first(values, best, outside)) + first
    if outside is not None:
        index = np.clip(index, 0, math.prod(spatial) - 1)
    return index.astype(kind, copy=False)


def adaptive_max_pool_indices(x: np.ndarray, size: Ints, narrow: bool = False) -> np.ndarray:
    """The same for windows of adaptive pooling."""
    nd, kind = len(size), _type_of_indices(narrow)
    if x.size == 0 or math.prod(size) == 0:
        return np.zeros((*x.shape[:-nd], *size), kind)
    spatial = x.shape[-nd:]
    bounds = [_bounds(n, o) for n, o in zip(spatial, size, strict=True)]
    values, indices = [], []
    for place in itertools.product(*[range((stop - start).max()) for start, stop in bounds]):
        # A window shorter than the longest repeats its last element, which changes no maximum.
        each = zip(place, bounds, strict=True)
        at = np.ix_(*[np.minimum(start + k, stop - 1) for k, (start, stop) in each])
        values.append(x[(..., *at)])
        indices.append(np.ravel_multi_index(np.broadcast_arrays(*at), spatial))
    number = _first(values, _maximum(values), None).reshape(-1, math.prod(size))
    flat = number.astype(np.int64) * number.shape[1] + np.arange(number.shape[1])
    index = np.stack(indices).reshape(-1).take(flat).reshape(values[0].shape)
    return index.astype(kind, copy=False)


def _maximum(values: Sequence[np.ndarray]) -> np.ndarray:
    best = values[0].copy()
    for v in values[1:]:
        np.maximum(best, v, out=best)
    return best


def _first(
    values: Sequence[np.ndarray], best: np.ndarray, outside: Sequence[np.ndarray] | None
) -> np.ndarray:
    """The number of the first of the values that equals the best (of the last that is NaN).

    It is the number of those before it that differ, counted from the back: one that differs adds
    one to what follows it, one that does not ends the count.
    """
    number = np.zeros(best.shape, np.uint8 if len(values) < 256 else np.int64)
    for i in reversed(range(len(values) - 1)):
        differs = values[i] != best
        if outside is not None:
            differs |= outside[i]
        number += 1
        number *= differs
    if best.dtype.kind == "f" and np.isnan(best).any():
        for i, v in enumerate(values):
            number[np.isnan(v)] = i
    return number


def _coordinates(size: Ints, stride: Ints, padding: Ints) -> list[np.ndarray]:
    """Where windows begin along each dimension, ready to be broadcast together."""
    nd = len(size)
    return [
        np.arange(-p, n * s - p, s).reshape((n,) + (1,) * (nd - i - 1))
        for i, (n, s, p) in enumerate(zip(size, stride, padding, strict=True))
    ]


def _inside(at: list[np.ndarray], place: Ints, dilation: Ints, spatial: Ints) -> np.ndarray:
    """Whether a place of each window lies inside the input."""
    inside = np.ones((), bool)
    for a, k, d, n in zip(at, place, dilation, spatial, strict=True):
        inside = inside & (a + k * d >= 0) & (a + k * d < n)
    return inside


def checked_indices(index: np.ndarray, elements: int) -> np.ndarray:
    """The same indices, if all of them lie within a channel of so many elements."""
    stray = (index < 0) | (index >= elements)
    if stray.any():
        raise RuntimeError(
            f"max_unpool: found an invalid max index: {index[stray].flat[0]} (output volumes have "
            f"{elements} elements)"
        )
    return index


def _rows(index: np.ndarray, nd: int, elements: int) -> np.ndarray:
    """Indices within each channel as indices into all channels together."""
    channels = math.prod(index.shape[:-nd])
    return index.reshape(channels, -1) + np.arange(channels)[:, None] * elements


def pool_gather(x: np.ndarray, index: np.ndarray, nd: int, unique: bool) -> np.ndarray:
    """The elements of each channel at these indices."""
    if index.size == 0:
        return np.zeros(index.shape, x.dtype)
    elements = math.prod(x.shape[-nd:])
    return x.reshape(-1).take(_rows(index, nd, elements)).reshape(index.shape)


def pool_scatter(g: np.ndarray, index: np.ndarray, size: Ints, unique: bool) -> np.ndarray:
    """Elements put to these indices of each channel; added up unless the indices are ``unique``."""
    nd = len(size)
    out = np.zeros((*g.shape[:-nd], *size), g.dtype)
    if index.size == 0:
        return out
    at = _rows(index, nd, math.prod(size)).reshape(-1)
    if unique:
        out.reshape(-1)[at] = g.reshape(-1)
        return out
    # bincount sums in float64, and several times faster than add.at.
    return np.bincount(at, g.reshape(-1), out.size).reshape(out.shape).astype(g.dtype, copy=False)
