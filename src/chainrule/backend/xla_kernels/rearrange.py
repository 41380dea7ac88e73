"""Flips, diagonals, triangles, windows and padding. Dimensions are counted from the end."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


__all__ = [
    "as_strided",
    "as_strided_place",
    "diagonal",
    "diagonal_place",
    "flip",
    "pad_zeros",
    "triangle",
    "unfold",
    "unfold_place",
    "view_as_complex",
    "view_as_real",
    "view_bits",
]

Array = Any


def flip(a: Array, dims: tuple[int, ...]) -> Array:
    """The order along these dimensions turned around."""
    return jnp.flip(a, dims) if dims else a


def diagonal(a: Array, offset: int, dim1: int, dim2: int) -> Array:
    """The diagonal of two dimensions, as a new last dimension."""
    return jnp.diagonal(a, offset, dim1, dim2)


def _numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)


def diagonal_place(g: Array, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Array:
    """Zeros with ``g`` on the diagonal: the transpose of ``diagonal``."""
    places = np.diagonal(_numbers(shape), offset, dim1, dim2)
    return _put(g, places, shape)


def _put(g: Array, places: np.ndarray, shape: tuple[int, ...]) -> Array:
    """Zeros with ``g`` added at places that are counted in row-major order."""
    out = jnp.zeros(int(np.prod(shape, dtype=np.int64)), g.dtype)
    at = out.at[places.reshape(-1)]
    flat = jnp.broadcast_to(g, places.shape).reshape(-1)
    return (at.set(flat) if g.dtype == bool else at.add(flat)).reshape(shape)


def triangle(a: Array, diagonal: int, upper: bool) -> Array:
    """The last two dimensions with zeros below (``upper``) or above a diagonal."""
    return jnp.triu(a, diagonal) if upper else jnp.tril(a, diagonal)


def _windows(n: int, size: int, step: int) -> np.ndarray:
    count = (n - size) // step + 1
    return np.arange(count)[:, None] * step + np.arange(size)


def unfold(a: Array, dim: int, size: int, step: int) -> Array:
    """The windows along ``dim``, each as a new last dimension."""
    axis = dim + a.ndim
    at = _windows(a.shape[axis], size, step)
    return jnp.moveaxis(jnp.take(a, at, axis=axis), axis + 1, -1)


def unfold_place(g: Array, shape: tuple[int, ...], dim: int, size: int, step: int) -> Array:
    """Zeros with every window added at its place: the transpose of ``unfold``."""
    axis = dim + len(shape)
    at = _windows(shape[axis], size, step)
    rows = jnp.moveaxis(g, (axis, -1), (0, 1))
    others = [n for i, n in enumerate(shape) if i != axis]
    out = jnp.zeros((shape[axis], *others), g.dtype).at[at].add(rows)
    return jnp.moveaxis(out, 0, axis)


def as_strided(a: Array, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Array:
    """Element i is at offset + i stride of the elements in row-major order."""
    return a.reshape(-1)[_places(size, stride, offset)]


def _places(size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> np.ndarray:
    at = np.full(size, offset)
    for i, (n, s) in enumerate(zip(size, stride, strict=True)):
        at = at + (np.arange(n) * s).reshape((-1,) + (1,) * (len(size) - i - 1))
    return at


def as_strided_place(
    g: Array,
    shape: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
) -> Array:
    """Zeros with every element added at its place: the transpose of ``as_strided``."""
    return _put(g, _places(size, stride, offset), shape)


def view_bits(a: Array, dtype: np.dtype) -> Array:
    """The bits of ``a`` as another type; its last dimension grows or shrinks with the size."""
    old, new = a.dtype.itemsize, np.dtype(dtype).itemsize
    if a.dtype == bool:
        a = a.astype(np.uint8)
    if np.dtype(dtype) == bool:
        return view_bits(a, np.dtype(np.uint8)) != 0
    if a.dtype.kind == "c" or np.dtype(dtype).kind == "c":
        return _complex_bits(a, np.dtype(dtype))
    if old == new:
        return jax.lax.bitcast_convert_type(a, dtype)
    if old > new:
        out = jax.lax.bitcast_convert_type(a, dtype)
        return out.reshape(*a.shape[:-1], a.shape[-1] * (old // new))
    return jax.lax.bitcast_convert_type(a.reshape(*a.shape[:-1], -1, new // old), dtype)


def _complex_bits(a: Array, dtype: np.dtype) -> Array:
    """Complex numbers are pairs of real ones, which have bits."""
    if a.dtype.kind == "c":
        parts = view_as_real(a)
        real = parts.reshape(*a.shape[:-1], -1)
        return real if dtype == real.dtype else view_bits(real, dtype)
    pairs = view_bits(a, np.dtype(f"f{dtype.itemsize // 2}"))
    return view_as_complex(pairs.reshape(*pairs.shape[:-1], -1, 2))


def view_as_real(a: Array) -> Array:
    """Complex numbers as pairs of real ones in a new last dimension; see the NumPy kernel."""
    return jnp.stack([a, a] if a.dtype.kind != "c" else [a.real, a.imag], -1)


def view_as_complex(a: Array) -> Array:
    """Pairs of real numbers in the last dimension as complex ones; see ``view_as_real``."""
    return a if a.dtype.kind != "f" else jax.lax.complex(a[..., 0], a[..., 1])


def pad_zeros(a: Array, pads: tuple[tuple[int, int], ...]) -> Array:
    """Zeros before and after the last dimensions."""
    lead = a.ndim - len(pads)
    widths = [(0, 0, 0)] * lead + [(before, after, 0) for before, after in pads]
    return jax.lax.pad(a, jnp.zeros((), a.dtype), widths)
