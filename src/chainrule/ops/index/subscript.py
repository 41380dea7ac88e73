"""What stands between the brackets of ``x[...]``, in one form.

A subscript is brought into one form, whatever the user wrote: ``entries`` for the dimensions of the
tensor (a number, a slice, None for a new dimension, ``...`` where an integer tensor stands) and the
integer tensors themselves, which are inputs of the primitives, so that ``vmap`` may map them. Masks
become integer tensors. Entries count from the last dimension, so a batch in front disturbs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from chainrule.backend import ARRAYS, K, dtypes
from chainrule.ops.index.choice import FULL, nonzero_indices, slice_view
from chainrule.ops.core.promotion import broadcast_shapes, cast
from chainrule.ops.core.apply import as_operand
from chainrule.ops.core.primitive import broadcast_to
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import stack
from chainrule.graph import Box
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array, Index, Shape, V, Value

__all__ = [
    "Item",
    "Subscript",
    "at_places",
    "at_rows",
    "basic_entries",
    "items_of",
    "numbers_of",
    "out_of_bounds",
    "parse",
    "sizes_at",
]


# What the user wrote, after :func:`items_of`.
Item: TypeAlias = int | slice | EllipsisType | Tensor | None


class Subscript(NamedTuple):
    """A subscript in the one form: see the top of this file. ``shape`` is that of ``x[...]``."""

    entries: tuple[Any, ...]
    indices: tuple[Tensor, ...]
    tail: int
    distinct: bool  # no element is chosen twice
    shape: tuple[int, ...]

    @property
    def params(self) -> dict[str, Any]:
        return {"entries": self.entries, "tail": self.tail, "distinct": self.distinct}


def basic_entries(ndim: int, index: Index) -> tuple[Any, ...] | None:
    """The entries of a subscript that holds nothing but numbers, slices, None and ``...``.

    The short way of the common case: None if there is anything unusual, for :func:`parse` to find.
    """
    if index.__class__ is int and ndim:
        return (index, *[FULL] * (ndim - 1))
    entries: list[Any] = []
    gap = None
    rest = ndim
    for item in index if index.__class__ is tuple else (index,):
        kind = item.__class__
        if kind is int:
            rest -= 1
        elif kind is slice:
            if item.start.__class__ not in _INT or item.stop.__class__ not in _INT:
                return None
            rest -= 1
        elif item is ... and gap is None:
            gap = len(entries)
            continue
        elif item is not None:
            return None
        entries.append(item)
    if rest < 0:
        return None
    at = len(entries) if gap is None else gap
    return (*entries[:at], *[FULL] * rest, *entries[at:]) if rest else tuple(entries)


_INT = (int, type(None))


def at_rows(shape: Shape, index: Tensor) -> Subscript:
    """The subscript of one integer tensor alone: ``x[index]``."""
    tail = len(shape) - 1
    out = (*index.array.shape, *shape[1:])
    return Subscript((..., *[FULL] * tail), (index,), tail, False, out)


def at_places(shape: Shape, index: Index) -> Subscript | None:
    """The subscript of several int64 tensors of one shape alone, one for each of the first
    dimensions: ``x[i, j]``. None if it is not that, for :func:`parse`."""
    if index.__class__ is not tuple or not 0 < len(index) <= len(shape):
        return None
    indices: tuple[Any, ...] = index
    common = indices[0].array.shape if indices[0].__class__ is Tensor else ()
    if not common:
        return None
    for t in indices:
        if t.__class__ is not Tensor or t.array.shape != common or t.array.dtype != _I64:
            return None
    tail = len(shape) - len(index)
    entries = (*[...] * len(index), *[FULL] * tail)
    return Subscript(entries, indices, tail, False, (*common, *shape[len(index) :]))


_I64 = dtypes.int64.array_dtype


def parse(op: str, shape: Shape, items: Sequence[Item]) -> Subscript:
    """The subscript that the user wrote for a tensor of this shape."""
    shape = tuple(shape)
    entries: list[Any] = []
    indices: list[Tensor] = []
    masks = others = dim = 0
    gap = None
    for item in _without_ellipsis(op, shape, items):
        if item is ...:
            gap = len(entries)
        elif isinstance(item, Tensor):
            if item.array.dtype.kind == "b":
                masks += 1
                _check_mask(op, item, shape, dim)
                new = tuple(nonzero_indices(item))
            else:
                others += 1
                new = (item,)
            indices += new
            entries += [...] * len(new)
            dim += len(new)
        elif item is None:
            entries.append(None)
        else:
            entries.append(
                _plain_slice(item, shape[dim])
                if isinstance(item, slice)
                else _plain_number(op, item, shape, dim)
            )
            dim += 1
    return _complete(op, shape, tuple(entries), indices, gap, masks == 1 and others == 0)


def _without_ellipsis(op: str, shape: tuple[int, ...], items: Sequence[Item]) -> list[Item]:
    """The items with ``...`` (or the missing end) written out as full slices. It stays where that
    is none, for it still keeps apart the integer tensors on its two sides."""
    consumed, at = 0, None
    for i, item in enumerate(items):
        if item is ...:
            if at is not None:
                raise IndexError(f"{op}: an index can only have a single ellipsis ('...')")
            at = i
        elif item is not None:
            consumed += item.ndim if _is_mask(item) else 1
    if consumed > len(shape):
        hint = "; use item() for the number in a tensor without dimensions" if not shape else ""
        raise IndexError(
            f"{op}: too many indices for tensor of dimension {len(shape)}: got {consumed} for "
            f"shape {shape}{hint}"
        )
    missing: list[Item] = [FULL] * (len(shape) - consumed)
    if at is None:
        return [*items, *missing]
    return [*items[:at], *(missing or [...]), *items[at + 1 :]]


def _plain_number(op: str, number: int, shape: tuple[int, ...], dim: int) -> int:
    n = shape[dim]
    if not -n <= number < n:
        raise IndexError(
            f"{op}: index {number} is out of bounds for dimension {dim} with size {n} (shape "
            f"{shape})"
        )
    return number + n if number < 0 else number


def _plain_slice(item: slice, n: int) -> slice:
    if item == FULL:
        return FULL
    start, stop, step = item.indices(n)
    length = len(range(start, stop, step))
    if length == 0:
        return slice(0, 0, 1)
    if length == n and step == 1:
        return FULL
    return slice(start, None if stop < 0 else stop, step)


def _check_mask(op: str, mask: Tensor, shape: tuple[int, ...], dim: int) -> None:
    covered = shape[dim : dim + mask.ndim]
    if tuple(mask.shape) != covered:
        raise IndexError(
            f"{op}: the shape of the mask {tuple(mask.shape)} does not match the shape of the "
            f"indexed tensor {shape} at dimension {dim}: there it is {covered}"
        )


def sizes_at(shape: Shape, entries: tuple[Any, ...]) -> tuple[int, ...]:
    """The sizes of the dimensions that slices and None leave."""
    sizes, dim = [], 0
    for e in entries:
        if e is None:
            sizes.append(1)
            continue
        if e is FULL:
            sizes.append(shape[dim])
        elif e.__class__ is slice:
            sizes.append(len(range(*e.indices(shape[dim]))))
        dim += 1
    return tuple(sizes)


def _complete(
    op: str,
    shape: tuple[int, ...],
    entries: tuple[Any, ...],
    indices: list[Tensor],
    gap: int | None,
    distinct: bool,
) -> Subscript:
    """Works out the shape of the result and where the integer tensors' dimensions stand in it."""
    sizes = sizes_at(shape, entries)
    if not indices:
        return Subscript(entries, (), 0, True, sizes)
    common = _common_shape(op, indices)
    indices = [t if t.shape == common else broadcast_to(t, shape=common) for t in indices]
    chosen = [i for i, e in enumerate(entries) if e is ... or isinstance(e, int)]
    apart = gap is not None and chosen[0] < gap <= chosen[-1]
    if chosen[-1] - chosen[0] + 1 == len(chosen) and not apart:
        tail = len(entries) - chosen[-1] - 1
    else:  # not next to each other: their dimensions come first
        tail = len(sizes)
    at = len(sizes) - tail
    out = (*sizes[:at], *common, *sizes[at:])
    return Subscript(entries, tuple(indices), tail, distinct, out)


