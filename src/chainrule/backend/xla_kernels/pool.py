"""Pooling in any number of dimensions: loops over the places of the window, never over pixels."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from chainrule.backend.numpy_kernels.conv import Ints, extents, overlap
from chainrule.backend.numpy_kernels.pool import _averaging, _bounds, _coordinates, _inside
from chainrule.backend.numpy_kernels.pool import _counts as counts_on_host
from chainrule.backend.xla_kernels.checks import check
from chainrule.backend.xla_kernels.conv import padded, strided

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

Array = Any


def _divisor(divisor: float | None, settings: tuple[Any, ...], like: Array) -> Any:
    """What window sums are divided by: known from the sizes, whatever the values."""
    counts: Any = counts_on_host
    return divisor or counts(*settings, np.empty(0, like.dtype))


def avg_pool(
    x: Array,
    size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    divisor: float | None,
    count_pad: bool,
) -> Array:
    """The sum of each window by ``divisor``, or (None) by the number of elements that count."""
    nd = len(size)
    if x.size == 0:
        return jnp.zeros((*x.shape[:-nd], *size), x.dtype)
    settings = (x.shape[-nd:], size, kernel, stride, padding, dilation, count_pad)
    total = padded(x, extents(size, kernel, stride, dilation), padding)
    for i in range(nd):
        total = _sum_along(total, i - nd, size[i], kernel[i], stride[i], dilation[i])
    return total / _divisor(divisor, settings, x)


def _sum_along(x: Array, axis: int, n: int, kernel: int, stride: int, dilation: int) -> Array:
    total = x[_along(axis, 0, n, stride)]
    for k in range(1, kernel):
        total = total + x[_along(axis, k * dilation, n, stride)]
    return total


def _along(axis: int, start: int, n: int, step: int) -> tuple[Any, ...]:
    """The index of n elements along one dimension."""
    return (..., slice(start, start + (n - 1) * step + 1, step), *[slice(None)] * (-axis - 1))


def avg_pool_transpose(
    g: Array,
    size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    divisor: float | None,
    count_pad: bool,
) -> Array:
    """Each output's share goes back to every element of its window; ``size`` is the input's."""
    nd = len(size)
    outputs = g.shape[-nd:]
    out = jnp.zeros((*g.shape[:-nd], *size), g.dtype)
    if g.size == 0:
        return out
    settings = (size, outputs, kernel, stride, padding, dilation, count_pad)
    g = g / _divisor(divisor, settings, g)
    extent = extents(outputs, kernel, stride, dilation)
    for i in reversed(range(nd)):
        axis = i - nd
        wide = jnp.zeros((*g.shape[:axis], extent[i], *g.shape[g.ndim + axis + 1 :]), g.dtype)
        for k in range(kernel[i]):
            wide = wide.at[_along(axis, k * dilation[i], outputs[i], stride[i])].add(g)
        g = wide
    if extent == tuple(size) and not any(padding):
        return g
    inside, own = overlap(size, extent, padding)
    return out.at[(..., *own)].set(g[(..., *inside)])


# --- adaptive averages ----------------------------------------------------------------------------


def _apply_along(matrix: np.ndarray, x: Array, axis: int) -> Array:
    rows = jnp.moveaxis(x, axis, -1)
    # Zero times infinity is NaN: what a window does not contain must not reach it.
    terms = jnp.where(matrix != 0, rows[..., None, :] * matrix, jnp.zeros((), x.dtype))
    return jnp.moveaxis(jnp.sum(terms, -1), -1, axis)


def adaptive_avg_pool(x: Array, size: Ints) -> Array:
    """The averages of windows that share x (..., *space) out evenly into ``size`` parts."""
    for axis in range(-len(size), 0):
        x = _apply_along(_averaging(x.shape[axis], size[axis], x.dtype), x, axis)
    return x


def adaptive_avg_pool_transpose(g: Array, size: Ints) -> Array:
    """The gradient of x, of the spatial ``size``, from that of the averages."""
    for axis in range(-len(size), 0):
        g = _apply_along(_averaging(size[axis], g.shape[axis], g.dtype).T, g, axis)
    return g


# --- maxima ---------------------------------------------------------------------------------------


def _least(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def max_pool_indices(
    x: Array,
    size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    narrow: bool = False,
) -> Array:
    """Where the maximum of each window lies: the first of equal ones, the last NaN if there are.

    ``narrow`` indices have 32 bits.
    """
    nd, kind = len(size), np.int32 if narrow else np.int64
    if x.size == 0 or math.prod(size) == 0:
        return jnp.zeros((*x.shape[:-nd], *size), kind)
    spatial = x.shape[-nd:]
    extent = extents(size, kernel, stride, dilation)
    whole = padded(x, extent, padding, _least(x.dtype))
    places = list(itertools.product(*map(range, kernel)))
    values = [whole[strided(place, size, stride, dilation)] for place in places]
    first, further = np.zeros((), np.int64), [0] * len(places)
    at = _coordinates(size, stride, padding)
    for a, n, d, column in zip(at, spatial, dilation, zip(*places, strict=True), strict=True):
        first = first * n + a
        further = [f * n + k * d for f, k in zip(further, column, strict=True)]
    inside = None
    if any(padding) or extent != spatial:
        inside = [_inside(at, place, dilation, spatial) for place in places]
    index = jnp.asarray(np.array(further))[_first(values, inside)] + first
    if inside is not None:
        index = jnp.clip(index, 0, math.prod(spatial) - 1)
    return index.astype(kind)


def _first(values: list[Array], inside: list[np.ndarray] | None) -> Array:
    """The number of the first of the values that equals the best (of the last that is NaN)."""
    best = values[0]
    for v in values[1:]:
        best = jnp.maximum(best, v)
    number = jnp.full(best.shape, len(values) - 1)
    for i in reversed(range(len(values) - 1)):
        same = values[i] == best
        number = jnp.where(same if inside is None else same & inside[i], i, number)
    if best.dtype.kind == "f":
        for i, v in enumerate(values):
            number = jnp.where(jnp.isnan(v), i, number)
    return number


def adaptive_max_pool_indices(x: Array, size: Ints, narrow: bool = False) -> Array:
    """The same for windows of adaptive pooling."""
    nd, kind = len(size), np.int32 if narrow else np.int64
    if x.size == 0 or math.prod(size) == 0:
        return jnp.zeros((*x.shape[:-nd], *size), kind)
    spatial = x.shape[-nd:]
    bounds = [_bounds(n, o) for n, o in zip(spatial, size, strict=True)]
    values, indices = [], []
    for place in itertools.product(*[range((stop - start).max()) for start, stop in bounds]):
        each = zip(place, bounds, strict=True)
        at = np.ix_(*[np.minimum(start + k, stop - 1) for k, (start, stop) in each])
        values.append(x[(..., *at)])
        indices.append(np.ravel_multi_index(np.broadcast_arrays(*at), spatial))
    number = _first(values, None)
    table = jnp.asarray(np.stack(indices).reshape(len(indices), -1))
    flat = number.reshape(-1, math.prod(size))
    return table[flat, np.arange(math.prod(size))].reshape(number.shape).astype(kind)


def checked_indices(index: Array, elements: int) -> Array:
    """The same indices, if all of them lie within a channel of so many elements."""
    stray = (index < 0) | (index >= elements)

    def error() -> RuntimeError:
        which = ""
        if not isinstance(stray, jax.core.Tracer):
            which = f": {np.asarray(index)[np.asarray(stray)].flat[0]}"
        return RuntimeError(
            f"max_unpool: found an invalid max index{which} (output volumes have {elements} "
            "elements)"
        )

    check(~jnp.any(stray), error)
    return index


def _rows(index: Array, nd: int) -> tuple[Array, Array]:
    """Indices within each channel, a channel to a row, and the numbers of the rows."""
    channels = math.prod(index.shape[:-nd])
    return np.arange(channels)[:, None], index.reshape(channels, -1)


def pool_gather(x: Array, index: Array, nd: int, unique: bool) -> Array:
    """The elements of each channel at these indices."""
    if index.size == 0:
        return jnp.zeros(index.shape, x.dtype)
    row, at = _rows(index, nd)
    channels = x.reshape(row.shape[0], -1)
    return channels[row, at].reshape(index.shape)


def pool_scatter(g: Array, index: Array, size: Ints, unique: bool) -> Array:
    """Elements put to these indices of each channel; added up unless the indices are ``unique``."""
    nd = len(size)
    shape = (*g.shape[:-nd], *size)
    if index.size == 0:
        return jnp.zeros(shape, g.dtype)
    row, at = _rows(index, nd)
    out = jnp.zeros((row.shape[0], math.prod(size)), g.dtype).at[row, at]
    flat = g.reshape(row.shape[0], -1)
    return (out.set(flat) if unique else out.add(flat)).reshape(shape)
