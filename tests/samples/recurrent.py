"""Records of the recurrent functions: sequences as one operation, stacks of layers, cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from samples.record import Sample
from scipy.special import expit, logsumexp

import chainrule

__all__ = ["SAMPLES"]

L, N, H, S, D = 4, 3, 2, 1, 2
Args = Callable[[np.random.Generator], tuple[Any, ...]]


def normals(*shapes: tuple[int, ...]) -> Args:
    return lambda r: tuple(r.normal(size=s) for s in shapes)


def masked(*shapes: tuple[int, ...], after: tuple[Any, ...] = ()) -> Args:
    """The arrays, other arguments, and a mask of sequences that end early."""

    def make(r: np.random.Generator) -> tuple[Any, ...]:
        lengths = r.integers(1, L + 1, size=N)
        mask = np.arange(L)[:, None] < lengths
        return (*(r.normal(size=s) for s in shapes), *after, mask)

    return make


# --- the same in NumPy, step by step --------------------------------------------------------------


def over_time(
    step: Callable[..., Any], x: Any, states: Sequence[Any], mask: Any, reverse: bool
) -> Any:
    """The states of all steps; a sample whose sequence has ended keeps its own."""
    results: list[Any] = [None] * len(x)
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        new = step(x[t], *states)
        if mask is not None:
            new = tuple(np.where(mask[t][:, None], a, b) for a, b in zip(new, states, strict=True))
        results[t] = states = new
    return tuple(np.stack(column) for column in zip(*results, strict=True))


def rnn(
    x: Any, h0: Any, w: Any, mask: Any = None, nonlinearity: Any = "tanh", reverse: bool = False
) -> Any:
    g = {"tanh": np.tanh, "relu": lambda a: np.maximum(a, 0)}.get(nonlinearity, np.arctan)
    return over_time(lambda xt, h: (g(xt + h @ w.T),), x, (h0,), mask, reverse)[0]


def lstm(
    x: Any, h0: Any, c0: Any, w: Any, w_hr: Any = None, mask: Any = None, reverse: bool = False
) -> Any:
    def step(xt: Any, h: Any, c: Any) -> tuple[Any, Any]:
        i, f, g, o = np.split(xt + h @ w.T, 4, axis=-1)
        c = expit(f) * c + expit(i) * np.tanh(g)
        h = expit(o) * np.tanh(c)
        return (h if w_hr is None else h @ w_hr.T), c

    return over_time(step, x, (h0, c0), mask, reverse)


def gru(x: Any, h0: Any, w: Any, b: Any = None, mask: Any = None, reverse: bool = False) -> Any:
    def step(xt: Any, h: Any) -> tuple[Any]:
        (xr, xz, xn), (pr, pz, pn) = (
            np.split(v, 3, axis=-1) for v in (xt, h @ w.T + (0 if b is None else b))
        )
        z = expit(xz + pz)
        return ((1 - z) * np.tanh(xn + expit(xr + pr) * pn) + z * h,)

    return over_time(step, x, (h0,), mask, reverse)[0]


# --- records --------------------------------------------------------------------------------------

RNN = ((L, N, H), (N, H), (H, H))
LSTM = ((L, N, 4 * H), (N, H), (N, H), (4 * H, H))
PROJECTED = ((L, N, 4 * H), (N, S), (N, H), (4 * H, S), (S, H))
GRU = ((L, N, 3 * H), (N, H), (3 * H, H), (3 * H,))


def sequences(
    name: str, shapes: tuple[Any, ...], reference: Any, note: str, kwargs: Any = None,
    after: tuple[Any, ...] = (),
) -> list[Sample]:  # fmt: skip
    """In both directions, with and without a mask."""
    found = []
    for reverse in (False, True):
        for args, how in ((normals(*shapes), ""), (masked(*shapes, after=after), ", masked")):
            found.append(
                Sample(f"nn.functional.{name}", args, {**(kwargs or {}), "reverse": reverse},
                       reference, "", note=f"{note}{how}{', reverse' if reverse else ''}")
            )  # fmt: skip
    return found


def stack(gates: int, layers: int, both: bool, bias: bool, states: int, proj: int = 0) -> Args:
    """The arguments of torch.lstm and its like."""
    directions, out = 2 if both else 1, proj or H
    shapes = []
    for layer in range(layers):
        for _ in range(directions):
            size_in = directions * out if layer else D
            shapes += [(gates * H, size_in), (gates * H, out)]
            shapes += [(gates * H,)] * 2 if bias else []
            shapes += [(proj, H)] if proj else []

    def make(r: np.random.Generator) -> tuple[Any, ...]:
        first = [r.normal(size=(layers * directions, N, s)) for s in (out, H)[:states]]
        hx = tuple(first) if states == 2 else first[0]
        weights = [r.normal(size=s) for s in shapes]
        return (r.normal(size=(L, N, D)), hx, weights, bias, layers, 0.0, False, both, False)

    return make


def cell(gates: int, states: int, bias: bool) -> Args:
    def make(r: np.random.Generator) -> tuple[Any, ...]:
        first = [r.normal(size=(N, H)) for _ in range(states)]
        weights = [r.normal(size=(gates * H, s)) for s in (D, H)]
        weights += [r.normal(size=gates * H) for _ in range(2 if bias else 0)]
        hx = tuple(first) if states == 2 else first[0]
        return (r.normal(size=(N, D)), hx, *weights)

    return make


SAMPLES: list[Sample] = [
    *sequences("rnn_sequence", RNN, rnn, "tanh"),
    *sequences("rnn_sequence", RNN, rnn, "relu", {"nonlinearity": "relu"}),
    *sequences("rnn_sequence", RNN, rnn, "any", {"nonlinearity": chainrule.atan})[1::2],
    *sequences("lstm_sequence", LSTM, lstm, "plain", after=(None,)),
    *sequences("lstm_sequence", PROJECTED, lstm, "projected"),
    *sequences("gru_sequence", GRU, gru, "plain"),
    Sample("nn.functional.gru_sequence", normals(*GRU[:-1]), {}, gru, "", note="no bias"),
    Sample("nn.functional.lstm_sequence", normals((1, 1, 4), (1, 1), (1, 1), (4, 1)), {}, lstm, "",
           note="one step"),
    *[
        Sample(f"nn.functional.{name}", stack(gates, layers, both, bias, states), {}, None, name,
               note=f"{layers} layers{', both' if both else ''}{', bias' if bias else ''}")
        for name, gates, states in (("rnn_tanh", 1, 1), ("rnn_relu", 1, 1), ("gru", 3, 1),
                                    ("lstm", 4, 2))
        for layers, both, bias in ((1, False, True), (2, True, False))
    ],
    Sample("nn.functional.lstm", stack(4, 2, True, True, 2, S), {}, None, "lstm", note="projected"),
    Sample("nn.functional.rnn", stack(1, 1, False, True, 1), {"nonlinearity": chainrule.atan}, None,
           "", note="any activation"),
    *[
        Sample(f"nn.functional.{name}", cell(gates, states, bias), {}, None, name,
               note="bias" if bias else "no bias")
        for name, gates, states in (("rnn_tanh_cell", 1, 1), ("rnn_relu_cell", 1, 1),
                                    ("gru_cell", 3, 1), ("lstm_cell", 4, 2))
        for bias in (True, False)
    ],
    Sample("nn.functional.rnn_cell", cell(1, 1, True), {"nonlinearity": chainrule.atan}, None, "",
           note="any activation"),
    Sample("nn.functional.peephole_lstm", lambda r: (
        r.normal(size=(L, N, D)), tuple(r.normal(size=(2, N, H))), r.normal(size=(4 * H, D)),
        r.normal(size=(4 * H, H)), [r.normal(size=H) for _ in range(3)], r.normal(size=4 * H)),
        {}, None, "", note="diagonal"),
    Sample("nn.functional.time_summed", lambda r: (
        chainrule.nn.functional.mse_loss, r.normal(size=(L, N, D)), r.normal(size=(L, N, D))),
        {}, lambda loss, x, y: ((x - y) ** 2).sum() / N, ""),
    Sample("nn.functional.time_summed", lambda r: (
        chainrule.nn.functional.cross_entropy, r.normal(size=(N, L, D)),
        r.integers(0, D, size=(N, L)), r.random((N, L)) < 0.6), {"batch_first": True},
        lambda loss, x, y, mask, batch_first: sum(
            logsumexp(x[i, t]) - x[i, t, y[i, t]] for i in range(N) for t in range(L) if mask[i, t]
        ) / N, "", note="classes, masked"),
    Sample("nn.functional.conv_rnn_cell",
           normals((N, D, 4), (N, H, 4), (H, D, 3), (H, H, 3), (H,)), {}, None, ""),
    Sample("nn.functional.conv_lstm_cell", lambda r: (
        r.normal(size=(N, D, 4)), tuple(r.normal(size=(2, N, H, 4))), r.normal(size=(4 * H, D, 3)),
        r.normal(size=(4 * H, H, 3))), {}, None, ""),
]  # fmt: skip
