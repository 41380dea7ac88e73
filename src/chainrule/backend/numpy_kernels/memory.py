"""Making, converting, copying and writing arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.backend.numpy_kernels import elementwise
from chainrule.backend.numpy_kernels.operands import Operand

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "address",
    "allow_writing",
    "arange",
    "Array",
    "ArrayLike",
    "arrange",
    "asarray",
    "astype",
    "bytes_of",
    "copy",
    "empty",
    "eye",
    "from_buffer",
    "from_dlpack",
    "from_python",
    "full",
    "is_contiguous",
    "is_in_order",
    "is_shared_inside",
    "isin",
    "linspace",
    "logspace",
    "make_complex",
    "memory_order",
    "offset_between",
    "ones",
    "owned",
    "resized",
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


def from_python(value: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> np.ndarray:
    """A new array of nested lists, numbers or anything array-like; never shares memory."""
    with np.errstate(over="ignore"):
        return np.array(value, dtype=dtype)


def to_numpy(a: np.ndarray) -> np.ndarray:
    """The same memory as a NumPy array."""
    return a


def astype(a: Operand, dtype: npt.DTypeLike) -> np.ndarray:
    """A copy in another type."""
    # A conversion that overflows (inf to an integer) is the user's business, as in PyTorch.
    with np.errstate(invalid="ignore"):
        return np.asarray(a).astype(dtype)


def copy(a: np.ndarray) -> np.ndarray:
    """A copy in row-major order."""
    return _in_order(a)


# Arrays with more elements than this are turned in bands of so many columns, which is up to eight
# times as fast: lines of memory stay in the cache until all of their elements are copied.
_MANY, _BAND = 1 << 14, 16


def _in_order(a: np.ndarray | np.generic) -> np.ndarray:
    """A copy in row-major order, also of what lies in memory in another."""
    if a.size < _MANY or a.ndim < 2 or abs(a.strides[-1]) <= abs(a.strides[-2]):
        return np.array(a, order="C")
    source, out = np.asarray(a), np.empty(a.shape, a.dtype)
    for j in range(0, a.shape[-1], _BAND):
        out[..., j : j + _BAND] = source[..., j : j + _BAND]
    return out


def arrange(a: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """A copy with its last dimensions in another order in memory, which names them from the
    outermost to the innermost, counted from the end."""
    n = a.ndim
    dims = [*range(n - len(order)), *[d + n for d in order]]
    out = np.empty([a.shape[d] for d in dims], a.dtype).transpose(np.argsort(dims))
    out[...] = a
    return out


def is_in_order(a: np.ndarray, order: tuple[int, ...]) -> bool:
    """Whether the elements lie one behind the other, the dimensions nested in this order."""
    if a.ndim != len(order):
        return False
    step = a.itemsize
    for d in reversed(order):
        if a.shape[d] != 1:
            if a.strides[d] != step:
                return False
            step *= a.shape[d]
    return True


def memory_order(a: np.ndarray) -> tuple[int, ...] | None:
    """The dimensions from the longest steps to the shortest; None if some share their memory."""
    if any(s <= 0 < n - 1 for s, n in zip(a.strides, a.shape, strict=True)):
        return None
    return tuple(sorted(range(-a.ndim, 0), key=lambda d: -a.strides[d]))


def to_contiguous(a: np.ndarray) -> np.ndarray:
    """``a`` itself if its memory is in row-major order, else a copy that is."""
    return a if a.flags.c_contiguous else _in_order(a)


def bytes_of(a: np.ndarray) -> memoryview:
    """The memory of an array in row-major order, as bytes."""
    return a.reshape(-1).view(np.uint8).data


def is_contiguous(a: np.ndarray) -> bool:
    """Whether the elements lie one behind the other in row-major order."""
    return a.flags.c_contiguous


def is_shared_inside(a: np.ndarray) -> bool:
    """Whether two elements of the array share one place in memory (an expanded view)."""
    return a.size > 1 and any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape, strict=True))


def allow_writing(a: np.ndarray) -> None:
    """Lifts NumPy's write protection of a view by ``broadcast_to``; that of its memory stays."""
    if not a.flags.writeable and a.base is not None:
        with contextlib.suppress(ValueError):
            a.flags.writeable = True


