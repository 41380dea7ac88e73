"""Records of the primitive behind attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample
from scipy import special

__all__ = ["SAMPLES"]

NAME = "ops.layers.attention.attention"


def attention(
    q: Any, k: Any, v: Any, mask: Any = None, *, scale: float, causal: bool = False
) -> Any:
    """Query by query, the heads behind the length."""
    scores = np.einsum("nlad,nsad->nals", q, k) * scale
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.nan_to_num(special.softmax(scores, axis=-1), nan=0.0)
    return np.einsum("nals,nsae->nlae", weights, v)


def torch_attention(
    torch: Any, q: Any, k: Any, v: Any, mask: Any = None, *, scale: float, causal: bool = False
) -> Any:
    """PyTorch's operations one by one, which have all derivatives."""
    scores = torch.einsum("nlad,nsad->nals", q, k) * scale
    if mask is not None:
        scores = scores + mask
    if causal:
        past = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~past, -torch.inf)
    return torch.einsum("nals,nsae->nlae", scores.softmax(-1), v)


def heads(
    n: int, length: int, size: int, count: int, d: int, e: int, *mask: int
) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    shapes = [(n, length, count, d), (n, size, count, d), (n, size, count, e)]
    return lambda r: tuple(r.normal(size=s) for s in (*shapes, *([mask] if mask else [])))


def sample(note: str, args: Any, **settings: Any) -> Sample:
    return Sample(
        NAME, args, {"scale": 0.4, **settings}, attention, note=note, torch_call=torch_attention
    )


SAMPLES: list[Sample] = [
    sample("", heads(2, 3, 5, 2, 4, 3)),
    sample("causal", heads(2, 4, 4, 2, 3, 3), causal=True),
    sample("causal, more keys", heads(1, 3, 5, 1, 2, 2), causal=True),
    sample("mask", heads(2, 3, 4, 2, 3, 2, 3, 4)),
    sample("mask for each head", heads(2, 3, 4, 2, 3, 2, 2, 2, 3, 4)),
    sample("mask of keys", heads(2, 3, 4, 2, 3, 2, 2, 1, 1, 4)),
    sample("mask and causal", heads(1, 4, 4, 2, 2, 2, 4, 4), causal=True),
    sample("one of all", heads(1, 1, 1, 1, 1, 1)),
]
