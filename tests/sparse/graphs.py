"""Sparse tensors for the tests: of every kind, with entries at the same place and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule
from chainrule.sparse import SparseTensor
from chainrule.tensor import Tensor, of_array

__all__ = ["KINDS", "dense_of", "indices_of", "values_of"]

Make = Callable[[Tensor], SparseTensor]


def coordinates(places: Any, shape: tuple[int, ...]) -> Make:
    return lambda values: chainrule.sparse_coo_tensor(places, values, shape)


def rows(starts: Any, columns: Any, shape: tuple[int, int]) -> Make:
    return lambda values: chainrule.sparse_csr_tensor(starts, columns, values, shape)


PLACES = [[2, 0, 1, 0, 2, 2], [1, 3, 0, 0, 3, 1]]
# How a sparse matrix (3, 4) is made of the values of its entries, and of how many.
KINDS: dict[str, tuple[Make, int]] = {
    "unsorted": (coordinates([r[:5] for r in PLACES], (3, 4)), 5),
    "twice at a place": (coordinates(PLACES, (3, 4)), 6),
    "all at one place": (coordinates([[1] * 3, [2] * 3], (3, 4)), 3),
    "compressed rows": (rows([0, 2, 2, 4], [0, 3, 1, 2], (3, 4)), 4),
    "unsorted rows": (rows([0, 3, 3, 4], [3, 0, 3, 2], (3, 4)), 4),
    "one entry": (coordinates([[0], [3]], (3, 4)), 1),
    "none": (coordinates(np.zeros((2, 0), int), (3, 4)), 0),
}


def values_of(kind: str) -> Tensor:
    """Values for the entries, well away from 0, two of them less than 1."""
    return of_array(np.random.default_rng(1).uniform(0.1, 0.45, KINDS[kind][1]))


def indices_of(x: SparseTensor) -> np.ndarray:
    return x.structure.indices


def dense_of(x: SparseTensor) -> np.ndarray:
    """All elements, by NumPy."""
    values = x.detach()._values().numpy()
    out = np.zeros(tuple(x.shape), values.dtype)
    np.add.at(out, tuple(indices_of(x)), values)
    return out
