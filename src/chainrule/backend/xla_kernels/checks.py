"""Rules that values have to keep: checked at once, or handed on while a step is traced.

A number that is being traced has no value yet. What traces says with :func:`handing` who takes the
checks; they then become a result of the program.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax

from chainrule.backend.tracing import NotLowered

__all__ = ["Untraceable", "check", "handing", "is_traced", "needs_values"]

Check = Callable[[Any, Callable[[], Exception]], None]


class Untraceable(NotLowered):
    """A step that cannot become one program of XLA's: it needs values while it is traced."""


class _Thread(threading.local):
    taker: Check | None = None


_thread = _Thread()


def is_traced(*arrays: Any) -> bool:
    """Whether some of these stand for values that are not there yet."""
    return any([isinstance(a, jax.core.Tracer) for a in arrays])


@contextlib.contextmanager
def handing(taker: Check) -> Iterator[None]:
    """Hands all checks of traced values by this thread to a function."""
    before, _thread.taker = _thread.taker, taker
    try:
        yield
    finally:
        _thread.taker = before


def check(ok: Any, error: Callable[[], Exception]) -> None:
    """Raises the error unless a truth value holds."""
    if not is_traced(ok):
        if not bool(ok):
            raise error()
    elif _thread.taker is not None:
        _thread.taker(ok, error)
    else:
        raise Untraceable(f"a check of values is traced, and nobody takes it: {error()}")


def needs_values(kernel: str, why: str, *arrays: Any) -> None:
    """Refuses to be traced."""
    if is_traced(*arrays):
        raise Untraceable(f"the kernel {kernel} needs values: {why}")
