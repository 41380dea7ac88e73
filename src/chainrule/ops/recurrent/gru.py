"""The GRU over a whole sequence, as one primitive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.backend import K
from chainrule.ops.core.apply import as_operand
from chainrule.ops.creation.like import new_zeros
from chainrule.ops.elementwise.functions import sigmoid, tanh, zeros_like_of
from chainrule.ops.shape.joining import chunk
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.core.primitive import Primitive
from chainrule.ops.recurrent.steps import gru_steps
from chainrule.ops.recurrent.support import (
    at,
    batch_rule,
    before,
    check_gates,
    check_weight,
    held,
    operands,
    real_steps,
    state_weight_gradient,
    steps,
    sum_of,
    time_order,
)
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor
from chainrule.typing import Gradients, Tangents, Value

__all__: list[str] = []  # the functions are public as nn.functional's
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()


Slopes = tuple[tuple[Value, ...], tuple[Value, ...], tuple[Value, ...]]


def _gru_slopes(x: Value, h: Value, h0: Value, w: Value, b: Value, reverse: bool) -> Slopes:
    """How h_t moves with x_t, with p_t = h_{t-1} w' + b, and directly with h_{t-1}."""
    previous = before(h, h0, reverse)
    xr, xz, xn = chunk(x, 3, -1)
    pr, pz, pn = chunk(matmul(previous, w.mT) + b, 3, -1)
    r, z = sigmoid(xr + pr), sigmoid(xz + pz)
    n = tanh(xn + r * pn)
    by_n = (1 - z) * (1 - n * n)
    by_r, by_z = by_n * pn * r * (1 - r), (previous - n) * z * (1 - z)
    return steps(cat([by_r, by_z, by_n], -1)), steps(cat([by_r, by_z, by_n * r], -1)), steps(z)


def _gru_pullback(
    g: Value, slopes: Slopes, w: Value, mask: Value | None, reverse: bool
) -> tuple[Value, Value, Value]:
    """Back through time: the gradients of x, of h_{t-1} w' + b at every step, and of h0."""
    by_x, by_p, z = slopes
    gs, real = steps(g), real_steps(mask, g.ndim)
    gx: list[Any] = [None] * len(gs)
    gp: list[Any] = [None] * len(gs)
    carry = zeros_like_of(gs[0])
    for t in time_order(len(gs), not reverse):
        total = gs[t] + carry
        thrice = held(at(real, t), cat([total, total, total], -1), 0.0)
        gx[t], gp[t] = by_x[t] * thrice, by_p[t] * thrice
        carry = held(at(real, t), total * z[t] + matmul(gp[t], w), total)
    return stack(gx), stack(gp), carry


def _gru_vjp(
    g: Sequence[Value],
    out: Sequence[Value],
    x: Value,
    h0: Value,
    w: Value,
    b: Value,
    *mask: Value,
    needs: Sequence[bool],
    reverse: bool,
) -> Gradients:
    h, kept = out
    if isinstance(x, Tensor):
        slopes = _gru_slopes(x, h, h0, w, b, reverse)
        gx, gp, gh0 = _gru_pullback(g[0], slopes, w, mask[0] if mask else None, reverse)
    else:
        gx, gp, gh0 = K.gru_sequence_backward(g[0], h, kept, h0, w, *mask, reverse=reverse)
    gw = state_weight_gradient(gp, h, h0, reverse) if needs[2] else None
    return (gx, gh0, gw, sum(gp, (0, 1)) if needs[3] else None, None)[: len(needs)]


def _gru_jvp(
    tangents: Tangents,
    out: Sequence[Value],
    x: Value,
    h0: Value,
    w: Value,
    b: Value,
    *mask: Value,
    reverse: bool,
) -> tuple[Value, None]:
    tx, th, tw, tb = tangents[:4]
    by_x, by_p, z = _gru_slopes(x, out[0], h0, w, b, reverse)
    pushed = None if tw is None else matmul(before(out[0], h0, reverse), tw.mT)
    # b alone moves every step alike: spread over the steps by the zeros of x.
    drive = sum_of(pushed, None if tb is None else tb + zeros_like_of(x))
    txs, drives = (None if s is None else steps(s) for s in (tx, drive))
    real = real_steps(mask[0], x.ndim) if mask else None
    moves: list[Any] = [None] * len(z)
    th = zeros_like_of(h0) if th is None else th
    for t in time_order(len(z), reverse):
        change = by_p[t] * sum_of(matmul(th, w.mT), at(drives, t))
        if txs is not None:
            change = change + by_x[t] * txs[t]
        r, update, n = chunk(change, 3, -1)
        th = held(at(real, t), r + update + n + z[t] * th, th)
        moves[t] = th
    return stack(moves), None


# The second output is what the backward kernel reads; it is not handed out.
_gru = Primitive("gru_sequence", _gru_vjp, _gru_jvp, batch_rule(1, gru_steps))
_gru.materializes_grads = False


def gru_sequence(
    input: Tensor,
    h0: Tensor,
    weight_hh: Tensor,
    bias_hh: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    reverse: bool = False,
) -> Tensor:
    """The states of a GRU for all steps, as one operation.

    With p = h_{t-1} @ weight_hh.T + bias_hh, and input and p in parts for r, z and n:
    r, z = sigmoid(input + p); n = tanh(input_n + r p_n); h_t = (1 - z) n + z h_{t-1}

    Shape: input (L, N, 3 D), h0 (N, D), weight_hh (3 D, D), bias_hh (3 D); output (L, N, D).
    """
    if bias_hh is None:
        bias_hh = new_zeros(as_operand(weight_hh), weight_hh.shape[0])
    inputs = operands("gru_sequence", input, [h0], [weight_hh, bias_hh], mask)
    h = h0.shape[-1]
    check_weight("gru_sequence", "weight_hh", weight_hh, (3 * h, h))
    check_weight("gru_sequence", "bias_hh", bias_hh, (3 * h,))
    check_gates("gru_sequence", input, 3 * h)
    return _gru(*inputs, reverse=reverse)[0]
