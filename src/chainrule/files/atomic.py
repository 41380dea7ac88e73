"""Writing files so that nothing is lost: the old file is whole until the new one is."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

try:
    import fcntl
except ImportError:  # Windows: two writers are not kept apart there
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "BINARY",
    "Buffer",
    "check_room",
    "locked",
    "remove_begun",
    "sync_folder",
    "write_atomically",
]

BINARY = getattr(os, "O_BINARY", 0)  # without it, Windows changes the ends of lines
Buffer: TypeAlias = bytes | bytearray | memoryview


def write_atomically(path: Path, content: Buffer | Iterable[Buffer]) -> None:
    """Writes a file, given whole or in parts, completely or not at all.

    The content goes to a temporary file beside it, onto the disk, and takes the name in one step: a
    process killed at any moment leaves the old file or the new one. What a killed one has begun is
    removed by the next that writes there. A new file gets the permissions that the system gives to
    new files (umask), an overwritten one keeps its own.
    """
    parts = [content] if isinstance(content, (bytes, bytearray, memoryview)) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_begun(path)
        handle, temporary = _begin(path)
    except OSError as error:
        raise type(error)(error.errno, f"save: cannot write: {error.strerror}", str(path)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # while it is locked: nobody takes it for begun and left
                os.replace(temporary, path)
        if fcntl is None:  # an open file cannot be renamed there
            os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            what = f"save: {error.strerror}; the file was not changed"
            raise type(error)(error.errno, what, str(path)) from None
        raise
    sync_folder(path.parent)


def _begin(path: Path) -> tuple[int, Path]:
    """A temporary file beside the path, open and locked, with the permissions it is to have."""
    while True:
        temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}.tmp"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666)
        _lock(handle, wait=True)
        if temporary.exists():
            break
        os.close(handle)  # another writer took it for left before it was locked
    with contextlib.suppress(OSError):
        if path.exists():
            os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
    return handle, temporary


def remove_begun(path: Path) -> None:
    """Removes what writers of this file left that are no more: nobody holds the lock on it."""
    if fcntl is None:
        return
    for left in path.parent.glob(f".{_escaped(path.name)}.*.tmp"):
        with contextlib.suppress(OSError):
            handle = os.open(left, os.O_WRONLY)
            try:
                if _lock(handle, wait=False):
                    os.unlink(left)
            finally:
                os.close(handle)


def _escaped(name: str) -> str:
    """A name as a pattern that matches it alone."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


@contextlib.contextmanager
def locked(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Keeps other writers of a folder waiting; readers are not concerned.

    Gives whether the lock is ours: never where the system has none, nor where another has it and
    ``wait`` is false.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield False
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield _lock(handle, wait)
    finally:
        os.close(handle)  # which gives the lock back


def _lock(handle: int, wait: bool) -> bool:
    """Whether the lock is now ours; False on a file system that has no locks, too."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def check_room(folder: Path, size: int) -> None:
    """Raises OSError where a folder, which need not be there yet, has no room for ``size`` bytes.

    Where the system can, the room is taken for a moment: quotas and limits are noticed, too.
    """
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    what = f"the disk has no room: {size} bytes are needed and {free} are free"
    if free < size:
        raise OSError(errno.ENOSPC, what, str(place))
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EOPNOTSUPP):  # of a file system that cannot say
            return
        why = f"there is no room for {size} bytes: {error.strerror}"
        raise OSError(error.errno, why, str(place)) from None


def sync_folder(folder: Path) -> None:
    """Puts the new names in a folder onto the disk, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
