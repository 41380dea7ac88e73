"""How many threads compute: those of the compiled kernels and those of the BLAS under NumPy."""

from __future__ import annotations

import os

from chainrule import backend
from chainrule.backend import openblas

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_num_threads",
    "set_num_threads",
    "share_among",
    "use_deterministic_algorithms",
]

_wanted: int | None = None
_deterministic = False


def _available() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _apply() -> None:
    count = get_num_threads()
    native = backend.native_module()
    if native is not None:
        native.set_num_threads(1 if _deterministic else count)
    openblas.set_threads(1 if _deterministic else count)


def get_num_threads() -> int:
    """How many threads an operation may use."""
    return _available() if _wanted is None else _wanted


def share_among(processes: int) -> None:
    """Gives each of several processes on this machine its share, unless a number was chosen."""
    if _wanted is None and processes > 1:
        set_num_threads(max(1, _available() // processes))


def set_num_threads(num: int) -> None:
    """Lets an operation use at most so many threads, in the compiled kernels and in BLAS.

    Where the system grants fewer (``ulimit -u``, a limit of a cgroup, a filter of system calls),
    those there are do the work; results of the compiled kernels are the same.
    """
    if not isinstance(num, int) or isinstance(num, bool):
        raise TypeError(f"set_num_threads: expected a whole number, got {type(num).__name__}")
    if not 1 <= num <= 1024:
        raise RuntimeError(f"set_num_threads: expected 1 to 1024 threads, got {num}")
    global _wanted
    _wanted = num
    _apply()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Makes results independent of the number of threads, too.

    They never depend on the run. Products may differ in the last bit with the number of threads
    that share them, so with True everything runs on one thread, which is slower. ``warn_only`` is
    for operations that depend on the run: there are none.
    """
    global _deterministic
    _deterministic = bool(mode)
    _apply()


def are_deterministic_algorithms_enabled() -> bool:
    """Whether :func:`use_deterministic_algorithms` is on."""
    return _deterministic
