"""A recurrent network with layers between its states, over a whole sequence as one primitive.

a_0 = g(x_t + h_{t-1} w'), a_k = g(a_{k-1} w_k' + b_k) for each layer k, and the last one is h_t.
With the states of all steps known, the values and slopes of every layer are those of one network
over L * N samples; what runs through time only multiplies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.backend import K
from chainrule.ops.core.apply import as_operand
from chainrule.ops.creation.like import new_zeros
from chainrule.ops.elementwise.functions import zeros_like_of
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.core.primitive import Primitive
from chainrule.ops.recurrent.steps import deep_rnn_steps
from chainrule.ops.recurrent.support import (
    ACTIVATIONS,
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
    state_weight_gradient,
    steps,
    sum_of,
    time_order,
    weight_gradient,
)
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor
from chainrule.typing import Gradients, Tangents, Value

__all__: list[str] = []  # the functions are public as nn.functional's
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()


def _values(
    out: Sequence[Value],
    x: Value,
    h0: Value,
    w: Value,
    weights: Sequence[Value],
    nonlinearity: str,
    reverse: bool,
) -> list[Value]:
    """The values of all layers at all steps; those of the last are the states."""
    h, *inner = out
    if isinstance(x, Tensor):  # computed again, since they are differentiated
        inner, a = [], before(h, h0, reverse)
        for v, b in zip((w, *weights[:-2:2]), (x, *weights[1:-2:2]), strict=True):
            a = ACTIVATIONS[nonlinearity](matmul(a, v.mT) + b)
            inner.append(a)
    return [*inner[: len(weights) // 2], h]


def _pullback(
    g: Value,
    values: Sequence[Value],
    matrices: Sequence[Value],
    mask: Value | None,
    nonlinearity: str,
    reverse: bool,
) -> tuple[list[Value], Value]:
    """Back through time and layers: the gradients of what each layer activates, and of h0."""
    real, gs = real_steps(mask, g.ndim), steps(g)
    slopes = [steps(slope_of(a, nonlinearity)) for a in values]
    arrived: list[list[Any]] = [[None] * len(gs) for _ in values]
    carry = zeros_like_of(gs[0])
    for t in time_order(len(gs), not reverse):
        total = gs[t] + carry
        back = held(at(real, t), total, 0.0)
        for k in range(len(values) - 1, -1, -1):
            arrived[k][t] = slopes[k][t] * back
            back = matmul(arrived[k][t], matrices[k])
        carry = held(at(real, t), back, total)
    return [stack(d) for d in arrived], carry


def _vjp(
    g: Sequence[Value],
    out: Sequence[Value],
    x: Value,
    h0: Value,
    w: Value,
    *others: Value,
    needs: Sequence[bool],
    layers: int,
    nonlinearity: str,
    reverse: bool,
) -> Gradients:
    weights, mask = others[: 2 * layers], others[2 * layers :]
    values = _values(out, x, h0, w, weights, nonlinearity, reverse)
    matrices = (w, *weights[::2])
    how: Any = {"nonlinearity": nonlinearity, "reverse": reverse}
    if isinstance(x, Tensor):
        arrived, gh0 = _pullback(g[0], values, matrices, mask[0] if mask else None, **how)
    else:
        arrived, gh0 = K.deep_rnn_sequence_backward(g[0], values, matrices, *mask, **how)
    gw = state_weight_gradient(arrived[0], out[0], h0, reverse) if needs[2] else None
    given = [arrived[0], gh0, gw]
    for k in range(layers):
        d = arrived[k + 1]
        given.append(weight_gradient(d, values[k]) if needs[3 + 2 * k] else None)
        given.append(sum(d, (0, 1)) if needs[4 + 2 * k] else None)
    return (*given, None)[: len(needs)]


def _drives(
    tangents: Tangents, values: Sequence[Value], h: Value, h0: Value, layers: int, reverse: bool
) -> list[tuple[Value, ...] | None]:
    """How what each layer activates moves with its own weights (and the first with the input)."""
    tx, _, tw = tangents[:3]
    drives = [sum_of(tx, None if tw is None else matmul(before(h, h0, reverse), tw.mT))]
    for k in range(layers):
        tv, tb = tangents[3 + 2 * k : 5 + 2 * k]
        pushed = None if tv is None else matmul(values[k], tv.mT)
        # A bias moves every step alike: spread over the steps by zeros.
        drives.append(sum_of(pushed, None if tb is None else tb + zeros_like_of(values[k + 1])))
    return [None if d is None else steps(d) for d in drives]


def _jvp(
    tangents: Tangents,
    out: Sequence[Value],
    x: Value,
    h0: Value,
    w: Value,
    *others: Value,
    layers: int,
    nonlinearity: str,
    reverse: bool,
) -> Gradients:
    weights, mask = others[: 2 * layers], others[2 * layers :]
    values = _values(out, x, h0, w, weights, nonlinearity, reverse)
    slopes = [steps(slope_of(a, nonlinearity)) for a in values]
    drives = _drives(tangents, values, out[0], h0, layers, reverse)
    real = real_steps(mask[0], x.ndim) if mask else None
    moves: list[Any] = [None] * x.shape[0]
    th = zeros_like_of(h0) if tangents[1] is None else tangents[1]
    for t in time_order(len(moves), reverse):
        new = th
        for v, slope, drive in zip((w, *weights[::2]), slopes, drives, strict=True):
            new = slope[t] * sum_of(matmul(new, v.mT), at(drive, t))
        th = held(at(real, t), new, th)
        moves[t] = th
    return (stack(moves), *[None] * layers)


# The outputs after the first are what the reverse rule reads; they are not handed out.
_deep_rnn = Primitive("deep_rnn_sequence", _vjp, _jvp, batch_rule(1, deep_rnn_steps))


def deep_rnn_sequence(
    input: Tensor,
    h0: Tensor,
    weight_hh: Tensor,
    layers: Sequence[tuple[Tensor, Tensor | None]],
    mask: Tensor | None = None,
    *,
    nonlinearity: str = "tanh",
    reverse: bool = False,
) -> Tensor:
    """h_t = MLP(g(input_t + h_{t-1} @ weight_hh.T)) for all steps t, as one operation.

    ``layers`` are the pairs (weight, bias) of the MLP, a -> g(a @ weight.T + bias); a bias may be
    None. ``nonlinearity``, g, is "tanh", "relu" or "sigmoid".

    Shape: input (L, N, D), h0 (N, D_out), weight_hh (D, D_out), the weights (D_k, D_{k-1}) from
    D_0 = D to the last D_k = D_out, their biases (D_k); output (L, N, D_out).
    """
    op = "deep_rnn_sequence"
    check_nonlinearity(op, nonlinearity)
    weights: list[Any] = []
    for weight, bias in layers:
        if bias is None:
            bias = new_zeros(as_operand(weight), weight.shape[0])
        weights += [weight, bias]
    inputs = operands(op, input, [h0], [weight_hh, *weights], mask)
    _check_sizes(op, input, h0, weight_hh, weights)
    out = _deep_rnn(*inputs, layers=len(layers), nonlinearity=nonlinearity, reverse=reverse)
    return out[0]


def _check_sizes(
    op: str, input: Tensor, h0: Tensor, weight_hh: Tensor, weights: Sequence[Tensor]
) -> None:
    """Each layer reads what the one before it gives, and the last gives a state."""
    h, size = h0.shape[-1], weight_hh.shape[0]
    check_weight(op, "weight_hh", weight_hh, (size, h))
    check_gates(op, input, size)
    for k, (v, b) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
        last = 2 * (k + 1) == len(weights)
        out = h if last else v.shape[0]
        check_weight(op, f"the weight of layer {k}", v, (out, size))
        check_weight(op, f"the bias of layer {k}", b, (out,))
        size = out
    if not weights:
        check_weight(op, "weight_hh", weight_hh, (h, h))
