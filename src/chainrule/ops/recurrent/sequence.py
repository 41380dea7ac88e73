"""Recurrent layers over a whole sequence: one primitive for one layer in one direction.

The product of the input with its weights is one product for all steps and stands before the
primitive; what is left of the loop over time is one product of the state per step. An ordinary
backward pass runs one kernel back through time. Where a derivative is differentiated again, or in
forward mode, the same recursion is written here in operations: all local slopes at once, since the
states of all steps are known, then a loop over time that only multiplies. The rules of the simple
network and of the LSTM are given the product of the state with its weights (``Product``): a matrix
product here, a convolution in ``ops/recurrent/conv.py``. The gates are the third dimension.

L is the number of steps, N the batch, H the size of the state, S that of the output (H, or that of
its projection). ``mask`` (L, N) is False where a sequence has ended: there the state is held.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.backend import K
from chainrule.ops.core.apply import as_operand
from chainrule.ops.creation.patterns import new_zeros
from chainrule.ops.elementwise.functions import sigmoid, tanh, zeros_like_of
from chainrule.ops.shape.joining import chunk
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.core.primitive import Primitive
from chainrule.ops.recurrent.steps import gru_steps, lstm_steps, rnn_steps
from chainrule.ops.recurrent.support import (
    DENSE,
    Product,
    at,
    batch_rule,
    before,
    check_gates,
    check_nonlinearity,
    check_weight,
    held,
    operands,
    or_zeros,
    real_steps,
    slope_of,
    state_weight_gradient,
    steps,
    sum_of,
    time_order,
    weight_gradient,
)
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor
from chainrule.typing import Gradients, Tangents, Value

__all__: list[str] = []  # the functions are public as nn.functional's
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()


# --- the simple network ---------------------------------------------------------------------------


def _rnn_pullback(
    product: Product,
    g: Value,
    out: Value,
    w: Value,
    mask: Value | None,
    nonlinearity: str,
    reverse: bool,
) -> tuple[Value, Value]:
    """Back through time: d_t = g'(a_t) (g_t + d_{t+1} w) is the gradient of x_t."""
    real = real_steps(mask, out.ndim)
    gs, slope = steps(g), steps(slope_of(out, nonlinearity))
    gx: list[Any] = [None] * len(gs)
    carry = zeros_like_of(gs[0])
    for t in time_order(len(gs), not reverse):
        total = gs[t] + carry
        gx[t] = held(at(real, t), slope[t] * total, 0.0)
        carry = held(at(real, t), product.by_state(gx[t], w), total)
    return stack(gx), carry


def _rnn_vjp(
    product: Product,
    backward: str,
    g: Value,
    out: Value,
    x: Value,
    h0: Value,
    w: Value,
    *mask: Value,
    needs: Sequence[bool],
    **how: Any,
) -> Gradients:
    if isinstance(g, Tensor):
        gx, gh0 = _rnn_pullback(product, g, out, w, mask[0] if mask else None, **how)
    else:
        gx, gh0 = getattr(K, backward)(g, out, w, *mask, **how)
    gw = product.by_weight(gx, out, h0, how["reverse"], w) if needs[2] else None
    return (gx, gh0, gw, None)[: len(needs)]


def _rnn_jvp(
    product: Product,
    tangents: Tangents,
    out: Value,
    x: Value,
    h0: Value,
    w: Value,
    *mask: Value,
    nonlinearity: str,
    reverse: bool,
) -> Value:
    """dh_t = g'(a_t) (dx_t + h_{t-1} dw' + dh_{t-1} w')"""
    tx, th, tw = tangents[:3]
    pushed = None if tw is None else product.of(before(out, h0, reverse), tw)
    drive = sum_of(tx, pushed)
    drives = None if drive is None else steps(drive)
    slope = steps(slope_of(out, nonlinearity))
    real = real_steps(mask[0], out.ndim) if mask else None
    moves: list[Any] = [None] * len(slope)
    th = zeros_like_of(h0) if th is None else th
    for t in time_order(len(slope), reverse):
        th = held(at(real, t), slope[t] * sum_of(product.of(th, w), at(drives, t)), th)
        moves[t] = th
    return stack(moves)


def rnn_rules(
    product: Product, backward: str
) -> tuple[Callable[..., Gradients], Callable[..., Value]]:
    """vjp and jvp of the simple network with this product and this backward kernel."""
    return functools.partial(_rnn_vjp, product, backward), functools.partial(_rnn_jvp, product)


_rnn = Primitive(
    "rnn_sequence", *rnn_rules(DENSE, "rnn_sequence_backward"), batch_rule(1, rnn_steps)
)


