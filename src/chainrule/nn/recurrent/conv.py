"""Recurrent layers whose products are convolutions: memory for images, volumes and signals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from chainrule.nn.init.tensors import uniform_
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.nn.recurrent.functions import Nonlinearity, check_mask, without_padding
from chainrule.nn.recurrent.variants import activation_of
from chainrule.ops.layers.conv import conv1d, conv2d, conv3d
from chainrule.ops.creation.like import new_zeros
from chainrule.ops.creation.patterns import empty
from chainrule.ops.elementwise.functions import sigmoid, tanh
from chainrule.ops.index.reading import getitem
from chainrule.ops.shape.joining import chunk
from chainrule.ops.recurrent.conv import conv_lstm_sequence, conv_rnn_sequence
from chainrule.ops.shape.views import expand, flatten, movedim, reshape
from chainrule.tensor import Tensor
from chainrule.typing import DType, Device, Factory, MaybeNone, Sizes

__all__ = [
    "ConvLSTM",
    "ConvLSTMCell",
    "ConvRNN",
    "ConvRNNCell",
    "RecurrentConv",
    "conv_lstm_cell",
    "conv_lstm_sequence",
    "conv_rnn_cell",
    "conv_rnn_sequence",
]


def _conv(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A convolution that keeps the size of (N, C, *), in as many dimensions as it has."""
    return {1: conv1d, 2: conv2d, 3: conv3d}[weight.ndim - 2](x, weight, bias, padding="same")


def _rnn_step(a: Tensor, h: Tensor, weight_hh: Tensor, g: Callable[[Tensor], Tensor]) -> Tensor:
    return g(a + _conv(h, weight_hh))


