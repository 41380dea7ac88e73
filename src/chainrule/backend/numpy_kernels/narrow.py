"""float16 and bfloat16: stored in 16 bits, computed with in float32.

NumPy rounds after every step of a computation in float16, and the arithmetic of ``ml_dtypes`` does
so in bfloat16: a sum of many small numbers stands still. So operations take copies in float32, and
what comes out is rounded once.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from chainrule.backend import dtypes

__all__ = ["from_bfloat16_bits", "is_narrow", "kind_of", "narrowed", "widened"]

T = TypeVar("T")


def is_narrow(dtype: np.dtype) -> bool:
    """Whether numbers of this type are to be computed with in float32."""
    if dtype.itemsize != 2:
        return False
    return dtypes.from_array_dtype(dtype).category == dtypes.FLOATING


def kind_of(dtype: np.dtype) -> str:
    """The kind of a type by NumPy's letters; NumPy takes bfloat16 for raw bytes."""
    return "f" if is_narrow(dtype) else dtype.kind


def widened(a: T) -> T:
    """A copy in float32 of an array of a narrow type; anything else as it is."""
    if isinstance(a, np.ndarray) and is_narrow(a.dtype):
        return a.astype(np.float32)  # type: ignore[return-value]
    return a


def narrowed(a: np.ndarray | np.generic, dtype: np.dtype) -> np.ndarray:
    """Floating numbers rounded to a type, to infinity where they are too large for it; anything
    else as it is."""
    if a.dtype.kind != "f" or a.dtype == dtype:
        return np.asarray(a)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(a).astype(dtype)


def from_bfloat16_bits(bits: np.ndarray) -> np.ndarray:
    """The float32 numbers whose upper halves these 16 bits are: what bfloat16 is."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