def _common_shape(op: str, indices: list[Tensor]) -> tuple[int, ...]:
    try:
        return tuple(broadcast_shapes(*[t.shape for t in indices], op=op))
    except RuntimeError:
        listed = ", ".join(str(list(t.shape)) for t in indices)
        raise IndexError(
            f"{op}: shape mismatch: indexing tensors could not be broadcast together with shapes "
            f"{listed}"
        ) from None


# --- what the user wrote --------------------------------------------------------------------------


def items_of(op: str, input: V, index: Index) -> tuple[V, list[Item]]:
    """What stands between the brackets as numbers, slices, None, ``...`` and tensors."""
    items = [_item(op, i) for i in (index if isinstance(index, tuple) else (index,))]
    if not any(_is_flag(i) for i in items):
        return input, items
    # A single truth value is a mask without dimensions: it makes a new dimension of size 1 or 0.
    view: list[Item] = []
    for i, item in enumerate(items):
        if _is_flag(item):
            view.append(None)
            (items[i],) = nonzero_indices(reshape(item, (1,)))
        elif item is not None:
            view += [...] if item is ... else [FULL] * (item.ndim if _is_mask(item) else 1)
    return slice_view(input, entries=parse(op, input.shape, view).entries), items


def _is_mask(item: Item) -> TypeGuard[Tensor]:
    return isinstance(item, Tensor) and item.array.dtype.kind == "b"


