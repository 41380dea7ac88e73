"""PyTorch's ``torch.cpu``: the one device there is."""

from __future__ import annotations

from typing import Any

from chainrule.absent import Refused, absent
from chainrule.cpu import amp

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


class Stream:
    """A queue of work: on the CPU there is none, what is asked for is computed at once."""

    def wait_stream(self, stream: Stream) -> None:
        """Waits for the work of another queue: it is done."""

    def synchronize(self) -> None:
        """Waits for the work of this queue: it is done."""


class Event(Refused):
    """A mark in a queue of work."""

    reason = "the CPU computes at once, without queues; time.perf_counter() measures time"


class StreamContext:
    """A block whose work goes into a queue: it is computed at once."""

    def __init__(self, stream: Stream):
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


_stream = Stream()


def stream(stream: Stream) -> StreamContext:
    """A block whose work goes into a queue: it is computed at once."""
    return StreamContext(stream)


def current_stream(device: object = None) -> Stream:
    """The queue that work goes into."""
    return _stream


def is_available() -> bool:
    """Whether there is a CPU."""
    return True


def is_initialized() -> bool:
    """Whether the CPU can be used."""
    return True


def device_count() -> int:
    """How many CPUs there are to choose from: one, whatever its cores."""
    return 1


def current_device() -> str:
    """The name of the device in use."""
    return "cpu"


def set_device(device: object) -> None:
    """Computes on the CPU, as always."""


def synchronize(device: object = None) -> None:
    """Waits until all is computed: it is, when a function returns."""


ABSENT = {"get_capabilities": "chainrule.backends.cpu.get_cpu_capability() says what is used"}


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
