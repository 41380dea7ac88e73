"""The LSTM over a whole sequence, as one primitive."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.backend import K
from chainrule.ops.elementwise.functions import sigmoid, tanh, zeros_like_of
from chainrule.ops.shape.joining import chunk
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.core.primitive import Primitive
from chainrule.ops.recurrent.steps import lstm_steps
from chainrule.ops.recurrent.support import (
    DENSE,
    Product,
    at,
    batch_rule,
    before,
    check_gates,
    check_weight,
    held,
    operands,
    or_zeros,
    real_steps,
    steps,
    sum_of,
    time_order,
    weight_gradient,
)
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor
from chainrule.typing import Gradients, Tangents, Value

__all__: list[str] = []  # the functions are public as nn.functional's
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()


Slopes = tuple[tuple[Value, ...], tuple[Value, ...], tuple[Value, ...], Value]


def _lstm_slopes(
    product: Product, x: Value, out: Sequence[Value], h0: Value, c0: Value, w: Value, reverse: bool
) -> Slopes:
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
    slopes: Slopes,
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
