"""Messages as Protocol Buffers write them: fields one behind the other, each with its number.

A field is a number and a kind, then its content: an integer of as many bytes as it needs, four or
eight bytes, or a length and so many bytes, which may be a message again. TensorBoard's files and
ONNX's are made of them.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "doubles",
    "floats",
    "fraction",
    "inside",
    "integer",
    "integers",
    "mapping",
    "number",
    "text",
]

_INTEGER, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5  # the kinds of fields


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth bit says that more follow."""
    value &= (1 << 64) - 1  # negative numbers as their complement
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number_: int, kind: int, content: bytes) -> bytes:
    return _varint(number_ << 3 | kind) + content


def integer(field: int, value: int) -> bytes:
    """A whole number, an enumeration or a truth value."""
    return _field(field, _INTEGER, _varint(int(value)))


def number(field: int, value: float) -> bytes:
    """A number of 64 bits."""
    return _field(field, _EIGHT, struct.pack("<d", value))


def fraction(field: int, value: float) -> bytes:
    """A number of 32 bits; one that is too large for them is infinite."""
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return _field(field, _FOUR, packed)


def inside(field: int, content: bytes) -> bytes:
    """Bytes, or a message inside this one."""
    return _field(field, _BYTES, _varint(len(content)) + content)


def text(field: int, value: str) -> bytes:
    """A text."""
    return inside(field, value.encode())


def doubles(field: int, values: Sequence[float]) -> bytes:
    """Numbers of 64 bits."""
    return inside(field, struct.pack(f"<{len(values)}d", *values))


def floats(field: int, values: Sequence[float]) -> bytes:
    """Numbers of 32 bits."""
    return inside(field, struct.pack(f"<{len(values)}f", *values))


def integers(field: int, values: Iterable[int]) -> bytes:
    """Whole numbers."""
    return inside(field, b"".join([_varint(int(v)) for v in values]))


def mapping(field: int, values: Mapping[str, bytes]) -> bytes:
    """Messages by name."""
    return b"".join([inside(field, text(1, k) + inside(2, v)) for k, v in values.items()])
