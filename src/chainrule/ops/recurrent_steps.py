"""Recurrent layers written out: an operation per gate and step.

These define what the primitives of ``ops/recurrent.py`` compute, in their argument order, and are
tested against them. They also do what those cannot: any activation, and (with more dimensions in
front) a batch of networks with weights of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.ops.elementwise import relu, sigmoid, tanh, where
from chainrule.ops.joining import chunk
from chainrule.ops.matmul import matmul
from chainrule.ops.recurrent_support import steps, time_order
from chainrule.ops.shape import cat, stack, unsqueeze

__all__ = ["gru_steps", "lstm_steps", "rnn_steps", "run_steps"]


def run_steps(
    advance: Callable[..., Sequence[Any]],
    x: Any,
    states: Sequence[Any],
    mask: Any = None,
    reverse: bool = False,
    dim: int = -3,
) -> list[Any]:
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
    x: Any,
    h0: Any,
    w: Any,
    mask: Any = None,
    *,
    nonlinearity: str | Callable[[Any], Any],
    reverse: bool,
) -> Any:
    """h_t = g(x_t + h_{t-1} w')"""
    activation = {"tanh": tanh, "relu": relu}.get(str(nonlinearity), nonlinearity)

    def advance(xt: Any, h: Any) -> tuple[Any]:
        return (activation(xt + matmul(h, w.mT)),)  # type: ignore[operator]

    return run_steps(advance, x, (h0,), mask, reverse)[0]


def lstm_steps(
    x: Any, h0: Any, c0: Any, w: Any, *others: Any, projected: bool, reverse: bool
) -> tuple[Any, Any, Any]:
    """h, c and the gates of all steps."""
    mask = others[projected:]

    def advance(xt: Any, h: Any, c: Any) -> tuple[Any, Any, Any]:
        i, f, g, o = chunk(xt + matmul(h, w.mT), 4, -1)
        i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
        c = f * c + i * g
        h = o * tanh(c)
        if projected:
            h = matmul(h, others[0].mT)
        return h, c, cat([i, f, g, o], -1)

    h, c, gates = run_steps(advance, x, (h0, c0), mask[0] if mask else None, reverse)
    return h, c, gates


def gru_steps(
    x: Any, h0: Any, w: Any, b: Any, mask: Any = None, *, reverse: bool
) -> tuple[Any, Any]:
    """h of all steps, and (r, z, n, p_n)."""

    def advance(xt: Any, h: Any) -> tuple[Any, Any]:
        xr, xz, xn = chunk(xt, 3, -1)
        pr, pz, pn = chunk(matmul(h, w.mT) + unsqueeze(b, -2), 3, -1)
        r, z = sigmoid(xr + pr), sigmoid(xz + pz)
        n = tanh(xn + r * pn)
        return (1 - z) * n + z * h, cat([r, z, n, pn], -1)

    h, kept = run_steps(advance, x, (h0,), mask, reverse)
    return h, kept