def _is_flag(item: Item) -> TypeGuard[Tensor]:
    return isinstance(item, Tensor) and item.array.dtype.kind == "b" and item.ndim == 0


def _item(op: str, item: Index) -> Item:
    if item is None or item is ... or item.__class__ in (int, slice):
        return item
    if isinstance(item, (list, tuple, range)):
        item = _listed(op, item)
    elif isinstance(item, ARRAYS):
        item = of_array(K.copy(item))  # the graph keeps it: not the user's own
    elif isinstance(item, bool) or getattr(item, "dtype", None) == "bool":
        item = as_operand(item)
    if isinstance(item, Tensor):
        return _index_tensor(op, item)
    if hasattr(item, "__index__"):
        return item.__index__()
    kind = TypeError if isinstance(item, str) else IndexError
    raise kind(
        f"{op}: only integers, slices (`:`), ellipsis (`...`), None and integer or boolean tensors "
        f"are valid indices (got {type(item).__name__})"
    )


def _listed(op: str, items: Sequence[Any]) -> Tensor:
    if any(isinstance(i, Tensor) for i in items):
        return stack([as_operand(i) for i in items])
    try:
        array = K.from_python(items)
    except ValueError:
        raise IndexError(
            f"{op}: a list used as an index must be rectangular, got {items}"
        ) from None
    return of_array(K.zeros(array.shape, "int64") if array.size == 0 else array)


def _index_tensor(op: str, t: Tensor) -> int | Tensor:
    kind = t.array.dtype.kind
    if kind == "b":
        return t
    if kind not in "iu":
        raise IndexError(
            f"{op}: tensors used as indices must be long, int, byte or bool tensors, got "
            f"{t.array.dtype}; convert with .long()"
        )
    seen = numbers_of(t) if t.ndim == 0 else None
    return cast(t, dtypes.int64) if seen is None else int(seen)


def numbers_of(x: Value) -> Array | None:
    """The numbers of a tensor or bare array, or None where a transformation hides them."""
    array: Any = x.array if isinstance(x, Tensor) else x
    if not isinstance(array, Box):
        return array
    try:
        return array.numbers("index")
    except RuntimeError:
        return None


def out_of_bounds(op: str, shape: tuple[int, ...], at: Subscript) -> IndexError:
    """Finds the number that is too large."""
    indices, dim = iter(at.indices), 0
    for entry in at.entries:
        if entry is ... or isinstance(entry, int):
            array: Any = numbers_of(next(indices)) if entry is ... else K.asarray(entry)
            n = shape[dim]
            wrong = None if array is None else (array < -n) | (array >= n)
            if wrong is not None and wrong.any():
                bad = array[wrong][0].item()
                return IndexError(
                    f"{op}: index {bad} is out of bounds for dimension {dim} with size {n} "
                    f"(shape {shape})"
                )
        dim += entry is not None
    return IndexError(f"{op}: an index is out of bounds for a tensor of shape {shape}")
