"""Shape and indexing; see the NumPy kernels for what ``entries`` and ``tail`` mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from chainrule.backend.numpy_kernels.index import (
    Entries,
    _is_advanced,
    _key,
    _leading,
    _only_row,
    _where_numpy_puts,
)
from chainrule.backend.xla_kernels.checks import check

__all__ = [
    "broadcast_to",
    "cat",
    "gather",
    "gather_place",
    "index",
    "index_place",
    "index_put",
    "mask_place",
    "may_share_memory",
    "permute",
    "reshape",
    "scatter",
    "scatter_extreme",
    "scatter_product",
    "slice_view",
    "take_rows",
    "write_subscript",
]

Array = Any


def reshape(a: Array, shape: tuple[int, ...]) -> Array:
    """The same elements in row-major order in another shape."""
    return a.reshape(shape)


def permute(a: Array, dims: tuple[int, ...]) -> Array:
    """Trailing dimensions in the order ``dims`` (counted from the end); leading ones stay."""
    n = a.ndim
    return a.transpose((*range(n - len(dims)), *[n + d for d in dims]))


def broadcast_to(a: Array, shape: tuple[int, ...]) -> Array:
    """Dimensions of size 1 and missing leading ones repeated."""
    return jnp.broadcast_to(a, shape)


def cat(*arrays: Array, dim: int) -> Array:
    """The arrays one behind the other along ``dim``; all other sizes are equal."""
    return jnp.concatenate([jnp.asarray(a) for a in arrays], axis=dim)


def may_share_memory(a: object, b: object) -> bool:
    """They behave as if they did: a view follows its base, as those of boxes do."""
    return True


# --- subscripts -----------------------------------------------------------------------------------


def slice_view(a: Array, entries: Entries) -> Array:
    """What a subscript without integer arrays names."""
    return a[(..., *entries)]


def _inside(indices: Sequence[Array], a: Array, entries: Entries) -> None:
    """Refuses indices that NumPy refuses; XLA would take the nearest element."""
    arrays = iter(indices)
    d = a.ndim - sum([e is not None for e in entries])
    for entry in entries:
        if entry is ...:
            i, n, at = next(arrays), a.shape[d], d
            if i.dtype != bool and i.size:
                error = _out_of_bounds(i, n, at)
                check(jnp.all((i >= -n) & (i < n)), error)
        d += entry is not None


def _out_of_bounds(i: Array, n: int, dim: int) -> Any:
    def error() -> IndexError:
        return IndexError(f"index is out of bounds for dimension {dim} with size {n}{_named(i, n)}")

    return error


def _named(i: Array, n: int) -> str:
    if isinstance(i, jax.core.Tracer):
        return ""
    numbers = np.asarray(i)
    return f": {numbers[(numbers < -n) | (numbers >= n)].flat[0]}"


def index(a: Array, *indices: Array, entries: Entries, tail: int, distinct: bool) -> Array:
    """What the subscript names, the dimensions of integer arrays in their place."""
    indices = tuple([jnp.asarray(i) for i in indices])
    _inside(indices, a, entries)
    row = _only_row(entries)
    if row:
        return jnp.take(a, indices[0], axis=row, mode="wrap")
    out = a[_key(entries, indices)]
    ndim = max(i.ndim for i in indices)
    start = _where_numpy_puts(entries, _leading(a.ndim, entries))
    return _moved(out, start, out.ndim - tail - ndim, ndim)


def _moved(a: Array, start: int, to: int, count: int) -> Array:
    if start == to or count == 0:
        return a
    return jnp.moveaxis(a, tuple(range(start, start + count)), tuple(range(to, to + count)))


def take_rows(a: Array, rows: Any) -> Array:
    """The rows that a slice or an integer array names."""
    if isinstance(rows, slice):
        return a[rows]
    _inside((jnp.asarray(rows),), a, (..., *[slice(None)] * (a.ndim - 1)))
    return a[jnp.asarray(rows)]


def _placed(a: Array, value: Any, indices: Sequence[Array], entries: Entries, tail: int) -> Any:
    """The value with its dimensions where JAX's brackets, like NumPy's, have them."""
    if not indices or not np.ndim(value):
        return value
    ndim = max(i.ndim for i in indices)
    start = _where_numpy_puts(entries, _leading(a.ndim, entries))
    full = _leading(a.ndim, entries) + sum([not _is_advanced(e) for e in entries]) + ndim
    value = jnp.asarray(value)
    value = value.reshape((1,) * (full - value.ndim) + value.shape)
    return _moved(value, full - tail - ndim, start, ndim)


def write_subscript(a: Array, value: Any, *indices: Array, entries: Entries, tail: int) -> Array:
    """The array with the value at the subscript."""
    a, indices = jnp.asarray(a), tuple([jnp.asarray(i) for i in indices])
    _inside(indices, a, entries)
    value = _placed(a, value, indices, entries, tail)
    if hasattr(value, "dtype"):
        value = value.astype(a.dtype)
    return a.at[_key(entries, indices)].set(value)


def index_put(
    a: Array, value: Array, *indices: Array, entries: Entries, tail: int, distinct: bool
) -> Array:
    """``a`` with the value written at the subscript."""
    return write_subscript(a, value, *indices, entries=entries, tail=tail)


def index_place(
    g: Array,
    *indices: Array,
    entries: Entries,
    tail: int,
    shape: tuple[int, ...],
    distinct: bool,
) -> Array:
    """Zeros with ``g`` added at the subscript: an element chosen twice gets the sum."""
    if not indices and all([isinstance(e, slice) and (e.step or 1) > 0 for e in entries]):
        return _around(g, [e for e in entries if isinstance(e, slice)], shape)
    indices = tuple([jnp.asarray(i) for i in indices])
    out = jnp.zeros(shape, g.dtype)
    value = _placed(out, g, indices, entries, tail)
    at = out.at[_key(entries, indices)]
    return at.set(value) if distinct or g.dtype == bool else at.add(value)


def _around(g: Array, entries: Sequence[slice], shape: tuple[int, ...]) -> Array:
    """Zeros around and between what slices show, which XLA joins with what it is added to."""
    widths = [(0, 0, 0)] * (len(shape) - len(entries))
    for e, n in zip(entries, shape[len(widths) :], strict=True):
        shown = range(n)[e]
        if not shown:
            return jnp.zeros(shape, g.dtype)
        widths.append((shown[0], n - 1 - shown[-1], shown.step - 1))
    return jax.lax.pad(g, jnp.zeros((), g.dtype), widths)


def mask_place(g: Array, mask: Array) -> Array:
    """Zeros with ``g`` where the mask is True: the transpose of ``mask_select``."""
    g, mask = jnp.asarray(g), jnp.asarray(mask)
    if not g.size:
        return jnp.zeros(mask.shape, g.dtype)
    order = jnp.cumsum(mask.reshape(-1)) - 1
    found = g.reshape(-1)[jnp.clip(order, 0, g.size - 1)].reshape(mask.shape)
    return jnp.where(mask, found, jnp.zeros((), g.dtype))


# --- gather and scatter ---------------------------------------------------------------------------


def _along(index: Array, shape: tuple[int, ...], dim: int) -> tuple[Array, ...]:
    """What names the elements that ``index`` chooses along ``dim``."""
    index, n = jnp.asarray(index, np.int64), shape[dim]
    if index.size:

        def error() -> IndexError:
            which = ""
            if not isinstance(index, jax.core.Tracer):
                numbers = np.asarray(index)
                which = f" {numbers[(numbers < 0) | (numbers >= n)].flat[0]}"
            return IndexError(
                f"index{which} is out of bounds for dimension {dim + len(shape)} with size {n}"
            )

        check(jnp.all((index >= 0) & (index < n)), error)
    key = list(jnp.ogrid[tuple(slice(m) for m in index.shape)]) if index.ndim else []
    if key:
        key[dim] = index
    return tuple(key)


def gather(a: Array, index: Array, dim: int) -> Array:
    """out[.., j, ..] = a[.., index[.., j, ..], ..] along ``dim``, of the shape of ``index``."""
    return jnp.asarray(a)[_along(index, a.shape, dim)]


def gather_place(g: Array, index: Array, dim: int, shape: tuple[int, ...]) -> Array:
    """Zeros of this shape with ``g`` added where ``index`` names: the transpose of ``gather``."""
    return jnp.zeros(shape, g.dtype).at[_along(index, shape, dim)].add(g)


def scatter(a: Array, src: Array, index: Array, dim: int) -> Array:
    """``a`` with ``src`` written where ``index`` names; of several, the last stays."""
    key = _along(index, a.shape, dim)
    index = jnp.asarray(index)
    src = jnp.broadcast_to(jnp.asarray(src, a.dtype), index.shape)
    if not index.size:
        return jnp.asarray(a)
    # XLA leaves open which of several writes stays: the number of the last one is found first.
    numbers = jnp.arange(index.size).reshape(index.shape)
    last = jnp.full(a.shape, -1).at[key].max(numbers)
    return jnp.where(last >= 0, src.reshape(-1)[jnp.maximum(last, 0)], a)


def scatter_extreme(
    a: Array, src: Array, index: Array, dim: int, largest: bool, include_self: bool
) -> Array:
    """``a`` with the largest (or smallest) of what ``src`` brings to each place."""
    a, key = jnp.asarray(a), _along(index, a.shape, dim)
    out = a if include_self else a.at[key].set(src)
    return out.at[key].max(src) if largest else out.at[key].min(src)


def scatter_product(a: Array, src: Array, index: Array, dim: int, include_self: bool) -> Array:
    """``a`` with the product of what ``src`` brings to each place."""
    a, key = jnp.asarray(a), _along(index, a.shape, dim)
    out = a if include_self else a.at[key].set(1)
    return out.at[key].multiply(src)
