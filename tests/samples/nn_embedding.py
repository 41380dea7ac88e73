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


def pooled(table: Any, rows: Any, *others: Any, mode: str, offset: bool, **options: Any) -> Any:
    """The operation behind it, which ordinary programs apply: weights in every mode."""
    ends = [*others[0], rows.size][: len(others[0]) + 1] if offset else None
    last = options.get("last", False)
    ends = ends[:-1] if last and ends else ends
    flat = rows.reshape(-1)
    weights = others[offset].reshape(-1) if len(others) > offset else np.ones(flat.size)
    if ends is None:
        ends = [rows.shape[1] * n for n in range(len(rows) + 1)]
    reduce = {"mean": np.mean, "sum": np.sum, "max": np.max}[mode]
    out = np.zeros((len(ends) - 1, table.shape[1]))
    for b, (first, end) in enumerate(itertools.pairwise(ends)):
        kept = [i for i in range(first, end) if flat[i] != options.get("padding", -1)]
        if kept:
            out[b] = reduce(table[flat[kept]] * weights[kept, None], axis=0)
    return out


def weighted(r: np.random.Generator) -> tuple[Any, ...]:
    """The second of four bags is empty, and an integer follows the last."""
    rows = np.array([3, 0, 3, 1, 4, 2, 1])
    return (r.normal(size=(5, 3)), rows, np.array([0, 2, 2, 5, 6]), r.normal(size=7))


def own(note: str, args: Any, **kwargs: Any) -> Sample:
    return Sample("ops.index.bags.bags", args, kwargs, pooled, torch="", note=note)


def rectangle(r: np.random.Generator) -> tuple[Any, ...]:
    return (r.normal(size=(5, 3)), np.array([[0, 3, 3], [1, 4, 2]]))


SAMPLES: list[Sample] = [
    own("sum", rectangle, mode="sum", offset=False),
    own("mean, padding", rectangle, mode="mean", offset=False, padding=3),
    own("max, padding", rectangle, mode="max", offset=False, padding=1),
    *[
        own(f"weighted {mode}", weighted, mode=mode, offset=True, padding=4, last=True)
        for mode in ("sum", "mean", "max")
    ],
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
