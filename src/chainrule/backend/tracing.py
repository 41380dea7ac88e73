"""Whether XLA traces what is computed: then values are not there yet."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

__all__ = ["NotLowered", "is_tracing", "tracing"]


class NotLowered(RuntimeError):
    """A program that cannot become one of XLA's; says why."""


class _Thread(threading.local):
    depth = 0


_thread = _Thread()


def is_tracing() -> bool:
    """Whether this thread traces a program."""
    return _thread.depth > 0


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """Says inside that a program is traced."""
    _thread.depth += 1
    try:
        yield
    finally:
        _thread.depth -= 1
