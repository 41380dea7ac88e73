"""Recurrent layers one step at a time: RNNCell, LSTMCell, GRUCell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chainrule.nn.init.tensors import uniform_
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.nn.recurrent.functions import Nonlinearity, run_layer
from chainrule.ops.creation.like import new_zeros
from chainrule.ops.creation.patterns import empty
from chainrule.ops.shape.views import squeeze, unsqueeze
from chainrule.tensor import Tensor
from chainrule.typing import DType, Device, Factory, MaybeNone

__all__ = [
    "GRUCell",
    "LSTMCell",
    "RNNCell",
    "RNNCellBase",
    "gru_cell",
    "lstm_cell",
    "rnn_cell",
    "rnn_relu_cell",
    "rnn_tanh_cell",
]


def _step(
    kind: str,
    nonlinearity: Nonlinearity,
    input: Tensor,
    states: Sequence[Tensor],
    weights: tuple[Tensor, Tensor, Tensor | None, Tensor | None],
) -> list[Tensor]:
    """A sequence of one step."""
    _check_sizes(kind, input, states, weights[0], weights[1])
    result = run_layer(kind, nonlinearity, unsqueeze(input, 0), states, (*weights, None))
    return [squeeze(s, 0) for s in result]


def _check_sizes(
    kind: str, input: Tensor, states: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor
) -> None:
    if input.ndim != 2 or input.shape[1] != w_ih.shape[1]:
        raise RuntimeError(
            f"{kind}Cell: input has inconsistent input_size: got {input.shape[-1]} in shape "
            f"{tuple(input.shape)}, expected {w_ih.shape[1]}"
        )
    for s in states:
        if s.ndim != 2 or s.shape[1] != w_hh.shape[1]:
            raise RuntimeError(
                f"{kind}Cell: hidden has inconsistent hidden_size: got {s.shape[-1]} in shape "
                f"{tuple(s.shape)}, expected {w_hh.shape[1]}"
            )
        if s.shape[0] != input.shape[0]:
            raise RuntimeError(
                f"{kind}Cell: input batch size {input.shape[0]} doesn't match hidden batch size "
                f"{s.shape[0]}"
            )


def rnn_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    nonlinearity: Nonlinearity = "tanh",
) -> Tensor:
    """h' = g(w_ih x + b_ih + w_hh h + b_hh), for input (N, D) and hx (N, hidden_size)."""
    return _step("RNN", nonlinearity, input, (hx,), (w_ih, w_hh, b_ih, b_hh))[0]


def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """h' = tanh(w_ih x + b_ih + w_hh h + b_hh), for input (N, D) and hx (N, hidden_size)."""
    return rnn_cell(input, hx, w_ih, w_hh, b_ih, b_hh, "tanh")


def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """h' = relu(w_ih x + b_ih + w_hh h + b_hh), for input (N, D) and hx (N, hidden_size)."""
    return rnn_cell(input, hx, w_ih, w_hh, b_ih, b_hh, "relu")


def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """h' = (1 - z) * n + z * h, for input (N, D) and hx (N, hidden_size): one step of a gated
    recurrent unit, with the gates of :class:`chainrule.nn.GRUCell`."""
    return _step("GRU", "", input, (hx,), (w_ih, w_hh, b_ih, b_hh))[0]


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """c' = f * c + i * g, h' = o * tanh(c'), for input (N, D) and hx = (h, c), both
    (N, hidden_size): one step of an LSTM, with the gates of :class:`chainrule.nn.LSTMCell`."""
    h, c = _step("LSTM", "", input, hx, (w_ih, w_hh, b_ih, b_hh))
    return h, c


