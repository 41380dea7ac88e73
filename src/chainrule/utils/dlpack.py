"""Exchange of tensors with other libraries without a copy."""

from __future__ import annotations

from typing import Any

from chainrule.absent import absent
from chainrule.ops.creation.from_data import from_dlpack as from_exporter
from chainrule.tensor import Tensor

__all__ = ["from_dlpack", "to_dlpack"]

ABSENT = {"DLDeviceType": "tensors live in main memory, which DLPack calls (1, 0)"}


class _Exported:
    """A capsule as the array it came from."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # main memory


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule that a library makes its own tensor from, once; the memory is shared."""
    return tensor.__dlpack__(max_version=(1, 0))


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor that shares the memory of another library's array, or of a capsule of it.

    >>> import chainrule as torch
    >>> x = torch.zeros(2)
    >>> from_dlpack(to_dlpack(x)).add_(1)
    tensor([1., 1.])
    >>> x
    tensor([1., 1.])
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Exported(ext_tensor)
    return from_exporter(ext_tensor)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
