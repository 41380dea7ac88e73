"""Attention of many heads, and its gradients, on NumPy arrays.

Letters: N batch, A heads, L length of the queries, S length of keys and values, D features of
queries and keys, E of values. The heads lie behind the length, as a linear layer leaves them.
"""

from __future__ import annotations

import numpy as np

__all__ = ["attention", "attention_backward"]


def attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None,
    scale: float,
    causal: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """softmax(scale q k' + mask) v, and the logarithm of the sum of each row's exponentials.

    q (N, L, A, D), k (N, S, A, D), v (N, S, A, E) -> (N, L, A, E) and (N, A, L). The ``mask``,
    which broadcasts to (N, A, L, S), is added to the scores; ``causal``: query i reads from the
    keys up to i. A query whose mask lets it read nothing gets 0, and its logarithm is -inf.
    """
    scores, nothing = _scores(q, k, mask, scale, causal)
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - top)
    weights = np.where(nothing, scores.dtype.type(0), weights)
    total = weights.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.where(nothing, -np.inf, top + np.log(total)).astype(q.dtype)[..., 0]
    out = (weights @ _heads(v)) / np.where(nothing, scores.dtype.type(1), total)
    return np.ascontiguousarray(_heads(out)), lse


def attention_backward(
    g: np.ndarray,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None,
    lse: np.ndarray,
    scale: float,
    causal: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The gradients of q, k and v from g, that of the output; ``lse`` is the second result.

    With the weights p, d = g v' and s = p (d - sum(p d)): scale s k, scale s' q and p' g.
    """
    scores, nothing = _scores(q, k, mask, scale, causal)
    with np.errstate(invalid="ignore"):
        p = np.exp(scores - lse[..., None])
    p = np.where(nothing, q.dtype.type(0), p)
    if causal:
        p = np.tril(p)
    gh = _heads(g)
    d = gh @ _heads(v).swapaxes(-2, -1)
    s = p * (d - (p * d).sum(axis=-1, keepdims=True)) * q.dtype.type(scale)
    found = (s @ _heads(k), s.swapaxes(-2, -1) @ _heads(q), p.swapaxes(-2, -1) @ gh)
    gq, gk, gv = (np.ascontiguousarray(_heads(a)) for a in found)
    return gq, gk, gv


def _heads(a: np.ndarray) -> np.ndarray:
    """(N, L, A, D) as (N, A, L, D), and back."""
    return a.swapaxes(-3, -2)


def _scores(
    q: np.ndarray, k: np.ndarray, mask: np.ndarray | None, scale: float, causal: bool
) -> tuple[np.ndarray, np.ndarray]:
    """scale q k' + mask, -inf where nothing may be read, and the rows (.., 1) where all is so."""
    scores = (_heads(q) @ _heads(k).swapaxes(-2, -1)) * q.dtype.type(scale)
    if mask is not None:
        scores = scores + mask
    blocked: np.ndarray = np.zeros((1, 1), bool) if mask is None else np.isneginf(mask)
    if causal:
        future = np.logical_not(np.tri(*scores.shape[-2:], dtype=np.bool_))
        scores = np.where(future, -scores.dtype.type(np.inf), scores)
        blocked = np.logical_or(blocked, future)
    every = np.broadcast_to(blocked, scores.shape)
    return scores, np.asarray(every.all(axis=-1, keepdims=True))
