"""Messages as Protocol Buffers write them: fields one behind the other, each with its number.

A field is a number and a kind, then its content: an integer of as many bytes as it needs, four or
eight bytes, or a length and so many bytes, which may be a message again. The numbers below are
those of TensorBoard's ``event.proto``, ``summary.proto``, ``tensor.proto`` and ``graph.proto``.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from chainrule.ops.elementwise.complex_numbers import imag, real
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor

__all__ = [
    "doubles",
    "event",
    "floats",
    "fraction",
    "inside",
    "integer",
    "mapping",
    "number",
    "plugin",
    "shape",
    "strings",
    "summary",
    "tensor",
    "text",
]

_INTEGER, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5  # the kinds of fields

# --- fields ---------------------------------------------------------------------------------------


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


def _integers(field: int, values: Iterable[int]) -> bytes:
    return inside(field, b"".join([_varint(int(v)) for v in values]))


def mapping(field: int, values: Mapping[str, bytes]) -> bytes:
    """Messages by name."""
    return b"".join([inside(field, text(1, k) + inside(2, v)) for k, v in values.items()])


# --- messages -------------------------------------------------------------------------------------


def event(wall_time: float, step: int | None, content: bytes) -> bytes:
    """What happened at a time, in a step; ``content`` is one field of an Event."""
    return number(1, wall_time) + (b"" if step is None else integer(2, step)) + content


def summary(tag: str, content: bytes, metadata: bytes = b"") -> bytes:
    """The field of an Event that holds one value under a name."""
    told = inside(9, metadata) if metadata else b""
    return inside(5, inside(1, text(1, tag) + content + told))


def plugin(name: str, content: bytes = b"") -> bytes:
    """Metadata: the part of TensorBoard that shows a value, and what it needs to know."""
    return inside(1, text(1, name) + (inside(2, content) if content else b""))


def shape(sizes: Sequence[int]) -> bytes:
    """A TensorShapeProto."""
    return b"".join([inside(2, integer(1, size)) for size in sizes])


def strings(values: Sequence[bytes], sizes: Sequence[int]) -> bytes:
    """A TensorProto of texts."""
    return integer(1, 7) + inside(2, shape(sizes)) + b"".join([inside(8, v) for v in values])


# By dtype: the number of the type, and the field that holds its elements.
_TYPES = {
    "float32": (1, 5),
    "float64": (2, 6),
    "int32": (3, 7),
    "uint8": (4, 7),
    "int16": (5, 7),
    "int8": (6, 7),
    "complex64": (8, 9),
    "int64": (9, 10),
    "bool": (10, 11),
    "complex128": (18, 12),
}


def tensor(x: Tensor) -> bytes:
    """A TensorProto of numbers."""
    if x.dtype.name == "float16":
        x = x.float()
    if x.dtype.name not in _TYPES:
        raise ValueError(f"add_tensor: a tensor of type {x.dtype} cannot be written")
    kind, field = _TYPES[x.dtype.name]
    head = integer(1, kind) + inside(2, shape(x.shape))
    if x.dtype.is_complex:
        x = stack([real(x), imag(x)], -1)
    values = x.detach().reshape(-1).tolist()
    if x.dtype.is_floating_point:
        packed = floats(field, values) if x.dtype.name == "float32" else doubles(field, values)
    else:
        packed = _integers(field, values)
    return head + packed
