"""Convolution in any number of dimensions, as matrix products over windows.

One sum lies behind all three, over batch n, channels c and o, outputs i and places k of the kernel:

    sum  y[n, o, i] * w[o, c, k] * x[n, c, i * stride + k * dilation - padding]

where x counts as zero outside its bounds. Each computes the gradient of this sum with respect to
one of x, w and y, given the other two and the spatial ``size`` of the result. ``padding`` is what
precedes x; what follows it is whatever the sizes ask for.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["col2im", "convolution", "convolution_input", "convolution_weight", "im2col"]

Ints = tuple[int, ...]
# Windows are laid out for so many bytes at a time, to bound the memory and to stay in the cache.
CHUNK = 1 << 21
# If the windows of a single sample take more bytes than this, its outputs are split in two.
LIMIT = 1 << 27
# With fewer outputs per sample than this, all samples go into one product.
SMALL = 32


def extents(size: Ints, kernel: Ints, stride: Ints, dilation: Ints) -> Ints:
    """How far ``size`` windows reach along each dimension."""
    each = zip(size, kernel, stride, dilation, strict=True)
    return tuple([max((n - 1) * s + (k - 1) * d + 1, 0) if n else 0 for n, k, s, d in each])


def overlap(shape: Ints, extent: Ints, padding: Ints) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Where an array of this shape lies in the padded one, and which part of it lies there."""
    inside, own = [], []
    for n, e, p in zip(shape, extent, padding, strict=True):
        start, stop = max(p, 0), max(min(p + n, e), max(p, 0))
        inside.append(slice(start, stop))
        own.append(slice(start - p, stop - p))
    return tuple(inside), tuple(own)


def padded(x: np.ndarray, extent: Ints, padding: Ints, value: float = 0) -> np.ndarray:
    """The trailing dimensions of x with so much in front, as long as ``extent``; contiguous."""
    spatial = x.shape[-len(extent) :]
    if not any(padding) and all([e <= n for e, n in zip(extent, spatial, strict=True)]):
        return np.ascontiguousarray(x)
    shape = (*x.shape[: -len(extent)], *extent)
    # Zeros that nobody reads take no memory.
    out = np.full(shape, value, x.dtype) if value else np.zeros(shape, x.dtype)
    inside, own = overlap(spatial, extent, padding)
    out[(..., *inside)] = x[(..., *own)]
    return out


def windows(x: np.ndarray, size: Ints, kernel: Ints, stride: Ints, dilation: Ints) -> np.ndarray:
    """A view (..., *kernel, *size) of the contiguous x: the places of the kernel, the outputs."""
    lead = x.ndim - len(size)
    # Not those of x: the step of a dimension with one element may be any number.
    every = [x.itemsize * math.prod(x.shape[i + 1 :]) for i in range(x.ndim)]
    steps = every[lead:]
    inner = [s * d for s, d in zip(steps, dilation, strict=True)]
    outer = [s * d for s, d in zip(steps, stride, strict=True)]
    shape = (*x.shape[:lead], *kernel, *size)
    if not x.size and math.prod(shape):
        # NumPy checks that a view lies within its array, but not within one of no elements.
        raise ValueError(f"windows: {kernel} at {size} places reach beyond an array of no elements")
    return np.ndarray(shape, x.dtype, x, 0, (*every[:lead], *inner, *outer))


def strided(place: Ints, size: Ints, stride: Ints, dilation: Ints) -> tuple[Any, ...]:
    """The index of what all windows have at one place of the kernel."""
    each = zip(place, dilation, size, stride, strict=True)
    return (..., *[slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, n, s in each])


def add_windows(out: np.ndarray, parts: np.ndarray, stride: Ints, dilation: Ints) -> None:
    """The transpose of :func:`windows`: adds each place of the kernel (a slice) into ``out``."""
    nd = len(stride)
    size, kernel = parts.shape[-nd:], parts.shape[-2 * nd : -nd]
    whole = [slice(None)] * nd
    for place in itertools.product(*map(range, kernel)):
        here: tuple[Any, ...] = (..., *place, *whole)
        target = out[strided(place, size, stride, dilation)]
        target += parts[here]


