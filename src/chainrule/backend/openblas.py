"""OpenBLAS, the BLAS under NumPy and SciPy: how many threads it may have, and how many it can get.

OpenBLAS does not expect to be refused a thread, as under ``ulimit -u``, a limit of a cgroup or a
filter of system calls: it sends its own process SIGINT, or waits forever for a thread that is not
there. So it never asks for more than can be had: when it is loaded, when it is told a number, and
after a fork, when it starts its threads again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
from pathlib import Path
from typing import Any

__all__ = ["before_loading", "set_threads", "startable"]

_VARIABLE = "OPENBLAS_NUM_THREADS"
_PREFIXES = ("", "scipy_")
_SUFFIXES = ("", "64_", "_", "_64_")


class _Threads:
    """Threads that only wait, of the C library's own: Python's take ten times as long."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        self.create, self.join = libc.pthread_create, libc.pthread_join
        self.join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
        self.post, self.wait = libc.sem_post, libc.sem_wait
        self.init, self.destroy = libc.sem_init, libc.sem_destroy

    def startable(self, count: int) -> int:
        """How many of so many more can be started now."""
        over = (ctypes.c_long * 16)()  # room for a semaphore on every system
        self.init(over, 0, 0)
        started: list[ctypes.c_ulong] = []
        for _ in range(count):
            thread = ctypes.c_ulong()
            if self.create(ctypes.byref(thread), None, self.wait, over):
                break
            started.append(thread)
        for _ in started:
            self.post(over)
        for thread in started:
            self.join(thread, None)
        self.destroy(over)
        return len(started)


_threads = _Threads() if sys.platform == "linux" else None


def startable(count: int) -> int:
    """How many of so many more threads this process can start now; all, where nobody can tell."""
    return count if _threads is None or count < 1 else _threads.startable(count)


class _Library:
    """One OpenBLAS in this process."""

    def __init__(self, path: str):
        self.library = ctypes.CDLL(path)
        self.set_number = self._function("openblas_set_num_threads")
        self.config = self._function("openblas_get_config")

    def _function(self, name: str) -> Any:  # ctypes has no name for it
        names = [f"{p}{name}{s}" for p in _PREFIXES for s in _SUFFIXES]
        known = [n for n in names if hasattr(self.library, n)]
        return getattr(self.library, known[0]) if known else None

    def _variable(self, name: str) -> ctypes.c_int | None:
        try:
            return ctypes.c_int.in_dll(self.library, name)
        except ValueError:  # another build
            return None

    def started(self) -> int:
        """How many threads it has, or will start again after a fork."""
        number = self._variable("blas_num_threads")
        return 1 if number is None else number.value

    def largest(self) -> int:
        """For how many threads it was built."""
        if self.config is None:
            return 1024
        self.config.restype = ctypes.c_char_p
        found = re.search(rb"MAX_THREADS=(\d+)", self.config())
        return int(found[1]) if found else 1024

    def set_threads(self, count: int) -> None:
        """Uses so many threads, or as many as can be had."""
        running = self._variable("blas_server_avail")
        if running is not None and running.value == 0:  # after a fork: it starts them now
            self.start_no_more_than(1 + startable(self.started() - 1))
        started = self.started()
        more = min(count, self.largest()) - started
        if more > 0:
            count = started + startable(more)
        if self.set_number is not None:
            self.set_number(count)

    def start_no_more_than(self, count: int) -> None:
        """Has it start fewer threads when it next does."""
        for name in ("blas_num_threads", "blas_cpu_number"):
            number = self._variable(name)
            if number is not None:
                number.value = min(number.value, count)


class _Loaded:
    """The OpenBLAS libraries in this process. They are looked for again when the system has loaded
    something since: a look takes a thousand times as long as to ask for that."""

    def __init__(self) -> None:
        self.libraries: list[_Library] = []
        self.known: set[str] = set()
        self.at = -1  # how many libraries had been loaded at the last look
        self.iterate = getattr(ctypes.CDLL(None), "dl_iterate_phdr", None)
        self.callback = _VISIT(self._visit)
        self.counted = -2

    def _visit(self, info: Any, size: int, _: Any) -> int:
        if size >= ctypes.sizeof(_Info):
            self.counted = info.contents.adds
        return 1  # the first tells enough

    def now(self) -> list[_Library]:
        """Those of now."""
        if self.iterate is not None:
            self.iterate(self.callback, None)
        if self.counted != self.at:
            self._look()
            self.at = self.counted if self.counted >= 0 else -1
        return self.libraries

    def _look(self) -> None:
        lines = [line for line in _MAPS.read_text().splitlines() if "openblas" in line]
        for path in sorted({line.split(maxsplit=5)[5].strip() for line in lines} - self.known):
            self.known.add(path)
            with contextlib.suppress(OSError):
                self.libraries.append(_Library(path))


class _Info(ctypes.Structure):
    """What the system tells about a library that is loaded (``struct dl_phdr_info``)."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_void_p),
        ("count", ctypes.c_uint16),
        ("adds", ctypes.c_ulonglong),  # how many were ever loaded into this process
    )


_VISIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Info), ctypes.c_size_t, ctypes.c_void_p)
_MAPS = Path("/proc/self/maps")
_loaded = _Loaded() if sys.platform == "linux" and _MAPS.exists() else None


def _libraries() -> list[_Library]:
    return [] if _loaded is None else _loaded.now()


def set_threads(count: int) -> None:
    """Lets each OpenBLAS in this process use so many threads, or as many as can be had."""
    for library in _libraries():
        library.set_threads(count)


def before_loading(module: str) -> None:
    """To be called before a module is imported that loads an OpenBLAS, which then starts a thread
    for each processor."""
    if module in sys.modules or _VARIABLE in os.environ or sys.platform != "linux":
        return
    more = len(os.sched_getaffinity(0)) - 1
    granted = startable(more)
    if granted < more:
        os.environ[_VARIABLE] = str(granted + 1)


class _Fork:
    """OpenBLAS ends its threads before a fork; parent and child start them again when they next
    compute. What they can get is seen before, where a thread of ours has ended by the time the
    system counts them."""

    def __init__(self) -> None:
        self.short: list[tuple[_Library, int]] = []

    def before(self) -> None:
        """Sees how many threads each library could start."""
        libraries = [(library, library.started() - 1) for library in _libraries()]
        wanted = sum([more for _, more in libraries])
        granted = startable(wanted)
        share = granted // max(len(libraries), 1)
        self.short = [(library, 1 + share) for library, _ in libraries] if granted < wanted else []

    def after(self) -> None:
        """Tells it to the libraries, in the parent and in the child."""
        for library, count in self.short:
            library.start_no_more_than(count)


before_loading("numpy")
if hasattr(os, "register_at_fork"):
    _fork = _Fork()
    os.register_at_fork(
        before=_fork.before, after_in_parent=_fork.after, after_in_child=_fork.after
    )
