"""Records of functions with products of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples.record import Sample

__all__ = ["SAMPLES"]


def normals(*shapes: tuple[int, ...]) -> Any:
    return lambda r: tuple(r.normal(size=shape) for shape in shapes)


def bilinear(x: Any, y: Any, w: Any, b: Any = 0.0) -> Any:
    return np.einsum("...i,oij,...j->...o", x, w, y) + b


def second_order(x: Any, w: Any) -> Any:
    out = np.zeros((*x.shape[:-1], len(w)))
    a = np.concatenate([np.ones((*x.shape[:-1], 1)), x], axis=-1)
    for i, j1, j2 in np.ndindex(w.shape):
        out[..., i] += w[i, j1, j2] * a[..., j1] * a[..., j2]
    return out


def maxout(x: Any, num_pieces: int | None = None, dim: int = -1) -> Any:
    if num_pieces is None:
        return x.max(axis=dim)
    dim %= x.ndim
    shape = (*x.shape[:dim], -1, num_pieces, *x.shape[dim + 1 :])
    return x.reshape(shape).max(axis=dim + 1)


def distinct(*shape: int) -> Any:
    """Values without ties."""
    return lambda r: (r.permutation(np.linspace(-2.0, 2.0, int(np.prod(shape)))).reshape(shape),)


SAMPLES: list[Sample] = [
    Sample("nn.functional.bilinear", normals((4, 3), (4, 2), (5, 3, 2), (5,)), reference=bilinear),
    Sample(
        "nn.functional.bilinear",
        normals((2, 4, 3), (2, 4, 2), (5, 3, 2)),
        reference=bilinear,
        note="3 dimensions, no bias",
    ),
    Sample(
        "nn.functional.second_order", normals((4, 2), (3, 3, 3)), reference=second_order, torch=""
    ),
    Sample("nn.functional.maxout", distinct(3, 6), reference=maxout, torch="", note="all"),
    Sample(
        "nn.functional.maxout", distinct(3, 6), {"num_pieces": 2}, maxout, torch="", note="pieces"
    ),
    Sample(
        "nn.functional.maxout",
        distinct(2, 6, 3),
        {"num_pieces": 3, "dim": 1},
        maxout,
        torch="",
        note="channels",
    ),
]
