"""Attention: each position reads from all others, weighted by how well query and key agree.

Letters (docs/conventions.md): N batch, A heads, L length of the queries, S length of keys and
values, D features.
"""

from __future__ import annotations

import math

from chainrule.ops.core.rounding import rounds_once
from chainrule.backend import dtypes
from chainrule.backend.placed import Placed
from chainrule.nn.layers.dropout import dropout
from chainrule.ops.creation.patterns import ones, zeros
from chainrule.ops.shape.diagonal import tril
from chainrule.ops.elementwise.logic import isneginf, where
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.shape.rearrange import repeat_interleave
from chainrule.ops.reduce.reductions import all
from chainrule.ops.layers.attention import attention
from chainrule.ops.shape.views import squeeze, transpose, unsqueeze
from chainrule.ops.layers.softmax import softmax
from chainrule.graph import Box, Mode, mode
from chainrule.tensor import Tensor

__all__ = ["added_mask", "attend", "attend_at_once", "scaled_dot_product_attention"]

_MINUS_INFINITY = -math.inf


@rounds_once
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query key^T * scale + attn_mask) value, with scale = 1 / sqrt(D) by default.

    Shape: query (*, L, D), key (*, S, D), value (*, S, D_out) -> (*, L, D_out).

    A boolean ``attn_mask`` (*, L, S) is True where a query may read (the other way around than in
    :class:`MultiheadAttention`); a floating one is added. ``is_causal``: position i reads from the
    positions up to i. A query that may read nothing gets 0. With ``enable_gqa`` several heads of
    the query share one of key and value.

    >>> from chainrule import nn, ones
    >>> x = ones(2, 3, 4)
    >>> nn.functional.scaled_dot_product_attention(x, x, x).shape
    chainrule.Size([2, 3, 4])
    """
    op = "scaled_dot_product_attention"
    _check_operands(op, query, key, value)
    if not 0.0 <= dropout_p <= 1.0:
        raise RuntimeError(
            f"{op}: dropout probability has to be between 0 and 1, but got {dropout_p}"
        )
    if is_causal and attn_mask is not None:
        raise RuntimeError(f"{op}: Explicit attn_mask should not be set when is_causal=True")
    if attn_mask is not None:
        attn_mask = added_mask(op, "attn_mask", attn_mask, query, blocked=False)
    if enable_gqa:
        key, value = (_repeat_heads(op, query, t) for t in (key, value))
    if dropout_p == 0.0:
        out = attend_at_once(query, key, value, attn_mask, scale, is_causal)
        if out is not None:
            return out
    if is_causal:
        past = tril(ones(query.shape[-2], key.shape[-2], dtype=dtypes.bool_, device=query.device))
        attn_mask = added_mask(op, "attn_mask", past, query, blocked=False)
    return attend(query, key, value, attn_mask, dropout_p, scale)[0]


def attend_at_once(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float | None, causal: bool
) -> Tensor | None:
    """What the queries read, as one operation; None where the case is not the ordinary one.

    Transformations and traces see the single operations of :func:`attend`.
    """
    batch, dtype = q.shape[:-2], q.array.dtype
    if (
        mode.flags & ~Mode.AUTOCAST > Mode.GRAD
        or not (dtype == k.array.dtype == v.array.dtype)
        or dtype.kind != "f"
    ):
        return None
    if dtype.itemsize < 4 or len(batch) > 2 or k.shape[:-2] != batch or v.shape[:-2] != batch:
        return None
    if mask is not None:
        scores = (*batch, q.shape[-2], k.shape[-2])
        if mask.array.dtype != dtype or not _fits(tuple(mask.shape), scores):
            return None
    factor = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else float(scale)
    if len(batch) == 2:
        q, k, v = transpose(q, 1, 2), transpose(k, 1, 2), transpose(v, 1, 2)
        return transpose(attention(q, k, v, mask, scale=factor, causal=causal), 1, 2)
    # One head: a dimension of size 1 beside the length, and where there is no batch, in front.
    q, k, v = (unsqueeze(t, -2) for t in (q, k, v))
    if batch:
        mask = unsqueeze(mask, 1) if mask is not None and mask.ndim == 3 else mask
        return squeeze(attention(q, k, v, mask, scale=factor, causal=causal), -2)
    q, k, v = (unsqueeze(t, 0) for t in (q, k, v))
    return squeeze(squeeze(attention(q, k, v, mask, scale=factor, causal=causal), -2), 0)


def _fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether an array of this shape broadcasts to the other."""
    if len(shape) > len(whole):
        return False
    ends = zip(reversed(shape), reversed(whole), strict=False)
    return not [1 for own, size in ends if own not in (1, size)]


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, scale: float | None
) -> tuple[Tensor, Tensor]:
    """What the queries read, and with which weights; the mask is added to the scores."""
    factor = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale
    scores = matmul(q * factor, transpose(k, -2, -1))
    if mask is None:
        weights = softmax(scores, -1)
    else:
        scores = scores + mask
        nothing = all(isneginf(mask), -1, True)
        if isinstance(nothing.array, (Box, Placed)) or bool(nothing.any()):
            # softmax of nothing is 0 / 0: such rows are taken out before and set to 0 after.
            scores = where(nothing, 0.0, scores)
            weights = where(nothing, 0.0, softmax(scores, -1))
        else:
            weights = softmax(scores, -1)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return matmul(weights, v), weights


def _check_operands(op: str, q: Tensor, k: Tensor, v: Tensor) -> None:
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise RuntimeError(
            f"{op}: Expected query, key, and value to all be at least 2 dimensional, but got "
            f"shapes {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}"
        )
    if not q.dtype == k.dtype == v.dtype:
        raise RuntimeError(
            f"{op}: Expected query, key, and value to have the same dtype, but got {q.dtype}, "
            f"{k.dtype} and {v.dtype}; convert with .to(dtype)"
        )
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise RuntimeError(
            f"{op}: query {tuple(q.shape)} and key {tuple(k.shape)} must agree in the last "
            f"dimension, key and value {tuple(v.shape)} in the one before it"
        )


def _repeat_heads(op: str, q: Tensor, t: Tensor) -> Tensor:
    """Key or value with each head repeated for the heads of the query that share it."""
    heads, own = q.shape[-3], t.shape[-3]
    if own < 1 or heads % own:
        raise RuntimeError(
            f"{op}: Number of heads in key and value ({own}) must divide the number of heads in "
            f"query ({heads})"
        )
    return repeat_interleave(t, heads // own, -3)


def added_mask(op: str, name: str, mask: Tensor, like: Tensor, blocked: bool) -> Tensor:
    """A mask to be added to the scores: 0 or -inf for a boolean one, itself if it is floating.

    ``blocked``: whether True means that reading is not allowed.
    """
    if mask.dtype is dtypes.bool_:
        zero = zeros((), dtype=like.dtype, device=like.device)
        if blocked:
            return where(mask, _MINUS_INFINITY, zero)
        return where(mask, zero, _MINUS_INFINITY)
    if not mask.is_floating_point():
        wrong = AssertionError if blocked else RuntimeError
        raise wrong(f"{op}: only bool and floating types of {name} are supported, got {mask.dtype}")
    return mask
