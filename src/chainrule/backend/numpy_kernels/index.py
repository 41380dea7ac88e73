"""Shape and indexing.

The kernels of subscripts (``slice_view``, ``index``, ``index_place``, ``index_put``) take
``entries``: for each trailing dimension of the array (leading ones are kept as they are) a number,
a slice, None for a new dimension, or ``...`` where the next of the integer arrays ``indices``
stands. The dimensions of the integer arrays appear ``tail`` dimensions before the end of the
indexed array; NumPy puts them elsewhere in some cases, and then they are moved. ``distinct``
promises that no element is chosen twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from chainrule.backend.numpy_kernels.operands import Operand

__all__ = [
    "broadcast_to",
    "cat",
    "gather",
    "gather_place",
    "index",
    "index_place",
    "index_put",
    "mask_place",
    "mask_select",
    "may_share_memory",
    "nonzero",
    "permute",
    "reshape",
    "scatter",
    "scatter_extreme",
    "scatter_product",
    "slice_view",
    "take_rows",
    "write_subscript",
]

Entries = tuple[int | slice | EllipsisType | None, ...]
_FULL = slice(None)


def reshape(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The same elements in row-major order in another shape, as a view where strides allow one."""
    return a.reshape(shape)


def permute(a: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """Trailing dimensions in the order ``dims`` (counted from the end); leading ones stay."""
    if dims == (-1, -2):
        return a.swapaxes(-1, -2)
    n = a.ndim
    return a.transpose((*range(n - len(dims)), *[n + d for d in dims]))


def broadcast_to(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A view in which dimensions of size 1 and missing leading ones are repeated."""
    # NumPy marks the view read-only; writing through it is refused by the tensor, with a reason.
    return np.broadcast_to(a, shape)


def cat(*arrays: np.ndarray, dim: int) -> np.ndarray:
    """The arrays one behind the other along ``dim``; all other sizes are equal."""
    return np.concatenate(arrays, axis=dim)


def may_share_memory(a: object, b: object) -> bool:
    """Whether two arrays lie in the same memory (boxes count as sharing: they behave alike)."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.may_share_memory(a, b)
    return True


# --- subscripts -----------------------------------------------------------------------------------


def slice_view(a: np.ndarray, entries: Entries) -> np.ndarray:
    """The view that a subscript without integer arrays names."""
    return a[(..., *entries)]


def _key(entries: Entries, indices: Sequence[np.ndarray]) -> tuple[Any, ...]:
    """What to write between NumPy's brackets."""
    arrays = iter(indices)
    return (..., *[next(arrays) if e is ... else e for e in entries])


def _is_advanced(entry: object) -> bool:
    return entry is ... or isinstance(entry, int)


def _where_numpy_puts(entries: Entries, leading: int) -> int:
    """The first of the dimensions that come from integer arrays, in NumPy's result."""
    chosen = [i for i, e in enumerate(entries) if _is_advanced(e)]
    together = chosen[-1] - chosen[0] + 1 == len(chosen)
    return leading + chosen[0] if together else 0


def _leading(a_ndim: int, entries: Entries) -> int:
    return a_ndim - sum(e is not None for e in entries)


def _moved(a: np.ndarray, start: int, to: int, count: int) -> np.ndarray:
    """``count`` neighbouring dimensions moved from one place to another."""
    if start == to or count == 0:
        return a
    return np.moveaxis(a, tuple(range(start, start + count)), tuple(range(to, to + count)))


def _only_row(entries: Entries) -> int:
    """The dimension of the one integer array (from the end) if all else is taken whole, or 0."""
    at = 0
    for i, entry in enumerate(entries, -len(entries)):
        if entry is ... and not at:
            at = i
        elif entry.__class__ is not slice or entry != _FULL:
            return 0
    return at


def index(
    a: np.ndarray, *indices: np.ndarray, entries: Entries, tail: int, distinct: bool
) -> np.ndarray:
    """A copy of what the subscript names, the dimensions of integer arrays in their place."""
    if len(indices) == a.ndim == len(entries):
        return np.asarray(a[indices])
    row = _only_row(entries)
    # np.take is twice as fast as brackets, but copies the whole of what is not contiguous.
    if row and a.size and a.flags.c_contiguous:
        return a.take(indices[0], axis=row)
    out = np.asarray(a[_key(entries, indices)])
    ndim = max(i.ndim for i in indices)
    start = _where_numpy_puts(entries, _leading(a.ndim, entries))
    return _moved(out, start, out.ndim - tail - ndim, ndim)


def take_rows(a: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
    """A copy of the rows that a slice or an integer array names."""
    if isinstance(rows, slice):
        return np.array(a[rows], order="C")
    return a.take(rows, axis=0) if a.flags.c_contiguous and a.size else a[rows]


def write_subscript(
    a: np.ndarray, value: Operand, *indices: np.ndarray, entries: Entries, tail: int
) -> np.ndarray:
    """Writes the value at the subscript; returns the array that holds the result."""
    if indices and np.ndim(value):
        ndim = max(i.ndim for i in indices)
        start = _where_numpy_puts(entries, _leading(a.ndim, entries))
        full = _leading(a.ndim, entries) + sum(not _is_advanced(e) for e in entries) + ndim
        value = np.asarray(value)
        value = value.reshape((1,) * (full - value.ndim) + value.shape)
        value = _moved(value, full - tail - ndim, start, ndim)
    a[_key(entries, indices)] = value
    return a


def index_put(
    a: np.ndarray,
    value: np.ndarray,
    *indices: np.ndarray,
    entries: Entries,
    tail: int,
    distinct: bool,
) -> np.ndarray:
    """A copy of ``a`` with the value written at the subscript."""
    return write_subscript(np.array(a, order="C"), value, *indices, entries=entries, tail=tail)


def index_place(
    g: np.ndarray,
    *indices: np.ndarray,
    entries: Entries,
    tail: int,
    shape: tuple[int, ...],
    distinct: bool,
) -> np.ndarray:
    """Zeros with ``g`` added at the subscript: an element chosen twice gets the sum."""
    out = np.zeros(shape, g.dtype)
    if distinct:
        return write_subscript(out, g, *indices, entries=entries, tail=tail)
    if _only_row(entries) == -len(entries) and len(entries) == len(shape):
        return _add_rows(out, indices[0], g)
    if len(indices) == len(entries) == len(shape) and g.shape == indices[0].shape and g.size:
        # The numbers are known to be in range, and negative ones count from the end.
        return _add_at(out, np.ravel_multi_index(indices, shape, mode="wrap"), g)
    numbers = _numbers(shape, g.ndim, indices, entries, tail)
    return _add_at(out, np.broadcast_to(numbers, g.shape), g)


def _add_at(out: np.ndarray, numbers: np.ndarray, g: np.ndarray) -> np.ndarray:
    # Elements by their number in memory: one-dimensional np.add.at is the fast case of NumPy.
    np.add.at(out.reshape(-1), numbers.reshape(-1), g.reshape(-1))
    return out


def _add_rows(out: np.ndarray, rows: np.ndarray, g: np.ndarray) -> np.ndarray:
    """``out[rows] += g`` where rows may repeat."""
    count = rows.size
    width = g.size // max(count, 1)
    rows = np.where(rows < 0, rows + out.shape[0], rows).reshape(-1)
    if width >= 8 and g.size >= 1 << 14 and g.dtype.char in "fdFD":
        # A product with a sparse matrix of ones: five times np.add.at for long rows.
        from scipy.sparse import csr_array

        ones = csr_array(
            (np.ones(count, g.dtype), rows, np.arange(count + 1)), shape=(count, out.shape[0])
        )
        return np.asarray(ones.T @ g.reshape(count, width)).reshape(out.shape)
    return _add_at(out, rows[:, None] * width + np.arange(width), g)


def _numbers(
    shape: tuple[int, ...], ndim: int, indices: Sequence[np.ndarray], entries: Entries, tail: int
) -> np.ndarray:
    """For each element of the indexed array (of ``ndim`` dimensions), its number in the array."""
    chosen = max(i.ndim for i in indices)
    others = iter([d for d in range(-ndim, 0) if not -tail - chosen <= d < -tail])
    arrays = iter(indices)
    sizes = iter(zip(shape, _steps(shape), strict=True))
    total: Any = 0
    every: Entries = (*[_FULL] * _leading(len(shape), entries), *entries)
    for entry in every:
        if entry is None:
            next(others)
            continue
        n, step = next(sizes)
        if isinstance(entry, slice):
            part = np.arange(*entry.indices(n)).reshape((-1,) + (1,) * (-next(others) - 1))
        else:
            i = np.asarray(next(arrays) if entry is ... else entry)
            part = np.where(i < 0, i + n, i).reshape(i.shape + (1,) * tail)
        total = total + part * step
    return total


def _steps(shape: tuple[int, ...]) -> list[int]:
    """How far apart neighbours along each dimension are, in elements."""
    steps = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        steps[d] = steps[d + 1] * shape[d + 1]
    return steps


def mask_select(a: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The elements at which the mask (of the shape of ``a``) is True, in one dimension."""
    return a[mask]


def mask_place(g: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Zeros with ``g`` where the mask is True: the transpose of ``mask_select``."""
    out = np.zeros(mask.shape, g.dtype)
    out[mask] = g
    return out


def nonzero(a: np.ndarray) -> tuple[np.ndarray, ...]:
    """Where ``a`` is not 0: one array of indices for each dimension."""
    return np.nonzero(np.atleast_1d(a))


# --- gather and scatter ---------------------------------------------------------------------------


def _along(index: np.ndarray, shape: tuple[int, ...], dim: int) -> np.ndarray:
    """The numbers in memory of the elements that ``index`` names along ``dim``."""
    n = shape[dim]
    # As unsigned integers negative ones are large: one comparison for both ends.
    index = np.asarray(index, np.int64)
    if not index.size:
        return index
    if np.maximum.reduce(index.view(np.uint64), axis=None) >= n:
        bad = index[(index < 0) | (index >= n)].flat[0]
        raise IndexError(
            f"index {bad} is out of bounds for dimension {dim + len(shape)} with size {n}"
        )
    total, step = index, 1
    for d in range(-1, -index.ndim - 1, -1):
        if d == dim:
            total = total if step == 1 else total + index * (step - 1)
        elif index.shape[d] > 1:
            part = np.arange(0, index.shape[d] * step, step)
            total = total + (part if d == -1 else part.reshape((-1,) + (1,) * (-d - 1)))
        step *= shape[d]
    return total


def gather(a: np.ndarray, index: np.ndarray, dim: int) -> np.ndarray:
    """out[.., j, ..] = a[.., index[.., j, ..], ..] along ``dim``, of the shape of ``index``."""
    # Half the time of np.take_along_axis.
    return a.reshape(-1).take(_along(index, a.shape, dim))


def gather_place(g: np.ndarray, index: np.ndarray, dim: int, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros of this shape with ``g`` added where ``index`` names: the transpose of ``gather``."""
    return _add_at(np.zeros(shape, g.dtype), _along(index, shape, dim), g)


def scatter(a: np.ndarray, src: np.ndarray, index: np.ndarray, dim: int) -> np.ndarray:
    """A copy of ``a`` with ``src`` written where ``index`` names; of several, the last stays."""
    out = np.array(a, order="C")
    out.reshape(-1)[_along(index, a.shape, dim)] = src
    return out


def scatter_extreme(
    a: np.ndarray, src: np.ndarray, index: np.ndarray, dim: int, largest: bool, include_self: bool
) -> np.ndarray:
    """A copy of ``a`` with the largest (or smallest) of what ``src`` brings to each place.

    The element of ``a`` that stood there counts if ``include_self``.
    """
    numbers = _along(index, a.shape, dim)
    out = np.array(a, order="C")
    flat = out.reshape(-1)
    if not include_self:
        flat[numbers] = src  # any one of its values is a place to start from
    (np.maximum if largest else np.minimum).at(flat, numbers.reshape(-1), src.reshape(-1))
    return out


def scatter_product(
    a: np.ndarray, src: np.ndarray, index: np.ndarray, dim: int, include_self: bool
) -> np.ndarray:
    """A copy of ``a`` with the product of what ``src`` brings to each place.

    The element of ``a`` that stood there is a factor if ``include_self``.
    """
    numbers = _along(index, a.shape, dim)
    out = np.array(a, order="C")
    flat = out.reshape(-1)
    if not include_self:
        flat[numbers] = 1
    np.multiply.at(flat, numbers.reshape(-1), src.reshape(-1))
    return out
