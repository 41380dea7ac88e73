"""Sorting and searching. NaN counts as larger than every number."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

__all__ = ["argsort", "histc", "isin", "kth_index", "searchsorted", "topk_indices"]

Array = Any


def argsort(a: Array, dim: int, descending: bool) -> Array:
    """The order that sorts along ``dim``; equal elements keep theirs."""
    if not descending:
        return jnp.argsort(a, axis=dim, stable=True)
    # Backwards twice: once so that equal elements come out in their old order.
    backwards = jnp.argsort(jnp.flip(a, dim), axis=dim, stable=True)
    return a.shape[dim] - 1 - jnp.flip(backwards, dim)


def _cut(a: Array, start: int, length: int, dim: int) -> Array:
    key: tuple[Any, ...] = (..., slice(start, start + length), *[slice(None)] * (-dim - 1))
    return a[key]


def topk_indices(a: Array, k: int, dim: int, largest: bool) -> Array:
    """Where the ``k`` largest (or smallest) elements along ``dim`` are, the first of them first."""
    return _cut(argsort(a, dim, largest), 0, k, dim)


def kth_index(a: Array, k: int, dim: int) -> Array:
    """Where the k-th smallest element (k from 1) along ``dim`` is; that dimension stays."""
    return _cut(argsort(a, dim, False), k - 1, 1, dim)


def searchsorted(sequence: Array, values: Array, right: bool, dtype: Any) -> Array:
    """Rows of values in rows of sorted numbers, along the last dimension."""
    sequence, values = jnp.asarray(sequence), jnp.asarray(values)
    side = "right" if right else "left"
    if sequence.ndim == 1:
        return jnp.searchsorted(sequence, values, side).astype(dtype)
    s, v = sequence[..., None, :], values[..., None]
    isnan = (v != v) & (s != s)
    below = (s < v) | ((v != v) & (s == s)) if not right else (s <= v) | (v != v) | isnan
    return jnp.sum(below, -1, dtype=dtype)


def histc(a: Array, bins: int, low: float, high: float) -> Array:
    """Counts along the last dimension."""
    edges = np.linspace(low, high, bins + 1).astype(a.dtype)
    at = jnp.searchsorted(jnp.asarray(edges), a, side="right") - 1
    at = jnp.where(a == edges[-1], bins - 1, at)
    inside = (at >= 0) & (at < bins) & (a == a)
    hits = (at[..., None] == np.arange(bins)) & inside[..., None]
    return jnp.sum(hits, -2).astype(a.dtype)


def isin(element: Array, test_elements: Array, invert: bool = False, **unused: Any) -> Array:
    """Which elements are among others."""
    return jnp.isin(element, test_elements, invert=invert)
