"""Reads files of events back: records, and messages as fields by number."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

__all__ = ["Fields", "doubles", "events", "fields", "only", "values"]

Fields = dict[int, list[Any]]


def crc32c(data: bytes) -> int:
    """The checksum bit by bit, as its definition has it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 * (crc & 1))
    return crc ^ 0xFFFFFFFF


def checked(data: bytes, told: bytes) -> bytes:
    crc = crc32c(data)
    assert struct.unpack("<I", told)[0] == (((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
    return data


def records(content: bytes) -> list[bytes]:
    found = []
    while content:
        (length,) = struct.unpack("<Q", checked(content[:8], content[8:12]))
        found.append(checked(content[12 : 12 + length], content[12 + length : 16 + length]))
        content = content[16 + length :]
    return found


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(message: bytes) -> Fields:
    """The content of each field, by its number: integers, floats, or bytes."""
    found: Fields = {}
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        number, kind = key >> 3, key & 7
        value: Any
        if kind == 0:
            value, at = varint(message, at)
        elif kind == 2:
            size, at = varint(message, at)
            assert at + size <= len(message)
            value, at = message[at : at + size], at + size
        else:
            assert kind in (1, 5)
            size = 8 if kind == 1 else 4
            (value,) = struct.unpack("<d" if kind == 1 else "<f", message[at : at + size])
            at += size
        found.setdefault(number, []).append(value)
    return found


def events(folder: Path) -> list[Fields]:
    """All events of the files in a folder; the first of each file tells the version."""
    found = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        first, *rest = [fields(r) for r in records(path.read_bytes())]
        assert first[3] == [b"brain.Event:2"]
        found += rest
    return found


def values(folder: Path) -> dict[str, list[Fields]]:
    """The values in a folder by tag; field 0 has the step."""
    found: dict[str, list[Fields]] = {}
    for event in events(folder):
        for summary in event.get(5, []):
            for value in fields(summary)[1]:
                told = fields(value)
                told[0] = event.get(2, [None])
                found.setdefault(told[1][0].decode(), []).append(told)
    return found


def doubles(packed: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(packed) // 8}d", packed))


def only(folder: Path, tag: str) -> Fields:
    """The one value under a tag."""
    (value,) = values(folder)[tag]
    return value
