"""What all calls of several processes are made of: arguments, results, and work that goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.backend import processes
from chainrule.distributed.groups import ProcessGroup, ReduceOp, member
from chainrule.ops.index.assignment import copy_
from chainrule.tensor import Tensor, of_array

__all__ = [
    "Source",
    "Work",
    "alike",
    "call_of",
    "checked",
    "finish",
    "into_all",
    "into_one",
    "listed",
    "nothing",
    "reduction",
]


class Source:
    """Whose message was received."""

    rank = -1


class Work:
    """A call that goes on while the program does something else."""

    def __init__(self, name: str, run: Callable[[], Any]):
        self.name = name
        self._run, self._result = run, None
        self._error: Exception | None = None
        self._from = Source()
        self._thread = threading.Thread(target=self._go, name=f"chainrule-{name}", daemon=True)
        self._thread.start()

    def _go(self) -> None:
        try:
            self._result = self._run()
        except Exception as error:  # noqa: BLE001
            self._error = error  # for wait()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Returns when the result is there; raises what went wrong."""
        self._thread.join(None if timeout is None else timeout.total_seconds())
        if self._thread.is_alive():
            raise processes.DistBackendError(f"{self.name}: not done within {timeout}")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether the call has come to an end."""
        return not self._thread.is_alive()

    def is_success(self) -> bool:
        """Whether it ended without an error."""
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        """What went wrong."""
        return self._error

    def result(self) -> Any:
        """What the call wrote: waits for it."""
        self.wait()
        return self._result

    def source_rank(self) -> int:
        """Whose message was received: waits for it."""
        self.wait()
        return self._from.rank


def finish(
    call: processes.Call, kind: str, args: Sequence[Any], write: Callable[[Any], Any], later: bool
) -> Work | None:
    """Runs a call on raw arrays, and writes what comes out; in a thread of its own if asked."""

    def run() -> Any:
        found = processes.collective(call, kind, *args)
        with no_grad():
            return write(found)

    if later:
        return Work(call.name, run)
    run()
    return None


def call_of(op: str, group: ProcessGroup | None, tag: int | None = None) -> processes.Call:
    """The next call of a group, of which this process is a member."""
    ours = member(op, group)
    return processes.call(op, ours.members, tag, ours.timeout)


def checked(op: str, name: str, given: Any) -> Tensor:
    """A tensor, or an error."""
    if not isinstance(given, Tensor):
        raise TypeError(f"{op}: expected {name} to be a tensor, got {type(given).__name__}")
    return given


def listed(op: str, name: str, given: Any, count: int) -> list[Tensor]:
    """A list with a tensor for each process."""
    if not isinstance(given, (list, tuple)):
        raise TypeError(
            f"{op}: expected {name} to be a list of tensors, got {type(given).__name__}"
        )
    if len(given) != count:
        raise ValueError(f"{op}: {name} has {len(given)} tensors for {count} processes")
    return [checked(op, f"{name}[{i}]", t) for i, t in enumerate(given)]


def alike(op: str, name: str, given: Sequence[Tensor], like: Tensor) -> Sequence[Tensor]:
    """Tensors of the dtype and shape of another."""
    for t in given:
        if t.dtype != like.dtype or t.shape != like.shape:
            raise ValueError(
                f"{op}: {name} has a tensor of {t.dtype}, shape {list(t.shape)}, for tensors of "
                f"{like.dtype}, shape {list(like.shape)}"
            )
    return given


def reduction(op: str, given: Any) -> str:
    """The name of a reduction among the raw ones."""
    if not isinstance(given, ReduceOp):
        raise TypeError(f"{op}: op is to be one of ReduceOp, like ReduceOp.SUM, got {given!r}")
    return str(given.value)


def into_all(tensors: Sequence[Tensor]) -> Callable[[Any], list[Tensor]]:
    """Writes arrays into these tensors."""
    return lambda arrays: [copy_(t, of_array(a)) for t, a in zip(tensors, arrays, strict=True)]


def into_one(tensor: Tensor) -> Callable[[Any], list[Tensor]]:
    """Writes an array into this tensor."""
    return lambda array: [copy_(tensor, of_array(array))]


def nothing(found: Any) -> list[Tensor]:
    """Writes nothing."""
    return []
