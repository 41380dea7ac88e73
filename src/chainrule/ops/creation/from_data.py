"""Tensors from data: Python numbers, nested lists, and other libraries' arrays."""

from __future__ import annotations

from typing import Any

from chainrule.backend import K, dtypes
from chainrule.ops.core.arguments import check_device, made, placed, type_of_number
from chainrule.ops.creation.conversion import move, clone
from chainrule.placement import default_place
from chainrule.ops.core.promotion import NUMBERS, cast
from chainrule.tensor import Tensor
from chainrule.typing import Array, ArrayLike, DType, Device, HasMemory

__all__ = ["as_tensor", "asarray", "from_dlpack", "from_numpy", "tensor"]
METHODS = ("new_tensor",)
INPLACE: tuple[str, ...] = ()


@placed
def tensor(
    data: ArrayLike,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor with a copy of ``data``: numbers, nested lists, arrays.

    >>> import chainrule
    >>> chainrule.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    check_device("tensor", device, {"pin_memory": True} if pin_memory else None)
    return made(_copied(data, dtype), requires_grad)


def _copied(data: ArrayLike, dtype: DType | None) -> Array:
    """The data as an array that shares memory with nothing."""
    target = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(data, Tensor):
        return _converted(data._numbers("tensor"), target, copy=True)
    if isinstance(data, K.ArrayLike):
        return _converted(K.asarray(data), target, copy=True)
    if hasattr(data, "__array__"):
        return _converted(K.asarray(data), target, copy=True)
    if isinstance(data, str):
        raise TypeError(f"tensor: invalid data type 'str' ({data!r:.60}); tensors hold numbers")
    found: set[dtypes.dtype] = set()
    values = _scan(data, found)
    if target is None:
        target = dtypes.get_default_dtype() if not found else _common(found)
    try:
        return K.from_python(values, target.array_dtype)
    except (OverflowError, ValueError, TypeError) as error:
        raise _reason(values, dtype, error) from None


def _converted(array: Array, target: dtypes.dtype | None, copy: bool) -> Array:
    """An array with elements of the target's type (or of its own, if a tensor can hold it)."""
    source = dtypes.from_array_dtype(array.dtype)
    if target is None or target is source:
        array = dtypes.with_own_dtype(array)
        return K.copy(array) if copy else array
    if target.category <= dtypes.INTEGER:
        return K.cast_to_integer(array, target.array_dtype)
    out = K.cast(array, target.array_dtype, None)
    # The real part of complex numbers is a view of them.
    return K.copy(out) if copy and source.is_complex else out


_PYTHON: frozenset[Any] = frozenset(NUMBERS)


def _scan(data: Any, found: set[dtypes.dtype]) -> Any:
    """``data`` without tensors inside; adds the types of all its numbers to ``found``."""
    if data.__class__ in _PYTHON:
        found.add(type_of_number(data))
        return data
    if isinstance(data, Tensor):
        found.add(data.dtype)
        if data.numel() != 1:
            raise ValueError(
                "tensor: only one element tensors can be converted to Python scalars, got one of "
                f"shape {tuple(data.shape)} inside a list; use chainrule.stack to join tensors"
            )
        return data.item()
    if isinstance(data, K.ArrayLike):
        found.add(dtypes.from_array_dtype(data.dtype))
        return data
    if isinstance(data, NUMBERS):
        found.add(type_of_number(data))
        return data
    if isinstance(data, str):
        raise ValueError(f"tensor: too many dimensions 'str': found {data!r}; tensors hold numbers")
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")) or isinstance(data, dict):
        raise RuntimeError(
            f"tensor: could not infer dtype of {type(data).__name__}; give numbers, nested lists "
            "of numbers or an array"
        )
    kinds = set(map(type, data))
    if kinds <= _PYTHON:
        found.update([type_of_number(kind(0)) for kind in kinds])
        return data
    return [_scan(item, found) for item in data]


def _common(found: set[dtypes.dtype]) -> dtypes.dtype:
    first, *rest = found
    for d in rest:
        first = dtypes.promote_types(first, d)
    return first


def _reason(values: Any, dtype: DType | None, error: Exception) -> Exception:
    """Why these values do not make an array, as PyTorch says it."""
    if isinstance(error, OverflowError) or _holds_nan(values):
        if dtype is None:
            return ValueError(f"tensor: {error}; pass a floating dtype for numbers that large")
        return RuntimeError(
            f"tensor: a value cannot be converted to {dtypes.as_dtype(dtype)} without overflow "
            f"({error})"
        )
    return (_ragged(values, 0) if _is_nested(values) else None) or error


def _holds_nan(values: Any) -> bool:
    """Whether one of the numbers is none, which no integer can be."""
    return any(map(_holds_nan, values)) if _is_nested(values) else bool(values != values)


def _ragged(values: Any, dim: int) -> Exception | None:
    """Where nested lists are of different lengths or depths."""
    found = _uneven(values, dim)
    if found is not None or not _holds_lists(values):
        return found
    for v in values:
        if (found := _ragged(v, dim + 1)) is not None:
            return found
    # Each of them is even: what is left are differences between them, level by level.
    while found is None and _holds_lists(values):
        values, dim = [item for v in values for item in v], dim + 1
        found = _uneven(values, dim)
    return found


def _uneven(values: Any, dim: int) -> Exception | None:
    """Where the items are not all numbers, or not all lists of one length."""
    lengths = [len(v) if _is_nested(v) else None for v in values]
    for i, n in enumerate(lengths):
        if (n is None) != (lengths[0] is None):
            return TypeError(
                f"tensor: expected {'numbers' if lengths[0] is None else 'sequences'} only at dim "
                f"{dim + 1}, like item 0, but item {i} is {values[i]!r:.60}"
            )
        if n != lengths[0]:
            return ValueError(
                f"tensor: expected sequence of length {lengths[0]} at dim {dim + 1} (got {n} at "
                f"item {i}); all sequences of a dimension must have one length"
            )
    return None


def _holds_lists(values: Any) -> bool:
    return len(values) > 0 and _is_nested(values[0])


def _is_nested(value: Any) -> bool:
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0


def as_tensor(data: ArrayLike, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """``data`` as a tensor, sharing its memory if it is a tensor or an array of that type."""
    check_device("as_tensor", device)
    if isinstance(data, Tensor):
        out = data if dtype is None else cast(data, dtype)
        return out if device is None else move(out, device)
    if isinstance(data, K.Array):
        target = None if dtype is None else dtypes.as_dtype(dtype)
        out = made(_converted(K.asarray(data), target, copy=False))
    else:
        out = made(_copied(data, dtype))
    return move(out, device or default_place())


def asarray(
    obj: ArrayLike | HasMemory,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """``obj`` as a tensor: a copy (``copy=True``), the same memory (``False``), or what can be."""
    check_device("asarray", device)
    if copy is False:
        _check_shareable(obj, dtype)
    data: Any = obj
    if copy and isinstance(data, Tensor):
        out = as_tensor(clone(data), dtype)
    elif not copy and hasattr(data, "__dlpack__") and not isinstance(data, (Tensor, K.ArrayLike)):
        out = as_tensor(from_dlpack(data), dtype)
    else:
        out = made(_copied(data, dtype)) if copy else as_tensor(data, dtype)
    out = out if device is None else move(out, device)
    if requires_grad:
        return out.requires_grad_()
    return out.detach() if requires_grad is False and out.requires_grad else out


def _check_shareable(obj: Any, dtype: DType | None) -> None:
    if not isinstance(obj, (Tensor, K.Array)) and not hasattr(obj, "__dlpack__"):
        raise ValueError(
            f"asarray: can't alias arbitrary sequence into a tensor: {type(obj).__name__} has no "
            "memory to share; leave out copy=False"
        )
    if dtype is not None and dtypes.as_dtype(dtype) is not dtypes.as_dtype(obj.dtype):
        raise ValueError(
            f"asarray: can't alias tensor with dtype {obj.dtype} into dtype "
            f"{dtypes.as_dtype(dtype)}; leave out copy=False"
        )


def from_numpy(ndarray: Array) -> Tensor:
    """A tensor that shares the memory of a NumPy array."""
    if not isinstance(ndarray, K.Array):
        raise TypeError(f"from_numpy: expected np.ndarray (got {type(ndarray).__name__})")
    return made(_converted(K.asarray(ndarray), None, copy=False))


def from_dlpack(ext_tensor: HasMemory) -> Tensor:
    """A tensor that shares the memory of another library's array, through DLPack."""
    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(
            f"from_dlpack: {type(ext_tensor).__name__} has no __dlpack__; pass the array itself"
        )
    if "bfloat16" in str(getattr(ext_tensor, "dtype", "")):
        raise BufferError(
            "from_dlpack: NumPy imports no bfloat16; pass its 16 bits as int16 and view the tensor "
            "as chainrule.bfloat16"
        )
    return made(_converted(K.from_dlpack(ext_tensor), None, copy=False))


@placed
def new_tensor(
    input: Tensor,
    data: ArrayLike,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor with a copy of ``data`` in the type of this one."""
    return tensor(
        data,
        dtype=input.dtype if dtype is None else dtype,
        device=device,
        requires_grad=requires_grad,
    )
