"""The arrays in a safetensors file, bfloat16 among them, which NumPy does not know."""

from __future__ import annotations

from typing import Any

import safetensors

from chainrule.backend import K, dtypes
from chainrule.typing import Array

__all__ = ["read_tensors"]

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
    "BF16": "uint16",  # its bits
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}


def read_tensors(content: bytes, *, as_stored: bool) -> dict[str, Array]:
    """The arrays of a file by name; bfloat16 as float32, which needs no extra, if not
    ``as_stored``."""
    return {name: _array(told, as_stored) for name, told in safetensors.deserialize(content)}


def _array(told: dict[str, Any], as_stored: bool) -> Array:
    kind = told["dtype"]
    if kind not in _TYPES:
        raise ValueError(f"elements of type {kind} are not known; known are {', '.join(_TYPES)}")
    array = K.from_buffer(told["data"], _TYPES[kind], -1, 0).reshape(told["shape"])
    if kind != "BF16":
        return array
    if not as_stored:
        return K.from_bfloat16_bits(array)
    return array.view(dtypes.bfloat16.array_dtype)
