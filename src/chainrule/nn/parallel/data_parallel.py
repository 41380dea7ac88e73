"""A module on all devices of one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chainrule.nn.module.base import Module
from chainrule.typing import Device

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """y = module(x), where the module is: nothing is shared out.

    As in PyTorch without a GPU; :class:`DistributedDataParallel` shares batches. The module is
    ``.module``, and its parameters have ``module.`` before their names.

    Shape: that of the module.

    Args:
        module: the module to call.
        device_ids: the GPUs that PyTorch shares a batch among.
        output_device: the GPU that it gathers the result on.
        dim: the dimension along which PyTorch cuts the batch.

    >>> from chainrule import nn
    >>> [name for name, _ in nn.DataParallel(nn.Linear(2, 1)).named_parameters()]
    ['module.weight', 'module.bias']
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int | Device] | None = None,
        output_device: int | Device | None = None,
        dim: int = 0,
    ):
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[int | Device] | None = None,
    output_device: int | Device | None = None,
    dim: int = 0,
    module_kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """``module(*inputs, **module_kwargs)``: nothing is shared out."""
    given = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return module(*given, **(module_kwargs or {}))
