"""PyTorch's ``torch.accelerator``: the GPU or TPU that JAX finds; what can be asked is answered
without one, too."""

from __future__ import annotations

from typing import Any

from chainrule.absent import Refused, absent, refused
from chainrule.backend import devices, gpus
from chainrule.placement import current_number, set_current_number
from chainrule.tensor import device

__all__ = [
    "Graph",
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]

NONE = (
    "there is no accelerator: chainrule computes on the CPU; ask accelerator.is_available() first"
)
NO_STREAMS = "XLA orders the work of an accelerator by itself; leave the stream out"


def _kind() -> str | None:
    """The kind of accelerator that there is."""
    return next((kind for kind in ("cuda", "tpu") if devices.available(kind)), None)


def _needed(name: str) -> str:
    kind = _kind()
    if kind is None:
        raise RuntimeError(f"accelerator.{name}: {NONE}")
    return kind


def is_available() -> bool:
    """Whether there is an accelerator."""
    return _kind() is not None


def device_count() -> int:
    """How many accelerators there are."""
    kind = _kind()
    return 0 if kind is None else devices.count(kind)


def current_accelerator(check_available: bool = False) -> device | None:
    """The accelerator in use; None where there is none.

    >>> import chainrule as torch
    >>> place = torch.accelerator.current_accelerator()
    >>> place is None or place.type in ("cuda", "tpu")
    True
    """
    kind = _kind()
    return None if kind is None else device(kind)


def synchronize(device: object = None) -> None:
    """Waits until all is computed. On the CPU it is, when a function returns."""
    kind = _kind() if devices.is_imported() else None
    if kind is not None:
        gpus.synchronize(kind, current_number() if device is None else int(device))  # type: ignore[call-overload]


def empty_cache() -> None:
    """Hands memory of the accelerator back: XLA keeps it for what comes."""


class device_index:
    """A block that computes on the accelerator of this number; None changes nothing."""

    def __init__(self, device: int | None):
        self.idx = device

    def __enter__(self) -> None:
        self._before = current_number()
        if self.idx is not None:
            set_device_index(self.idx)

    def __exit__(self, *error: object) -> None:
        set_current_number(self._before)


class Graph(Refused):
    """Work recorded on an accelerator, to be repeated."""

    reason = "chainrule.compile records a step and repeats it"


def set_device_index(device: int) -> None:
    """Has a kind of devices alone mean the one of this number."""
    set_current_number(devices.find(_needed("set_device_index"), int(device)).number)


def current_device_index() -> int:
    """The number of the accelerator that a kind alone means."""
    _needed("current_device_index")
    return current_number()


def get_device_capability(device: int | None = None) -> tuple[int, int]:
    """The generation of a GPU: (9, 0) of an H200."""
    kind = _needed("get_device_capability")
    return gpus.capability(kind, current_number() if device is None else device)


def get_memory_info(device: int | None = None) -> tuple[int, int]:
    """The bytes of its memory that are free, and all."""
    kind = _needed("get_memory_info")
    account = gpus.memory(kind, current_number() if device is None else device)
    limit = account.get("bytes_limit", 0)
    return limit - account.get("bytes_in_use", 0), limit


set_device_idx, current_device_idx = set_device_index, current_device_index
current_stream = refused("accelerator.current_stream", NO_STREAMS)
set_stream = refused("accelerator.set_stream", NO_STREAMS)

ABSENT = dict.fromkeys(
    (
        "empty_host_cache",
        "max_memory_allocated",
        "max_memory_reserved",
        "memory_allocated",
        "memory_reserved",
        "memory_stats",
        "reset_accumulated_memory_stats",
        "reset_peak_memory_stats",
    ),
    "chainrule.cuda has it for GPUs",
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
