"""Attention of many heads, and its gradients.

Letters: N batch, A heads, L length of the queries, S length of keys and values, D features of
queries and keys, E of values. The heads lie behind the length, as a linear layer leaves them.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from chainrule.backend.xla_kernels.products import matmul

__all__ = ["attention", "attention_backward"]

Array = Any


def attention(
    q: Array, k: Array, v: Array, mask: Array | None, scale: float, causal: bool
) -> tuple[Array, Array]:
    """softmax(scale q k' + mask) v, and the logarithm of the sum of each row's exponentials.

    A query whose mask lets it read nothing gets 0, and its logarithm is -inf.
    """
    scores, nothing = _scores(q, k, mask, scale, causal)
    top = jnp.where(nothing, 0, jnp.max(scores, -1, keepdims=True, initial=-jnp.inf))
    weights = jnp.where(nothing, 0, jnp.exp(scores - top)).astype(q.dtype)
    total = jnp.where(nothing, 1, jnp.sum(weights, -1, keepdims=True))
    lse = jnp.where(nothing, -jnp.inf, top + jnp.log(total)).astype(q.dtype)[..., 0]
    return _heads(matmul(weights, _heads(v)) / total.astype(q.dtype)), lse


def attention_backward(
    g: Array,
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    lse: Array,
    scale: float,
    causal: bool,
) -> tuple[Array, Array, Array]:
    """The gradients of q, k and v from g, that of the output; ``lse`` is the second result."""
    scores, nothing = _scores(q, k, mask, scale, causal)
    p = jnp.where(nothing, 0, jnp.exp(scores - lse[..., None])).astype(q.dtype)
    if causal:
        p = jnp.tril(p)
    gh = _heads(g)
    d = matmul(gh, _heads(v).swapaxes(-2, -1))
    s = p * (d - jnp.sum(p * d, -1, keepdims=True)) * q.dtype.type(scale)
    found = (
        matmul(s, _heads(k)),
        matmul(s.swapaxes(-2, -1), _heads(q)),
        matmul(p.swapaxes(-2, -1), gh),
    )
    gq, gk, gv = (_heads(a) for a in found)
    return gq, gk, gv


def _heads(a: Array) -> Array:
    """(N, L, A, D) as (N, A, L, D), and back."""
    return a.swapaxes(-3, -2)


def _scores(
    q: Array, k: Array, mask: Array | None, scale: float, causal: bool
) -> tuple[Array, Array]:
    """scale q k' + mask, -inf where nothing may be read, and the rows (.., 1) where all is so."""
    scores = matmul(_heads(q), _heads(k).swapaxes(-2, -1)) * q.dtype.type(scale)
    blocked = jnp.zeros((1, 1), bool)
    if mask is not None:
        scores, blocked = scores + mask, jnp.isneginf(mask)
    if causal:
        future = jnp.logical_not(jnp.tri(*scores.shape[-2:], dtype=bool))
        scores = jnp.where(future, -jnp.inf, scores).astype(scores.dtype)
        blocked = jnp.logical_or(blocked, future)
    # Over what is blocked alone, which is the same for all heads as a rule.
    nothing = jnp.all(blocked, -1, keepdims=True) if scores.shape[-1] else jnp.ones((1, 1), bool)
    return scores, nothing
