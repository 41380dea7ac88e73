"""Records of the recurrent layers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from layers.record import Layer

__all__ = ["LAYERS"]

L, N, D, H = 4, 3, 2, 3
Args = Callable[[np.random.Generator], tuple[Any, ...]]
MASK = np.arange(L)[:, None] < np.array([4, 1, 2])


def normals(*shapes: tuple[int, ...]) -> Args:
    return lambda r: tuple(r.normal(size=s) for s in shapes)


def with_states(count: int, *sizes: int) -> Args:
    """A sequence and its first states; a pair for an LSTM."""

    def make(r: np.random.Generator) -> tuple[Any, ...]:
        first = tuple(r.normal(size=(count, N, s)) for s in sizes)
        return (r.normal(size=(L, N, D)), first if len(first) > 1 else first[0])

    return make


def packed(module: Any, x: Any) -> Any:
    """Calls a layer with packed sequences of different lengths, of the library that x is of."""
    rnn = sys.modules[type(x).__module__.partition(".")[0]].nn.utils.rnn
    return module(rnn.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False))


def masked(module: Any, x: Any, mask: Any) -> Any:
    return module(x, mask=mask)


def layer(kind: str, inputs: Args, note: str, call: Any = None, **settings: Any) -> Layer:
    return Layer(kind, lambda nn: getattr(nn, kind)(D, H, **settings), inputs, call=call, note=note)


def of_our_own(name: str, make: Any, inputs: Args, note: str = "", call: Any = None) -> Layer:
    return Layer(name, make, inputs, torch=False, call=call, note=note)


def family(kind: str, *states: int) -> list[Layer]:
    x = normals((L, N, D))
    both = {"num_layers": 2, "bidirectional": True}
    return [
        layer(kind, x, "plain"),
        layer(kind, normals((L, D)), "no batch"),
        layer(kind, normals((N, L, D)), "batch first, no bias", batch_first=True, bias=False),
        layer(kind, with_states(4, *states), "stacked, both", **both),
        layer(kind, x, "packed", packed, bidirectional=True),
        Layer(
            kind, lambda nn: getattr(nn, kind)(D, H, 2, dropout=0.4), x, random=True, note="dropout"
        ),
        of_our_own(
            kind,
            lambda nn: getattr(nn, kind)(D, H, **both),
            lambda r: (r.normal(size=(L, N, D)), MASK),
            "masked",
            masked,
        ),
    ]


LAYERS: list[Layer] = [
    *family("RNN", H),
    *family("GRU", H),
    *family("LSTM", H, H),
    layer("RNN", normals((L, N, D)), "relu", nonlinearity="relu"),
    layer("LSTM", with_states(4, 2, H), "projected", num_layers=2, bidirectional=True, proj_size=2),
    of_our_own(
        "RNN",
        lambda nn: nn.RNN(D, H, nonlinearity=nn.functional.softsign),
        normals((L, N, D)),
        "any activation",
    ),
    layer("RNNCell", normals((N, D), (N, H)), "tanh"),
    layer("RNNCell", normals((N, D), (N, H)), "relu", nonlinearity="relu", bias=False),
    layer("GRUCell", normals((N, D), (N, H)), "batch"),
    layer("GRUCell", normals((D,)), "no batch"),
    layer("LSTMCell", lambda r: (r.normal(size=(N, D)), tuple(r.normal(size=(2, N, H)))), "batch"),
    layer("LSTMCell", normals((D,)), "no batch", bias=False),
    of_our_own("PeepholeLSTM", lambda nn: nn.PeepholeLSTM(D, H), normals((L, N, D)), "diagonal"),
    of_our_own(
        "PeepholeLSTM",
        lambda nn: nn.PeepholeLSTM(D, H, full=True, bias=False),
        lambda r: (r.normal(size=(L, N, D)), MASK),
        "full, masked",
        masked,
    ),
    of_our_own("DeepRNN", lambda nn: nn.DeepRNN(D, H, 2), normals((L, N, D)), "Elman"),
    of_our_own(
        "DeepRNN",
        lambda nn: nn.DeepRNN(D, H, 2, [3], [4], [2], "sigmoid", "tanh", True, True),
        normals((L, N, D), (N, H)),
        "deep",
    ),
    of_our_own(
        "Bidirectional",
        lambda nn: nn.Bidirectional(nn.RNN(D, H), nn.LSTM(D, 2), 2, "tanh"),
        lambda r: (r.normal(size=(L, N, D)), MASK),
        "",
        masked,
    ),
    of_our_own(
        "TimeDistributed", lambda nn: nn.TimeDistributed(nn.Linear(D, H)), normals((L, N, D))
    ),
    of_our_own(
        "ConvRNNCell",
        lambda nn: nn.ConvRNNCell(1, 2, 3, nonlinearity="sigmoid"),
        normals((1, 1, 3, 3)),
    ),
    of_our_own("ConvLSTMCell", lambda nn: nn.ConvLSTMCell(1, 2, 3, dim=1), normals((2, 1, 4))),
    of_our_own(
        "ConvRNN",
        lambda nn: nn.ConvRNN(1, 2, 3, dim=1),
        lambda r: (r.normal(size=(L, N, 1, 4)), MASK),
        "masked",
        masked,
    ),
    of_our_own("ConvLSTM", lambda nn: nn.ConvLSTM(1, 2, (1, 3)), normals((3, 1, 1, 2, 3))),
    of_our_own(
        "RecurrentConv", lambda nn: nn.RecurrentConv(1, 2, 3, dim=1, steps=2), normals((2, 1, 4))
    ),
]
