"""Random numbers on a device.

Numbers are drawn on the host, in the order of the program, so that a seed means the same on every
device. A mask is made on the device from one number that is drawn: its bits are the CPU's.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

__all__ = [
    "all_finite_weights",
    "all_in_range",
    "all_rows_positive",
    "mask_of_key",
    "pick_with_replacement",
    "pick_without_replacement",
]

Array = Any


def mask_of_key(
    low: Array, high: Array, shape: tuple[int, ...], dtype: Any, p: float, value: float
) -> Array:
    """``value`` with probability p, else 0: hashes of a key (its two halves) and the position."""
    x = jnp.arange(math.prod(shape), dtype=np.uint32)
    x = _mixed(x ^ low)
    x = _mixed(x ^ high)
    limit = round(float(p) * 2**32)
    kept = (x < np.uint32(limit)) if limit < 2**32 else jnp.ones(x.shape, bool)
    dtype = np.dtype(dtype)
    return jnp.where(kept, np.asarray(value, dtype), np.zeros((), dtype)).reshape(shape)


def _mixed(x: Array) -> Array:
    """A permutation of the 32-bit integers without visible pattern (Wellons, lowbias32)."""
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)


def pick_with_replacement(weights: Array, uniform: Array) -> Array:
    """The index at which the cumulated weights first exceed each uniform number of the row."""
    cumulated = jnp.cumsum(weights, axis=-1, dtype=np.float64)
    targets = jnp.minimum(uniform, np.nextafter(1.0, 0.0)) * cumulated[..., -1:]
    return jnp.sum(cumulated[..., None, :] <= targets[..., None], -1)


def pick_without_replacement(weights: Array, exponential: Array, count: int) -> Array:
    """A race of exponential clocks: the first to ring is i with probability weight i / total."""
    order = jnp.argsort(exponential / weights, axis=-1, stable=True)
    return order[..., :count]


def all_in_range(a: Array, low: float, high: float) -> Array:
    """Whether every element lies in [low, high]; NaN does not."""
    return jnp.all((a >= low) & (a <= high))


def all_finite_weights(a: Array) -> Array:
    """Whether every element is finite and at least 0."""
    return jnp.all(jnp.isfinite(a) & (a >= 0))


def all_rows_positive(a: Array) -> Array:
    """Whether every row has a positive sum."""
    return jnp.all(jnp.sum(a, -1) > 0)
