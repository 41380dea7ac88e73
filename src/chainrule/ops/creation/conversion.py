"""Conversion: copies, other types, other places, and questions about what a tensor holds."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import NoneType
from typing import Any, TypeGuard, overload

from chainrule.backend import K, devices, dtypes
from chainrule.backend.placed import Place, compute
from chainrule.attributes import contiguous_format, memory_format, preserve_format
from chainrule.ops.core.arguments import check_device, order_in_memory, tensor_argument
from chainrule.ops.core.promotion import cast
from chainrule.ops.core.primitive import Linear
from chainrule.graph import Box
from chainrule.tensor import OtherLayout, Tensor, device
from chainrule.typing import DType, Device, V

__all__ = ["clone", "is_complex", "is_floating_point", "is_nonzero", "is_tensor", "numel"]
METHODS = (
    "bfloat16",
    "bool",
    "byte",
    "cdouble",
    "cfloat",
    "char",
    "clone",
    "contiguous",
    "cpu",
    "double",
    "float",
    "half",
    "int",
    "is_nonzero",
    "long",
    "nelement",
    "ndimension",
    "short",
    "to",
    "type",
    "type_as",
)
INPLACE: tuple[str, ...] = ()

_clone = Linear("clone", lambda g, shape_in: g, kernel="copy")


class _Move(Linear):
    """The same numbers on another device; None is the host."""

    rounds = False

    def __init__(self) -> None:
        self.name, self.batch, self.is_view = "move", "carry", False

    def transpose(self, g: V, shape_in: Any, to: Place | None, source: Place | None) -> V:
        return self(g, to=source, source=to)

    def raw(self, a: Any, to: Place | None, source: Place | None) -> Any:
        return devices.fetch(a) if to is None else devices.bring(a, to)


_move = _Move()


def move(input: Tensor, to: Device) -> Tensor:
    """``input`` on a device, itself if it is there; gradients come back from there."""
    source, target = input.device.home(), device(to).home()
    return input if source == target else _move(input, to=target, source=source)


_arrange = Linear("arrange", lambda g, shape_in, order: g)


def clone(input: V, *, memory_format: memory_format | None = None) -> V:
    """A copy of ``input`` with its own memory, through which gradients flow back to ``input``.

    It lies in memory in row-major order unless a format is named.
    """
    if memory_format is None:
        return _clone(input)
    order = order_in_memory("clone", tensor_argument("clone", input), memory_format)
    return _clone(input) if order is None else _arrange(input, order=order)


def contiguous(input: Tensor, *, memory_format: memory_format = contiguous_format) -> Tensor:
    """``input`` with its elements in memory one after the other: itself, or a copy."""
    if memory_format is contiguous_format:
        if isinstance(input.array, Box) or K.is_contiguous(input.array):
            return input
        return _clone(input)
    order = order_in_memory("contiguous", input, memory_format)
    if isinstance(input.array, Box) or input.is_contiguous(memory_format=memory_format):
        return input
    if memory_format is preserve_format:
        raise RuntimeError("contiguous: preserve_format names no order to bring elements into")
    return _arrange(input, order=order)


def _in_format(input: Tensor, memory_format: memory_format | None) -> Tensor:
    """``input`` in a format, itself if that is how it lies."""
    if memory_format is None or memory_format is preserve_format:
        return input
    return contiguous(input, memory_format=memory_format)


@overload
def to(
    input: Tensor,
    dtype: DType,
    non_blocking: builtins.bool = False,
    copy: builtins.bool = False,
    *,
    memory_format: memory_format | None = None,
) -> Tensor: ...
@overload
def to(
    input: Tensor,
    device: Device | None = None,
    dtype: DType | None = None,
    non_blocking: builtins.bool = False,
    copy: builtins.bool = False,
    *,
    memory_format: memory_format | None = None,
) -> Tensor: ...
@overload
def to(
    input: Tensor,
    other: Tensor,
    non_blocking: builtins.bool = False,
    copy: builtins.bool = False,
    *,
    memory_format: memory_format | None = None,
) -> Tensor: ...
def to(
    input: Tensor,
    *args: DType | Device | Tensor | builtins.bool | None,
    **kwargs: DType | Device | Tensor | builtins.bool | memory_format | None,
) -> Tensor:
    """``input`` in another type or on another device: ``x.to(dtype)``, ``x.to(device, dtype)``, or
    as another tensor is, ``x.to(other)``.

    With ``memory_format`` it lies in that order. The tensor itself if it already has the type, the
    device and the order, unless ``copy=True``.
    """
    memory_format: Any = kwargs.pop("memory_format", None)
    dtype, place, copy = _target(args, kwargs)
    out = input if dtype is None else cast(input, dtype)
    out = _in_format(out if place is None else move(out, place), memory_format)
    return clone(out, memory_format=memory_format) if copy and out is input else out


def _target(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[DType | None, Device | None, builtins.bool]:
    """The type and the device asked for (None for the same) and whether a copy is asked for."""
    unknown = set(kwargs) - {"device", "dtype", "other", "non_blocking", "copy"}
    if unknown:
        raise TypeError(f"to(): got an unexpected keyword argument {min(unknown)!r}")
    dtype, place, other = kwargs.get("dtype"), kwargs.get("device"), kwargs.get("other")
    names = ["non_blocking", "copy"]
    if args and isinstance(args[0], Tensor):
        other = args[0]
    elif args and isinstance(args[0], _PLACES) and not _names_type(args[0]):
        place, names = args[0], ["dtype", *names]
    elif args:
        dtype = _as_dtype(args[0])
    rest = dict(zip(names, args[1:], strict=False))
    if len(args) - 1 > len(names):
        raise TypeError(
            f"to(): received {len(args)} positional arguments; at most {len(names) + 1}"
        )
    check_device("to", place)
    if other is not None:
        dtype, place = other.dtype, other.device
    dtype = rest.get("dtype", dtype)
    return dtype, place, rest.get("copy", kwargs.get("copy", False))


_PLACES = (str, device, NoneType, builtins.int)


def _names_type(name: object) -> builtins.bool:
    return isinstance(name, str) and name.removeprefix("chainrule.") in _NAMES


def _as_dtype(d: DType) -> dtypes.dtype:
    return dtypes.as_dtype(d)


_NAMES = {d.name for d in dtypes.DTYPES}


def cpu(input: Tensor, *, memory_format: memory_format = preserve_format) -> Tensor:
    """``input`` on the CPU, itself if it is there and in the order that is asked for."""
    return _in_format(move(input, _HOST), memory_format)


_HOST = device("cpu")


def type_as(input: Tensor, other: Tensor) -> Tensor:
    """``input`` in the type of ``other``, and on its device."""
    out = cast(input, tensor_argument("type_as", other).dtype)
    return move(out, other.device) if compute.is_active() else out


_TENSOR_NAMES = {
    "bool": "BoolTensor",
    "uint8": "ByteTensor",
    "int8": "CharTensor",
    "int16": "ShortTensor",
    "int32": "IntTensor",
    "int64": "LongTensor",
    "float16": "HalfTensor",
    "bfloat16": "BFloat16Tensor",
    "float32": "FloatTensor",
    "float64": "DoubleTensor",
    "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor",
}


@overload
def type(input: Tensor) -> str: ...
@overload
def type(input: Tensor, dtype: DType, non_blocking: builtins.bool = False) -> Tensor: ...
def type(
    input: Tensor, dtype: DType | None = None, non_blocking: builtins.bool = False
) -> str | Tensor:
    """The name of the tensor's type and device, or the tensor in another type; a type that tells
    the device, too, like ``cuda.FloatTensor``, moves it there."""
    if dtype is None:
        return type_name(input.dtype, input.device.type)
    place: str | None = None
    if isinstance(dtype, str):
        dtype, place = _named(dtype)
    elif isinstance(dtype, builtins.type) and hasattr(dtype, "kind"):
        named: Any = dtype  # FloatTensor and its like
        dtype, place = named.dtype, named.kind
    out = cast(input, dtype)
    return out if place is None else move(out, place)


def type_name(dtype: dtypes.dtype, kind: str) -> str:
    """What PyTorch calls a type of tensors on a kind of devices."""
    return f"chainrule.{'' if kind == 'cpu' else kind + '.'}{_TENSOR_NAMES[dtype.name]}"


def _named(name: str) -> tuple[str, str | None]:
    """The dtype that a name tells, and the kind of devices, None for where the tensor is."""
    wanted = name.removeprefix("chainrule.").removeprefix("torch.")
    if wanted in _NAMES:
        return wanted, None
    kind, _, short = wanted.rpartition(".")
    dtype = next((d for d, other in _TENSOR_NAMES.items() if other == short), None)
    if dtype is None or kind not in ("", *devices.KINDS):
        raise ValueError(f"type: invalid type {name!r}; use a dtype such as chainrule.float32")
    return dtype, kind or "cpu"


def _in_type(d: dtypes.dtype, name: str) -> Callable[..., Tensor]:
    # bfloat16 has none before its first use, which is a call of this method.
    wanted = None if d is dtypes.bfloat16 else d.array_dtype

    def method(input: Tensor, *, memory_format: memory_format = preserve_format) -> Tensor:
        if memory_format is not preserve_format:
            return _in_format(cast(input, d), memory_format)
        if input.__class__ is Tensor and input.array.dtype is wanted:
            return input
        return cast(input, d)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"This tensor as {d.name}."
    return method


bool, byte, char = (
    _in_type(dtypes.bool_, "bool"),
    _in_type(dtypes.uint8, "byte"),
    _in_type(dtypes.int8, "char"),
)
short, int, long = (
    _in_type(dtypes.int16, "short"),
    _in_type(dtypes.int32, "int"),
    _in_type(dtypes.int64, "long"),
)
half, bfloat16, float, double = (
    _in_type(dtypes.float16, "half"),
    _in_type(dtypes.bfloat16, "bfloat16"),
    _in_type(dtypes.float32, "float"),
    _in_type(dtypes.float64, "double"),
)
cfloat, cdouble = _in_type(dtypes.complex64, "cfloat"), _in_type(dtypes.complex128, "cdouble")

# --- questions ------------------------------------------------------------------------------------


def is_tensor(obj: object) -> TypeGuard[Tensor]:
    """Whether ``obj`` is a Tensor, or a sparse one."""
    return isinstance(obj, (Tensor, OtherLayout))


def is_floating_point(input: Tensor) -> builtins.bool:
    """Whether the elements are floating-point numbers."""
    return tensor_argument("is_floating_point", input).dtype.is_floating_point


def is_complex(input: Tensor) -> builtins.bool:
    """Whether the elements are complex numbers."""
    return tensor_argument("is_complex", input).dtype.is_complex


def is_nonzero(input: Tensor) -> builtins.bool:
    """Whether the one element of ``input`` is not zero."""
    return input.__bool__()


def numel(input: Tensor) -> builtins.int:
    """The number of elements."""
    return tensor_argument("numel", input).array.size


nelement = numel


def ndimension(input: Tensor) -> builtins.int:
    """The number of dimensions."""
    return input.ndim
