"""Arguments that the functions which make tensors share: sizes, types, devices, numbers."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, SupportsIndex, overload

from chainrule.attributes import check_format, preserve_format, strided
from chainrule.placement import place_asked_for
from chainrule.backend import K, devices, dtypes
from chainrule.backend.placed import Placed, compute, several_places
from chainrule.ops.core.promotion import NUMBERS
from chainrule.ops.core.apply import INFERENCE
from chainrule.graph import Box, Mode, mode
from chainrule.tensor import Tensor, check_layout, of_array
from chainrule.tensor import device as Place
from chainrule.typing import (
    Array,
    ArrayDType,
    Device,
    DType,
    LikeMemory,
    Memory,
    Number,
    Real,
    Shape,
)

__all__ = [
    "arranged",
    "check_device",
    "checked_size",
    "float_type",
    "is_limited",
    "made",
    "number",
    "order_in_memory",
    "placed",
    "placed_like",
    "same_place",
    "size_argument",
    "tensor_argument",
    "type_of_number",
    "whole",
]


_INFERENCE_MODE = Mode.INFERENCE


def made(array: Array, requires_grad: bool = False) -> Tensor:
    """A new leaf around an array."""
    out = of_array(array)
    if requires_grad:
        out.requires_grad_()
    if mode.flags & _INFERENCE_MODE:
        out._store = INFERENCE
    return out


P = ParamSpec("P")


def placed(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Has a function that makes a new tensor put it where its argument ``device`` says, or where
    this thread makes tensors; a copy of a tensor stays where that one is."""

    @wraps(function)
    def made_there(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        out = function(*args, **kwargs)
        device = kwargs.get("device")
        if device is None and compute.is_active() and args and isinstance(args[0], Tensor):
            return placed_like(args[0], out)
        place = place_asked_for(device)
        if place is not None and not isinstance(out.array, Box):
            out.array = devices.put(out.array, place)
        return out

    return made_there


def placed_like(input: Tensor, out: Tensor, device: Device | None = None) -> Tensor:
    """A new tensor, which has no history, where another one is, unless a device is named."""
    if device is not None or compute.is_active():
        place = (input.device if device is None else Place(device)).home()
        if place is not None and not isinstance(out.array, Box):
            out.array = devices.put(out.array, place, _model(input) if device is None else None)
    return out


def same_place(op: str, *tensors: object) -> None:
    """Refuses tensors on different devices, where a kernel would take them as they come."""
    if compute.is_active():
        places = [str(t.device) for t in tensors if isinstance(t, Tensor) and t.ndim]
        if len(set(places)) > 1:
            raise several_places(op, *list(dict.fromkeys(places))[:2])


def _model(input: Tensor) -> Placed | None:
    array = input.array
    while isinstance(array, Box):
        inside = array.held()
        array = inside[0].array if inside else None
    return array if isinstance(array, Placed) else None


def check_device(
    op: str, device: Device | None, memory: Memory | None = None, has_format: bool = False
) -> None:
    """Refuses devices that are not there, every layout but ``strided``, and pinned memory."""
    if memory:
        _check_memory(op, dict(memory), has_format)
    if device is None:
        return
    if not isinstance(device, (str, int, Place)) or isinstance(device, bool):
        raise RuntimeError(f"{op}: device must be a name such as 'cpu', got {device!r}")
    Place(device)


def _check_memory(op: str, memory: dict[str, Any], has_format: bool) -> None:
    for name, value in memory.items():
        if name == "layout":
            if value is not None and value is not strided:
                raise TypeError(
                    f"{op}(): argument 'layout' must be chainrule.strided, got {value!r}; sparse "
                    "tensors are made by to_sparse() and chainrule.sparse_coo_tensor"
                )
        elif name == "pin_memory":
            if value and not devices.available("cuda"):
                raise RuntimeError(
                    f"{op}: pin_memory=True needs a GPU to pin memory for; there is none: leave it "
                    "out"
                )
        elif name != "memory_format" or not has_format:
            raise TypeError(f"{op}() got an unexpected keyword argument {name!r}")


def order_in_memory(op: str, input: Tensor, format: object) -> tuple[int, ...] | None:
    """The order of the dimensions that a memory format asks for; None is row-major order."""
    if format is preserve_format:
        return None if isinstance(input.array, Box) else K.memory_order(input.array)
    wanted = check_format(op, format)
    if wanted.order is not None and input.ndim != len(wanted.order):
        raise RuntimeError(
            f"{op}: required rank {len(wanted.order)} tensor to use {wanted.name} format, got "
            f"shape {tuple(input.shape)}"
        )
    return wanted.order


def arranged(op: str, out: Tensor, like: Tensor, memory: LikeMemory) -> Tensor:
    """A new tensor in the order in memory that it was asked for."""
    format = memory.get("memory_format")
    if format is not None:
        order = order_in_memory(op, like, format)
        if order is not None and not isinstance(out.array, Box):
            out.array = K.arrange(out.array, order)
    return out


def float_type(dtype: DType | None) -> ArrayDType:
    """The array type asked for, or the default floating one."""
    d = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    return d.array_dtype


def size_argument(
    op: str, size: tuple[int | Shape, ...], named: Shape | None = None
) -> tuple[int, ...]:
    """``f(2, 3)``, ``f((2, 3))`` and ``f(size=(2, 3))`` mean the same."""
    if named is not None:
        size = (named,)
    elif not size:
        raise TypeError(
            f'{op}() missing 1 required positional argument: "size"; use () for a scalar'
        )
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        return checked_size(op, size[0])
    sizes: Any = size  # numbers, or it refuses them
    return checked_size(op, sizes)


def checked_size(op: str, size: Shape) -> tuple[int, ...]:
    """A shape as a tuple of Python integers, none negative."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            f"{op}(): argument 'size' must be a tuple of ints, not {type(size).__name__}"
        )
    shape = tuple([n if n.__class__ is int else whole(op, "size", n) for n in size])
    for n in shape:
        if n < 0:
            raise RuntimeError(
                f"{op}: trying to create tensor with negative dimension {n}: {shape}"
            )
    if _innermost.limit is not None:
        _innermost.limit.take(op, shape)
    return shape


class AllocationLimit:
    """Within its ``with`` block, tensors of a given size may have so many elements in all.

    It holds for the thread that enters the block. For building what a file describes: a file of a
    few bytes can ask for any size, and for any number of tensors. Parameters that are made inside
    keep whatever is in their memory: they are given their values by the file.
    """

    def __init__(self, elements: int, tensors: int):
        self.left, self.tensors = elements, tensors
        self.outer: list[AllocationLimit | None] = []  # a stack: a block may enter itself again

    def take(self, op: str, shape: tuple[int, ...]) -> None:
        self.left -= math.prod(shape)
        self.tensors -= 1
        if self.left < 0:
            raise MemoryError(f"{op}: a tensor of shape {shape} exceeds the limit of elements")
        if self.tensors < 0:
            raise MemoryError(f"{op}: another tensor exceeds the limit of tensors")

    def __enter__(self) -> AllocationLimit:
        self.outer.append(_innermost.limit)
        _innermost.limit = self
        return self

    def __exit__(self, *error: object) -> None:
        _innermost.limit = self.outer.pop()


class _Innermost(threading.local):
    limit: AllocationLimit | None = None


_innermost = _Innermost()


def is_limited() -> bool:
    """Whether this thread is inside an :class:`AllocationLimit`."""
    return _innermost.limit is not None


def whole(op: str, name: str, value: SupportsIndex) -> int:
    """An integer argument, also as a NumPy integer or a tensor with one."""
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        raise TypeError(
            f"{op}(): argument '{name}' must be int, not {type(value).__name__}"
        ) from None


@overload
def number(op: str, name: str, value: Real | Tensor | None) -> Real: ...
@overload
def number(op: str, name: str, value: Number | Tensor | None) -> Number: ...
def number(op: str, name: str, value: Number | Tensor | None) -> Number:
    """A scalar argument as a Python number, also from a tensor with one element."""
    if isinstance(value, NUMBERS):
        return value
    other: Any = value
    if isinstance(other, Tensor) or (hasattr(other, "item") and getattr(other, "ndim", 0) == 0):
        return other.item()
    raise TypeError(f"{op}(): argument '{name}' must be Number, not {type(value).__name__}")


def tensor_argument(op: str, value: object) -> Tensor:
    """A tensor as it is; refuses anything else."""
    if not isinstance(value, Tensor):
        check_layout(op, value)
        raise TypeError(
            f"{op}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}"
        )
    return value


def type_of_number(value: Number) -> dtypes.dtype:
    """The type a Python number gets: bool, int64, the default floating type or its complex."""
    default = dtypes.get_default_dtype()
    wide = dtypes.complex128 if default is dtypes.float64 else dtypes.complex64
    return (dtypes.bool_, dtypes.int64, default, wide)[dtypes.category(value)]
