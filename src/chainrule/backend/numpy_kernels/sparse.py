"""Sparse matrices: products over a pattern, and the order, groups and pairs of their entries.

An entry of a sparse matrix has a place, given by integers, and a value. ``SparsePattern`` holds the
places of a matrix, with what is derived from them once and used in every product.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "SparsePattern",
    "common_entries",
    "compressed_rows",
    "entries_by_key",
    "expanded_rows",
    "matching_entries",
    "scipy_sparse",
    "sparse_keys",
    "sparse_product",
    "sparse_sampled",
]

Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.integer[Any]]]"
_CHUNK = 1 << 18  # so many products at once in sparse_sampled: what fits a cache


class SparsePattern:
    """Where the entries of a matrix stand: entry e in row ``rows[e]`` and column ``cols[e]``.

    Its compressed form is made at the first product and kept, that of its transpose likewise.
    """

    __slots__ = ("_compressed", "_transposed", "cols", "rows", "shape")

    rows: Integers
    cols: Integers

    def __init__(self, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]):
        # SciPy computes with int32 where it can, and would convert the indices at every product.
        small = max(*shape, rows.size) < 1 << 31
        self.rows = rows.astype(np.int32 if small else np.int64, copy=False)
        self.cols = cols.astype(np.int32 if small else np.int64, copy=False)
        self.shape = shape
        self._compressed: tuple[np.ndarray, np.ndarray, np.ndarray | None] | None = None
        self._transposed: SparsePattern | None = None

    @property
    def transposed(self) -> SparsePattern:
        """The pattern of the transposed matrix, its entries in the same order."""
        if self._transposed is None:
            out = SparsePattern(self.cols, self.rows, (self.shape[1], self.shape[0]))
            out._transposed = self
            self._transposed = out
        return self._transposed

    def compressed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Where each row begins, the columns row by row, and the order of the entries that this is
        (None where they stand in it already)."""
        if self._compressed is None:
            order = None
            if self.rows.size and (self.rows[1:] < self.rows[:-1]).any():
                order = _order(self.rows)
            starts = compressed_rows(self.rows, self.shape[0]).astype(self.rows.dtype)
            self._compressed = starts, self.cols if order is None else self.cols[order], order
        return self._compressed


def compressed_rows(rows: np.ndarray, count: int) -> np.ndarray:
    """Where each of ``count`` rows begins among the entries, if they are sorted by rows."""
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=starts[1:])
    return starts


