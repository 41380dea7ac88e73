"""Making, converting, copying and writing arrays."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from chainrule.backend.numpy_kernels import elementwise

__all__ = [
    "Array",
    "ArrayLike",
    "allow_writing",
    "arange",
    "asarray",
    "astype",
    "copy",
    "empty",
    "eye",
    "from_dlpack",
    "from_python",
    "full",
    "is_contiguous",
    "isin",
    "is_shared_inside",
    "linspace",
    "logspace",
    "make_complex",
    "ones",
    "owned",
    "to_contiguous",
    "to_numpy",
    "tril_indices",
    "triu_indices",
    "write",
    "write_index",
    "write_into",
    "zeros",
]

Array = np.ndarray
ArrayLike = (np.ndarray, np.generic)  # what has a type of its own, unlike a Python number
zeros = np.zeros
ones = np.ones
empty = np.empty
full = np.full
eye = np.eye
asarray = np.asarray
from_dlpack = np.from_dlpack
isin = np.isin


def from_python(value: Any, dtype: Any = None) -> np.ndarray:
    """A new array of nested lists, numbers or anything array-like; never shares memory."""
    with np.errstate(over="ignore"):
        return np.array(value, dtype=dtype)


def to_numpy(a: np.ndarray) -> np.ndarray:
    """The same memory as a NumPy array."""
    return a


def astype(a: np.ndarray, dtype: Any) -> np.ndarray:
    # A conversion that overflows (inf to an integer) is the user's business, as in PyTorch.
    with np.errstate(invalid="ignore"):
        return np.asarray(a).astype(dtype)


def copy(a: np.ndarray) -> np.ndarray:
    return np.array(a, order="C")


def to_contiguous(a: np.ndarray) -> np.ndarray:
    return a if a.flags.c_contiguous else np.array(a, order="C")


def is_contiguous(a: np.ndarray) -> bool:
    return bool(a.flags.c_contiguous)


def is_shared_inside(a: np.ndarray) -> bool:
    """Whether two elements of the array share one place in memory (an expanded view)."""
    return a.size > 1 and any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape, strict=True))


def allow_writing(a: np.ndarray) -> None:
    """Lifts NumPy's write protection of a view by ``broadcast_to``; that of its memory stays."""
    if not a.flags.writeable and a.base is not None:
        with contextlib.suppress(ValueError):
            a.flags.writeable = True


def owned(a: Any, shared: bool) -> np.ndarray:
    """``a`` if nobody else can see its memory, else a copy of it."""
    if shared or a.__class__ is not np.ndarray or a.base is not None or not a.flags.writeable:
        return np.array(a, order="C")
    return a


def write(target: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Writes the value into the target's memory; returns the array that holds the result."""
    np.copyto(target, value, casting="unsafe")
    return target


def write_index(target: np.ndarray, index: Any, value: Any) -> np.ndarray:
    """Writes the value at the index of the target; returns the array that holds the result."""
    target[index] = value
    return target


def write_into(raw: Any, target: np.ndarray, *arguments: Any) -> np.ndarray:
    """Writes ``raw(*arguments)`` into the target, without a temporary where NumPy can.

    A compiled kernel makes a new array, so NumPy's function of the same name takes its place.
    """
    ufunc = raw if raw.__class__ is np.ufunc else _UFUNCS.get(raw.__name__)
    if ufunc is not None:
        return ufunc(*arguments, out=target, casting="unsafe")
    return write(target, raw(*arguments))


_UFUNCS = {
    name: f
    for name, f in vars(elementwise).items()
    if name in elementwise.__all__ and f.__class__ is np.ufunc
}


def arange(start: Any, end: Any, step: Any, dtype: Any) -> np.ndarray:
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        return np.arange(start, end, step).astype(dtype, copy=False)
    # Counted, not accumulated: the number of elements is PyTorch's ceil((end - start) / step).
    count = max(0, int(np.ceil((end - start) / step)))
    return (start + step * np.arange(count)).astype(dtype)


def linspace(start: Any, end: Any, steps: int, dtype: Any) -> np.ndarray:
    out = np.linspace(start, end, steps)
    # Integers are truncated towards zero, where NumPy would round down.
    return np.trunc(out).astype(dtype) if np.dtype(dtype).kind in "iu" else out.astype(dtype)


def logspace(start: Any, end: Any, steps: int, base: float, dtype: Any) -> np.ndarray:
    return np.power(base, linspace(start, end, steps, np.result_type(dtype, "float64"))).astype(
        dtype
    )


def tril_indices(row: int, col: int, offset: int, dtype: Any) -> np.ndarray:
    return np.stack(np.tril_indices(row, offset, col)).astype(dtype)


def triu_indices(row: int, col: int, offset: int, dtype: Any) -> np.ndarray:
    return np.stack(np.triu_indices(row, offset, col)).astype(dtype)


def make_complex(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    real, imag = np.broadcast_arrays(real, imag)
    out = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    out.real, out.imag = real, imag
    return out