def _in_float32(kernel: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """BLAS has no float16: it is computed in float32."""

    @functools.wraps(kernel)
    def wrapped(a: np.ndarray, b: np.ndarray, **params: Any) -> np.ndarray:
        if a.dtype != np.float16:
            return kernel(a, b, **params)
        return kernel(a.astype(np.float32), b.astype(np.float32), **params).astype(np.float16)

    return wrapped


def _chunks(samples: int, values_per_sample: int, itemsize: int) -> Iterator[slice]:
    step = max(1, CHUNK // max(values_per_sample * itemsize, 1))
    for start in range(0, samples, step):
        yield slice(start, min(start + step, samples))


def _halves(
    channels: int, kernel: Ints, outputs: Ints, stride: Ints, padding: Ints, itemsize: int
) -> list[tuple[slice, Ints]]:
    """The outputs in two parts along the first dimension, if their windows take too much memory.

    The second part is a convolution as well, of an input that starts further on: each part comes
    with the padding that says so.
    """
    bytes_per_sample = channels * math.prod(kernel) * math.prod(outputs) * itemsize
    if bytes_per_sample <= LIMIT or outputs[0] < 2:
        return []
    middle = outputs[0] // 2
    further = (padding[0] - middle * stride[0], *padding[1:])
    return [(slice(0, middle), padding), (slice(middle, outputs[0]), further)]


def _columns(
    x: np.ndarray,
    size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Iterator[tuple[slice, np.ndarray]]:
    """The windows of x laid out for a product, (n, group, channel and place, output), in chunks."""
    channels, outputs = x.shape[1], math.prod(size)
    extent = extents(size, kernel, stride, dilation)
    rows = channels // groups * math.prod(kernel)
    memory = None
    for part in _chunks(len(x), channels * math.prod(kernel) * outputs, x.itemsize):
        view = windows(padded(x[part], extent, padding), size, kernel, stride, dilation)
        if not view.flags.c_contiguous:
            # Each chunk is laid out in the memory of the first.
            memory = np.empty(view.shape, x.dtype) if memory is None else memory[: len(view)]
            np.copyto(memory, view)
            view = memory
        yield part, view.reshape(len(view), groups, rows, outputs)


@_in_float32
def convolution(
    x: np.ndarray,
    w: np.ndarray,
    size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
    bias: np.ndarray | None = None,
) -> np.ndarray:
    """The gradient by y: x (N, C, ...) correlated with w (O, C / groups, ...), plus bias (O)."""
    out = _correlated(x, w, size, stride, padding, dilation, groups)
    if bias is not None:
        out += bias.reshape(-1, *[1] * len(size))
    return out


def _correlated(
    x: np.ndarray,
    w: np.ndarray,
    size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> np.ndarray:
    out = np.zeros((len(x), len(w), *size), x.dtype)
    if not (out.size and x.size and w.size):
        return out
    halves = _halves(x.shape[1], w.shape[2:], size, stride, padding, x.itemsize)
    if halves:
        settings: Any = {"stride": stride, "dilation": dilation, "groups": groups}
        sizes = [(rows.stop - rows.start, *size[1:]) for rows, _ in halves]
        each = zip(sizes, halves, strict=True)
        parts = [convolution(x, w, size=n, padding=p, **settings) for n, (_, p) in each]
        return np.concatenate(parts, axis=2)
    outputs = math.prod(size)
    weight = w.reshape(groups, len(w) // groups, -1)
    product = out.reshape(len(x), groups, -1, outputs)
    for part, cols in _columns(x, size, w.shape[2:], stride, padding, dilation, groups):
        if outputs < SMALL:
            joined = np.matmul(weight, _join(cols)).reshape(groups, -1, len(cols), outputs)
            product[part] = joined.transpose(2, 0, 1, 3)
        else:
            np.matmul(weight, cols, out=product[part])
    return out


@_in_float32
def convolution_weight(
    x: np.ndarray,
    y: np.ndarray,
    size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> np.ndarray:
    """The gradient by w: x (N, C, ...) correlated with y (N, O, ...)."""
    per_group, channels, outputs = y.shape[1] // groups, x.shape[1] // groups, y.shape[2:]
    halves = _halves(x.shape[1], size, outputs, stride, padding, x.itemsize)
    if halves:
        settings: Any = {"size": size, "stride": stride, "dilation": dilation, "groups": groups}
        a, b = (convolution_weight(x, y[:, :, rows], padding=p, **settings) for rows, p in halves)
        return a + b
    total = np.zeros((groups, per_group, channels * math.prod(size)), x.dtype)
    if total.size and x.size and y.size:
        y = y.reshape(len(y), groups, per_group, -1)
        for part, cols in _columns(x, outputs, size, stride, padding, dilation, groups):
            if y.shape[-1] < SMALL:
                total += np.matmul(_join(y[part]), _join(cols).swapaxes(1, 2))
            else:
                total += np.add.reduce(np.matmul(y[part], cols.swapaxes(2, 3)), axis=0)
    return total.reshape(groups * per_group, channels, *size)


def _join(a: np.ndarray) -> np.ndarray:
    """(n, group, row, output) with the samples side by side: (group, row, n * output)."""
    return a.transpose(1, 2, 0, 3).reshape(a.shape[1], a.shape[2], -1)


@_in_float32
def convolution_input(
    y: np.ndarray,
    w: np.ndarray,
    size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> np.ndarray:
    """The gradient by x: each y (N, O, ...) spreads its w (O, C / groups, ...) over the result."""
    outputs, kernel, channels = y.shape[2:], w.shape[2:], w.shape[1]
    halves = _halves(channels * groups, kernel, outputs, stride, padding, y.itemsize)
    if halves:
        settings: Any = {"size": size, "stride": stride, "dilation": dilation, "groups": groups}
        a, b = (convolution_input(y[:, :, rows], w, padding=p, **settings) for rows, p in halves)
        return a + b
    out = np.zeros((len(y), groups, channels, *size), y.dtype)
    if out.size and y.size and w.size:
        places = math.prod(kernel)
        # The places of the kernel first: then each one's part is contiguous.
        by_place = w.reshape(groups, -1, channels, places).transpose(0, 3, 2, 1)
        weight = by_place.reshape(groups, places * channels, -1)
        y = y.reshape(len(y), groups, weight.shape[2], -1)
        extent = extents(outputs, kernel, stride, dilation)
        cols = None
        for part in _chunks(len(y), groups * channels * places * y.shape[3], y.itemsize):
            cols = _spread(weight, y[part], cols)
            parts = cols.reshape(len(cols), groups, *kernel, channels, *outputs)
            parts = np.moveaxis(parts, -len(size) - 1, 2)
            _add_cropped(out[part], parts, extent, stride, padding, dilation)
    return out.reshape(len(out), groups * channels, *size)


def _spread(weight: np.ndarray, y: np.ndarray, memory: np.ndarray | None) -> np.ndarray:
    """weight @ y, in the memory of an earlier result if there is one."""
    if y.shape[3] < SMALL:
        joined = np.matmul(weight, _join(y)).reshape(*weight.shape[:2], len(y), -1)
        return joined.transpose(2, 0, 1, 3)
    # A product over one channel is slow as a matrix product.
    product = np.multiply if weight.shape[2] == 1 else np.matmul
    return product(weight, y, out=None if memory is None else memory[: len(y)])


def _add_cropped(
    out: np.ndarray, parts: np.ndarray, extent: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> None:
    """Adds windows into ``out``, of which the windows see ``padding`` more in front."""
    nd = len(extent)
    if out.shape[-nd:] == extent and not any(padding):
        add_windows(out, parts, stride, dilation)
        return
    whole = np.zeros((*out.shape[:-nd], *extent), out.dtype)
    add_windows(whole, parts, stride, dilation)
    inside, own = overlap(out.shape[-nd:], extent, padding)
    out[(..., *own)] = whole[(..., *inside)]


def im2col(
    x: np.ndarray, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> np.ndarray:
    """The windows of x (..., C, spatial) as columns: (..., C * places, outputs)."""
    nd = len(size)
    lead, channels = x.shape[: -nd - 1], x.shape[-nd - 1]
    shape = (*lead, channels * math.prod(kernel), math.prod(size))
    if not (x.size and math.prod(shape)):
        return np.zeros(shape, x.dtype)
    extent = extents(size, kernel, stride, dilation)
    view = windows(padded(x, extent, padding), size, kernel, stride, dilation)
    out = view.reshape(shape)
    return out.copy() if np.may_share_memory(out, x) else out


def col2im(
    cols: np.ndarray,
    size: Ints,
    outputs: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
) -> np.ndarray:
    """The transpose of :func:`im2col`: columns added up where their windows overlap."""
    lead, channels = cols.shape[:-2], cols.shape[-2] // max(math.prod(kernel), 1)
    out = np.zeros((*lead, channels, *size), cols.dtype)
    if out.size and cols.size:
        parts = cols.reshape(*lead, channels, *kernel, *outputs)
        extent = extents(outputs, kernel, stride, dilation)
        _add_cropped(out, parts, extent, stride, padding, dilation)
    return out
