"""TensorBoard's messages, with the numbers that their fields have in ``event.proto``,
``summary.proto``, ``tensor.proto`` and ``graph.proto``."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.ops.elementwise.complex_numbers import imag, real
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor
from chainrule.utils.protobuf import (
    doubles,
    floats,
    fraction,
    inside,
    integer,
    integers,
    mapping,
    number,
    text,
)

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
        packed = integers(field, values)
    return head + packed
