"""Records of attention as a function, and of distances to centers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample
from scipy import special
from scipy.spatial import distance

__all__ = ["SAMPLES"]

NAME = "nn.functional.scaled_dot_product_attention"


def attention(
    q: Any,
    k: Any,
    v: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """Query by query."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    if enable_gqa:
        k, v = (np.repeat(t, q.shape[-3] // t.shape[-3], axis=-3) for t in (k, v))
    scores = np.einsum("...le,...se->...ls", q, k) * scale
    if is_causal:
        attn_mask = np.tril(np.ones(scores.shape[-2:], bool))
    if attn_mask is not None:
        kept = attn_mask.dtype == bool
        scores = np.where(attn_mask, scores, -np.inf) if kept else scores + attn_mask
    weights = np.nan_to_num(special.softmax(scores, axis=-1), nan=0.0)
    return weights @ v


def qkv(
    q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]
) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    return lambda r: tuple(r.normal(size=s) for s in (q, k, v))


def masked(mask: Any) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    return lambda r: (*qkv((2, 3, 4), (2, 5, 4), (2, 5, 4))(r), mask(r))


def boolean(r: np.random.Generator) -> Any:
    """The second query may read nothing at all."""
    mask = np.ones((3, 5), bool)
    mask[0, 2:] = False
    mask[1] = False
    return mask


def gaussians(x: Any, mu: Any, sigma: Any) -> Any:
    return np.exp(-distance.cdist(x, mu, "sqeuclidean") / (2 * sigma**2))


SAMPLES: list[Sample] = [
    Sample(NAME, qkv((2, 3, 4), (2, 5, 4), (2, 5, 3)), {}, attention),
    Sample(NAME, qkv((3, 4), (5, 4), (5, 4)), {"scale": 0.3}, attention, note="scale"),
    Sample(
        NAME,
        qkv((2, 2, 3, 4), (2, 2, 4, 4), (2, 2, 4, 4)),
        {"is_causal": True},
        attention,
        second_order=False,
        note="causal",
    ),  # PyTorch has no second derivative for four dims
    Sample(NAME, masked(boolean), {}, attention, note="boolean mask"),
    Sample(NAME, masked(lambda r: r.normal(size=(2, 3, 5))), {}, attention, note="added mask"),
    Sample(
        NAME,
        qkv((2, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4)),
        {"enable_gqa": True},
        attention,
        second_order=False,
        note="shared heads",
    ),
    Sample(
        "nn.functional.squared_distances",
        lambda r: (r.normal(size=(4, 3)), r.normal(size=(2, 3))),
        reference=lambda x, y: distance.cdist(x, y, "sqeuclidean"),
        torch_call=lambda torch, x, y: ((x[:, None] - y) ** 2).sum(-1),
    ),
    Sample(
        "nn.functional.rbf",
        lambda r: (r.normal(size=(4, 3)), r.normal(size=(2, 3)), r.uniform(0.5, 2.0, size=2)),
        reference=gaussians,
        torch="",
    ),
    Sample(
        "nn.functional.rbf",
        lambda r: (r.normal(size=(4, 3)), r.normal(size=(2, 3)), r.uniform(0.5, 2.0, size=2)),
        {"bias": True},
        reference=lambda x, mu, s: np.hstack([np.ones((4, 1)), gaussians(x, mu, s)]),
        torch="",
        note="phi_0",
    ),
]
