"""Where a tensor's memory is and what it holds, memory given anew, and functions of Python's own on
each element: what PyTorch programs ask of tensors and seldom need here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.backend import K
from chainrule.backend.placed import Placed
from chainrule.ops.core.synonyms import numpy_names
from chainrule.ops.core.apply import INFERENCE
from chainrule.ops.core.arguments import checked_size, tensor_argument
from chainrule.ops.core.inplace import assign
from chainrule.ops.core.primitive import sum_to
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.conversion import clone, move
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.elementwise.complex_numbers import conj
from chainrule.ops.index.reading import narrow
from chainrule.ops.shape.joining import chunk, split
from chainrule.ops.shape.views import shape_argument
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Device, DType, Shape

__all__ = [
    "conj_physical",
    "get_device",
    "is_conj",
    "is_inference",
    "is_neg",
    "is_same_size",
    "is_signed",
    "narrow_copy",
    "resolve_conj",
    "resolve_neg",
    "unsafe_chunk",
    "unsafe_split",
]
METHODS = (
    *__all__,
    "apply_",
    "cuda",
    "data_ptr",
    "is_pinned",
    "is_shared",
    "map_",
    "pin_memory",
    "record_stream",
    "resize_",
    "resize_as_",
    "set_",
    "share_memory_",
    "storage_offset",
    "sum_to_size",
    "to_dense",
)
INPLACE = ("conj_physical",)

unsafe_chunk, unsafe_split, conj_physical = chunk, split, conj


def is_conj(input: Tensor) -> bool:
    """False: a conjugate is computed at once."""
    return False


def is_neg(input: Tensor) -> bool:
    """False: a negative is computed at once."""
    return False


def resolve_conj(input: Tensor) -> Tensor:
    """``input`` itself: a conjugate is computed at once."""
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """``input`` itself: a negative is computed at once."""
    return input


def to_dense(
    input: Tensor, dtype: DType | None = None, *, masked_grad: bool | None = None
) -> Tensor:
    """``input``, which is dense, in another type if one is given."""
    return input if dtype is None else cast(input, dtype)


def is_signed(input: Tensor) -> bool:
    """Whether the elements can be negative."""
    return input.dtype.is_signed


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    return input.array.shape == tensor_argument("is_same_size", other).array.shape


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return input._store is INFERENCE


def get_device(input: Tensor) -> int:
    """The number of its device, -1 for the CPU."""
    place = tensor_argument("get_device", input).device
    return -1 if place.type == "cpu" else place.index or 0


def cuda(input: Tensor, device: Device | int | None = None, non_blocking: bool = False) -> Tensor:
    """``input`` on a GPU."""
    return move(input, "cuda" if device is None else device)


def is_pinned(input: Tensor) -> bool:
    """False: no memory is pinned for a GPU."""
    return False


def pin_memory(input: Tensor) -> Tensor:
    """``input`` itself: JAX copies to a device from any memory."""
    return input


def record_stream(input: Tensor, stream: Any) -> None:
    """Notes that a stream of a GPU uses the tensor, which XLA knows."""


def is_shared(input: Tensor) -> bool:
    """Whether other processes see the memory of the tensor: they do not."""
    return False


def share_memory_(input: Tensor) -> Tensor:
    """Refused: workers get copies."""
    raise RuntimeError(
        "share_memory_: memory is not shared between processes; DataLoader sends batches to and "
        "from its workers by itself, and multiprocessing.shared_memory holds NumPy arrays"
    )


def data_ptr(input: Tensor) -> int:
    """The address of the first element, of a tensor on the CPU."""
    if input.array.__class__ is Placed:
        raise RuntimeError(
            f"data_ptr: a tensor on {input.device} has no address that a program could use; ask "
            "x.cpu(), or compare tensors with 'is'"
        )
    return K.address(input._numbers("data_ptr"))


def storage_offset(input: Tensor) -> int:
    """Where a view begins in the memory it shows, in elements."""
    if input._view is None:
        return 0
    base = input._view.base
    if base.array.__class__ is Placed:
        return K.offset_between(base.array, input.array)
    return K.offset_between(base._numbers("storage_offset"), input._numbers(""))


@numpy_names
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of what :func:`narrow` shows."""
    if dim >= max(input.ndim, 1):
        raise RuntimeError(f"narrow_copy: expected dim < {input.ndim}, but got dim {dim}")
    return clone(narrow(input, dim, start, length))


def sum_to_size(input: Tensor, *sizes: int | Shape, size: Shape | None = None) -> Tensor:
    """The sum over what broadcasting would repeat: the result has the given size."""
    shape = shape_argument(sizes, size)
    own = tuple(input.shape)[len(input.shape) - len(shape) :]
    if len(own) != len(shape) or any(n not in (1, m) for n, m in zip(shape, own, strict=True)):
        raise RuntimeError(
            f"sum_to_size: size {shape} is not expandable to size {tuple(input.shape)}"
        )
    return input if shape and shape == tuple(input.shape) else sum_to(input, shape=shape)


def resize_(input: Tensor, *sizes: int | Shape, size: Shape | None = None) -> Tensor:
    """Another size in place: the first elements stay, what is new is not initialized."""
    shape = checked_size("resize_", shape_argument(sizes, size))
    if input.requires_grad:
        raise RuntimeError("resize_: cannot resize variables that require grad; use reshape or pad")
    input.data = of_array(K.resized(input.array, shape))
    return input


def resize_as_(input: Tensor, the_template: Tensor) -> Tensor:
    """:func:`resize_` to the size of another tensor."""
    return resize_(input, tuple(the_template.shape))


def set_(input: Tensor, source: Tensor) -> Tensor:
    """Shares the memory of another tensor from now on, in place."""
    if source.dtype is not input.dtype:
        raise RuntimeError(f"set_: expected a tensor of {input.dtype}, got {source.dtype}")
    input.data = source
    return input


def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replaces each element by a Python function of it: slow, and without derivative."""
    _without_gradient("apply_", input)
    return assign(input, _each(input, [callable(v) for v in _flat(input)]), "apply_")


def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replaces each element by a Python function of it and that of another tensor."""
    _without_gradient("map_", input)
    others = _flat(tensor.expand(tuple(input.shape)))
    pairs = zip(_flat(input), others, strict=True)
    return assign(input, _each(input, [callable(a, b) for a, b in pairs]), "map_")


def _without_gradient(op: str, input: Tensor) -> None:
    if input.requires_grad:
        raise TypeError(f"{op}(): can't be used on a tensor that requires grad; detach() it first")


def _flat(input: Tensor) -> list[Any]:
    return input.reshape(-1).tolist()


def _each(input: Tensor, values: list[Any]) -> Tensor:
    return tensor(values, dtype=input.dtype).reshape(tuple(input.shape))
