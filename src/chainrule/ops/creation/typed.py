"""Tensors by their sizes or by their values, PyTorch's older way: ``FloatTensor(2, 3)``."""

from __future__ import annotations

from typing import Any

from chainrule.backend import K, dtypes
from chainrule.ops.core.arguments import checked_size, made, placed_like
from chainrule.ops.core.promotion import NUMBERS
from chainrule.ops.creation.conversion import move, type_name
from chainrule.ops.creation.from_data import as_tensor
from chainrule.placement import set_default_place
from chainrule.tensor import Size, Tensor, check_layout, device
from chainrule.typing import Array

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "set_default_tensor_type",
]
METHODS = ("_of_sizes_or_values", "new")
INPLACE: tuple[str, ...] = ()


def _of_sizes_or_values(input: Tensor, data: Any, *sizes: int) -> Any:
    """The array of ``Tensor(2, 3)`` and ``Tensor([1, 2])``, of the default type, or a tensor's."""
    check_layout("Tensor", data)
    if isinstance(data, Tensor) and not sizes:
        return data.data.array
    return sized_or_copied("Tensor", (data, *sizes), dtypes.get_default_dtype())


def sized_or_copied(op: str, args: tuple[Any, ...], dtype: dtypes.dtype) -> Array:
    """A new array of the sizes (integers, or one :class:`Size`) or with the values given.

    The memory of a NumPy array is shared if it is of this type, as in PyTorch.
    """
    if len(args) == 1 and isinstance(args[0], Size):
        args = args[0]
    elif len(args) == 1 and not _is_number(args[0]):
        data = args[0]
        if isinstance(data, Tensor) and data.dtype is not dtype:
            raise TypeError(
                f"{op}(): expected a tensor of {dtype}, got {data.dtype}; convert it with .to()"
            )
        return data.data.array if isinstance(data, Tensor) else as_tensor(data, dtype).array
    return K.empty(checked_size(op, args), dtype.array_dtype)


def _is_number(value: object) -> bool:
    of_array_library = isinstance(value, K.ArrayLike) and not isinstance(value, K.Array)
    return isinstance(value, NUMBERS) or of_array_library


def new(input: Tensor, *args: Any) -> Tensor:
    """A new tensor of this one's type: ``x.new(2, 3)`` by its sizes, ``x.new([1, 2])`` by values.

    >>> import chainrule
    >>> chainrule.tensor([1]).new([2, 3])
    tensor([2, 3])
    """
    return placed_like(input, made(sized_or_copied("new", args or ((),), input.dtype)))


class TypedTensor(type):
    """The type of ``FloatTensor`` and its like: calling one makes a tensor of its ``dtype`` on its
    ``kind`` of devices, and such tensors are its instances."""

    dtype: dtypes.dtype
    kind: str = "cpu"

    def __call__(cls, *args: Any) -> Any:
        place = device(cls.kind)
        return move(made(sized_or_copied(cls.__name__, args or ((),), cls.dtype)), place)

    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, Tensor) or instance.dtype is not cls.dtype:
            return False
        return instance.device.type == cls.kind

    def __repr__(cls) -> str:
        return f"<class '{type_name(cls.dtype, cls.kind)}'>"


class BoolTensor(metaclass=TypedTensor):
    """A tensor of bool."""

    dtype = dtypes.bool_


class ByteTensor(metaclass=TypedTensor):
    """A tensor of uint8."""

    dtype = dtypes.uint8


class CharTensor(metaclass=TypedTensor):
    """A tensor of int8."""

    dtype = dtypes.int8


class ShortTensor(metaclass=TypedTensor):
    """A tensor of int16."""

    dtype = dtypes.int16


class IntTensor(metaclass=TypedTensor):
    """A tensor of int32."""

    dtype = dtypes.int32


class LongTensor(metaclass=TypedTensor):
    """A tensor of int64: ``LongTensor([1, 2])`` or, by its sizes, ``LongTensor(2, 3)``.

    >>> import chainrule
    >>> chainrule.LongTensor([1, 2])
    tensor([1, 2])
    >>> isinstance(chainrule.arange(3), chainrule.LongTensor)
    True
    """

    dtype = dtypes.int64


class HalfTensor(metaclass=TypedTensor):
    """A tensor of float16."""

    dtype = dtypes.float16


class BFloat16Tensor(metaclass=TypedTensor):
    """A tensor of bfloat16."""

    dtype = dtypes.bfloat16


class FloatTensor(metaclass=TypedTensor):
    """A tensor of float32."""

    dtype = dtypes.float32


class DoubleTensor(metaclass=TypedTensor):
    """A tensor of float64."""

    dtype = dtypes.float64


def set_default_tensor_type(t: str | TypedTensor) -> None:
    """Sets the floating type of new tensors by a class such as ``DoubleTensor`` or its name, and
    where they are made: ``"cuda.FloatTensor"`` is one on a GPU."""
    text = t if isinstance(t, str) else type_name(t.dtype, t.kind)
    kind, _, name = text.removeprefix("chainrule.").removeprefix("torch.").rpartition(".")
    classes = {c.__name__: c for c in (HalfTensor, BFloat16Tensor, FloatTensor, DoubleTensor)}
    if name not in classes:
        raise TypeError(
            "set_default_tensor_type: only floating-point types are supported as the default, got "
            f"{t!r}; use one of {', '.join(classes)}"
        )
    set_default_place(device(kind) if kind else None)
    dtypes.set_default_dtype(classes[name].dtype)
