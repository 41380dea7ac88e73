"""Sums, means and maxima of the rows of a table that bags of integers name.

``rows`` (L) are the integers of all bags and bag n begins at ``offsets[n]``; with ``last`` the last
offset is where the last bag ends. Or there are no offsets, and ``rows`` (N, M) has a bag in each
row. ``weights``, of the shape of ``rows``, are factors. The row ``padding`` is left out of every
bag (-1: none is). An empty bag has zeros.
"""

from __future__ import annotations

import numpy as np

__all__ = ["bag_rows", "bag_rows_backward"]


def _kept(
    rows: np.ndarray, offsets: np.ndarray | None, count: int, padding: int, last: bool
) -> tuple[np.ndarray, np.ndarray, int]:
    """The places of the integers that count, the bag of each, and how many bags there are."""
    if rows.size and (rows.min() < 0 or rows.max() >= count):
        bad = rows[(rows < 0) | (rows >= count)].flat[0]
        raise IndexError(
            f"embedding_bag: index {bad} is out of bounds for dimension 0 with size {count}"
        )
    if offsets is None:
        bags, each = rows.shape
        bag = np.repeat(np.arange(bags), each)
    else:
        bags, ends = offsets.size - last, np.append(offsets, rows.size)
        if bags < 0 or ends[0] != 0 or (ends[1:] < ends[:-1]).any():
            raise RuntimeError(
                "embedding_bag: offsets must begin with 0, not decrease and not exceed the length "
                f"of input ({rows.size}), got {offsets.tolist()}"
            )
        bag = np.repeat(np.arange(offsets.size), np.diff(ends))
    places = np.flatnonzero((rows.reshape(-1) != padding) & (bag < bags))
    return places, bag[places], bags


def _sizes(bag: np.ndarray, bags: int, like: np.ndarray) -> np.ndarray:
    """The number that a mean divides by, for each bag: (bags, 1)."""
    return np.maximum(np.bincount(bag, minlength=bags), 1).astype(like.dtype)[:, None]


def bag_rows(
    table: np.ndarray,
    rows: np.ndarray,
    offsets: np.ndarray | None,
    weights: np.ndarray | None,
    mode: str,
    padding: int,
    last: bool,
) -> np.ndarray:
    """The sum, mean or maximum of the rows of each bag: (bags, D)."""
    places, bag, bags = _kept(rows, offsets, table.shape[0], padding, last)
    out = np.zeros((bags, table.shape[1]), table.dtype)
    if places.size:
        values = table.take(rows.reshape(-1)[places], axis=0)
        if weights is not None:
            values = values * weights.reshape(-1)[places, None]
        starts = np.flatnonzero(np.diff(bag, prepend=-1))
        reduce = np.maximum if mode == "max" else np.add
        out[bag[starts]] = reduce.reduceat(values, starts, axis=0)
    return out / _sizes(bag, bags, table) if mode == "mean" else out


def bag_rows_backward(
    g: np.ndarray,
    rows: np.ndarray,
    offsets: np.ndarray | None,
    weights: np.ndarray | None,
    count: int,
    mode: str,
    padding: int,
    last: bool,
) -> np.ndarray:
    """The gradient of a table of ``count`` rows from that of the sums or means of its bags."""
    from scipy.sparse import csr_array

    places, bag, bags = _kept(rows, offsets, count, padding, last)
    if mode == "mean":
        g = g / _sizes(bag, bags, g)
    factors = np.ones(places.size, g.dtype)
    if weights is not None:
        factors = weights.reshape(-1)[places].astype(g.dtype)
    named = rows.reshape(-1)[places]
    return np.asarray(csr_array((factors, (named, bag)), shape=(count, bags)) @ g)
