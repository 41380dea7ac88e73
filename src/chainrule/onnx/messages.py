"""ONNX's messages, with the numbers that their fields have in ``onnx.proto``.

https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chainrule.backend import K
from chainrule.tensor import Tensor
from chainrule.utils.protobuf import fraction, inside, integer, integers, text
from chainrule.version import __version__

__all__ = ["TEXT", "TYPES", "Attribute", "Size", "Value", "graph", "model", "node", "strings"]
__all__ += ["tensor", "value"]

# The numbers of the types of elements.
TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 16,
}
STRING, TEXT = 8, "text"  # of elements that are no numbers
IR_VERSION = 8  # of opset 18; newer programs read it
Attribute = int | float | str | Sequence[int] | Sequence[float] | Sequence[str]
Size = int | str  # of a dimension: a number, or the name of one that is free


def tensor(name: str, x: Tensor) -> bytes:
    """A TensorProto of numbers."""
    content = bytes(K.bytes_of(K.to_contiguous(x.array)))
    head = integers(1, x.shape) if x.ndim else b""
    return head + integer(2, TYPES[x.dtype.name]) + text(8, name) + inside(9, content)


def strings(name: str, values: Sequence[str]) -> bytes:
    """A TensorProto of texts, of one dimension."""
    words = b"".join([text(6, v) for v in values])
    return integers(1, [len(values)]) + integer(2, STRING) + words + text(8, name)


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, str):
        content, kind = text(4, value), 3
    elif isinstance(value, float):
        content, kind = fraction(2, value), 1
    elif isinstance(value, int):
        content, kind = integer(3, value), 2
    elif value and isinstance(value[0], str):
        content, kind = b"".join([text(9, str(v)) for v in value]), 8
    elif value and isinstance(value[0], float):
        content, kind = b"".join([fraction(7, float(v)) for v in value]), 6
    else:
        content, kind = b"".join([integer(8, int(v)) for v in value]), 7
    return text(1, name) + content + integer(20, kind)


def node(
    kind: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    name: str,
    attributes: Mapping[str, Attribute],
    domain: str = "",
) -> bytes:
    """A NodeProto: an operator with the names of what it reads and makes."""
    parts = [text(1, i) for i in inputs] + [text(2, o) for o in outputs]
    parts += [text(3, name), text(4, kind)]
    parts += [inside(5, _attribute(key, v)) for key, v in attributes.items()]
    return b"".join(parts) + (text(7, domain) if domain else b"")


@dataclass(frozen=True)
class Value:
    """An input or output: its name, the type of its elements, and its shape."""

    name: str
    type: str
    sizes: Sequence[Size]

    @property
    def told(self) -> str:
        """Type and shape for a reader."""
        return f"{self.type} ({', '.join(map(str, self.sizes))})"


def value(v: Value) -> bytes:
    """A ValueInfoProto."""
    dims = [inside(1, integer(1, s) if isinstance(s, int) else text(2, s)) for s in v.sizes]
    kind = STRING if v.type == TEXT else TYPES[v.type]
    return text(1, v.name) + inside(2, inside(1, integer(1, kind) + inside(2, b"".join(dims))))


def graph(
    name: str,
    nodes: Sequence[bytes],
    constants: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
) -> list[bytes]:
    """A GraphProto, in parts."""
    fields = [(1, nodes), (2, [name.encode()]), (5, constants), (11, inputs), (12, outputs)]
    return [inside(number, part) for number, parts in fields for part in parts]


def model(parts: Sequence[bytes], opsets: Mapping[str, int], notes: Mapping[str, str]) -> bytes:
    """A ModelProto of a graph in parts; ``opsets`` are the versions of operators by domain."""
    head = integer(1, IR_VERSION) + text(2, "chainrule") + text(3, __version__)
    tail = [inside(8, text(1, domain) + integer(2, v)) for domain, v in opsets.items()]
    tail += [inside(14, text(1, key) + text(2, v)) for key, v in notes.items()]
    return b"".join([head, inside(7, b"".join(parts)), *tail])
