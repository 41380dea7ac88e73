"""Several tensors as one vector, for checks that go through it entry by entry."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from chainrule.backend import K
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array

__all__ = ["count", "flat", "locate", "made_up", "split"]


def count(tensors: Sequence[Tensor]) -> int:
    """The number of entries of all tensors."""
    return sum(x.numel() for x in tensors)


def flat(tensors: Sequence[Tensor]) -> Array:
    """The entries of all tensors in one array."""
    return K.cat(*[t.array.reshape(-1) for t in tensors], dim=0)


def split(vectors: Array, models: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """A vector (or a batch of them) taken apart into leaves like the models."""
    parts, start = [], 0
    for x in models:
        part = vectors[..., start : start + x.numel()]
        part = part.reshape((*vectors.shape[:-1], *x.array.shape))
        parts.append(of_array(K.astype(part, x.array.dtype)).requires_grad_())
        start += x.numel()
    return tuple(parts)


def made_up(models: Sequence[Tensor], shift: float = 0.0) -> Array:
    """Irregular numbers between 0.5 and 1.5, without touching the user's generators."""
    steps = K.arange(1, 1 + count(models), 1, "float64")
    return (steps * 0.6180339887498949 + shift) % 1 + 0.5


def locate(entry: int, models: Sequence[Tensor]) -> tuple[int, tuple[int, ...]]:
    """Which tensor an entry of the vector belongs to, and its index there."""
    return [(k, i) for k, x in enumerate(models) for i in product(*map(range, x.shape))][entry]
