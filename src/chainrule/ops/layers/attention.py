"""Attention of many heads as one operation, without an array of all weights.

Letters (docs/conventions.md): N batch, A heads, L length of the queries, S length of keys and
values, D features of a head; E features of its values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from chainrule.backend import K, dtypes
from chainrule.graph import Node, mode
from chainrule.ops.core.apply import apply
from chainrule.ops.core.batching import spread
from chainrule.ops.core.primitive import Op, sum_to
from chainrule.ops.core.recording import several
from chainrule.ops.elementwise.logic import isneginf, where
from chainrule.ops.layers.softmax import softmax
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import all, sum
from chainrule.ops.shape.views import transpose
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array, Gradients, Tangents, V, Value

__all__: list[str] = []
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()

_MINUS_INFINITY = -math.inf


def _heads(x: V) -> V:
    """(N, L, A, D) as (N, A, L, D), and back."""
    return transpose(x, -3, -2)


def _weights(q: V, k: V, mask: V | None, scale: float, causal: bool) -> V:
    """The weights (N, A, L, S), in operations."""
    scores = matmul(_heads(q) * scale, transpose(_heads(k), -2, -1))
    if mask is not None:
        scores = scores + mask
    if causal:
        past = _past(scores)
        scores = where(past, scores, _MINUS_INFINITY)
    if mask is None:
        return softmax(scores, -1)
    closed = isneginf(mask)
    if causal:
        closed = where(past, closed, True)
    # softmax of nothing is 0 / 0: such rows are taken out before and set to 0 after.
    nothing = all(closed, -1, True)
    return where(nothing, 0.0, softmax(where(nothing, 0.0, scores), -1))


def _past(scores: V) -> Any:
    """Which keys are not later than the query: a lower triangle (L, S)."""
    length, size = scores.shape[-2:]
    triangle = _numbers(size)[None, :] <= _numbers(length)[:, None]
    return of_array(triangle) if isinstance(scores, Tensor) else triangle


def _numbers(n: int) -> Any:
    return K.arange(0, n, 1, dtypes.int64.array_dtype)


def _change(p: V, d: V) -> V:
    """p (d - sum(p d)): how weights change with their scores; the Jacobian is symmetric."""
    return p * (d - sum(p * d, -1, keepdim=True))


class Attention(Op):
    """softmax(scale q k^T + mask) v of each head, as one node.

    For speed and memory: the forward pass keeps a number for each query, the logarithm of the sum
    of its exponentials, from which an ordinary backward pass computes the weights again, block by
    block. Where the gradient is differentiated again, or asked for the mask, it is written in
    operations.
    """

    @staticmethod
    def raw(
        q: Array, k: Array, v: Array, mask: Array | None = None, *, scale: float, causal: bool
    ) -> Array:
        """The output of arrays alone."""
        out: Array = K.attention(q, k, v, mask, scale, causal)[0]
        return out

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        edges, params = node.edges, node.params
        scale, causal = params["scale"], params["causal"]
        values: Sequence[Any] = node.saved[: len(edges)]
        if not tensors:
            values = [t.array for t in values]
        q, k, v, *masks = values
        mask = masks[0] if masks else None
        if not tensors and (mask is None or edges[3] is None):
            kept = node.saved[len(edges) :]
            lse = kept[0].array if kept else K.attention(q, k, v, mask, scale, causal)[1]
            grads: tuple[Any, ...] = K.attention_backward(g, q, k, v, mask, lse, scale, causal)
            return grads if mask is None else (*grads, None)
        p = _weights(q, k, mask, scale, causal)
        gh = _heads(g)
        s = _change(p, matmul(gh, transpose(_heads(v), -2, -1)))
        grads = (
            _heads(matmul(s, _heads(k))) * scale,
            _heads(matmul(transpose(s, -2, -1), _heads(q))) * scale,
            _heads(matmul(transpose(p, -2, -1), gh)),
        )
        return grads if mask is None else (*grads, sum_to(s, shape=node.shapes[3]))

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Value:
        scale = params["scale"]
        q, k, v, *masks = inputs
        tq, tk, tv, *tm = tangents
        p = _weights(q, k, masks[0] if masks else None, scale, params["causal"])
        changes: list[Any] = []
        if tq is not None:
            changes.append(matmul(_heads(tq), transpose(_heads(k), -2, -1)) * scale)
        if tk is not None:
            changes.append(matmul(_heads(q), transpose(_heads(tk), -2, -1)) * scale)
        if tm and tm[0] is not None:
            changes.append(tm[0])
        total: Any = None
        for d in changes:
            total = d if total is None else total + d
        parts: list[Any] = [] if total is None else [matmul(_change(p, total), _heads(v))]
        if tv is not None:
            parts.append(matmul(p, _heads(tv)))
        return _heads(parts[0] if len(parts) == 1 else parts[0] + parts[1])


def _batched(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """vmap: in operations, which take any number of dimensions in front."""
    q, k, v = (x if m else spread(x, size) for x, m in zip(values[:3], mapped[:3], strict=True))
    mask = values[3] if len(values) > 3 else None
    if mask is not None and mapped[3]:
        mask = mask[(slice(None), *[None] * (q.ndim - mask.ndim))]
    p = _weights(q, k, mask, params["scale"], params["causal"])
    return _heads(matmul(p, _heads(v)))


_attention = Attention("attention", _batched)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    scale: float,
    causal: bool = False,
) -> Tensor:
    """softmax(scale q k^T + mask) v of each head.

    q (N, L, A, D), k (N, S, A, D), v (N, S, A, E) -> (N, L, A, E): the heads lie behind the length,
    as a linear layer leaves them. The ``mask``, which broadcasts to (N, A, L, S), is added to the
    scores; ``causal``: query i reads from the keys up to i. A query whose mask lets it read nothing
    gets 0.
    """
    inputs = (q, k, v) if mask is None else (q, k, v, mask)
    params = {"scale": scale, "causal": causal}
    flags = mode.flags
    if flags > 1 or q.array.itemsize == 2:
        return apply(_attention, inputs, params)
    out, lse = K.attention(
        q.array, k.array, v.array, None if mask is None else mask.array, scale, causal
    )
    return several(_attention, inputs, out, flags, params, (lse,))
