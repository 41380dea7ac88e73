"""Methods of a tensor that make others of its type."""

from __future__ import annotations

from typing import Unpack

from chainrule.backend import K, dtypes
from chainrule.ops.core.arguments import check_device, checked_size, made, number, size_argument
from chainrule.ops.creation.patterns import beside, filled
from chainrule.tensor import Tensor
from chainrule.typing import ArrayDType, Device, DType, Memory, Number, Shape

__all__: list[str] = []
METHODS = ("new_empty", "new_full", "new_ones", "new_zeros")
INPLACE: tuple[str, ...] = ()


def _type(input: Tensor, dtype: DType | None) -> ArrayDType:
    return input.array.dtype if dtype is None else dtypes.to_array_dtype(dtype)


def new_zeros(
    input: Tensor,
    *sizes: int | Shape,
    size: Shape | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """Zeros of the given size in the type of this tensor."""
    shape, d = size_argument("new_zeros", sizes, size), _type(input, dtype)
    if device is not None or memory:
        check_device("new_zeros", device, memory)
    return beside("new_zeros", input, made(K.zeros(shape, d), requires_grad), device=device)


def new_ones(
    input: Tensor,
    *sizes: int | Shape,
    size: Shape | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """Ones of the given size in the type of this tensor."""
    shape, d = size_argument("new_ones", sizes, size), _type(input, dtype)
    if device is not None or memory:
        check_device("new_ones", device, memory)
    return beside("new_ones", input, made(K.ones(shape, d), requires_grad), device=device)


def new_empty(
    input: Tensor,
    *sizes: int | Shape,
    size: Shape | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """An uninitialized tensor of the given size in the type of this tensor."""
    shape, d = size_argument("new_empty", sizes, size), _type(input, dtype)
    if device is not None or memory:
        check_device("new_empty", device, memory)
    return beside("new_empty", input, made(K.empty(shape, d), requires_grad), device=device)


def new_full(
    input: Tensor,
    size: Shape,
    fill_value: Number | Tensor,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """One value everywhere, of the given size, in the type of this tensor."""
    if device is not None or memory:
        check_device("new_full", device, memory)
    shape, value = checked_size("new_full", size), number("new_full", "fill_value", fill_value)
    array = filled(shape, value, input.dtype if dtype is None else dtypes.as_dtype(dtype))
    return beside("new_full", input, made(array, requires_grad), device=device)
