"""Records of tables of vectors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from samples.record import Sample

__all__ = ["SAMPLES"]


def table(*shape: int) -> Any:
    return lambda r: (r.integers(0, 5, size=shape), r.normal(size=(5, 3)))


def bags(r: np.random.Generator) -> tuple[Any, ...]:
    """The second of three bags is empty."""
    return (r.integers(0, 5, size=7), r.normal(size=(5, 3)), np.array([0, 4, 4]))


def embedding_bag(
    x: Any, weight: Any, offsets: Any = None, mode: str = "mean", padding_idx: int | None = None
) -> Any:
    ends = [] if offsets is None else [*offsets, len(x)]
    rows = x if offsets is None else [x[a:b] for a, b in itertools.pairwise(ends)]
    reduce = {"mean": np.mean, "sum": np.sum, "max": np.max}[mode]
    out = np.zeros((len(rows), weight.shape[1]))
    for b, row in enumerate(rows):
        kept = [i for i in row if i != padding_idx]
        if kept:
            out[b] = reduce(weight[kept], axis=0)
    return out


def bag(note: str, args: Any, **kwargs: Any) -> Sample:
    return Sample("nn.functional.embedding_bag", args, kwargs, embedding_bag, note=note)


SAMPLES: list[Sample] = [
    Sample("nn.functional.embedding", table(2, 4), reference=lambda x, w: w[x]),
    Sample("nn.functional.embedding", table(), reference=lambda x, w: w[x], note="no dimensions"),
    Sample(
        "nn.functional.embedding",
        table(2, 4),
        {"sparse": True},
        reference=lambda x, w, sparse: w[x],
        torch_call=lambda torch, x, w, **options: torch.nn.functional.embedding(x, w),
        prepare=lambda x, w: (x, 1.0 * w),  # of a leaf the gradient is sparse
        note="sparse",
    ),
    bag("mean", table(2, 4)),
    bag("sum", table(2, 4), mode="sum"),
    bag("max", table(2, 4), mode="max"),
    bag("offsets", bags),
    bag("offsets, sum", bags, mode="sum"),
    bag("offsets, max", bags, mode="max"),
    bag("padding", table(2, 6), padding_idx=1),
    bag("padding, max", table(2, 6), padding_idx=1, mode="max"),
]
