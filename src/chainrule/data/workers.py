"""Processes that read batches ahead.

Every worker has a pipe of its own, answers in the order it was asked, and is asked in turn, so the
batches come in one order whatever the speed of the workers. A thread in the worker sends what is
ready, so that reading goes on while the loader's process is busy; where no thread can be had, the
worker waits for it instead.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import multiprocessing
import os
import pickle
import queue
import random as python_random
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from typing import Any

from chainrule import backend
from chainrule.backend import K, dtypes
from chainrule.data.fetch import Fetcher
from chainrule.random import default_generator
from chainrule.tensor import Tensor
from chainrule.typing import Indexed

__all__ = ["WorkerInfo", "WorkerPool", "get_worker_info"]

_PATIENCE = 5.0  # seconds that a worker gets to end by itself


@dataclasses.dataclass
class WorkerInfo:
    """What a worker knows of itself: its number, how many there are, its seed and its dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker of a :class:`DataLoader`: who it is. None in the main process."""
    return _info


@dataclasses.dataclass
class _Failure:
    """An exception on its way from a worker to the loader."""

    kind: type[Exception]
    text: str

    def reraise(self) -> None:
        kind = RuntimeError if issubclass(self.kind, StopIteration) else self.kind
        try:
            error = kind(_Message(self.text))
        except Exception:  # noqa: BLE001 (an exception class of a user's can ask for anything)
            error = RuntimeError(self.text)
        raise error


class _Message(str):
    """A text that a KeyError, too, shows as it is."""

    def __repr__(self) -> str:
        return str(self)


# --- in the worker --------------------------------------------------------------------------------


class _Worker:
    def __init__(
        self,
        info: WorkerInfo,
        fetcher: Fetcher,
        init_fn: Callable[[int], Any] | None,
        settings: tuple[Any, Any],
    ):
        self.info = info
        self.fetcher = fetcher
        self.init_fn = init_fn
        self.settings = settings
        self.failure: _Failure | None = None

    def run(self, pipe: Connection) -> None:
        global _info
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's business
        _info = self.info
        backend.use(self.settings[0])
        dtypes.set_default_dtype(self.settings[1])
        inbox = _Inbox(pipe)
        send = _sender(inbox)
        epoch = 0
        for kind, content in inbox.messages():
            if kind == "epoch":
                epoch, seed, state = content
                self.failure = None
                self.attempt(self.begin, seed, state)
            else:
                result = self.attempt(self.fetcher, content)
                send(self.packed(epoch, self.failure or result))

    def attempt(self, function: Callable[..., Any], *args: Any) -> Any:
        if self.failure is not None:
            return None
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001 (it is raised again in the main process)
            self.failure = self.told(error)

    def told(self, error: Exception) -> _Failure:
        notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
        trace = "".join(traceback.format_exception(error))
        text = (
            f"DataLoader worker {self.info.id}: {type(error).__name__}: {error}{notes}\n\n"
            f"In the worker:\n{trace}"
        )
        return _Failure(type(error), text)

    def begin(self, seed: int, state: Tensor | None) -> None:
        self.info.seed = seed
        default_generator.manual_seed(seed)
        python_random.seed(seed)
        K.seed_global(seed)
        if self.init_fn is not None:
            init_fn, self.init_fn = self.init_fn, None
            init_fn(self.info.id)
        self.fetcher.begin()
        if state is not None:
            default_generator.set_state(state)

    def packed(self, epoch: int, result: Any) -> bytes:
        state = default_generator.get_state()
        try:
            return pickle.dumps((epoch, result, state))
        except Exception as error:  # noqa: BLE001 (whatever a user's object raises)
            if isinstance(result, _Failure):
                return pickle.dumps((epoch, _Failure(RuntimeError, result.text), state))
            return self.packed(epoch, self.told(error))


class _Inbox:
    """What the main process asks of a worker."""

    def __init__(self, pipe: Connection):
        self.pipe = pipe
        self.read: collections.deque[Any] = collections.deque()  # and not yet done

    def receive(self) -> None:
        """Waits for a message; None if the main process is gone."""
        parent = multiprocessing.parent_process()
        ready = wait([self.pipe] if parent is None else [self.pipe, parent.sentinel])
        try:
            self.read.append(self.pipe.recv() if self.pipe in ready else None)
        except (EOFError, OSError):
            self.read.append(None)

    def messages(self) -> Iterator[tuple[str, Any]]:
        """All messages, until the main process asks no more or is gone."""
        while True:
            if not self.read:
                self.receive()
            message = self.read.popleft()
            if message is None:
                return
            yield message


def _sender(inbox: _Inbox) -> Callable[[bytes], None]:
    """Sends answers in a thread of its own, or in the caller's where no thread can be had."""
    outbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    thread = threading.Thread(target=_send_all, args=(outbox, inbox.pipe), daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return lambda answer: _send_and_listen(answer, inbox)
    return outbox.put


def _send_all(outbox: queue.SimpleQueue[bytes], pipe: Connection) -> None:
    with contextlib.suppress(OSError):  # nobody reads any more
        while True:
            pipe.send_bytes(outbox.get())


def _send_and_listen(answer: bytes, inbox: _Inbox) -> None:
    """Sends an answer as ``Connection.send_bytes`` does, and reads what comes meanwhile: two
    processes that both wait until the other reads would wait forever."""
    size = len(answer)
    head = struct.pack("!i", size) if size < 1 << 31 else struct.pack("!iQ", -1, size)
    left = memoryview(head + answer)
    with socket.socket(fileno=os.dup(inbox.pipe.fileno())) as end, contextlib.suppress(OSError):
        while left and None not in inbox.read:
            readable, writable, _ = select.select([end], [end], [])
            if readable:
                inbox.receive()
            elif writable:
                left = left[end.send(left, socket.MSG_DONTWAIT) :]


# --- in the main process --------------------------------------------------------------------------

_warnings_lock = threading.Lock()


@contextlib.contextmanager
def _not_warned_of_threads() -> Iterator[None]:
    """From 3.12 on, Python warns of threads when it forks: those of BLAS, which survive it well.
    Filters of warnings belong to the process, so one thread at a time changes them."""
    if sys.version_info < (3, 12):
        yield
        return
    with _warnings_lock, warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*multi-threaded.*", DeprecationWarning)
        yield


class WorkerPool:
    """Worker processes, each with its pipe."""

    def __init__(
        self,
        fetcher: Fetcher,
        dataset: Indexed,
        count: int,
        init_fn: Callable[[int], Any] | None,
        context: BaseContext,
    ):
        self.epoch = 0
        self.owner = os.getpid()
        self.pipes: list[Connection] = []
        self.processes: list[Any] = []
        settings = (backend.current(), dtypes.get_default_dtype())
        launcher: Any = context  # the base class has no Process, each start method has its own
        for i in range(count):
            worker = _Worker(WorkerInfo(i, count, 0, dataset), fetcher, init_fn, settings)
            ours, theirs = context.Pipe()
            process = launcher.Process(target=worker.run, args=(theirs,), daemon=True)
            with _not_warned_of_threads():
                try:
                    process.start()
                except OSError as error:  # a limit of processes
                    self.close()
                    raise OSError(
                        error.errno,
                        f"DataLoader: worker {i + 1} of {count} could not be started "
                        f"({error.strerror}); use fewer workers, or num_workers=0",
                    ) from None
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def alive(self) -> bool:
        """Whether no worker has ended."""
        return all([process.is_alive() for process in self.processes])

    def begin(self, seed: int, states: Sequence[Tensor | None]) -> int:
        """Starts an epoch: worker i is seeded by seed + i, or goes on from its state."""
        self.epoch += 1
        for i, state in enumerate(states):
            self.send(i, ("epoch", (self.epoch, seed + i, state)))
        return self.epoch

    def ask(self, worker: int, indices: Any) -> None:
        """Asks a worker for the batch of these indices."""
        self.send(worker, ("batch", indices))

    def send(self, worker: int, message: tuple[str, Any]) -> None:
        """Sends a worker a message: what it is, and its content."""
        try:
            self.pipes[worker].send(message)
        except OSError:
            self.died(worker)

    def receive(self, worker: int, number: int, timeout: float) -> tuple[Any, Tensor]:
        """The worker's next answer in this epoch, and the state of its generator after it."""
        if number != self.epoch:
            raise RuntimeError(
                "DataLoader: with persistent_workers=True one epoch goes on at a time, and another "
                "has begun since"
            )
        pipe, process = self.pipes[worker], self.processes[worker]
        deadline = time.monotonic() + timeout if timeout else None
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = wait([pipe, process.sentinel], left)
            if pipe in ready:
                try:
                    epoch, result, state = pickle.loads(pipe.recv_bytes())
                except (EOFError, OSError):
                    self.died(worker)
                if epoch != self.epoch:
                    continue  # of an epoch that was left early
                if isinstance(result, _Failure):
                    result.reraise()
                return result, state
            if ready:
                self.died(worker)
            raise RuntimeError(
                f"DataLoader timed out after {timeout} seconds waiting for worker {worker}"
            )

    def died(self, worker: int) -> None:
        """Says that a worker has ended, and how."""
        process = self.processes[worker]
        process.join(_PATIENCE)
        raise RuntimeError(
            f"DataLoader worker {worker} (pid {process.pid}) exited unexpectedly with exit code "
            f"{process.exitcode}; with num_workers=0 the error shows in the main process"
        )

    def close(self) -> None:
        """Ends the workers; one that does not end by itself is stopped."""
        if os.getpid() != self.owner:  # in a worker that was forked from this process
            return
        for pipe in self.pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)
        deadline = time.monotonic() + _PATIENCE
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.terminate()
                process.join()
            process.close()
        for pipe in self.pipes:
            pipe.close()
        self.pipes, self.processes = [], []


def context_named(name: str | BaseContext | None) -> BaseContext:
    """A multiprocessing context, also by its name (None: the system's default)."""
    if name is None or isinstance(name, str):
        methods = multiprocessing.get_all_start_methods()
        if name is not None and name not in methods:
            raise ValueError(
                "DataLoader: multiprocessing_context option should specify a valid start method in "
                f"{methods}, but got multiprocessing_context={name!r}"
            )
        return multiprocessing.get_context(name)
    if not isinstance(name, BaseContext):
        raise TypeError(
            "DataLoader: multiprocessing_context option should be a valid context object or a "
            f"string specifying the start method, but got multiprocessing_context={name}"
        )
    return name
