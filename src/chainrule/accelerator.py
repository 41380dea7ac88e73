"""PyTorch's ``torch.accelerator`` where there is none: what can be asked is answered."""

from __future__ import annotations

from typing import Any

from chainrule.absent import Refused, absent, refused
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

NONE = "chainrule computes on the CPU and uses no accelerator; ask accelerator.is_available() first"


def is_available() -> bool:
    """Whether there is an accelerator: never here."""
    return False


def device_count() -> int:
    """How many accelerators there are: none."""
    return 0


def current_accelerator(check_available: bool = False) -> device | None:
    """The accelerator in use: None.

    >>> import chainrule as torch
    >>> place = torch.accelerator.current_accelerator()
    >>> "cpu" if place is None else place.type
    'cpu'
    """
    return None


def synchronize(device: object = None) -> None:
    """Waits until all is computed: it is, when a function returns."""


def empty_cache() -> None:
    """Hands memory of the accelerator back: none is held."""


class device_index:
    """A block that computes on the accelerator of this number; None changes nothing."""

    def __init__(self, device: int | None):
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            set_device_index(self.idx)

    def __exit__(self, *error: object) -> None:
        return None


class Graph(Refused):
    """Work recorded on an accelerator, to be repeated."""

    reason = NONE


set_device_index = refused("accelerator.set_device_index", NONE)
set_device_idx = refused("accelerator.set_device_idx", NONE)
current_device_index = refused("accelerator.current_device_index", NONE)
current_device_idx = refused("accelerator.current_device_idx", NONE)
current_stream = refused("accelerator.current_stream", NONE)
set_stream = refused("accelerator.set_stream", NONE)
get_device_capability = refused("accelerator.get_device_capability", NONE)
get_memory_info = refused("accelerator.get_memory_info", NONE)

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
    NONE,
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
