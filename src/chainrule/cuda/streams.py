"""Streams of a GPU. XLA does the work of a GPU in the order of the program, so all streams are one:
what PyTorch's programs do with them changes nothing, and is right."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from chainrule.cuda.places import Event, needed, synchronize
from chainrule.placement import device as _device

__all__ = [
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "set_stream",
    "stream",
]


class Stream:
    """A queue of work on a GPU; there is one, in which work is done in the order of the program.

    Args:
        device: the GPU, by default the current one.
        priority: as PyTorch's, which changes nothing.
    """

    def __init__(self, device: Any = None, priority: int = 0):
        self.device_index, self.priority = needed("Stream", device), priority

    @property
    def device(self) -> _device:
        """The GPU."""
        return _device("cuda", self.device_index)

    def synchronize(self) -> None:
        """Waits until the GPU has done what it was given."""
        synchronize(self.device_index)

    def query(self) -> bool:
        """Whether the GPU has done what it was given; waits for that."""
        self.synchronize()
        return True

    def wait_stream(self, stream: Stream) -> None:
        """Lets what is given from now on wait for what another stream has: it does."""

    def wait_event(self, event: Event) -> None:
        """Lets what is given from now on wait for a moment: it does."""

    def record_event(self, event: Event | None = None) -> Event:
        """Notes this moment in an event, a new one unless it is given."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.device_index == self.device_index

    def __hash__(self) -> int:
        return hash(("cuda stream", self.device_index))

    def __repr__(self) -> str:
        return f"<chainrule.cuda.Stream device={self.device}>"


class StreamContext:
    """A block whose work goes into a stream; None changes nothing."""

    def __init__(self, stream: Stream | None):
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


def stream(stream: Stream | None) -> StreamContext:
    """A block whose work goes into a stream; None changes nothing."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The stream of a GPU."""
    return Stream(needed("current_stream", device))


def default_stream(device: Any = None) -> Stream:
    """The stream of a GPU."""
    return Stream(needed("default_stream", device))


def set_stream(stream: Stream) -> None:
    """Has work go into a stream: there is one."""
