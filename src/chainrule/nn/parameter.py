"""Tensors that belong to a module: parameters, which are learned, and buffers, which are not."""

from __future__ import annotations

from typing import Any, Self, TypeGuard

from chainrule.autograd.forward_ad import Dual
from chainrule.autograd.modes import no_grad
from chainrule.placement import default_place, device as _device
from chainrule.backend import K, devices, dtypes
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.core.arguments import checked_size, is_limited
from chainrule.tensor import Tensor, of_array
from chainrule.typing import ArrayLike, Device, DType, Shape

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "is_lazy",
    "update_buffer",
]


class Parameter(Tensor):
    """A tensor that a module learns: assigned to an attribute, it is among its parameters.

    >>> from chainrule import nn, zeros
    >>> nn.Parameter(zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    def __init__(self, data: ArrayLike | None = None, requires_grad: bool = True):
        source = (
            of_array(K.zeros(0, dtypes.get_default_dtype().array_dtype)) if data is None else data
        )
        self._hold(as_tensor(source).array)
        if requires_grad:
            self.requires_grad_()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if is_limited():
            checked_size("deepcopy", tuple(self.shape))
        copied = super().__deepcopy__(memo)
        copied.grad = None  # as in PyTorch
        return copied

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor that is part of a module's state but not learned, such as a running mean."""

    persistent: bool

    def __init__(self, data: ArrayLike | None = None, *, persistent: bool = True):
        source = (
            of_array(K.zeros(0, dtypes.get_default_dtype().array_dtype)) if data is None else data
        )
        self._hold(as_tensor(source).array)
        self.persistent = persistent


class _Uninitialized(Tensor):
    """A tensor whose shape is not known before the first input has been seen."""

    becomes: type[Tensor]
    _dtype: dtypes.dtype

    @property
    def array(self) -> Any:
        raise ValueError(
            f"Attempted to use an uninitialized {self.becomes.__name__.lower()}: its shape is not "
            "known yet. Call the module with an input first, or load a state_dict"
        )

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. Call the module with "
            "an input first, or load a state_dict"
        )

    @property
    def dtype(self) -> dtypes.dtype:
        return self._dtype

    def set_dtype(self, dtype: dtypes.dtype) -> None:
        """Says what type the tensor will have."""
        self._dtype = dtype

    @property
    def device(self) -> _device:
        return self._place

    def set_device(self, to: _device) -> None:
        """Says where the tensor will be."""
        self._place = to

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        self.needs_grad = requires_grad
        return self

    def materialize(
        self, shape: Shape, device: Device | None = None, dtype: DType | None = None
    ) -> None:
        """Gives the tensor its shape; its values are zero until they are initialized."""
        chosen = self._dtype if dtype is None else dtypes.as_dtype(dtype)
        self.__class__ = self.becomes  # type: ignore[assignment]
        self.array = K.zeros(tuple(shape), chosen.array_dtype)  # type: ignore[misc]
        place = (self._place if device is None else _device(device)).home()
        if place is not None:
            self.array = devices.put(self.array, place)  # type: ignore[misc]

    def _start(self, dtype: DType | None, device: Device | None) -> None:
        self._place = default_place() if device is None else _device(device)
        self._dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
        self.needs_grad, self._node, self._grad, self._store, self._view = False, *[None] * 4

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        make, args = self._again()
        return memo.setdefault(id(self), make(*args))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._again()

    def _again(self) -> tuple[Any, ...]:
        """What makes another one, and its arguments."""
        raise NotImplementedError


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter of a lazy module, before the first input has been seen."""

    becomes = Parameter

    def __init__(
        self, requires_grad: bool = True, device: Device | None = None, dtype: DType | None = None
    ):
        self._start(dtype, device)
        self.needs_grad = requires_grad

    def _again(self) -> tuple[Any, ...]:
        return type(self), (self.needs_grad, self._place, self._dtype)


class UninitializedBuffer(_Uninitialized, Buffer):
    """A buffer of a lazy module, before the first input has been seen."""

    becomes = Buffer

    def __init__(
        self,
        requires_grad: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
        persistent: bool = True,
    ):
        self._start(dtype, device)
        self.needs_grad, self.persistent = requires_grad, persistent

    def _again(self) -> tuple[Any, ...]:
        return type(self), (self.needs_grad, self._place, self._dtype, self.persistent)


def is_lazy(tensor: object) -> TypeGuard[_Uninitialized]:
    """Whether a tensor's shape is not known yet."""
    return isinstance(tensor, _Uninitialized)


def update_buffer(buffer: Tensor, value: Tensor) -> None:
    """Writes a new value into a buffer, without tangents: to forward mode it is a constant."""
    while isinstance(value.array, Dual) and not isinstance(buffer.array, Dual):
        value = value.array.primal
    with no_grad():
        buffer.copy_(value.detach())