def owned(a: np.ndarray | np.generic, shared: bool) -> np.ndarray:
    """``a`` if nobody else can see its memory, else a copy of it."""
    if shared or a.__class__ is not np.ndarray or a.base is not None or not a.flags.writeable:
        return _in_order(a)
    return a


def write(target: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Writes the value into the target's memory; returns the array that holds the result."""
    np.copyto(target, value, casting="unsafe")
    return target


def write_index(target: np.ndarray, index: slice | np.ndarray, value: Operand) -> np.ndarray:
    """Writes the value at the index of the target; returns the array that holds the result."""
    target[index] = value
    return target


def write_into(
    raw: Callable[..., np.ndarray], target: np.ndarray, *arguments: Operand
) -> np.ndarray:
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


def from_buffer(buffer: Any, dtype: npt.DTypeLike, count: int, offset: int) -> np.ndarray:
    """The memory of a buffer as a vector; a copy of it if it may not be written."""
    out = np.frombuffer(buffer, dtype, count, offset)
    return out if out.flags.writeable else out.copy()


def arange(start: float, end: float, step: float, dtype: npt.DTypeLike) -> np.ndarray:
    """start, start + step, ... below (for a negative step above) ``end``."""
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        return np.arange(start, end, step).astype(dtype, copy=False)
    # Counted, not accumulated: the number of elements is PyTorch's ceil((end - start) / step).
    count = max(0, int(np.ceil((end - start) / step)))
    return (start + step * np.arange(count)).astype(dtype)


def linspace(start: complex, end: complex, steps: int, dtype: npt.DTypeLike) -> np.ndarray:
    """``steps`` numbers at equal distances, the first ``start``, the last ``end``."""
    out = np.linspace(start, end, steps)
    # Integers are truncated towards zero, where NumPy would round down.
    return np.trunc(out).astype(dtype) if np.dtype(dtype).kind in "iu" else out.astype(dtype)


def logspace(
    start: complex, end: complex, steps: int, base: float, dtype: npt.DTypeLike
) -> np.ndarray:
    """base^x for the numbers x of ``linspace``."""
    return np.power(base, linspace(start, end, steps, np.result_type(dtype, "float64"))).astype(
        dtype
    )


def tril_indices(row: int, col: int, offset: int, dtype: npt.DTypeLike) -> np.ndarray:
    """The rows and columns (2, n) on and below a diagonal of a matrix, row by row."""
    return np.stack(np.tril_indices(row, offset, col)).astype(dtype)


def triu_indices(row: int, col: int, offset: int, dtype: npt.DTypeLike) -> np.ndarray:
    """The rows and columns (2, n) on and above a diagonal of a matrix, row by row."""
    return np.stack(np.triu_indices(row, offset, col)).astype(dtype)


def make_complex(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    """real + imag i, broadcast."""
    real, imag = np.broadcast_arrays(real, imag)
    out = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    out.real, out.imag = real, imag
    return out


def offset_between(base: np.ndarray, view: np.ndarray) -> int:
    """The place of the first element of a view in the memory of its base, in elements."""
    start, inside = (a.__array_interface__["data"][0] for a in (base, view))
    return (inside - start) // base.itemsize


def address(a: np.ndarray) -> int:
    """Where the first element lies."""
    return a.__array_interface__["data"][0]


def resized(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The first elements in another shape; those it has none for are what memory held."""
    out = np.empty(shape, a.dtype)
    count = min(out.size, a.size)
    out.reshape(-1)[:count] = a.reshape(-1)[:count]
    return out
