"""Convolution in any number of dimensions; see the NumPy kernels for the sum behind all three."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp

from chainrule.backend.numpy_kernels.conv import Ints, extents, overlap
from chainrule.backend.xla_kernels.products import Convolving

__all__ = ["col2im", "convolution", "convolution_input", "convolution_weight", "im2col"]

Array = Any


def _pads(
    spatial: Ints, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> list[tuple[int, int]]:
    """What is added before and after each dimension; negative where something is cut off."""
    extent = extents(size, kernel, stride, dilation)
    return [(p, e - p - n) for n, e, p in zip(spatial, extent, padding, strict=True)]


def _correlated(
    x: Array,
    w: Array,
    how: Any,
    size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Array:
    return jax.lax.conv_general_dilated(
        x,
        w,
        stride,
        _pads(x.shape[2:], size, w.shape[2:], stride, padding, dilation),
        rhs_dilation=dilation,
        feature_group_count=groups,
        precision=how,
    )


def convolution(
    x: Array,
    w: Array,
    size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
    bias: Array | None = None,
) -> Array:
    """The gradient by y: x (N, C, ...) correlated with w (O, C / groups, ...), plus bias (O)."""
    shape = (x.shape[0], w.shape[0], *size)
    if not (math.prod(shape) and x.size and w.size):
        out = jnp.zeros(shape, x.dtype)
    else:
        way = Convolving(x, w)
        pair = way.given(x), way.given(w)
        out = way.back(_correlated(*pair, way.how, size, stride, padding, dilation, groups))
    return out if bias is None else out + bias.reshape(-1, *[1] * len(size))


def convolution_weight(
    x: Array, y: Array, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    """The gradient by w: x (N, C, ...) correlated with y (N, O, ...)."""
    shape = (y.shape[1], x.shape[1] // groups, *size)
    if not (math.prod(shape) and x.size and y.size):
        return jnp.zeros(shape, x.dtype)
    way = Convolving(x, y)
    x, y = way.given(x), way.given(y)

    def forward(w: Array) -> Array:
        return _correlated(x, w, way.how, y.shape[2:], stride, padding, dilation, groups)

    return way.back(jax.linear_transpose(forward, jax.ShapeDtypeStruct(shape, x.dtype))(y)[0])


def convolution_input(
    y: Array, w: Array, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    """The gradient by x: each y (N, O, ...) spreads its w (O, C / groups, ...) over the result."""
    shape = (y.shape[0], w.shape[1] * groups, *size)
    if not (math.prod(shape) and w.size and y.size):
        return jnp.zeros(shape, y.dtype)
    way = Convolving(y, w)
    y, w = way.given(y), way.given(w)

    def forward(x: Array) -> Array:
        return _correlated(x, w, way.how, y.shape[2:], stride, padding, dilation, groups)

    return way.back(jax.linear_transpose(forward, jax.ShapeDtypeStruct(shape, y.dtype))(y)[0])


# --- windows as columns ---------------------------------------------------------------------------


def strided(place: Ints, size: Ints, stride: Ints, dilation: Ints) -> tuple[Any, ...]:
    """The index of what all windows have at one place of the kernel."""
    each = zip(place, dilation, size, stride, strict=True)
    return (..., *[slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, n, s in each])


def padded(x: Array, extent: Ints, padding: Ints, value: Any = 0) -> Array:
    """The trailing dimensions of x with so much in front, as long as ``extent``."""
    nd = len(extent)
    widths = [(0, 0, 0)] * (x.ndim - nd)
    for n, e, p in zip(x.shape[-nd:], extent, padding, strict=True):
        widths.append((p, e - p - n, 0))
    return jax.lax.pad(x, jnp.asarray(value, x.dtype), widths)


def im2col(
    x: Array, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Array:
    """The windows of x (..., C, spatial) as columns: (..., C * places, outputs)."""
    nd = len(size)
    lead, channels = x.shape[: -nd - 1], x.shape[-nd - 1]
    shape = (*lead, channels * math.prod(kernel), math.prod(size))
    if not (x.size and math.prod(shape)):
        return jnp.zeros(shape, x.dtype)
    whole = padded(x, extents(size, kernel, stride, dilation), padding)
    places = itertools.product(*map(range, kernel))
    parts = [whole[strided(place, size, stride, dilation)] for place in places]
    return jnp.stack(parts, -nd - 1).reshape(shape)


def col2im(
    cols: Array,
    size: Ints,
    outputs: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
) -> Array:
    """The transpose of :func:`im2col`: columns added up where their windows overlap."""
    lead, channels = cols.shape[:-2], cols.shape[-2] // max(math.prod(kernel), 1)
    out = jnp.zeros((*lead, channels, *size), cols.dtype)
    if not (out.size and cols.size):
        return out
    parts = cols.reshape(*lead, channels, math.prod(kernel), *outputs)
    extent, nd = extents(outputs, kernel, stride, dilation), len(size)
    whole = jnp.zeros((*lead, channels, *extent), cols.dtype)
    for i, place in enumerate(itertools.product(*map(range, kernel))):
        part = parts[(..., i, *[slice(None)] * nd)]
        whole = whole.at[strided(place, outputs, stride, dilation)].add(part)
    inside, own = overlap(tuple(size), extent, padding)
    return out.at[(..., *own)].set(whole[(..., *inside)])
