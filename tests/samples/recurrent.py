"""Records of the recurrent functions: sequences as one operation, stacks of layers, cells."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from samples.record import Sample
from scipy.ndimage import correlate1d
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
            real = mask[t].reshape(-1, *[1] * (states[0].ndim - 1))
            new = tuple(np.where(real, a, b) for a, b in zip(new, states, strict=True))
        results[t] = states = new
    return tuple(np.stack(column) for column in zip(*results, strict=True))


def rnn(
    x: Any, h0: Any, w: Any, mask: Any = None, nonlinearity: Any = "tanh", reverse: bool = False
) -> Any:
    g = ACTIVATIONS.get(nonlinearity, np.arctan)
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


def peephole(
    x: Any, h0: Any, c0: Any, w: Any, peepholes: Any, mask: Any = None, reverse: bool = False
) -> Any:
    # A vector is a diagonal matrix.
    w_ci, w_cf, w_co = (v if v.ndim == 2 else np.diag(v) for v in peepholes)

    def step(xt: Any, h: Any, c: Any) -> tuple[Any, Any]:
        i, f, g, o = np.split(xt + h @ w.T, 4, axis=-1)
        c = expit(f + c @ w_cf.T) * c + expit(i + c @ w_ci.T) * np.tanh(g)
        return expit(o + c @ w_co.T) * np.tanh(c), c

    return over_time(step, x, (h0, c0), mask, reverse)


ACTIVATIONS = {"tanh": np.tanh, "relu": lambda a: np.maximum(a, 0), "sigmoid": expit}


def deep(
    x: Any,
    h0: Any,
    w: Any,
    layers: Any,
    mask: Any = None,
    nonlinearity: str = "tanh",
    reverse: bool = False,
) -> Any:
    g = ACTIVATIONS[nonlinearity]

    def step(xt: Any, h: Any) -> tuple[Any]:
        a = g(xt + h @ w.T)
        for v, b in layers:
            a = g(a @ v.T + (0 if b is None else b))
        return (a,)

    return over_time(step, x, (h0,), mask, reverse)[0]


def same(h: Any, w: Any) -> Any:
    """w * h in one dimension of space, by SciPy."""
    out = np.zeros((len(h), len(w), h.shape[2]))
    for n, o, c in np.ndindex(len(h), *w.shape[:2]):
        out[n, o] += correlate1d(h[n, c], w[o, c], mode="constant")
    return out


def conv_rnn(
    x: Any, h0: Any, w: Any, mask: Any = None, nonlinearity: Any = "tanh", reverse: bool = False
) -> Any:
    g = ACTIVATIONS.get(nonlinearity, np.arctan)
    return over_time(lambda xt, h: (g(xt + same(h, w)),), x, (h0,), mask, reverse)[0]


def conv_lstm(x: Any, h0: Any, c0: Any, w: Any, mask: Any = None, reverse: bool = False) -> Any:
    def step(xt: Any, h: Any, c: Any) -> tuple[Any, Any]:
        i, f, g, o = np.split(xt + same(h, w), 4, axis=1)
        c = expit(f) * c + expit(i) * np.tanh(g)
        return expit(o) * np.tanh(c), c

    return over_time(step, x, (h0, c0), mask, reverse)


# --- records --------------------------------------------------------------------------------------

RNN = ((L, N, H), (N, H), (H, H))
LSTM = ((L, N, 4 * H), (N, H), (N, H), (4 * H, H))
PROJECTED = ((L, N, 4 * H), (N, S), (N, H), (4 * H, S), (S, H))
GRU = ((L, N, 3 * H), (N, H), (3 * H, H), (3 * H,))
CONV_RNN = ((L, N, H, 3), (N, H, 3), (H, H, 3))
CONV_LSTM = ((L, N, 4, 2), (N, 1, 2), (N, 1, 2), (4, 1, 3))


def sequences(
    name: str,
    shapes: tuple[Any, ...],
    reference: Any,
    note: str,
    kwargs: Any = None,
    after: tuple[Any, ...] = (),
) -> list[Sample]:
    """In both directions, with and without a mask."""
    found = []
    for reverse in (False, True):
        for args, how in ((normals(*shapes), ""), (masked(*shapes, after=after), ", masked")):
            found.append(
                Sample(
                    f"nn.functional.{name}",
                    args,
                    {**(kwargs or {}), "reverse": reverse},
                    reference,
                    "",
                    note=f"{note}{how}{', reverse' if reverse else ''}",
                )
            )
    return found


def peepholes(full: bool, with_mask: bool) -> Args:
    def make(r: np.random.Generator) -> tuple[Any, ...]:
        *arrays, mask = masked(*LSTM)(r)
        looks = [r.normal(size=(H, H) if full else (H,)) for _ in range(3)]
        return (*arrays, looks, mask) if with_mask else (*arrays, looks)

    return make


def layered(widths: tuple[int, ...], bias: bool, with_mask: bool) -> Args:
    """The arguments of deep_rnn_sequence with layers of these widths, from the first on."""

    def make(r: np.random.Generator) -> tuple[Any, ...]:
        *arrays, mask = masked((L, N, widths[0]), (N, H), (widths[0], H))(r)
        layers = [
            (r.normal(size=(b, a)), r.normal(size=b) if bias else None)
            for a, b in itertools.pairwise(widths)
        ]
        return (*arrays, layers, mask) if with_mask else (*arrays, layers)

    return make


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
    *sequences("rnn_sequence", RNN, rnn, "sigmoid", {"nonlinearity": "sigmoid"})[1:2],
    *sequences("rnn_sequence", RNN, rnn, "any", {"nonlinearity": chainrule.atan})[1::2],
    *sequences("lstm_sequence", LSTM, lstm, "plain", after=(None,)),
    *sequences("lstm_sequence", PROJECTED, lstm, "projected"),
    *sequences("gru_sequence", GRU, gru, "plain"),
    *sequences("conv_rnn_sequence", CONV_RNN, conv_rnn, "tanh")[::3],
    *[
        sequences("conv_rnn_sequence", CONV_RNN, conv_rnn, note, {"nonlinearity": g})[which]
        for note, g, which in (
            ("sigmoid", "sigmoid", 3),
            ("relu", "relu", 1),
            ("any", chainrule.atan, 1),
        )
    ],
    Sample(
        "nn.functional.conv_rnn_sequence",
        normals((2, 1, 2, 3, 2), (1, 2, 3, 2), (2, 2, 2, 3)),
        {},
        None,
        "",
        note="two dimensions, even kernel",
    ),
    *sequences("conv_lstm_sequence", CONV_LSTM, conv_lstm, "plain")[1:3],
    *[
        Sample(
            "nn.functional.peephole_sequence",
            peepholes(full, with_mask),
            {"reverse": reverse},
            peephole,
            "",
            note=f"{'full' if full else 'diagonal'}{', masked' * with_mask}{', reverse' * reverse}",
        )
        for full, with_mask, reverse in (
            (False, False, False),
            (False, True, True),
            (True, True, False),
        )
    ],
    *[
        Sample(
            "nn.functional.deep_rnn_sequence",
            layered(widths, bias, with_mask),
            {"nonlinearity": g, "reverse": reverse},
            deep,
            "",
            note=f"{g}, widths {widths}{', bias' * bias}{', masked' * with_mask}"
            f"{', reverse' * reverse}",
        )
        for g, widths, bias, with_mask, reverse in (
            ("tanh", (3, H), True, False, False),
            ("sigmoid", (2, 3, H), True, True, False),
            ("relu", (3, 1, H), False, True, True),
            ("tanh", (H,), True, False, True),
        )
    ],
    Sample("nn.functional.gru_sequence", normals(*GRU[:-1]), {}, gru, "", note="no bias"),
    Sample(
        "nn.functional.lstm_sequence",
        normals((1, 1, 4), (1, 1), (1, 1), (4, 1)),
        {},
        lstm,
        "",
        note="one step",
    ),
    *[
        Sample(
            f"nn.functional.{name}",
            stack(gates, layers, both, bias, states),
            {},
            None,
            name,
            note=f"{layers} layers{', both' if both else ''}{', bias' if bias else ''}",
        )
        for name, gates, states in (
            ("rnn_tanh", 1, 1),
            ("rnn_relu", 1, 1),
            ("gru", 3, 1),
            ("lstm", 4, 2),
        )
        for layers, both, bias in ((1, False, True), (2, True, False))
    ],
    Sample("nn.functional.lstm", stack(4, 2, True, True, 2, S), {}, None, "lstm", note="projected"),
    Sample(
        "nn.functional.rnn",
        stack(1, 1, False, True, 1),
        {"nonlinearity": chainrule.atan},
        None,
        "",
        note="any activation",
    ),
    *[
        Sample(
            f"nn.functional.{name}",
            cell(gates, states, bias),
            {},
            None,
            name,
            note="bias" if bias else "no bias",
        )
        for name, gates, states in (
            ("rnn_tanh_cell", 1, 1),
            ("rnn_relu_cell", 1, 1),
            ("gru_cell", 3, 1),
            ("lstm_cell", 4, 2),
        )
        for bias in (True, False)
    ],
    Sample(
        "nn.functional.rnn_cell",
        cell(1, 1, True),
        {"nonlinearity": chainrule.atan},
        None,
        "",
        note="any activation",
    ),
    Sample(
        "nn.functional.peephole_lstm",
        lambda r: (
            r.normal(size=(L, N, D)),
            tuple(r.normal(size=(2, N, H))),
            r.normal(size=(4 * H, D)),
            r.normal(size=(4 * H, H)),
            [r.normal(size=H) for _ in range(3)],
            r.normal(size=4 * H),
        ),
        {},
        None,
        "",
        note="diagonal",
    ),
    Sample(
        "nn.functional.time_summed",
        lambda r: (
            chainrule.nn.functional.mse_loss,
            r.normal(size=(L, N, D)),
            r.normal(size=(L, N, D)),
        ),
        {},
        lambda loss, x, y: ((x - y) ** 2).sum() / N,
        "",
    ),
    Sample(
        "nn.functional.time_summed",
        lambda r: (
            chainrule.nn.functional.cross_entropy,
            r.normal(size=(N, L, D)),
            r.integers(0, D, size=(N, L)),
            r.random((N, L)) < 0.6,
        ),
        {"batch_first": True},
        lambda loss, x, y, mask, batch_first: (
            sum(
                logsumexp(x[i, t]) - x[i, t, y[i, t]]
                for i in range(N)
                for t in range(L)
                if mask[i, t]
            )
            / N
        ),
        "",
        note="classes, masked",
    ),
    Sample(
        "nn.functional.conv_rnn_cell",
        normals((N, D, 4), (N, H, 4), (H, D, 3), (H, H, 3), (H,)),
        {},
        None,
        "",
    ),
    Sample(
        "nn.functional.conv_lstm_cell",
        lambda r: (
            r.normal(size=(N, D, 4)),
            tuple(r.normal(size=(2, N, H, 4))),
            r.normal(size=(4 * H, D, 3)),
            r.normal(size=(4 * H, H, 3)),
        ),
        {},
        None,
        "",
    ),
]
