"""Safetensors files: written part by part, read into the memory that the tensors keep, checked.

A file is the length of a header (8 bytes), the header (JSON: for each tensor its type, shape and
place) and the tensors. Those that chainrule writes hold a checksum of all the rest among the
metadata, so that a single changed bit is noticed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import IO, Any

from chainrule.backend import K, dtypes
from chainrule.files.atomic import Buffer
from chainrule.typing import Array

__all__ = ["CHECKSUM", "LARGEST_HEADER", "Damaged", "Unsupported", "parts", "read"]

LARGEST_HEADER = 100_000_000  # bytes, as safetensors has it
MOST_DIMENSIONS = 64  # as NumPy has it
CHECKSUM = "sha256"  # among the metadata: of the file with zeros in its place
_EMPTY = "0" * 64
_METADATA = "__metadata__"
_TYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}
_CODES = {name: code for code, name in _TYPES.items()}
_SIZES = {code: 1 if code == "BOOL" else int(code.lstrip("BUIFC")) // 8 for code in _TYPES}


class Damaged(ValueError):
    """What is read is no safetensors file, or not the one that was written."""


class Unsupported(ValueError):
    """What is read is whole, but holds what chainrule has no tensors for."""


# --- writing --------------------------------------------------------------------------------------


def parts(arrays: Mapping[str, Array], told: Mapping[str, str]) -> list[Buffer]:
    """A file as the parts to write one behind the other: no tensor is copied."""
    # Wide types first, so that each array begins at a multiple of its own width.
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    header: dict[str, Any] = {_METADATA: {**told, CHECKSUM: _EMPTY}}
    data, start = [], 0
    for name in order:
        array = arrays[name]
        code = _CODES.get(array.dtype.name)
        if code is None:
            raise TypeError(f"save: safetensors cannot hold {array.dtype.name} ({name!r})")
        content = K.bytes_of(array)
        end = start + content.nbytes
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [start, end]}
        data.append(content)
        start = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    sealed = text.replace(_EMPTY.encode(), _digest(text, data).encode(), 1)
    return [len(text).to_bytes(8, "little"), sealed, *data]


def _digest(header: bytes, data: list[memoryview]) -> str:
    digest = hashlib.sha256(header)
    for part in data:
        digest.update(part)
    return digest.hexdigest()


# --- reading --------------------------------------------------------------------------------------


def read(
    f: IO[bytes], size: int | None, *, as_stored: bool
) -> tuple[dict[str, str], dict[str, Array]]:
    """The metadata and the arrays of a file, by name, from where it stands.

    Args:
        f: open for reading bytes; nothing behind the file is read.
        size: how many bytes there are, if that is known.
        as_stored: whether bfloat16 stays what it is; else it becomes float32, which needs no extra.
    """
    head = f.read(8)
    length = int.from_bytes(head, "little")
    if len(head) < 8 or length > LARGEST_HEADER or (size is not None and length > size - 8):
        raise Damaged(f"it begins with {head[:8]!r}, which is no length of a header")
    text = _exactly(f, length)
    told, entries = _header(text, None if size is None else size - 8 - length)
    stored = told.get(CHECKSUM)
    digest = hashlib.sha256(text.replace(stored.encode(), _EMPTY.encode(), 1) if stored else b"")
    arrays = {}
    for name, entry in entries:
        content = _exactly(f, entry["data_offsets"][1] - entry["data_offsets"][0])
        if stored:
            digest.update(content)
        arrays[name] = _array(name, entry, content, as_stored)
    if stored and stored != digest.hexdigest():
        raise Damaged("its checksum is not that of what it holds: bytes were changed or lost")
    return told, arrays


def _exactly(f: IO[bytes], size: int) -> bytearray:
    """So many bytes, in memory of their own."""
    content = bytearray(size)
    rest = memoryview(content)
    while rest:
        # Files and buffers fill memory that is given; what has only read() is asked for pieces.
        count = f.readinto(rest) if hasattr(f, "readinto") else _copied(f, rest)
        if not count:
            raise Damaged(f"{len(rest)} of {size} bytes are missing at its end")
        rest = rest[count:]
    return content


def _copied(f: IO[bytes], target: memoryview) -> int:
    piece = f.read(min(len(target), 1 << 20))
    target[: len(piece)] = piece
    return len(piece)


def _header(text: bytearray, size: int | None) -> tuple[dict[str, str], list[tuple[str, Any]]]:
    """The metadata, and the tensors in the order in which they lie; all that is said is checked."""
    try:
        header = json.loads(text.decode(), object_pairs_hook=_without_repeats)
        told = _metadata(header.pop(_METADATA, None))
        entries = sorted(header.items(), key=lambda item: tuple(item[1]["data_offsets"]))
        end = 0
        for name, entry in entries:
            end = _checked(name, entry, end)
    except Unsupported:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Damaged(f"its header is damaged: {error}") from error
    if size is not None and size != end:
        raise Damaged(f"{size} bytes follow the header, which speaks of {end}")
    return told, entries


def _metadata(told: Any) -> dict[str, str]:
    if told is None:
        return {}
    if not isinstance(told, dict) or not all(isinstance(v, str) for v in told.values()):
        raise ValueError("its metadata are no text")
    if not told.get(CHECKSUM, "").isascii():
        raise ValueError(f"its checksum is {told[CHECKSUM]!r:.80}")
    return told


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _checked(name: str, entry: dict[str, Any], start: int) -> int:
    """Where a tensor ends that has to begin where the last one ends."""
    kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in _SIZES:
        raise Unsupported(
            f"{name!r} has elements of type {kind}, which chainrule has no tensors of; convert it "
            f"where it was made, to one of {', '.join(_SIZES)}"
        )
    if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS:
        raise ValueError(f"{name!r} has the shape {shape!r:.80}")
    for number in (*shape, begin, end):
        if type(number) is not int or number < 0:
            raise ValueError(f"{name!r} has a size or place {number!r}")
    # An empty tensor takes no bytes, whatever its other dimensions are; but these are limited, too.
    if math.prod(n for n in shape if n) * _SIZES[kind] >= 2**63:
        raise ValueError(f"{name!r} has the shape {shape!r:.80}, which no tensor can have")
    if begin != start or end - begin != math.prod(shape) * _SIZES[kind]:
        raise ValueError(f"{name!r} of shape {shape} lies from {begin} to {end}")
    return int(end)


def _array(name: str, entry: dict[str, Any], content: bytearray, as_stored: bool) -> Array:
    kind = entry["dtype"]
    if kind == "BOOL" and content.translate(None, b"\0\1"):
        raise Damaged(f"{name!r} holds a truth value that is neither 0 nor 1")
    raw = "uint16" if kind == "BF16" else _TYPES[kind]
    array = K.from_buffer(content, raw, -1, 0).reshape(entry["shape"])
    if kind != "BF16":
        return array
    return array.view(dtypes.bfloat16.array_dtype) if as_stored else K.from_bfloat16_bits(array)
