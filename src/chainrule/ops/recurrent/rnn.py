"""The simple recurrent network over a whole sequence, as one primitive."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.backend import K
from chainrule.ops.elementwise.functions import zeros_like_of
from chainrule.ops.core.primitive import Primitive
from chainrule.ops.recurrent.steps import rnn_steps
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
    real_steps,
    slope_of,
    steps,
    sum_of,
    time_order,
)
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor
from chainrule.typing import Gradients, Tangents, Value

__all__: list[str] = []  # the functions are public as nn.functional's
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()


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