def rnn_sequence(
    input: Tensor,
    h0: Tensor,
    weight_hh: Tensor,
    mask: Tensor | None = None,
    *,
    nonlinearity: str | Callable[[Tensor], Tensor] = "tanh",
    reverse: bool = False,
) -> Tensor:
    """h_t = g(input_t + h_{t-1} @ weight_hh.T) for all steps t, as one operation.

    ``nonlinearity`` is "tanh", "relu", "sigmoid" or any function of a tensor (then step by step);
    ``reverse`` runs from the last step to the first.

    Shape: input (L, N, D), h0 (N, D), weight_hh (D, D), output (L, N, D).
    """
    inputs = operands("rnn_sequence", input, [h0], [weight_hh], mask)
    h = h0.shape[-1]
    check_weight("rnn_sequence", "weight_hh", weight_hh, (h, h))
    check_gates("rnn_sequence", input, h)
    if callable(nonlinearity):
        return rnn_steps(*inputs, nonlinearity=nonlinearity, reverse=reverse)
    check_nonlinearity("rnn_sequence", nonlinearity)
    return _rnn(*inputs, nonlinearity=nonlinearity, reverse=reverse)


# --- LSTM -----------------------------------------------------------------------------------------


Steps = tuple[Value, ...]
LSTMSlopes = tuple[Steps, Steps, Steps, Value]
GRUSlopes = tuple[Steps, Steps, Steps]


def _lstm_slopes(
    product: Product, x: Value, out: Sequence[Value], h0: Value, c0: Value, w: Value, reverse: bool
) -> LSTMSlopes:
    """How c_t and m_t = o tanh(c_t) move with the gates (i, f, g move c; o moves m), m with c, and
    c with the c before; and m itself."""
    h, c, _ = out
    i, f, g, o = chunk(x + product.of(before(h, h0, reverse), w), 4, 2)
    i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
    s = tanh(c)
    by_gates = cat(
        [g * i * (1 - i), before(c, c0, reverse) * f * (1 - f), i * (1 - g * g), s * o * (1 - o)],
        2,
    )
    return steps(by_gates), steps(o * (1 - s * s)), steps(f), o * s


def _lstm_pullback(
    product: Product,
    gh: Value,
    gc: Value,
    slopes: LSTMSlopes,
    w: Value,
    w_hr: Value | None,
    mask: Value | None,
    reverse: bool,
) -> tuple[Value, Value, Value, Value]:
    """Back through time: the gradients of x, h0 and c0, and those that arrive at each h_t."""
    by_gates, by_cell, f, _ = slopes
    real = real_steps(mask, gh.ndim)
    ghs, gcs = steps(gh), steps(gc)
    gx: list[Any] = [None] * len(ghs)
    arrived: list[Any] = [None] * len(ghs)
    carry_h, carry_c = zeros_like_of(ghs[0]), zeros_like_of(gcs[0])
    for t in time_order(len(ghs), not reverse):
        total_h, total_c = ghs[t] + carry_h, gcs[t] + carry_c
        gm = total_h if w_hr is None else matmul(total_h, w_hr)
        cell = total_c + gm * by_cell[t]
        gx[t] = held(at(real, t), by_gates[t] * cat([cell, cell, cell, gm], 1), 0.0)
        arrived[t] = held(at(real, t), total_h, 0.0)
        carry_h = held(at(real, t), product.by_state(gx[t], w), total_h)
        carry_c = held(at(real, t), cell * f[t], total_c)
    return stack(gx), carry_h, carry_c, stack(arrived)


def _lstm_vjp(
    product: Product,
    backward: str,
    g: Gradients,
    out: Sequence[Value],
    x: Value,
    h0: Value,
    c0: Value,
    w: Value,
    *others: Value,
    needs: Sequence[bool],
    reverse: bool,
    **how: Any,
) -> Gradients:
    h, c, gates = out
    projected = how.get("projected", False)
    w_hr, mask = _optional(others, projected)
    gh, gc = or_zeros(g[0], h), or_zeros(g[1], c)
    if isinstance(x, Tensor):
        slopes = _lstm_slopes(product, x, out, h0, c0, w, reverse)
        gx, gh0, gc0, arrived = _lstm_pullback(product, gh, gc, slopes, w, w_hr, mask, reverse)
        m: Value | None = slopes[-1]
    else:
        gx, gh0, gc0, arrived = getattr(K, backward)(
            gh, gc, c, gates, c0, w, *others, reverse=reverse, **how
        )
        m = gates[..., -c0.shape[-1] :] * tanh(c) if projected else None
    gw = product.by_weight(gx, h, h0, reverse, w) if needs[3] else None
    given: list[Value | None] = [gx, gh0, gc0, gw]
    if projected:
        given.append(weight_gradient(arrived, m) if needs[4] and m is not None else None)
    return (*given, None)[: len(needs)]


