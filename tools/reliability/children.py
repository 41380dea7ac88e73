"""Children of this process: forked, so that they start at once, and ended from outside."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["forked", "status_of"]


def forked(act: Callable[[], Any], seconds: float = 120.0) -> int:
    """The id of a child that does this and ends: with 0, or with 1 if it raised.

    One that hangs is ended by a signal after some seconds.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside kernels' threads
        child = os.fork()
    if child:
        return child
    status = 1
    signal.alarm(int(seconds))
    try:
        act()
        status = 0
    except BaseException:  # noqa: BLE001 - told here: what called this must not go on twice
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def status_of(child: int) -> int:
    """Waits for a child: its exit code, negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
