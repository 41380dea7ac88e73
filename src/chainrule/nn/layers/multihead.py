"""Attention with many heads: each looks at a projection of its own of queries, keys and values.

Letters (docs/conventions.md): N batch, A heads, L length of the queries, S length of keys and
values, D features.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule.graph import mode
from chainrule.nn.init.tensors import constant_, normal_, uniform_
from chainrule.nn.layers.attention import added_mask, attend, attend_at_once
from chainrule.nn.layers.linear import Linear, linear
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.patterns import empty, zeros_like
from chainrule.ops.shape.joining import chunk, unbind
from chainrule.ops.shape.padding import pad
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.shape.views import expand, permute, reshape, squeeze, transpose, unsqueeze
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.typing import DType, Device, MaybeNone

__all__ = ["MultiheadAttention", "multi_head_attention_forward"]


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What :class:`MultiheadAttention` computes, with PyTorch's arguments.

    out = out_proj(cat of all heads), head = softmax(q k^T / sqrt(D / A)) v, where q, k, v are a
    head's part of the projected query, key and value

    Shape: query (L, N, D) or (L, D), key and value (S, N, D) or (S, D) -> (L, N, D) or (L, D), and
    the weights (N, L, S) or, not averaged over the heads, (N, A, L, S).
    """
    op = "multi_head_attention_forward"
    batched = _check_ranks(op, query, key, value, key_padding_mask, attn_mask)
    if not batched:
        if query is key and key is value:
            query = key = value = unsqueeze(query, 1)
        else:
            query, key, value = (unsqueeze(t, 1) for t in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else unsqueeze(key_padding_mask, 0)
    _check_sizes(op, query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            f"{op}: Need attn_mask if specifying the is_causal hint; make one with "
            "Transformer.generate_square_subsequent_mask"
        )
    mask = _merged_mask(op, query, key, num_heads, key_padding_mask, attn_mask)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _projections(query, key, value, in_proj_weight, separate, in_proj_bias)
    extra = int(bias_k is not None) + int(add_zero_attn)
    if bias_k is not None and bias_v is not None:
        k, v = (
            cat([t, expand(b, 1, t.shape[1], t.shape[2])]) for t, b in ((k, bias_k), (v, bias_v))
        )
    q, k, v = (_heads(t, num_heads) for t in (q, k, v))
    k, v = _static(static_k, k, "static_k"), _static(static_v, v, "static_v")
    if add_zero_attn:
        k, v = (cat([t, zeros_like(t[:, :, :1])], 2) for t in (k, v))
    if mask is not None and extra:
        mask = pad(mask, (0, extra))
    rate = dropout_p if training else 0.0
    out: Tensor | None = None
    if not need_weights and rate == 0.0:
        out = attend_at_once(q, k, v, mask, None, False)
    if out is None:
        out, weights = attend(q, k, v, mask, rate, None)
    length, n, d = query.shape
    out = _by_rows(
        reshape(permute(out, 2, 0, 1, 3), (length, n, d)), out_proj_weight, out_proj_bias
    )
    if not batched:
        out = squeeze(out, 1)
    if not need_weights:
        return out, None
    weights = mean(weights, 1) if average_attn_weights else weights
    return out, weights if batched else squeeze(weights, 0)


def _heads(x: Tensor, num_heads: int) -> Tensor:
    """(L, N, D) as (N, A, L, D / A)."""
    length, n, d = x.shape
    return permute(reshape(x, (length, n, num_heads, d // num_heads)), 1, 2, 0, 3)


def _by_rows(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The linear map of (L, N, D); where (N, L, D) lies in one piece, the result does, too."""
    if mode.flags > 1 or x.is_contiguous() or not transpose(x, 0, 1).is_contiguous():
        return linear(x, weight, bias)
    return transpose(linear(transpose(x, 0, 1), weight, bias), 0, 1)


def _static(given: Tensor | None, t: Tensor, name: str) -> Tensor:
    """Keys or values that are given as they are, (N A, S, D / A), in place of the projected."""
    if given is None:
        return t
    n, a, _, d = t.shape  # d: the features of one head
    if given.shape[0] != n * a or given.shape[2] != d:
        raise AssertionError(
            f"multi_head_attention_forward: expecting {name} of shape ({n * a}, S, {d}), but got "
            f"{tuple(given.shape)}"
        )
    return reshape(given, (n, a, given.shape[1], d))


def _projections(
    query: Tensor, key: Tensor, value: Tensor, packed: Any, separate: Any, bias: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values; one product if all three are made of the same."""
    if separate is None and query is key and key is value:
        d = query.shape[-1]
        out = reshape(_by_rows(query, packed, bias), (*query.shape[:-1], 3, d))
        q, k, v = unbind(out, -2)
        return q, k, v
    weights = chunk(packed, 3) if separate is None else separate
    biases = (None, None, None) if bias is None else chunk(bias, 3)
    q, k, v = (
        _by_rows(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )
    return q, k, v


def _merged_mask(
    op: str, query: Tensor, key: Tensor, num_heads: int, padding: Tensor | None, mask: Tensor | None
) -> Tensor | None:
    """Both masks as one that is added to the scores (N, A, L, S)."""
    length, n, s = query.shape[0], query.shape[1], key.shape[0]
    if mask is not None:
        wanted = (length, s) if mask.ndim == 2 else (n * num_heads, length, s)
        if tuple(mask.shape) != wanted:
            raise RuntimeError(
                f"{op}: The shape of the {mask.ndim}D attn_mask is {tuple(mask.shape)}, but should "
                f"be {wanted}."
            )
        mask = added_mask(op, "attn_mask", mask, query, blocked=True)
        if mask.ndim == 3:
            mask = reshape(mask, (n, num_heads, length, s))
    if padding is None:
        return mask
    if tuple(padding.shape) != (n, s):
        raise AssertionError(
            f"{op}: Expected key_padding_mask of shape {(n, s)}, but got {tuple(padding.shape)}"
        )
    padding = added_mask(op, "key_padding_mask", padding, query, blocked=True)
    padding = reshape(padding, (n, 1, 1, s))
    return padding if mask is None else mask + padding


def _check_ranks(
    op: str,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    padding: Tensor | None,
    mask: Tensor | None,
) -> bool:
    """Whether there is a batch, after all that belongs to it has been checked."""
    if query.ndim not in (2, 3):
        raise AssertionError(
            f"{op}: query should be unbatched 2D or batched 3D tensor but received "
            f"{query.ndim}-D query tensor"
        )
    batched = query.ndim == 3
    found = (key.ndim, value.ndim, query.ndim - 1 if padding is None else padding.ndim)
    if found != (query.ndim, query.ndim, query.ndim - 1):
        raise AssertionError(
            f"{op}: for {'batched (3-D)' if batched else 'unbatched (2-D)'} query, expected key "
            f"and value to be {query.ndim}-D and key_padding_mask to be None or {query.ndim - 1}-D,"
            f" but found {found[0]}-D, {found[1]}-D and {found[2]}-D"
        )
    if mask is not None and mask.ndim not in (2, 3):
        raise AssertionError(
            f"{op}: expected attn_mask to be None, 2-D or 3-D but found {mask.ndim}-D"
        )
    return batched


def _check_sizes(
    op: str, query: Tensor, key: Tensor, value: Tensor, embed_dim: int, heads: int, separate: bool
) -> None:
    if query.shape[-1] != embed_dim:
        raise AssertionError(
            f"{op}: was expecting embedding dimension of {embed_dim}, but got {query.shape[-1]} in "
            f"a query of shape {tuple(query.shape)}"
        )
    if embed_dim % heads:
        raise AssertionError(f"{op}: embed_dim {embed_dim} not divisible by num_heads {heads}")
    a, b = (tuple(t.shape[:2] if separate else t.shape) for t in (key, value))
    if a != b:
        raise AssertionError(f"{op}: key shape {a} does not match value shape {b}")
    if key.shape[1] != query.shape[1]:
        raise AssertionError(
            f"{op}: query {tuple(query.shape)} and key {tuple(key.shape)} have different batches"
        )


class MultiheadAttention(Module):
    """Attention in several subspaces: head[a] = softmax(q[a] k[a]^T / sqrt(D / A)) v[a].

    q, k, v are linear maps of query, key and value; the heads side by side go through one more.

    Shape: query (L, N, D), key and value (S, N, D) -> (L, N, D) and weights (N, L, S); with
    batch_first (N, L, D) and (N, S, D); without a batch (L, D) and (S, D).

    Args:
        embed_dim: D, the features of query and output.
        num_heads: A, which divides D.
        dropout: rate of dropout on the weights, in training.
        bias: whether the linear maps have a bias.
        add_bias_kv: whether to add a learned key and value to those given.
        add_zero_attn: whether to add a key and value of zeros.
        kdim: features of the key, if not D.
        vdim: features of the value, if not D.
        batch_first: whether the batch comes first.

    ``forward`` takes ``key_padding_mask`` (N, S) and ``attn_mask`` (L, S) or (N A, L, S): True (or
    -inf added) where a key must not be read.

    >>> from chainrule import nn, ones
    >>> x = ones(5, 2, 8)
    >>> out, weights = nn.MultiheadAttention(8, 2)(x, x, x)
    >>> out.shape, weights.shape
    (chainrule.Size([5, 2, 8]), chainrule.Size([2, 5, 5]))
    """

    in_proj_weight: Parameter | MaybeNone
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | MaybeNone
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "MultiheadAttention: embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise AssertionError(
                "MultiheadAttention: embed_dim must be divisible by num_heads, got "
                f"embed_dim={embed_dim} and num_heads={num_heads}"
            )
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        d, apart = embed_dim, (self.kdim, self.vdim) != (embed_dim, embed_dim)
        shapes = {
            "q_proj_weight": (d, d) if apart else None,
            "k_proj_weight": (d, self.kdim) if apart else None,
            "v_proj_weight": (d, self.vdim) if apart else None,
            "in_proj_weight": None if apart else (3 * d, d),
            "in_proj_bias": (3 * d,) if bias else None,
        }
        for name, shape in shapes.items():
            self._register(name, shape, device, dtype)
        self.out_proj = Linear(d, d, bias=bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            self._register(name, (1, 1, d) if add_bias_kv else None, device, dtype)
        self.reset_parameters()

    def _register(
        self, name: str, shape: tuple[int, ...] | None, device: Device | None, dtype: DType | None
    ) -> None:
        value = None if shape is None else Parameter(empty(shape, device=device, dtype=dtype))
        self.register_parameter(name, value)

    def reset_parameters(self) -> None:
        """Weights by Xavier's rule, biases 0, as PyTorch does."""
        for p in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if p is not None:
                bound = math.sqrt(6 / (p.shape[0] + p.shape[1]))
                uniform_(p, -bound, bound)
        for p in (self.in_proj_bias, self.out_proj.bias):
            if p is not None:
                constant_(p, 0.0)
        for p in (self.bias_k, self.bias_v):
            if p is not None:
                normal_(p, 0, 1 / math.sqrt(self.embed_dim))

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        turned = self.batch_first and query.ndim == 3
        if turned:
            # What was one tensor stays one, so that one product serves all three.
            once = {id(t): transpose(t, 0, 1) for t in (query, key, value)}
            query, key, value = once[id(query)], once[id(key)], once[id(value)]
        out, weights = multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            self.in_proj_weight is None,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            None,
            None,
            average_attn_weights,
            is_causal,
        )
        return transpose(out, 0, 1) if turned else out, weights
