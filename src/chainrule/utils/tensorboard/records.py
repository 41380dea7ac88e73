"""Files of events: records with checksums, one behind the other.

A record is the length of its content in eight bytes, the checksum of these, the content, and its
checksum. Checksums are CRC-32C, rotated and shifted so that one of data with checksums differs.

https://www.tensorflow.org/tutorials/load_data/tfrecord
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import threading
import time
import weakref
from pathlib import Path

from chainrule.utils.tensorboard.messages import event, text

__all__ = ["EventFile", "crc32c", "record"]

_POLYNOMIAL = 0x82F63B78  # of CRC-32C, its bits reversed
_files = itertools.count()


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE = [_remainder(byte) for byte in range(256)]


def crc32c(data: bytes) -> int:
    """The checksum of bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    table, crc = _TABLE, 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(content: bytes) -> bytes:
    """A record with this content."""
    length = struct.pack("<Q", len(content))
    return length + _masked(length) + content + _masked(content)


class EventFile:
    """A file of events in a folder, under a name of its own.

    Events reach the disk when ``max_queue`` wait for it, when ``flush_secs`` have passed, and when
    the file is closed.
    """

    def __init__(self, folder: str, max_queue: int, flush_secs: float, suffix: str):
        Path(folder).mkdir(parents=True, exist_ok=True)
        name = (
            f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}."
            f"{next(_files)}{suffix}"
        )
        self.path = Path(folder) / name
        self._file = self.path.open("wb")
        # A program that ends without closing it has written all.
        self._closed = weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._waiting = 0
        self._flushed = time.monotonic()
        self.add(event(time.time(), None, text(3, "brain.Event:2")))
        self.flush()

    def add(self, message: bytes) -> None:
        """Writes an event."""
        with self._lock:
            self._file.write(record(message))
            self._waiting += 1
            late = time.monotonic() - self._flushed >= self._flush_secs
            if self._waiting >= self._max_queue or late:
                self._to_disk()

    def _to_disk(self) -> None:
        self._file.flush()
        self._waiting, self._flushed = 0, time.monotonic()

    def flush(self) -> None:
        """Hands all events to the system."""
        with self._lock:
            self._to_disk()

    def close(self) -> None:
        """Ends the file."""
        with self._lock:
            self._closed()
