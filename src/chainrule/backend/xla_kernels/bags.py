"""Sums, means and maxima of the rows of a table that bags of integers name."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from chainrule.backend.xla_kernels.checks import check

__all__ = ["bag_rows", "bag_rows_backward"]

Array = Any


def _bags(
    rows: Array, offsets: Array | None, count: int, padding: int, last: bool
) -> tuple[Array, int]:
    """The bag of each integer, of those left out one more, and how many bags there are."""

    def outside() -> IndexError:
        which = ""
        if not isinstance(rows, jax.core.Tracer):
            numbers = np.asarray(rows)
            which = f" {numbers[(numbers < 0) | (numbers >= count)].flat[0]}"
        return IndexError(
            f"embedding_bag: index{which} is out of bounds for dimension 0 with size {count}"
        )

    if rows.size:
        check(jnp.all((rows >= 0) & (rows < count)), outside)
    if offsets is None:
        bags, each = rows.shape
        bag = jnp.repeat(jnp.arange(bags), each)
    else:
        bags, ends = offsets.size - last, jnp.append(offsets, rows.size)

        def disorder() -> RuntimeError:
            which = "" if isinstance(offsets, jax.core.Tracer) else f", got {offsets.tolist()}"
            return RuntimeError(
                "embedding_bag: offsets must begin with 0, not decrease and not exceed the length "
                f"of input ({rows.size}){which}"
            )

        check((ends[0] == 0) & jnp.all(ends[1:] >= ends[:-1]), disorder)
        bag = jnp.searchsorted(offsets, jnp.arange(rows.size), side="right") - 1
    return jnp.where((rows.reshape(-1) != padding) & (bag < bags), bag, bags), bags


def _sizes(bag: Array, bags: int, dtype: Any) -> Array:
    """The number that a mean divides by, for each bag: (bags, 1)."""
    counts = jnp.zeros(bags + 1, dtype).at[bag].add(1)[:bags]
    return jnp.maximum(counts, 1)[:, None]


def bag_rows(
    table: Array,
    rows: Array,
    offsets: Array | None,
    weights: Array | None,
    mode: str,
    padding: int,
    last: bool,
) -> Array:
    """The sum, mean or maximum of the rows of each bag: (bags, D)."""
    table, rows = jnp.asarray(table), jnp.asarray(rows)
    offsets = None if offsets is None else jnp.asarray(offsets)
    bag, bags = _bags(rows, offsets, table.shape[0], padding, last)
    values = table[rows.reshape(-1)]
    if weights is not None:
        values = values * jnp.asarray(weights).reshape(-1)[:, None]
    if mode == "max":
        largest = jax.ops.segment_max(values, bag, bags + 1)[:bags]
        full = jnp.zeros(bags + 1, bool).at[bag].set(True)[:bags, None]
        return jnp.where(full, largest, jnp.zeros((), table.dtype))
    sums = jnp.zeros((bags + 1, table.shape[1]), table.dtype).at[bag].add(values)[:bags]
    return sums / _sizes(bag, bags, table.dtype) if mode == "mean" else sums


def bag_rows_backward(
    g: Array,
    rows: Array,
    offsets: Array | None,
    weights: Array | None,
    count: int,
    mode: str,
    padding: int,
    last: bool,
) -> Array:
    """The gradient of a table of ``count`` rows from that of the sums or means of its bags."""
    g, rows = jnp.asarray(g), jnp.asarray(rows)
    offsets = None if offsets is None else jnp.asarray(offsets)
    bag, bags = _bags(rows, offsets, count, padding, last)
    if mode == "mean":
        g = g / _sizes(bag, bags, g.dtype)
    values = jnp.concatenate([g, jnp.zeros((1, g.shape[1]), g.dtype)])[bag]
    if weights is not None:
        values = values * jnp.asarray(weights).reshape(-1)[:, None]
    return jnp.zeros((count, g.shape[1]), g.dtype).at[rows.reshape(-1)].add(values)
