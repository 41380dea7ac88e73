"""Assignment: ``x[index] = value``, and the methods that fill a tensor in place."""

from __future__ import annotations

from typing import TypeGuard

from chainrule.backend import ARRAYS, K, dtypes
from chainrule.ops.core.synonyms import also_named
from chainrule.ops.index.choice import index_put as put
from chainrule.ops.index.choice import slice_view
from chainrule.ops.elementwise.logic import where
from chainrule.ops.core.inplace import adopt, assign, check_writable, touch
from chainrule.ops.core.promotion import NUMBERS, cast
from chainrule.ops.core.apply import as_operand
from chainrule.ops.core.recording import edge_of, record
from chainrule.ops.core.primitive import broadcast_to
from chainrule.ops.shape.views import reshape
from chainrule.ops.index.subscript import (
    Subscript,
    at_places,
    at_rows,
    basic_entries,
    items_of,
    out_of_bounds,
    parse,
    sizes_at,
)
from chainrule.graph import Mode, mode
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Index, Number, Operand

__all__: list[str] = []
METHODS = ("copy_", "fill_", "zero_")
INPLACE: tuple[str, ...] = ()


def setitem(input: Tensor, index: Index, value: Operand) -> None:
    """``input[index] = value``, in place, with gradients to both.

    >>> import chainrule
    >>> x = chainrule.zeros(3)
    >>> x[1:] = 2.0
    >>> x
    tensor([0., 2., 2.])
    """
    value = as_value("setitem", input, value)
    entries = basic_entries(input.ndim, index)
    if entries is not None:
        at = Subscript(entries, (), 0, True, sizes_at(input.array.shape, entries))
        if _is_there(input, at, value):
            return
    elif index.__class__ is Tensor and index.ndim and index.array.dtype.kind == "i" and input.ndim:
        at = at_rows(input.shape, cast(index, dtypes.int64))
    elif index.__class__ is Tensor and value.ndim == 0 and _is_mask(index, input):
        _write_masked(input, index, value)
        return
    else:
        found = at_places(input.array.shape, index)
        if found is None:
            input, items = items_of("setitem", input, index)
            if len(items) == 1 and value.ndim == 0 and _is_mask(items[0], input):
                _write_masked(input, items[0], value)
                return
            found = parse("setitem", input.shape, items)
        at = found
    _write("setitem", input, at, value)


def _is_mask(item: object, input: Tensor) -> TypeGuard[Tensor]:
    """A mask of the whole tensor needs no integers, and can be mapped inside transformations."""
    if not isinstance(item, Tensor) or item.array.dtype.kind != "b" or not input.ndim:
        return False
    return item.array.shape == input.array.shape


def _write_masked(x: Tensor, mask: Tensor, value: Tensor) -> None:
    """One number where the mask holds: written there, or chosen where a gradient is wanted."""
    flags = mode.flags
    if flags > Mode.GRAD or (flags and not (edge_of(x) is None and edge_of(value) is None)):
        assign(x, where(mask, value, x), "setitem")
        return
    check_writable(x, "setitem")
    x.array = K.write_index(x.array, mask.array, value.array)
    touch(x)


def as_value(op: str, input: Tensor, value: Operand) -> Tensor:
    """What is assigned, as a tensor of the type of the one it is written into."""
    if isinstance(value, NUMBERS):
        real = K.kind_of(input.array.dtype) == "f" and value.__class__ is not complex
        value = of_array(K.asarray(value, dtype=input.array.dtype if real else None))
    elif not isinstance(value, Tensor):
        if not isinstance(value, ARRAYS) and not hasattr(value, "dtype"):
            raise TypeError(
                f"{op}: can't assign a {type(value).__name__} to a {input.dtype} tensor; convert "
                "it with chainrule.tensor(...)"
            )
        value = as_operand(value)
    if value.array.dtype.kind == "c" and input.array.dtype.kind != "c":
        raise RuntimeError(
            f"{op}: a complex value cannot be assigned to a {input.dtype} tensor; take its .real"
        )
    return cast(value, input.dtype)


def _write(op: str, x: Tensor, at: Subscript, value: Tensor) -> Tensor:
    """Writes into the memory of ``x`` and, where a gradient is wanted, records that."""
    check_writable(x, op)
    value = fitted(op, value, at.shape)
    try:
        if mode.flags > Mode.GRAD:
            return assign(x, put(x, spread_to(value, at), *at.indices, **at.params), op)
        edges = [edge_of(x), edge_of(value)] if mode.flags else [None, None]
        recorded = edges != [None, None]
        if recorded:
            value = spread_to(value, at)
            edges = [edges[0], edge_of(value), *[None] * len(at.indices)]
        arrays = [t.array for t in at.indices]
        x.array = K.write_subscript(x.array, value.array, *arrays, entries=at.entries, tail=at.tail)
    except IndexError:
        raise out_of_bounds(op, tuple(x.shape), at) from None
    touch(x)
    if recorded:
        adopt(x, record(put, (x, value, *at.indices), tuple(edges), at.params, x.array))
    return x


def _is_there(x: Tensor, at: Subscript, value: Tensor) -> bool:
    """Whether the value is that very part of ``x``: so ends ``x[i] += y``."""
    view, own = value._view, x._view
    if view is None:
        return False
    base, steps = (x, ()) if own is None else (own.base, own.steps)
    return view.base is base and view.steps == (*steps, (slice_view, {"entries": at.entries}))


def spread_to(value: Tensor, at: Subscript) -> Tensor:
    """The value in the shape of the part that it replaces."""
    return value if value.shape == at.shape else broadcast_to(value, shape=at.shape)


def shaped(out: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The tensor in this shape: itself if it has it."""
    return out if tuple(out.shape) == shape else reshape(out, shape)


def fitted(op: str, value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The value without leading dimensions of size 1 that the target does not have."""
    if value.array.shape == shape:
        return value
    extra = value.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in value.shape[:extra]):
        value = reshape(value, tuple(value.shape[extra:]))
    own = tuple(value.shape)
    fits = len(own) <= len(shape) and all(
        a in (1, b) for a, b in zip(reversed(own), reversed(shape), strict=False)
    )
    if not fits:
        raise RuntimeError(
            f"{op}: shape mismatch: value tensor of shape {own} cannot be broadcast to indexing "
            f"result of shape {shape}"
        )
    return value


def _whole(input: Tensor) -> Subscript:
    return parse("fill_", input.shape, ())


def fill_(input: Tensor, value: Number | Tensor) -> Tensor:
    """Fills the tensor with one number (or a tensor without dimensions), in place."""
    return _write("fill_", input, _whole(input), as_number("fill_", input, value))


def zero_(input: Tensor) -> Tensor:
    """Fills the tensor with zeros, in place."""
    return _write("zero_", input, _whole(input), as_value("zero_", input, 0))


@also_named(other="src")
def copy_(input: Tensor, src: Operand, non_blocking: bool = False) -> Tensor:
    """Copies ``src``, broadcast and converted, into the tensor, in place."""
    return _write("copy_", input, _whole(input), as_value("copy_", input, src))


def as_number(op: str, input: Tensor, value: Operand) -> Tensor:
    """What is assigned, as a tensor without dimensions."""
    value = as_value(op, input, value)
    if value.ndim:
        raise RuntimeError(
            f"{op}: only supports a 0-dimensional value tensor, but got tensor with {value.ndim} "
            "dimension(s)"
        )
    return value
