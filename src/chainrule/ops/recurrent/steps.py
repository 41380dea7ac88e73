"""Recurrent layers written out: an operation per gate and step.

These define what the primitives of ``ops/recurrent*.py`` compute, in their argument order, and are
tested against them. They also do what those cannot: any activation, and (with more dimensions in
front) a batch of networks with weights of their own. ``product`` is how a state enters the next
step, and ``dim`` the dimension of time, from the end; the gates lie two dimensions further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.ops.elementwise.functions import sigmoid, tanh
from chainrule.ops.elementwise.logic import where
from chainrule.ops.shape.joining import chunk
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.recurrent.support import ACTIVATIONS, DENSE, steps, time_order
from chainrule.ops.shape.views import unsqueeze
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor

__all__ = [
    "deep_rnn_steps",
    "gru_steps",
    "lstm_steps",
    "peephole_steps",
    "rnn_steps",
    "run_steps",
]


def run_steps(
    advance: Callable[..., Sequence[Tensor]],
    x: Tensor,
    states: Sequence[Tensor],
    mask: Tensor | None = None,
    reverse: bool = False,
    dim: int = -3,
) -> list[Tensor]:
    """Runs ``advance(x_t, *states) -> (*new states, *more)`` over time and stacks each result.

    ``dim`` is that of time, named from the end. Where a sequence has ended the states are held.
    """
    xs = steps(x, dim)
    real = None
    if mask is not None:
        for _ in range(-dim - 2):
            mask = unsqueeze(mask, -1)
        real = steps(mask, dim)
    results: list[Any] = [None] * len(xs)
    for t in time_order(len(xs), reverse):
        new = list(advance(xs[t], *states))
        if real is not None:
            new[: len(states)] = [where(real[t], a, b) for a, b in zip(new, states, strict=False)]
        results[t], states = new, new[: len(states)]
    return [stack(column, dim) for column in zip(*results, strict=True)]


def rnn_steps(
    x: Tensor,
    h0: Tensor,
    w: Tensor,
    mask: Tensor | None = None,
    *,
    nonlinearity: str | Callable[[Tensor], Tensor],
    reverse: bool,
    product: Callable[[Tensor, Tensor], Tensor] = DENSE.of,
    dim: int = -3,
) -> Tensor:
    """h_t = g(x_t + h_{t-1} w')"""
    activation = nonlinearity if callable(nonlinearity) else ACTIVATIONS[nonlinearity]

    def advance(xt: Tensor, h: Tensor) -> tuple[Tensor]:
        return (activation(xt + product(h, w)),)

    return run_steps(advance, x, (h0,), mask, reverse, dim)[0]


def deep_rnn_steps(
    x: Tensor, h0: Tensor, w: Tensor, *others: Tensor, layers: int, nonlinearity: str, reverse: bool
) -> tuple[Tensor, ...]:
    """h of all steps, and the values of the layers before it."""
    g = ACTIVATIONS[nonlinearity]
    weights, mask = others[: 2 * layers], others[2 * layers :]

    def advance(xt: Tensor, h: Tensor) -> list[Tensor]:
        values = [g(xt + matmul(h, w.mT))]
        for v, b in zip(weights[::2], weights[1::2], strict=True):
            values.append(g(matmul(values[-1], v.mT) + unsqueeze(b, -2)))
        return [values[-1], *values[:-1]]

    return tuple(run_steps(advance, x, (h0,), mask[0] if mask else None, reverse))


def lstm_steps(
    x: Tensor,
    h0: Tensor,
    c0: Tensor,
    w: Tensor,
    *others: Tensor,
    reverse: bool,
    projected: bool = False,
    product: Callable[[Tensor, Tensor], Tensor] = DENSE.of,
    dim: int = -3,
) -> tuple[Tensor, Tensor, Tensor]:
    """h, c and the gates of all steps."""
    mask = others[projected:]

    def advance(xt: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        i, f, g, o = chunk(xt + product(h, w), 4, dim + 2)
        i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
        c = f * c + i * g
        h = o * tanh(c)
        if projected:
            h = matmul(h, others[0].mT)
        return h, c, cat([i, f, g, o], dim + 2)

    h, c, gates = run_steps(advance, x, (h0, c0), mask[0] if mask else None, reverse, dim)
    return h, c, gates


def peephole_steps(
    x: Tensor, h0: Tensor, c0: Tensor, w: Tensor, *others: Tensor, full: bool, reverse: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """h, c and the gates of all steps of an LSTM whose gates see the cell."""
    w_ci, w_cf, w_co, *mask = others

    def look(c: Tensor, v: Tensor) -> Tensor:
        return matmul(c, v.mT) if full else c * unsqueeze(v, -2)

    def advance(xt: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        i, f, g, o = chunk(xt + matmul(h, w.mT), 4, -1)
        i, f, g = sigmoid(i + look(c, w_ci)), sigmoid(f + look(c, w_cf)), tanh(g)
        c = f * c + i * g
        o = sigmoid(o + look(c, w_co))
        return o * tanh(c), c, cat([i, f, g, o], -1)

    h, c, gates = run_steps(advance, x, (h0, c0), mask[0] if mask else None, reverse)
    return h, c, gates


def gru_steps(
    x: Tensor, h0: Tensor, w: Tensor, b: Tensor, mask: Tensor | None = None, *, reverse: bool
) -> tuple[Tensor, Tensor]:
    """h of all steps, and (r, z, n, p_n)."""

    def advance(xt: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        xr, xz, xn = chunk(xt, 3, -1)
        pr, pz, pn = chunk(matmul(h, w.mT) + unsqueeze(b, -2), 3, -1)
        r, z = sigmoid(xr + pr), sigmoid(xz + pz)
        n = tanh(xn + r * pn)
        return (1 - z) * n + z * h, cat([r, z, n, pn], -1)

    h, kept = run_steps(advance, x, (h0,), mask, reverse)
    return h, kept