def expanded_rows(starts: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """The row and the column of each entry, from where the rows begin and the columns."""
    return np.stack([np.repeat(np.arange(starts.size - 1), np.diff(starts)), cols])


def sparse_product(values: np.ndarray, dense: np.ndarray, pattern: SparsePattern) -> np.ndarray:
    """out[i, k] = sum of values[e] dense[j, k] over the entries e = (i, j); a batch in front of
    either is one of the result, too."""
    batch = np.broadcast_shapes(values.shape[:-1], dense.shape[:-2])
    if not batch:
        return _product(values, dense, pattern)
    values = np.broadcast_to(values, (*batch, values.shape[-1]))
    dense = np.broadcast_to(dense, (*batch, *dense.shape[-2:]))
    out = np.empty((*batch, pattern.shape[0], dense.shape[-1]), np.result_type(values, dense))
    for i in np.ndindex(*batch):
        out[i] = _product(values[i], dense[i], pattern)
    return out


def _is_narrow(dtype: np.dtype) -> bool:
    """float16 or bfloat16."""
    return dtype.itemsize == 2 and dtype.kind not in "iu"


def _product(values: np.ndarray, dense: np.ndarray, pattern: SparsePattern) -> np.ndarray:
    from scipy.sparse import csr_array

    dtype = values.dtype
    if _is_narrow(dtype):  # which SciPy has no products for
        wide = _product(values.astype(np.float32), dense.astype(np.float32), pattern)
        return wide.astype(dtype)
    starts, cols, order = pattern.compressed()
    matrix = csr_array(
        (values if order is None else values.take(order), cols, starts), pattern.shape
    )
    return np.asarray(matrix @ dense)


def sparse_sampled(x: np.ndarray, y: np.ndarray, pattern: SparsePattern) -> np.ndarray:
    """out[e] = sum over k of x[i, k] y[j, k] for each entry e = (i, j): of the product x y' what
    stands at the pattern. Dimensions in front of x and y are a batch."""
    if _is_narrow(x.dtype):  # summed as float32, as in a product of matrices
        wide = sparse_sampled(x.astype(np.float32), y.astype(np.float32), pattern)
        return wide.astype(x.dtype)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    count = pattern.rows.size
    out = np.empty((*batch, count), np.result_type(x, y))
    step = max(1, _CHUNK // max(1, x.shape[-1] * math.prod(batch)))
    for start in range(0, count, step):
        part = slice(start, start + step)
        left = x.take(pattern.rows[part], axis=-2)
        right = y.take(pattern.cols[part], axis=-2)
        np.einsum("...ek,...ek->...e", left, right, out=out[..., part])
    return out


# --- entries --------------------------------------------------------------------------------------


def sparse_keys(indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A number for each place (a column of ``indices``) that grows in row-major order."""
    if not indices.shape[0]:
        return np.zeros(indices.shape[1], np.int64)
    if math.prod(shape) < 1 << 63:
        return np.ravel_multi_index(tuple(indices), shape) if indices.size else indices[0]
    # Too many places to number: those in use are numbered in their order.
    return np.unique(indices, axis=1, return_inverse=True)[1].reshape(-1)


def entries_by_key(keys: Integers, always: bool = False) -> tuple[np.ndarray, np.ndarray] | None:
    """For each entry the number of its key among the different ones in their order, and for each
    key its first entry. None where the keys are different and sorted already, unless ``always``."""
    steps = np.diff(keys)
    if not always and (steps > 0).all():
        return None
    order = None if (steps >= 0).all() else _order(keys)
    new = np.ones(keys.size, bool)
    np.not_equal(steps if order is None else np.diff(keys[order]), 0, out=new[1:])
    numbers, first = np.cumsum(new) - 1, np.flatnonzero(new)
    if order is None:
        return numbers, first
    group = np.empty_like(numbers)
    group[order] = numbers
    return group, order[first]


def _order(keys: Integers) -> Integers:
    """What sorts the keys, none negative; equal ones keep their order.

    NumPy sorts 16 bits by counting: digit by digit that takes a tenth of the time of a comparison
    sort for ten thousand keys.
    """
    largest, shift = int(keys.max(initial=0)), 16
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    while largest >> shift:
        digits = (keys[order] >> shift).astype(np.uint16)
        order = order[np.argsort(digits, kind="stable")]
        shift += 16
    return order


def common_entries(left: np.ndarray, right: np.ndarray) -> tuple[Any, Any]:
    """The pairs (a, b) of entries with left[a] == right[b], where each side has different keys."""
    _, a, b = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    return a, b


def matching_entries(left: Integers, right: Integers, count: int) -> tuple[Any, Any]:
    """All pairs (a, b) of entries with left[a] == right[b], numbers below ``count``, sorted by a,
    then by b."""
    starts = compressed_rows(right, count)
    order = _order(right)
    many = starts[left + 1] - starts[left]
    a = np.repeat(np.arange(left.size), many)
    within = np.arange(a.size) - np.repeat(np.cumsum(many) - many, many)
    return a, order[starts[left[a]] + within]


def scipy_sparse(
    values: np.ndarray, indices: np.ndarray, starts: np.ndarray | None, shape: tuple[int, ...]
) -> Any:
    """The matrix as SciPy has it: coordinates, or compressed rows if ``starts`` are given."""
    from scipy.sparse import coo_array, csr_array

    if starts is None:
        return coo_array((values, tuple(indices)), shape=shape)
    return csr_array((values, indices[1], starts), shape=shape)
