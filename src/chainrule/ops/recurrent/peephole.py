"""An LSTM whose gates see the cell, over a whole sequence as one primitive.

i and f look at c_{t-1} through w_ci and w_cf, o at c_t through w_co. So dc_t / dc_{t-1} is f plus
what goes through i and f, and m_t = o tanh(c_t) moves with c_t through o as well. The gradient of a
peephole is the sum over the steps of the gate's gradient times the cell that it saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.backend import K
from chainrule.ops.elementwise.functions import sigmoid, tanh, zeros_like_of
from chainrule.ops.shape.joining import chunk
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.core.primitive import Primitive
from chainrule.ops.recurrent.steps import peephole_steps
from chainrule.ops.recurrent.support import (
    at,
    batch_rule,
    before,
    check_gates,
    check_weight,
    held,
    operands,
    or_zeros,
    real_steps,
    state_weight_gradient,
    steps,
    sum_of,
    time_order,
    weight_gradient,
)
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor
from chainrule.typing import Gradients, Tangents, V, Value

__all__: list[str] = []  # the functions are public as nn.functional's
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()


Steps = tuple[Value, ...]
Slopes = tuple[Steps, Steps, Steps, Steps]


def _look(c: V, v: V) -> V:
    """What a gate sees of the cell through the peephole v, a vector or a matrix."""
    return matmul(c, v.mT) if v.ndim == 2 else c * v


def _back(g: V, v: V) -> V:
    """The gradient of the cell from that of the gate."""
    return matmul(g, v) if v.ndim == 2 else g * v


def _peephole_gradient(g: V, c: V, v: V) -> V:
    return weight_gradient(g, c) if v.ndim == 2 else sum(g * c, (0, 1))


def _slopes(
    x: Value,
    out: Sequence[Value],
    h0: Value,
    c0: Value,
    w: Value,
    peepholes: Sequence[Value],
    reverse: bool,
) -> Slopes:
    """How c_t moves with the gates i, f and g, m_t with o and with tanh(c_t), and f."""
    h, c, _ = out
    w_ci, w_cf, w_co = peepholes
    previous = before(c, c0, reverse)
    i, f, g, o = chunk(x + matmul(before(h, h0, reverse), w.mT), 4, -1)
    i, f, g = sigmoid(i + _look(previous, w_ci)), sigmoid(f + _look(previous, w_cf)), tanh(g)
    o, s = sigmoid(o + _look(c, w_co)), tanh(c)
    by_ifg = cat([g * i * (1 - i), previous * f * (1 - f), i * (1 - g * g)], -1)
    return steps(by_ifg), steps(s * o * (1 - o)), steps(o * (1 - s * s)), steps(f)


def _pullback(
    gh: Value,
    gc: Value,
    slopes: Slopes,
    w: Value,
    peepholes: Sequence[Value],
    mask: Value | None,
    reverse: bool,
) -> tuple[Value, Value, Value]:
    """Back through time: the gradients of x, h0 and c0."""
    by_ifg, by_o, by_cell, f = slopes
    w_ci, w_cf, w_co = peepholes
    real = real_steps(mask, gh.ndim)
    ghs, gcs = steps(gh), steps(gc)
    gx: list[Any] = [None] * len(ghs)
    carry_h, carry_c = zeros_like_of(ghs[0]), zeros_like_of(gcs[0])
    for t in time_order(len(ghs), not reverse):
        total_h, total_c = ghs[t] + carry_h, gcs[t] + carry_c
        go = by_o[t] * total_h
        cell = total_c + total_h * by_cell[t] + _back(go, w_co)
        gates = by_ifg[t] * cat([cell, cell, cell], -1)
        gi, gf, _ = chunk(gates, 3, -1)
        gx[t] = held(at(real, t), cat([gates, go], -1), 0.0)
        carry_h = held(at(real, t), matmul(gx[t], w), total_h)
        carry_c = held(at(real, t), cell * f[t] + _back(gi, w_ci) + _back(gf, w_cf), total_c)
    return stack(gx), carry_h, carry_c


def _vjp(
    g: Gradients,
    out: Sequence[Value],
    x: Value,
    h0: Value,
    c0: Value,
    w: Value,
    *others: Value,
    needs: Sequence[bool],
    full: bool,
    reverse: bool,
) -> Gradients:
    h, c, gates = out
    peepholes, mask = others[:3], others[3:]
    gh, gc = or_zeros(g[0], h), or_zeros(g[1], c)
    if isinstance(x, Tensor):
        slopes = _slopes(x, out, h0, c0, w, peepholes, reverse)
        m = mask[0] if mask else None
        gx, gh0, gc0 = _pullback(gh, gc, slopes, w, peepholes, m, reverse)
    else:
        gx, gh0, gc0 = K.peephole_sequence_backward(
            gh, gc, c, gates, c0, w, peepholes, *mask, full=full, reverse=reverse
        )
    gw = state_weight_gradient(gx, h, h0, reverse) if needs[3] else None
    gi, gf, _, go = chunk(gx, 4, -1)
    previous = before(c, c0, reverse)
    seen = zip((gi, gf, go), (previous, previous, c), peepholes, needs[4:7], strict=True)
    given = [_peephole_gradient(d, s, v) if wanted else None for d, s, v, wanted in seen]
    return (gx, gh0, gc0, gw, *given, None)[: len(needs)]


def _drive(
    tangents: Tangents, out: Sequence[Value], h0: Value, c0: Value, reverse: bool
) -> Value | None:
    """How the gates move with the input, the weights and the peepholes; None if they do not."""
    h, c, _ = out
    tx, _, _, tw, t_ci, t_cf, t_co = tangents[:7]
    drive = sum_of(tx, None if tw is None else matmul(before(h, h0, reverse), tw.mT))
    if any(t is not None for t in (t_ci, t_cf, t_co)):
        previous, still = before(c, c0, reverse), zeros_like_of(c)
        looks = ((previous, t_ci), (previous, t_cf), (c, None), (c, t_co))
        drive = sum_of(drive, cat([still if t is None else _look(s, t) for s, t in looks], -1))
    return drive


def _jvp(
    tangents: Tangents,
    out: Sequence[Value],
    x: Value,
    h0: Value,
    c0: Value,
    w: Value,
    *others: Value,
    full: bool,
    reverse: bool,
) -> tuple[Value, Value, None]:
    (w_ci, w_cf, w_co), mask = others[:3], others[3:]
    by_ifg, by_o, by_cell, f = _slopes(x, out, h0, c0, w, others[:3], reverse)
    drive = _drive(tangents, out, h0, c0, reverse)
    drives = None if drive is None else steps(drive)
    real = real_steps(mask[0], x.ndim) if mask else None
    th, tc = tangents[1:3]
    th = zeros_like_of(h0) if th is None else th
    tc = zeros_like_of(c0) if tc is None else tc
    moves_h: list[Any] = [None] * len(f)
    moves_c: list[Any] = [None] * len(f)
    for t in time_order(len(f), reverse):
        ti, tf, tg, to = chunk(sum_of(matmul(th, w.mT), at(drives, t)), 4, -1)
        seen = cat([ti + _look(tc, w_ci), tf + _look(tc, w_cf), tg], -1)
        ti, tf, tg = chunk(by_ifg[t] * seen, 3, -1)
        new_c = ti + tf + tg + f[t] * tc
        new_h = by_o[t] * (to + _look(new_c, w_co)) + by_cell[t] * new_c
        th, tc = held(at(real, t), new_h, th), held(at(real, t), new_c, tc)
        moves_h[t], moves_c[t] = th, tc
    return stack(moves_h), stack(moves_c), None


# The third output, the gates, is what the backward kernel reads; it is not handed out.
_peephole = Primitive("peephole_sequence", _vjp, _jvp, batch_rule(2, peephole_steps))
_peephole.materializes_grads = False


def peephole_sequence(
    input: Tensor,
    h0: Tensor,
    c0: Tensor,
    weight_hh: Tensor,
    peepholes: Sequence[Tensor],
    mask: Tensor | None = None,
    *,
    reverse: bool = False,
) -> tuple[Tensor, Tensor]:
    """The states h and c of an LSTM whose gates see the cell, for all steps, as one operation.

    i, f, g, o = input_t + h_{t-1} @ weight_hh.T; i and f plus weight_ci, weight_cf times c_{t-1};
    c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g); h_t = sigmoid(o + weight_co c_t) tanh(c_t)

    Shape: input (L, N, 4 D), h0 and c0 (N, D), weight_hh (4 D, D), peepholes (weight_ci, weight_cf,
    weight_co) each (D) or each (D, D); h and c (L, N, D).
    """
    op = "peephole_sequence"
    inputs = operands(op, input, [h0, c0], [weight_hh, *peepholes], mask)
    h = h0.shape[-1]
    check_weight(op, "c0", c0, tuple(h0.shape))
    check_weight(op, "weight_hh", weight_hh, (4 * h, h))
    full = peepholes[0].ndim == 2
    for name, v in zip(("weight_ci", "weight_cf", "weight_co"), peepholes, strict=True):
        check_weight(op, name, v, (h, h) if full else (h,))
    check_gates(op, input, 4 * h)
    out = _peephole(*inputs, full=full, reverse=reverse)
    return out[0], out[1]
