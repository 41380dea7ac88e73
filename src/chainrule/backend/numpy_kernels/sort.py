"""Sorting, searching and counting. NaN counts as larger than every number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "argsort",
    "bincount",
    "histc",
    "histogram_edges",
    "kth_index",
    "searchsorted",
    "topk_indices",
    "unique",
    "unique_consecutive",
]


def argsort(a: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """The order that sorts along ``dim``; equal elements keep theirs."""
    if not descending:
        return np.argsort(a, axis=dim, kind="stable")
    # Backwards twice: once so that equal elements come out in their old order.
    backwards = np.argsort(np.flip(a, dim), axis=dim, kind="stable")
    return a.shape[dim] - 1 - np.flip(backwards, dim)


def topk_indices(a: np.ndarray, k: int, dim: int, largest: bool) -> np.ndarray:
    """Where the ``k`` largest (or smallest) elements along ``dim`` are, the first of them first."""
    n = a.shape[dim]
    if n < 256 or 4 * k > n or k == 0:
        return _cut(argsort(a, dim, largest), 0, k, dim)
    # Separating the k from the others costs less than sorting all.
    part = np.argpartition(a, n - k if largest else k - 1, axis=dim)
    part = np.sort(_cut(part, n - k if largest else 0, k, dim), axis=dim)
    order = argsort(np.take_along_axis(a, part, axis=dim), dim, largest)
    return np.take_along_axis(part, order, axis=dim)


def _cut(a: np.ndarray, start: int, length: int, dim: int) -> np.ndarray:
    key: tuple[Any, ...] = (..., slice(start, start + length), *[slice(None)] * (-dim - 1))
    return a[key]


def kth_index(a: np.ndarray, k: int, dim: int) -> np.ndarray:
    """Where the k-th smallest element (k from 1) along ``dim`` is; that dimension stays."""
    return _cut(np.argpartition(a, k - 1, axis=dim), k - 1, 1, dim)


def unique(a: np.ndarray, dim: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The different values in order, where each element (or slice) is among them, and how often."""
    values, inverse, counts = np.unique(
        a, return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    return values, inverse.reshape(a.shape if dim is None else -1), counts


def unique_consecutive(a: np.ndarray, dim: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of runs of equal neighbours."""
    n = a.size if dim is None else a.shape[dim]
    slices = (a if dim is None else np.moveaxis(a, dim, 0)).reshape(n, a.size // max(n, 1))
    starts = np.ones(n, bool)
    starts[1:] = (slices[1:] != slices[:-1]).any(axis=1)
    first = np.flatnonzero(starts)
    inverse = np.cumsum(starts) - 1
    values = a.reshape(-1)[first] if dim is None else np.take(a, first, axis=dim)
    counts = np.diff(np.append(first, n))
    return values, inverse.reshape(a.shape) if dim is None else inverse, counts


def bincount(a: np.ndarray, *weights: np.ndarray, minlength: int) -> np.ndarray:
    """How often each number 0, 1, ... stands in ``a`` (n,), or the sum of its weights (n,).

    The result has at least ``minlength`` entries.
    """
    if not weights:
        return np.bincount(a, minlength=minlength)
    dtype = np.float32 if weights[0].dtype == np.float32 else np.float64
    return np.bincount(a, weights[0], minlength).astype(dtype)


def searchsorted(
    sequence: np.ndarray, values: np.ndarray, right: bool, dtype: npt.DTypeLike
) -> np.ndarray:
    """Rows of values in rows of sorted numbers, along the last dimension."""
    side: Any = "right" if right else "left"
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side).astype(dtype)
    out = np.empty(values.shape, dtype)
    for i in np.ndindex(sequence.shape[:-1]):
        out[i] = np.searchsorted(sequence[i], values[i], side)
    return out


def histc(a: np.ndarray, bins: int, low: float, high: float) -> np.ndarray:
    """Counts along the last dimension."""
    out = np.empty((*a.shape[:-1], bins), a.dtype)
    for i in np.ndindex(a.shape[:-1]):
        out[i] = np.histogram(a[i], bins, (low, high))[0]
    return out


def histogram_edges(a: np.ndarray, bins: str | int | Sequence[float]) -> np.ndarray:
    """The borders of the bins that NumPy would count in."""
    return np.asarray(np.histogram_bin_edges(a, bins), np.float64)