class RNNCellBase(Module):
    """What the cells have in common: parameters for one step.

    Args:
        input_size, hidden_size: features of the input and of the state.
        bias: whether to learn biases.

    >>> from chainrule import nn
    >>> isinstance(nn.GRUCell(3, 4), nn.RNNCellBase), nn.GRUCell(3, 4).weight_ih.shape
    (True, chainrule.Size([12, 3]))
    """

    gates = 1
    states = 1

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | MaybeNone
    bias_hh: Parameter | MaybeNone

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        factory: Factory = {"device": device, "dtype": dtype}
        rows = self.gates * hidden_size
        self.weight_ih = Parameter(empty(rows, input_size, **factory))
        self.weight_hh = Parameter(empty(rows, hidden_size, **factory))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(rows, **factory)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights from U(-k, k), k = 1 / sqrt(hidden_size), as PyTorch does."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0
        for p in (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh):
            if p is not None:
                uniform_(p, -bound, bound)

    def _advance(
        self, nonlinearity: Nonlinearity, input: Tensor, states: Sequence[Tensor] | None
    ) -> list[Tensor]:
        """The new states, for a batch or a single input."""
        name = type(self).__name__
        for what, x in (("input", input), *[("hidden", s) for s in states or ()]):
            if x.ndim not in (1, 2):
                raise ValueError(f"{name}: expected {what} to be 1D or 2D, got {x.ndim}D instead")
        batched = input.ndim == 2
        if not batched:
            input = unsqueeze(input, 0)
            states = None if states is None else [unsqueeze(s, 0) for s in states]
        if states is None:
            states = [new_zeros(input, (input.shape[0], self.hidden_size))] * self.states
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        new = _step(name.removesuffix("Cell"), nonlinearity, input, states, weights)
        return new if batched else [squeeze(s, 0) for s in new]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias else f"{text}, bias=False"


class RNNCell(RNNCellBase):
    """One step of a simple recurrent layer.

    h' = g(weight_ih x + bias_ih + weight_hh h + bias_hh)

    Shape: input (N, D) or (D), hx and output (N, hidden_size) or (hidden_size).

    Args:
        input_size: D, the features of the input.
        hidden_size: features of the state.
        bias: whether to learn biases.
        nonlinearity: g: "tanh", "relu", or any function of a tensor.

    >>> from chainrule import nn, ones
    >>> nn.RNNCell(3, 4)(ones(2, 3)).shape
    chainrule.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Nonlinearity = "tanh",
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if not callable(self.nonlinearity) and self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(
                f"RNNCell: unknown nonlinearity: {self.nonlinearity}; select from 'tanh' or "
                "'relu', or pass a function"
            )
        return self._advance(self.nonlinearity, input, None if hx is None else (hx,))[0]

    def extra_repr(self) -> str:
        g = self.nonlinearity
        shown = g if isinstance(g, str) else getattr(g, "__name__", type(g).__name__)
        return super().extra_repr() + ("" if g == "tanh" else f", nonlinearity={shown}")


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit.

    r, z = sigmoid(weight_ih x + bias_ih + weight_hh h + bias_hh), of their parts;
    n = tanh(weight_in x + bias_in + r * (weight_hn h + bias_hn));
    h' = (1 - z) * n + z * h

    Shape: input (N, D) or (D), hx and output (N, hidden_size) or (hidden_size).

    Args:
        input_size: D, the features of the input.
        hidden_size: features of the state.
        bias: whether to learn biases.

    >>> from chainrule import nn, ones
    >>> nn.GRUCell(3, 4)(ones(2, 3)).shape
    chainrule.Size([2, 4])
    """

    gates = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._advance("", input, None if hx is None else (hx,))[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM.

    i, f, g, o = weight_ih x + bias_ih + weight_hh h + bias_hh, in four parts;
    c' = sigmoid(f) * c + sigmoid(i) * tanh(g); h' = sigmoid(o) * tanh(c')

    Shape: input (N, D) or (D), hx = (h, c) and output (h', c'), each (N, hidden_size) or
    (hidden_size).

    Args:
        input_size: D, the features of the input.
        hidden_size: features of the state.
        bias: whether to learn biases.

    >>> from chainrule import nn, ones
    >>> h, c = nn.LSTMCell(3, 4)(ones(2, 3))
    >>> h.shape, c.shape
    (chainrule.Size([2, 4]), chainrule.Size([2, 4]))
    """

    gates = 4
    states = 2

    def forward(self, input: Tensor, hx: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self._advance("", input, hx)
        return h, c
