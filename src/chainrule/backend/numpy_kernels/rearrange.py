"""Flips, diagonals, triangles, windows and padding. Dimensions are counted from the end."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

__all__ = [
    "as_strided",
    "as_strided_place",
    "combination_numbers",
    "diagonal",
    "diagonal_place",
    "flip",
    "pad_numbers",
    "pad_zeros",
    "repeat_numbers",
    "triangle",
    "unfold",
    "unfold_place",
    "view_as_complex",
    "view_as_real",
    "view_bits",
]


def flip(a: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """A copy with the order along these dimensions turned around."""
    return np.array(np.flip(a, dims), order="C")


def diagonal(a: np.ndarray, offset: int, dim1: int, dim2: int) -> np.ndarray:
    """A view of the diagonal of two dimensions, as a new last dimension."""
    view = np.diagonal(a, offset, dim1, dim2)
    if a.flags.writeable:
        # NumPy marks it read-only, for it once was a copy.
        view.flags.writeable = True
    return view


def diagonal_place(
    g: np.ndarray, shape: tuple[int, ...], offset: int, dim1: int, dim2: int
) -> np.ndarray:
    """Zeros with ``g`` on the diagonal: the transpose of ``diagonal``."""
    out = np.zeros(shape, g.dtype)
    diagonal(out, offset, dim1, dim2)[...] = g
    return out


def triangle(a: np.ndarray, diagonal: int, upper: bool) -> np.ndarray:
    """The last two dimensions with zeros below (``upper``) or above a diagonal."""
    return np.triu(a, diagonal) if upper else np.tril(a, diagonal)


def unfold(a: np.ndarray, dim: int, size: int, step: int) -> np.ndarray:
    """A view of the windows along ``dim``, each as a new last dimension."""
    axis = dim + a.ndim
    shape, strides = list(a.shape), list(a.strides)
    shape[axis] = (shape[axis] - size) // step + 1
    strides[axis] *= step
    return np.lib.stride_tricks.as_strided(
        a, (*shape, size), (*strides, a.strides[axis]), writeable=a.flags.writeable
    )


def unfold_place(
    g: np.ndarray, shape: tuple[int, ...], dim: int, size: int, step: int
) -> np.ndarray:
    """Zeros with every window added at its place: the transpose of ``unfold``."""
    out = np.zeros(shape, g.dtype)
    ends = np.moveaxis(out, dim, -1)
    windows = np.moveaxis(g, dim - 1, -1)  # (..., size, windows)
    count = windows.shape[-1]
    for i in range(size):
        ends[..., i : i + step * (count - 1) + 1 : step] += windows[..., i, :]
    return out


def as_strided(
    a: np.ndarray, size: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> np.ndarray:
    """A view of the memory of ``a`` (of a copy, if it has gaps): element i is at offset + i stride.

    The caller has checked that all of them are in that memory.
    """
    flat = np.ascontiguousarray(a).reshape(-1)
    return np.lib.stride_tricks.as_strided(
        flat[offset:], size, [n * a.itemsize for n in stride], writeable=flat.flags.writeable
    )


def as_strided_place(
    g: np.ndarray,
    shape: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
) -> np.ndarray:
    """Zeros with every element added at its place: the transpose of ``as_strided``."""
    out = np.zeros(shape, g.dtype)
    places = as_strided(np.arange(out.size), size, stride, offset)
    np.add.at(out.reshape(-1), places, g)
    return out


def view_bits(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The memory of ``a`` as another type; its last dimension grows or shrinks with the size."""
    return a.view(dtype)


def view_as_real(a: np.ndarray) -> np.ndarray:
    """Complex numbers as pairs of real ones in a new last dimension.

    Integers number elements, to find out which a view shows: both parts have the number of theirs.
    """
    if a.dtype.kind != "c":
        return np.stack([a, a], -1)
    return a[..., None].view(a.real.dtype)


def view_as_complex(a: np.ndarray) -> np.ndarray:
    """Pairs of real numbers in the last dimension as complex ones; see ``view_as_real``."""
    if a.dtype.kind != "f":
        return a
    if a.strides[-1] != a.itemsize:
        a = np.ascontiguousarray(a)
    return a.view(np.result_type(a.dtype, np.complex64))[..., 0]


def pad_zeros(a: np.ndarray, pads: tuple[tuple[int, int], ...]) -> np.ndarray:
    """Zeros before and after the last dimensions. Three times as fast as np.pad on small arrays."""
    lead = a.ndim - len(pads)
    sizes = [n + before + after for n, (before, after) in zip(a.shape[lead:], pads, strict=True)]
    out = np.zeros((*a.shape[:lead], *sizes), a.dtype)
    inner: list[Any] = [slice(b, b + n) for n, (b, _) in zip(a.shape[lead:], pads, strict=True)]
    out[(..., *inner)] = a
    return out


def pad_numbers(n: int, before: int, after: int, mode: str) -> np.ndarray:
    """Which of n elements stands at each place of the padded dimension."""
    if mode == "circular":
        # Cut first, then repeat what is left.
        first, last = max(-before, 0), n - max(-after, 0)
        at = np.arange(-max(before, 0), last - first + max(after, 0))
        return at % max(last - first, 1) + first
    at = np.arange(-before, n + after)
    if mode == "replicate":
        return np.clip(at, 0, n - 1)
    return (n - 1) - np.abs((n - 1) - np.abs(at))


def repeat_numbers(repeats: np.ndarray) -> np.ndarray:
    """The number i repeated ``repeats[i]`` times, for each i in order."""
    return np.repeat(np.arange(repeats.size), repeats)


def combination_numbers(n: int, r: int, repeated: bool) -> np.ndarray:
    """All choices of r of n numbers, one per row."""
    choose: Any = itertools.combinations_with_replacement if repeated else itertools.combinations
    rows = list(choose(range(n), r))
    return np.array(rows, np.int64).reshape(len(rows), r)
