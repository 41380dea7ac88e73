"""Several tensors as one vector, for checks that go through it entry by entry.

A complex number is two entries, its real and its imaginary part. The gradient of a real function
by z = x + iy is dx + i dy, so in these entries it is the gradient of a function of real numbers,
and a Jacobian of complex tensors is a matrix of real numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from chainrule.ops.core.arguments import placed_like
from chainrule.backend import K
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array

__all__ = ["count", "flat", "locate", "made_up", "reals", "split"]


def count(tensors: Sequence[Tensor]) -> int:
    """The number of entries of all tensors."""
    return sum(_size(x) for x in tensors)


def _size(x: Tensor) -> int:
    return 2 * x.numel() if x.is_complex() else x.numel()


def reals(a: Array) -> Array:
    """An array whose complex numbers are pairs of real ones in a new last dimension."""
    return K.view_as_real(a) if a.dtype.kind == "c" else a


def flat(tensors: Sequence[Tensor]) -> Array:
    """The entries of all tensors in one array of the host."""
    return K.cat(*[K.to_numpy(reals(t.array)).reshape(-1) for t in tensors], dim=0)


def split(vectors: Array, models: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """A vector (or a batch of them) taken apart into leaves like the models, where these are."""
    parts, start = [], 0
    for x in models:
        part, start = vectors[..., start : start + _size(x)], start + _size(x)
        if x.is_complex():
            part = K.view_as_complex(part.reshape((*part.shape[:-1], x.numel(), 2)))
        part = part.reshape((*vectors.shape[:-1], *x.array.shape))
        leaf = placed_like(x, of_array(K.astype(part, x.array.dtype)))
        parts.append(leaf.requires_grad_())
    return tuple(parts)


def made_up(models: Sequence[Tensor], shift: float = 0.0) -> Array:
    """Irregular numbers between 0.5 and 1.5, without touching the user's generators."""
    steps = K.arange(1, 1 + count(models), 1, "float64")
    return (steps * 0.6180339887498949 + shift) % 1 + 0.5


def locate(entry: int, models: Sequence[Tensor]) -> tuple[int, str]:
    """Which tensor an entry of the vector belongs to, and its index (and part) there."""
    return [
        (k, f"{i}{part}")
        for k, x in enumerate(models)
        for i in product(*map(range, x.shape))
        for part in ((".real", ".imag") if x.is_complex() else ("",))
    ][entry]
