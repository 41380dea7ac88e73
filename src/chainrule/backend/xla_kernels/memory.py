"""Making, converting, copying and writing arrays of JAX.

Nothing is written in place: what a write returns is the array that holds the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from chainrule.backend import dtypes
from chainrule.backend.xla_kernels.checks import Untraceable, needs_values

__all__ = [
    "allow_writing",
    "arrange",
    "asarray",
    "astype",
    "bytes_of",
    "copy",
    "from_bfloat16_bits",
    "from_python",
    "is_contiguous",
    "is_in_order",
    "is_shared_inside",
    "make_complex",
    "memory_order",
    "narrowed",
    "offset_between",
    "owned",
    "resized",
    "to_contiguous",
    "to_numpy",
    "widened",
    "write",
    "write_index",
    "write_into",
]

Array = Any


def asarray(a: Array, dtype: Any = None, copy: bool | None = None) -> Array:
    """``a`` itself, or in another type."""
    return a if dtype is None else a.astype(dtype)


def from_python(value: Array, dtype: Any = None) -> Array:
    """The same numbers, in another type if one is given."""
    return asarray(value, dtype)


def to_numpy(a: Array) -> np.ndarray:
    """A copy on the host, as a NumPy array."""
    if isinstance(a, jax.core.Tracer):
        raise Untraceable("it reads numbers of a tensor")
    return np.array(a)


def bytes_of(a: Array) -> memoryview:
    """The elements in row-major order, as bytes."""
    return to_numpy(a).reshape(-1).view(np.uint8).data


def astype(a: Array, dtype: Any) -> Array:
    """A copy in another type."""
    return jnp.asarray(a).astype(dtype)


def copy(a: Array) -> Array:
    """``a``: it never changes."""
    return a


def arrange(a: Array, order: tuple[int, ...]) -> Array:
    """``a``: the order of elements in memory is XLA's to choose."""
    return a


def is_in_order(a: Array, order: tuple[int, ...]) -> bool:
    """Whether the dimensions are nested in this order: only if it is row-major."""
    return a.ndim == len(order) and sorted(order) == list(order)


def memory_order(a: Array) -> tuple[int, ...]:
    """The dimensions from the longest steps to the shortest: row-major."""
    return tuple(range(-a.ndim, 0))


def to_contiguous(a: Array) -> Array:
    """``a``: it is in row-major order."""
    return a


def is_contiguous(a: Array) -> bool:
    """Always."""
    return True


def is_shared_inside(a: Array) -> bool:
    """Never: there are no views."""
    return False


def allow_writing(a: Array) -> None:
    """Nothing is protected, for nothing is written."""


def owned(a: Array, shared: bool) -> Array:
    """``a``: whoever else sees it sees it unchanged."""
    return a


def offset_between(base: Array, view: Array) -> int:
    """The place of a view in its base: there are no views."""
    return 0


def resized(a: Array, shape: tuple[int, ...]) -> Array:
    """The first elements in another shape; those it has none for are 0."""
    count = int(np.prod(shape, dtype=np.int64))
    flat = a.reshape(-1)[:count]
    return jnp.pad(flat, (0, count - flat.size)).reshape(shape)


def write(target: Array, value: Array) -> Array:
    """The value in the shape and type of the target."""
    value = jnp.asarray(value)
    if value.dtype.kind == "c" and target.dtype.kind != "c":
        value = value.real
    return jnp.broadcast_to(value, target.shape).astype(target.dtype)


def write_index(target: Array, index: Any, value: Any) -> Array:
    """The target with the value at the index."""
    target = jnp.asarray(target)
    if getattr(index, "dtype", np.dtype(int)).kind == "b":
        needs_values("write_index", "a mask chooses as many elements as it has", index)
    return target.at[index].set(value)


def write_into(raw: Callable[..., Array], target: Array, *arguments: Any) -> Array:
    """``raw(*arguments)`` in the type of the target."""
    return write(target, raw(*arguments))


def make_complex(real: Array, imag: Array) -> Array:
    """real + imag i, broadcast."""
    return jax.lax.complex(*jnp.broadcast_arrays(real, imag))


# --- float16 and bfloat16 -------------------------------------------------------------------------


def _is_narrow(dtype: np.dtype) -> bool:
    return dtype.itemsize == 2 and dtypes.from_array_dtype(dtype).category == dtypes.FLOATING


def widened(a: Array) -> Array:
    """A copy in float32 of an array of a narrow type; anything else as it is."""
    return a.astype(np.float32) if _is_narrow(a.dtype) else a


def narrowed(a: Array, dtype: np.dtype) -> Array:
    """Floating numbers rounded to a type; anything else as it is."""
    return a if a.dtype.kind != "f" else a.astype(dtype)


def from_bfloat16_bits(bits: Array) -> Array:
    """The float32 numbers whose upper halves these 16 bits are: what bfloat16 is."""
    return jax.lax.bitcast_convert_type(bits.astype(np.uint32) << 16, np.float32)
