"""Which modules are called, for whoever has to know while a function runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from chainrule.nn.module.base import Module

__all__ = ["CALLS", "noting"]


class _Thread(threading.local):
    note: Callable[[Module], None] | None = None


_thread = _Thread()
_call = Module.__call__


def _noted_call(self: Module, *args: Any, **kwargs: Any) -> Any:
    if _thread.note is not None:
        _thread.note(self)
    return _call(self, *args, **kwargs)


# A class whose __call__ is one of these computes what its forward does, and nothing else.
CALLS = (_call, _noted_call)


@contextlib.contextmanager
def noting(note: Callable[[Module], None]) -> Iterator[None]:
    """Calls ``note(module)`` for each module that this thread calls in the block.

    Where another function is patched into :class:`Module`, that one is left alone.
    """
    patched = Module.__call__ not in CALLS
    before, _thread.note = _thread.note, note
    if not patched:
        Module.__call__ = _noted_call  # type: ignore[method-assign]
    try:
        yield
    finally:
        _thread.note = before
        if not patched:
            Module.__call__ = _call  # type: ignore[method-assign]
