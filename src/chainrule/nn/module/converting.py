"""Modules in other types, on other devices, in another order in memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Self

from chainrule.attributes import memory_format
from chainrule.autograd.modes import no_grad
from chainrule.backend import devices, dtypes
from chainrule.nn.module.walking import Tree
from chainrule.nn.parameter import is_lazy
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.patterns import empty_like
from chainrule.placement import device
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Device, DType

__all__ = ["Convertible"]


def _is_place(value: object) -> bool:
    number = isinstance(value, int) and not isinstance(value, bool)
    return number or isinstance(value, device) or (isinstance(value, str) and value not in _TYPES)


_TYPES = {name for d in dtypes.DTYPES for name in (d.name, f"chainrule.{d.name}")}


def _moved(t: Tensor, to: device) -> Tensor:
    """On a device; unlike a batch, the same in all processes that compute together."""
    home = to.home()
    return t.to(to) if home is None or not t.is_cpu else of_array(devices.put(t.array, home))


class Convertible(Tree):
    """What changes all parameters and buffers of a module at once."""

    def to(
        self,
        *args: Device | DType | Tensor | bool | None,
        **kwargs: Device | DType | memory_format | bool | None,
    ) -> Self:
        """Converts floating parameters and buffers to a dtype, those of four and five dimensions
        to a memory format, and moves all to a device."""
        format: Any = kwargs.pop("memory_format", None)
        unknown = set(kwargs) - {"device", "dtype", "non_blocking"}
        if unknown:
            raise TypeError(f"to: got an unexpected keyword argument {sorted(unknown)[0]!r}")
        targets: tuple[Any, ...] = (*args, kwargs.get("device"), kwargs.get("dtype"))
        for target in targets:
            if _is_place(target):
                self._move(device(target))
            elif isinstance(target, Tensor):
                self._convert_floating(target.dtype)
                self._move(target.device)
            elif target is not None and not isinstance(target, bool):
                self._convert_floating(dtypes.as_dtype(target))
        if format is not None:
            self._arrange(format)
        return self

    def _move(self, to: device) -> Self:
        with no_grad():
            for tensor in itertools.chain(self.parameters(), self.buffers()):
                if is_lazy(tensor):
                    tensor.set_device(to)
                else:
                    tensor.data = _moved(tensor.detach(), to)
                    if tensor.grad is not None:
                        tensor.grad = _moved(tensor.grad.detach(), to)
        return self

    def _arrange(self, format: memory_format) -> None:
        for tensor in itertools.chain(self.parameters(), self.buffers()):
            if not is_lazy(tensor) and tensor.ndim in (4, 5):
                tensor.data = tensor.data.to(memory_format=format)
                if tensor.grad is not None:
                    tensor.grad = tensor.grad.detach().to(memory_format=format)

    def _convert_floating(self, dtype: dtypes.dtype) -> Self:
        if dtype.category < dtypes.FLOATING:
            raise TypeError(f"to: a module's tensors can only be floating or complex, got {dtype}")
        return self._convert(dtype, lambda t: t.dtype.category >= dtypes.FLOATING)

    def _convert(self, dtype: dtypes.dtype, which: Callable[[Tensor], bool]) -> Self:
        with no_grad():
            for tensor in itertools.chain(self.parameters(), self.buffers()):
                if is_lazy(tensor):
                    tensor.set_dtype(dtype)
                elif which(tensor):
                    tensor.data = cast(tensor.detach(), dtype)
                    if tensor.grad is not None:
                        tensor.grad = cast(tensor.grad.detach(), dtype)
        return self

    def float(self) -> Self:
        """Converts to float32."""
        return self._convert(dtypes.float32, Tensor.is_floating_point)

    def double(self) -> Self:
        """Converts to float64."""
        return self._convert(dtypes.float64, Tensor.is_floating_point)

    def half(self) -> Self:
        """Converts to float16."""
        return self._convert(dtypes.float16, Tensor.is_floating_point)

    def type(self, dst_type: DType) -> Self:
        """Converts all parameters and buffers, those of integers too."""
        return self._convert(dtypes.as_dtype(dst_type), lambda t: True)

    def bfloat16(self) -> Self:
        """Converts to bfloat16."""
        return self._convert(dtypes.bfloat16, Tensor.is_floating_point)

    def cpu(self) -> Self:
        """Moves all parameters and buffers to the CPU."""
        return self.to("cpu")

    def cuda(self, device: int | Device | None = None) -> Self:
        """Moves all parameters and buffers to a GPU."""
        return self.to("cuda" if device is None else device)

    def xpu(self, device: int | Device | None = None) -> Self:
        """Refuses: XLA has no such devices."""
        return self.to("xpu")

    def to_empty(self, *, device: Device | None, recurse: bool = True) -> Self:
        """New memory for all parameters and buffers, with any values in it."""
        self.to(device)
        for tensor in itertools.chain(self.parameters(recurse), self.buffers(recurse)):
            if not is_lazy(tensor):
                tensor.data = empty_like(tensor.detach())
        return self
