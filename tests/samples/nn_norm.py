"""Records of the functions that normalize."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples.norm import affine, normalized
from samples.record import Sample, normal

__all__ = ["SAMPLES"]

F = "nn.functional."


def along(v: Any, x: Any) -> Any:
    return 0.0 if v is None else v.reshape(-1, *[1] * (x.ndim - 2))


def batch(x: Any, m: Any, v: Any, w: Any = None, b: Any = None, training: bool = False) -> Any:
    """With the moments of the batch, or with given ones."""
    w = np.ones(x.shape[1]) if w is None else w
    if training:
        dim = (0, *range(2, x.ndim))
        return normalized(x, along(w, x), along(b, x), dim=dim, eps=1e-5)
    return (x - along(m, x)) / np.sqrt(along(v, x) + 1e-5) * along(w, x) + along(b, x)


def instance(x: Any, m: Any, v: Any, w: Any, b: Any) -> Any:
    dim = tuple(range(2, x.ndim))
    return normalized(x, along(w, x), along(b, x), dim=dim, eps=1e-5)


def group(x: Any, groups: int, w: Any = None, b: Any = None) -> Any:
    out = normalized(x.reshape(len(x), groups, -1), dim=(-1,), eps=1e-5).reshape(x.shape)
    return out if w is None else out * along(w, x) + along(b, x)


def local(x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    out = np.zeros_like(x)
    for c in range(x.shape[1]):
        low = max(c - size // 2, 0)
        total = (x[:, low : c + (size - 1) // 2 + 1] ** 2).sum(axis=1)
        out[:, c] = x[:, c] / (k + alpha / size * total) ** beta
    return out


def unit(x: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Any:
    size = (np.abs(x) ** p).sum(axis=dim, keepdims=True) ** (1 / p)
    return x / np.maximum(size, eps)


def given_moments(r: np.random.Generator) -> tuple[Any, ...]:
    return (
        r.normal(size=(4, 3)),
        r.normal(size=3),
        r.uniform(0.5, 2.0, size=3),
        r.normal(size=3),
        r.normal(size=3),
    )


SAMPLES: list[Sample] = [
    Sample(
        F + "batch_norm",
        affine((5, 3), (3,), (3,)),
        {"training": True},
        batch,
        prepare=lambda x, w, b: (x, None, None, w, b),
        note="training",
    ),
    Sample(
        F + "batch_norm",
        affine((3, 2, 2, 2)),
        {"training": True},
        batch,
        prepare=lambda x: (x, None, None),
        note="training, image",
    ),
    # PyTorch has no derivative by the running moments; this has.
    Sample(F + "batch_norm", given_moments, {}, batch, "", note="evaluation"),
    Sample(
        F + "batch_norm",
        affine((2, 3, 2), (3,)),
        {},
        batch,
        "",
        prepare=lambda x, m: (x, m, m * m + 0.5),
        note="evaluation, sequence",
    ),
    Sample(
        F + "instance_norm",
        affine((2, 3, 4), (3,), (3,)),
        {},
        instance,
        prepare=lambda x, w, b: (x, None, None, w, b),
    ),
    Sample(
        F + "layer_norm",
        affine((2, 3, 4)),
        {},
        prepare=lambda x: (x, (3, 4)),
        reference=lambda x, s: normalized(x, dim=(-2, -1), eps=1e-5),
    ),
    Sample(
        F + "layer_norm",
        affine((3, 4), (4,), (4,)),
        {},
        prepare=lambda x, w, b: (x, [4], w, b),
        reference=lambda x, s, w, b: normalized(x, w, b, dim=(-1,), eps=1e-5),
        note="affine",
    ),
    Sample(
        F + "layer_norm",
        affine((3, 4), (4,)),
        {},
        prepare=lambda x, b: (x, [4], None, b),
        reference=lambda x, s, w, b: normalized(x, w, b, dim=(-1,), eps=1e-5),
        note="bias",
        second_order=False,
    ),  # PyTorch has none
    Sample(
        F + "rms_norm",
        affine((3, 4), (4,)),
        {"eps": 0.1},
        prepare=lambda x, w: (x, (4,), w),
        reference=lambda x, s, w, eps: normalized(x, w, dim=(-1,), eps=eps, center=False),
    ),
    Sample(
        F + "rms_norm",
        affine((2, 3, 2)),
        {},
        prepare=lambda x: (x, (3, 2)),
        reference=lambda x, s: normalized(x, dim=(-2, -1), eps=2**-52, center=False),
        note="default eps",
    ),
    Sample(
        F + "group_norm",
        affine((2, 4, 3), (4,), (4,)),
        {},
        group,
        prepare=lambda x, w, b: (x, 2, w, b),
    ),
    Sample(F + "group_norm", affine((3, 6)), {}, group, prepare=lambda x: (x, 2), note="no space"),
    Sample(
        F + "local_response_norm", normal(2, 5, 3), {"alpha": 0.7}, local, prepare=lambda x: (x, 3)
    ),
    Sample(
        F + "local_response_norm",
        normal(2, 3, 2, 2),
        {"beta": 0.5, "k": 2.0},
        local,
        prepare=lambda x: (x, 4),
        note="even",
    ),
    Sample(F + "normalize", normal(3, 4), {}, unit),
    Sample(F + "normalize", normal(3, 4), {"p": 3.0, "dim": 0}, unit, note="p 3"),
    Sample(F + "normalize", normal(2, 3, 4), {"dim": (1, 2)}, unit, note="two dims"),
    Sample(F + "normalize", normal(3, 4), {"eps": 10.0}, unit, note="limit"),
]