def _lstm_jvp(
    product: Product,
    tangents: Tangents,
    out: Sequence[Value],
    x: Value,
    h0: Value,
    c0: Value,
    w: Value,
    *others: Value,
    reverse: bool,
    projected: bool = False,
) -> tuple[Value, Value, None]:
    tx, th, tc, tw = tangents[:4]
    w_hr, mask = _optional(others, projected)
    by_gates, by_cell, f, m = _lstm_slopes(product, x, out, h0, c0, w, reverse)
    pushed = None if tw is None else product.of(before(out[0], h0, reverse), tw)
    drive = sum_of(tx, pushed)
    drives = None if drive is None else steps(drive)
    tr = tangents[4] if projected else None
    turned = None if tr is None else steps(matmul(m, tr.mT))
    real = real_steps(mask, x.ndim)
    moves_h: list[Any] = [None] * len(f)
    moves_c: list[Any] = [None] * len(f)
    th = zeros_like_of(h0) if th is None else th
    tc = zeros_like_of(c0) if tc is None else tc
    for t in time_order(len(f), reverse):
        i, forget, g, o = chunk(by_gates[t] * sum_of(product.of(th, w), at(drives, t)), 4, 1)
        new_c = i + forget + g + f[t] * tc
        new_h = o + by_cell[t] * new_c
        if w_hr is not None:
            new_h = sum_of(matmul(new_h, w_hr.mT), at(turned, t))
        th, tc = held(at(real, t), new_h, th), held(at(real, t), new_c, tc)
        moves_h[t], moves_c[t] = th, tc
    return stack(moves_h), stack(moves_c), None


def _optional(others: Sequence[Value], projected: bool) -> tuple[Value | None, Value | None]:
    """The projection and the mask, None where they are not given."""
    mask = others[projected:]
    return (others[0] if projected else None), (mask[0] if mask else None)


def lstm_rules(
    product: Product, backward: str
) -> tuple[Callable[..., Gradients], Callable[..., tuple[Value, Value, None]]]:
    """vjp and jvp of the LSTM with this product and this backward kernel."""
    return functools.partial(_lstm_vjp, product, backward), functools.partial(_lstm_jvp, product)


# The third output, the gates, is what the backward kernel reads; it is not handed out.
_lstm = Primitive(
    "lstm_sequence", *lstm_rules(DENSE, "lstm_sequence_backward"), batch_rule(2, lstm_steps)
)
_lstm.materializes_grads = False


def lstm_sequence(
    input: Tensor,
    h0: Tensor,
    c0: Tensor,
    weight_hh: Tensor,
    weight_hr: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    reverse: bool = False,
) -> tuple[Tensor, Tensor]:
    """The states h and c of an LSTM for all steps, as one operation.

    i, f, g, o = input_t + h_{t-1} @ weight_hh.T;
    c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g); h_t = sigmoid(o) tanh(c_t) [@ weight_hr.T]

    Shape: input (L, N, 4 D), h0 (N, D_out), c0 (N, D), weight_hh (4 D, D_out), weight_hr
    (D_out, D); h (L, N, D_out), c (L, N, D).
    """
    weights = [weight_hh] if weight_hr is None else [weight_hh, weight_hr]
    inputs = operands("lstm_sequence", input, [h0, c0], weights, mask)
    s, h = h0.shape[-1], c0.shape[-1]
    check_weight("lstm_sequence", "weight_hh", weight_hh, (4 * h, s))
    if weight_hr is not None:
        check_weight("lstm_sequence", "weight_hr", weight_hr, (s, h))
    elif s != h:
        raise RuntimeError(
            f"lstm_sequence: h0 of shape {tuple(h0.shape)} and c0 of shape {tuple(c0.shape)} must "
            "have one size without a projection (weight_hr)"
        )
    check_gates("lstm_sequence", input, 4 * h)
    out = _lstm(*inputs, projected=weight_hr is not None, reverse=reverse)
    return out[0], out[1]


# --- GRU ------------------------------------------------------------------------------------------


def _gru_slopes(x: Value, h: Value, h0: Value, w: Value, b: Value, reverse: bool) -> GRUSlopes:
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
    g: Value, slopes: GRUSlopes, w: Value, mask: Value | None, reverse: bool
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
