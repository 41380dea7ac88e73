"""Recurrent layers: RNN, LSTM and GRU over whole sequences, stacked and in both directions."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.nn.recurrent.base import Input, RNNBase
from chainrule.nn.recurrent.functions import Nonlinearity
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType

__all__ = ["GRU", "LSTM", "RNN"]


class RNN(RNNBase):
    """A stack of simple (Elman) recurrent layers.

    h_t = g(weight_ih x_t + bias_ih + weight_hh h_{t-1} + bias_hh)

    Shape: input (L, N, D), (N, L, D) if ``batch_first``, (L, D) without a batch, or a
    PackedSequence; output (L, N, directions * hidden_size); hx and h_n
    (layers * directions, N, hidden_size).

    Args:
        input_size: D, the features of the input.
        hidden_size: features of the state.
        num_layers: how many layers stand on each other.
        nonlinearity: g: "tanh", "relu", or any function of a tensor.
        bias: whether to learn biases.
        batch_first: whether the batch comes before time.
        dropout: the probability with which outputs between layers are dropped in training.
        bidirectional: whether a second set of weights runs from the end to the start.

    A call is ``rnn(input, hx=None, mask=None)``: where ``mask``, (L, N) or (N, L), is False there
    is no input, the state is held and the output is 0.

    >>> from chainrule import nn, ones
    >>> output, h_n = nn.RNN(3, 4, num_layers=2)(ones(5, 1, 3))
    >>> output.shape, h_n.shape
    (chainrule.Size([5, 1, 4]), chainrule.Size([2, 1, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Nonlinearity = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        if not callable(nonlinearity) and nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"RNN: unknown nonlinearity {nonlinearity!r}; select from 'tanh' or 'relu', or "
                "pass a function"
            )
        mode = f"RNN_{nonlinearity.upper()}" if isinstance(nonlinearity, str) else "RNN"
        super().__init__(
            mode,
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )
        self.nonlinearity = nonlinearity

    def forward(
        self, input: Input, hx: Tensor | None = None, *, mask: Tensor | None = None
    ) -> tuple[Input, Tensor]:
        output, (h,) = self._forward(input, None if hx is None else (hx,), mask)
        return output, h


class GRU(RNNBase):
    """A stack of layers of gated recurrent units.

    r, z = sigmoid(weight_ih x_t + bias_ih + weight_hh h_{t-1} + bias_hh), of their parts;
    n = tanh(weight_in x_t + bias_in + r * (weight_hn h_{t-1} + bias_hn));
    h_t = (1 - z) * n + z * h_{t-1}

    Shape: input (L, N, D), (N, L, D) if ``batch_first``, (L, D) without a batch, or a
    PackedSequence; output (L, N, directions * hidden_size); hx and h_n
    (layers * directions, N, hidden_size).

    Args:
        input_size: D, the features of the input.
        hidden_size: features of the state.
        num_layers: how many layers stand on each other.
        bias: whether to learn biases.
        batch_first: whether the batch comes before time.
        dropout: the probability with which outputs between layers are dropped in training.
        bidirectional: whether a second set of weights runs from the end to the start.

    A call is ``gru(input, hx=None, mask=None)``: where ``mask``, (L, N) or (N, L), is False there
    is no input, the state is held and the output is 0.

    >>> from chainrule import nn, ones
    >>> output, h_n = nn.GRU(3, 4, batch_first=True)(ones(2, 5, 3))
    >>> output.shape, h_n.shape
    (chainrule.Size([2, 5, 4]), chainrule.Size([1, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__(
            "GRU",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )

    def forward(
        self, input: Input, hx: Tensor | None = None, *, mask: Tensor | None = None
    ) -> tuple[Input, Tensor]:
        output, (h,) = self._forward(input, None if hx is None else (hx,), mask)
        return output, h


class LSTM(RNNBase):
    """A stack of layers of long short-term memory.

    i, f, g, o = weight_ih x_t + bias_ih + weight_hh h_{t-1} + bias_hh, in four parts;
    c_t = sigmoid(f) * c_{t-1} + sigmoid(i) * tanh(g);
    h_t = sigmoid(o) * tanh(c_t), times weight_hr if ``proj_size`` > 0

    Shape: input (L, N, D), (N, L, D) if ``batch_first``, (L, D) without a batch, or a
    PackedSequence; output (L, N, directions * hidden_size); hx = (h, c) and (h_n, c_n), each
    (layers * directions, N, hidden_size). With ``proj_size`` that is the size of h and the output.

    Args:
        input_size: D, the features of the input.
        hidden_size: features of the state.
        num_layers: how many layers stand on each other.
        bias: whether to learn biases.
        batch_first: whether the batch comes before time.
        dropout: the probability with which outputs between layers are dropped in training.
        bidirectional: whether a second set of weights runs from the end to the start.
        proj_size: features of h after a projection by weight_hr, 0 for none.

    A call is ``lstm(input, hx=None, mask=None)``: where ``mask``, (L, N) or (N, L), is False there
    is no input, the state is held and the output is 0.

    >>> from chainrule import nn, ones
    >>> output, (h_n, c_n) = nn.LSTM(3, 4, bidirectional=True)(ones(5, 2, 3))
    >>> output.shape, c_n.shape
    (chainrule.Size([5, 2, 8]), chainrule.Size([2, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )

    def forward(
        self, input: Input, hx: Sequence[Tensor] | None = None, *, mask: Tensor | None = None
    ) -> tuple[Input, tuple[Tensor, Tensor]]:
        output, (h, c) = self._forward(input, hx, mask)
        return output, (h, c)