def _lstm_step(a: Tensor, h: Tensor, c: Tensor, weight_hh: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = chunk(a + _conv(h, weight_hh), 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


def conv_rnn_cell(
    input: Tensor,
    hx: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None = None,
    nonlinearity: Nonlinearity = "tanh",
) -> Tensor:
    """h' = g(weight_ih * x + weight_hh * h + bias), * being a convolution that keeps the size."""
    g = activation_of("conv_rnn_cell", nonlinearity)
    return _rnn_step(_conv(input, weight_ih, bias), hx, weight_hh, g)


def conv_lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """c' = f c + i g, h' = o tanh(c') for hx = (h, c): one step of an LSTM with convolutions for
    products, with the gates of :class:`chainrule.nn.ConvLSTMCell`."""
    h, c = hx
    return _lstm_step(_conv(input, weight_ih, bias), h, c, weight_hh)


class _ConvRecurrent(Module):
    """Parameters, checks and the run over time that cells and layers have in common."""

    gates = 1
    states = 1

    weight_ih: Parameter
    weight_hh: Parameter
    bias: Parameter | MaybeNone

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        kernel_size: Sizes,
        dim: int = 2,
        bias: bool = True,
        nonlinearity: Nonlinearity = "tanh",
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        name = type(self).__name__
        if dim not in (1, 2, 3):
            raise ValueError(f"{name}: dim must be 1, 2 or 3, got {dim}")
        kernel = (kernel_size,) * dim if isinstance(kernel_size, int) else tuple(kernel_size)
        if len(kernel) != dim or min(kernel) < 1 or min(in_channels, hidden_channels) < 1:
            raise ValueError(
                f"{name}: channels and the {dim} sizes of the kernel must be positive, got "
                f"in_channels={in_channels}, hidden_channels={hidden_channels}, "
                f"kernel_size={kernel_size}"
            )
        activation_of(name, nonlinearity)
        self.in_channels, self.hidden_channels = in_channels, hidden_channels
        self.kernel_size, self.dim, self.nonlinearity = kernel, dim, nonlinearity
        factory: Factory = {"device": device, "dtype": dtype}
        rows = self.gates * hidden_channels
        self.weight_ih = Parameter(empty(rows, in_channels, *kernel, **factory))
        self.weight_hh = Parameter(empty(rows, hidden_channels, *kernel, **factory))
        self.register_parameter("bias", Parameter(empty(rows, **factory)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights from U(-k, k), k = 1 / sqrt(hidden_channels * kernel elements)."""
        bound = 1 / math.sqrt(self.hidden_channels * math.prod(self.kernel_size))
        for p in (self.weight_ih, self.weight_hh, self.bias):
            if p is not None:
                uniform_(p, -bound, bound)

    def _first(self, frame: Tensor, states: Sequence[Tensor] | None) -> Sequence[Tensor]:
        """The first states for frames (N, C, *), zeros if none are given."""
        name, shape = type(self).__name__, tuple(frame.shape)
        if len(shape) != self.dim + 2 or shape[1] != self.in_channels:
            raise RuntimeError(
                f"{name}: expected inputs (N, {self.in_channels}, *space) with {self.dim} "
                f"dimensions of space at every step, got {shape}"
            )
        wanted = (shape[0], self.hidden_channels, *shape[2:])
        for s in states or ():
            if tuple(s.shape) != wanted:
                raise RuntimeError(f"{name}: expected hidden size {wanted}, got {tuple(s.shape)}")
        return states or [new_zeros(frame, wanted)] * self.states

    def _steps(
        self, a: Tensor, states: Sequence[Tensor], mask: Tensor | None = None
    ) -> Sequence[Tensor]:
        """The states of all steps from what the input contributes, and the first ones."""
        g = self.nonlinearity
        g = g if isinstance(g, str) else activation_of(type(self).__name__, g)
        return (conv_rnn_sequence(a, states[0], self.weight_hh, mask, nonlinearity=g),)

    def _over_time(
        self, x: Tensor, states: Sequence[Tensor] | None, mask: Tensor | None
    ) -> Sequence[Tensor]:
        """The states of all steps. The convolution of the input is one for all steps."""
        if x.ndim != self.dim + 3 or x.shape[0] == 0:
            raise RuntimeError(
                f"{type(self).__name__}: expected a sequence (L, N, C, *space) of {self.dim + 3} "
                f"dimensions with at least one step, got {tuple(x.shape)}"
            )
        states = self._first(getitem(x, 0), states)
        a = _conv(flatten(x, 0, 1), self.weight_ih, self.bias)
        a = reshape(a, (*x.shape[:2], *a.shape[1:]))
        return self._steps(a, states, mask)

    def _sequence(
        self, input: Tensor, states: Sequence[Tensor] | None, mask: Tensor | None
    ) -> tuple[Tensor, list[Tensor]]:
        """The output and the last states, for either order of batch and time."""
        first = getattr(self, "batch_first", False)
        x = movedim(input, 0, 1) if first else input
        mask = movedim(mask, 0, 1) if first and mask is not None else mask
        if mask is not None:
            check_mask(type(self).__name__, mask, x.shape[:2])
            x = without_padding(x, mask)
        sequences = self._over_time(x, states, mask)
        h = sequences[0]
        if mask is not None:
            h = without_padding(h, mask)
        return (movedim(h, 0, 1) if first else h), [getitem(s, -1) for s in sequences]

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.hidden_channels}, kernel_size={self.kernel_size}, "
            f"dim={self.dim}"
        )


class _Lstm(_ConvRecurrent):
    gates = 4
    states = 2

    def _steps(
        self, a: Tensor, states: Sequence[Tensor], mask: Tensor | None = None
    ) -> Sequence[Tensor]:
        h0, c0 = states
        return conv_lstm_sequence(a, h0, c0, self.weight_hh, mask)


class _OverTime(_ConvRecurrent):
    """A layer that takes whole sequences."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        kernel_size: Sizes,
        dim: int = 2,
        bias: bool = True,
        nonlinearity: Nonlinearity = "tanh",
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        batch_first: bool = False,
    ):
        super().__init__(
            in_channels, hidden_channels, kernel_size, dim, bias, nonlinearity, device, dtype
        )
        self.batch_first = batch_first


class ConvRNNCell(_ConvRecurrent):
    """One step of a recurrent convolution: h' = g(weight_ih * x + weight_hh * h + bias).

    Shape: input (N, C, *), hx and output (N, hidden_channels, *), where * is space.

    Args:
        in_channels: C.
        hidden_channels: channels of the state.
        kernel_size: of both convolutions, which keep the size.
        dim: the number of dimensions of space.
        bias: whether to learn a bias.
        nonlinearity: g: "tanh", "relu", "sigmoid" or a function.

    >>> from chainrule import nn, ones
    >>> nn.ConvRNNCell(1, 2, 3)(ones(1, 1, 8, 8)).shape
    chainrule.Size([1, 2, 8, 8])
    """

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        (h,) = self._first(input, None if hx is None else (hx,))
        g = activation_of("ConvRNNCell", self.nonlinearity)
        return _rnn_step(_conv(input, self.weight_ih, self.bias), h, self.weight_hh, g)


class ConvLSTMCell(_Lstm):
    """One step of an LSTM with convolutions for products.

    i, f, g, o = weight_ih * x + weight_hh * h + bias, in four parts of the channels;
    c' = sigmoid(f) c + sigmoid(i) tanh(g); h' = sigmoid(o) tanh(c')

    Shape: input (N, C, *), hx = (h, c) and output (h', c'), each (N, hidden_channels, *), where *
    is space.

    Args:
        in_channels: C.
        hidden_channels: channels of the state.
        kernel_size: of both convolutions, which keep the size.
        dim: the number of dimensions of space.
        bias: whether to learn a bias.
        nonlinearity: without effect on an LSTM.

    >>> from chainrule import nn, ones
    >>> h, c = nn.ConvLSTMCell(1, 2, 3)(ones(1, 1, 8, 8))
    >>> h.shape
    chainrule.Size([1, 2, 8, 8])
    """

    def forward(self, input: Tensor, hx: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self._first(input, hx)
        return _lstm_step(_conv(input, self.weight_ih, self.bias), h, c, self.weight_hh)


class ConvRNN(_OverTime):
    """A recurrent convolution over a sequence of images (signals, volumes).

    h_t = g(weight_ih * x_t + weight_hh * h_{t-1} + bias), all steps as one operation; with a
    function for g, which may have parameters or draw random numbers, step by step.

    Shape: input (L, N, C, *), or (N, L, C, *) if ``batch_first``, where * is space; output the same
    with hidden_channels; hx and the second result (N, hidden_channels, *).

    Args:
        in_channels: C.
        hidden_channels: channels of the state.
        kernel_size: of both convolutions, which keep the size.
        dim: the number of dimensions of space.
        bias: whether to learn a bias.
        nonlinearity: g: "tanh", "relu", "sigmoid" or a function.
        batch_first: whether the batch comes before time.

    >>> from chainrule import nn, ones
    >>> output, h = nn.ConvRNN(1, 2, 3)(ones(5, 1, 1, 8, 8))
    >>> output.shape
    chainrule.Size([5, 1, 2, 8, 8])
    """

    def forward(
        self, input: Tensor, hx: Tensor | None = None, *, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        output, (h,) = self._sequence(input, None if hx is None else (hx,), mask)
        return output, h


class ConvLSTM(_Lstm, _OverTime):
    """An LSTM with convolutions for products over a sequence of images (signals, volumes).

    i, f, g, o = weight_ih * x_t + weight_hh * h_{t-1} + bias, in four parts of the channels;
    c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g); h_t = sigmoid(o) tanh(c_t), all steps as one
    operation

    Shape: input (L, N, C, *), or (N, L, C, *) if ``batch_first``, where * is space; output the same
    with hidden_channels; hx and the second result are pairs (h, c), each (N, hidden_channels, *).

    Args:
        in_channels: C.
        hidden_channels: channels of the state.
        kernel_size: of both convolutions, which keep the size.
        dim: the number of dimensions of space.
        bias: whether to learn a bias.
        nonlinearity: without effect on an LSTM.
        batch_first: whether the batch comes before time.

    >>> from chainrule import nn, ones
    >>> output, (h, c) = nn.ConvLSTM(1, 2, 3)(ones(5, 1, 1, 8, 8))
    >>> output.shape
    chainrule.Size([5, 1, 2, 8, 8])
    """

    def forward(
        self, input: Tensor, hx: Sequence[Tensor] | None = None, *, mask: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        output, (h, c) = self._sequence(input, hx, mask)
        return output, (h, c)


class RecurrentConv(_ConvRecurrent):
    """A convolutional layer with recurrent links, iterated on one image.

    h_t = g(weight_ih * x + weight_hh * h_{t-1} + bias) for t = 1 .. steps, with h_0 = 0: every
    iteration widens the receptive field with the same weights.

    Shape: (N, C, *) -> (N, hidden_channels, *), where * is space.

    Args:
        in_channels: C.
        hidden_channels: channels of the state.
        kernel_size: of both convolutions, which keep the size.
        dim: the number of dimensions of space.
        bias: whether to learn a bias.
        nonlinearity: g: "tanh", "relu", "sigmoid" or a function.
        steps: how many iterations.

    >>> from chainrule import nn, ones
    >>> nn.RecurrentConv(1, 2, 3, steps=4)(ones(1, 1, 8, 8)).shape
    chainrule.Size([1, 2, 8, 8])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        kernel_size: Sizes,
        dim: int = 2,
        bias: bool = True,
        nonlinearity: Nonlinearity = "tanh",
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        steps: int = 3,
    ):
        super().__init__(
            in_channels, hidden_channels, kernel_size, dim, bias, nonlinearity, device, dtype
        )
        if steps < 1:
            raise ValueError(f"RecurrentConv: steps must be positive, got {steps}")
        self.steps = steps

    def forward(self, input: Tensor) -> Tensor:
        a = _conv(input, self.weight_ih, self.bias)
        a = expand(a, (self.steps, *a.shape))
        return getitem(self._steps(a, self._first(input, None))[0], -1)
