"""Writing files so that nothing is lost: the old file is whole until the new one is."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

__all__ = ["write_atomically"]


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file completely or not at all.

    The content goes to a temporary file beside it, onto the disk, and takes the name in one step: a
    process killed at any moment leaves the old file or the new one.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(
            prefix=f".{path.name}.", suffix=".tmp", dir=path.parent
        )
    except OSError as error:
        raise type(error)(error.errno, f"save: cannot write: {error.strerror}", str(path)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            what = f"save: {error.strerror}; the file was not changed"
            raise type(error)(error.errno, what, str(path)) from None
        raise
    _settle(path.parent)


def _settle(folder: Path) -> None:
    """Puts the new name onto the disk, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
