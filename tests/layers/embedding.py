"""Records of tables of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from layers.record import Layer

__all__ = ["LAYERS"]


def integers(*shape: int) -> Any:
    return lambda r: (r.integers(0, 6, size=shape),)


def bags(r: np.random.Generator) -> tuple[Any, ...]:
    """Four bags, the second of them empty."""
    return (r.integers(0, 6, size=9), np.array([0, 3, 3, 7]))


def weighted(r: np.random.Generator) -> tuple[Any, ...]:
    return (*bags(r), r.normal(size=9))


def embedding(note: str, *shape: int, **kwargs: Any) -> Layer:
    return Layer(
        "Embedding",
        lambda nn: nn.Embedding(6, 3, **kwargs),
        integers(*shape),
        note=note,
        differentiable=not kwargs,
    )


def bag(note: str, inputs: Any, **kwargs: Any) -> Layer:
    return Layer(
        "EmbeddingBag",
        lambda nn: nn.EmbeddingBag(6, 3, **kwargs),
        inputs,
        note=note,
        differentiable="scale_grad_by_freq" not in kwargs,
    )


# Not differentiable here: what gives less gradient than there is (padding_idx of Embedding and
# scale_grad_by_freq). max_norm, which writes into the weight, has no record.
# tests/nn/test_embedding.py has all of these.
LAYERS: list[Layer] = [
    embedding("plain", 2, 4),
    embedding("no dimensions"),
    embedding("padding", 2, 8, padding_idx=-3),
    embedding("frequency", 12, scale_grad_by_freq=True),
    bag("mean", integers(3, 4)),
    bag("sum", integers(3, 4), mode="sum"),
    bag("max", integers(3, 4), mode="max"),
    bag("offsets", bags),
    bag("offsets, max", bags, mode="max"),
    bag("weights", weighted, mode="sum"),
    bag(
        "last offset",
        lambda r: (r.integers(0, 6, size=7), np.array([0, 3, 7])),
        include_last_offset=True,
    ),
    bag("padding", integers(3, 8), padding_idx=2),
    bag("padding, max", integers(3, 8), padding_idx=2, mode="max"),
    bag("padding, sum", bags, padding_idx=0, mode="sum"),
    bag("frequency", integers(3, 8), scale_grad_by_freq=True),
]
