"""Recurrent layers as functions: one layer in one direction, and layers on layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chainrule.backend import dtypes
from chainrule.nn.layers.dropout import dropout as drop
from chainrule.ops.creation.conversion import contiguous
from chainrule.ops.elementwise.logic import where
from chainrule.ops.index.reading import getitem
from chainrule.ops.linalg.matmul import linear
from chainrule.ops.recurrent.gru import gru_sequence
from chainrule.ops.recurrent.lstm import lstm_sequence
from chainrule.ops.recurrent.rnn import rnn_sequence
from chainrule.ops.shape.views import movedim, reshape
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor

__all__ = [
    "check_mask",
    "gru",
    "lstm",
    "rnn",
    "rnn_relu",
    "rnn_tanh",
    "run_layer",
    "run_stack",
    "without_padding",
]

Nonlinearity = str | Callable[[Tensor], Tensor]
# weight_ih, weight_hh, bias_ih, bias_hh, weight_hr
Weights = tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]

# --- one layer in one direction -------------------------------------------------------------------


def run_layer(
    kind: str,
    nonlinearity: Nonlinearity,
    input: Tensor,
    states: Sequence[Tensor],
    weights: Weights,
    mask: Tensor | None = None,
    reverse: bool = False,
) -> Sequence[Tensor]:
    """The states of all steps, (h,) or (h, c)."""
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    h0 = states[0]
    if kind == "GRU":
        # The bias of the state stands inside the product with the reset gate.
        gates = linear(input, w_ih, b_ih)
        return (gru_sequence(gates, h0, w_hh, b_hh, mask, reverse=reverse),)
    if b_hh is not None:
        b_ih = b_hh if b_ih is None else b_ih + b_hh
    gates = linear(input, w_ih, b_ih)
    if kind == "LSTM":
        return lstm_sequence(gates, h0, states[1], w_hh, w_hr, mask, reverse=reverse)
    return (rnn_sequence(gates, h0, w_hh, mask, nonlinearity=nonlinearity, reverse=reverse),)


# --- padding --------------------------------------------------------------------------------------


def check_mask(name: str, mask: Tensor, shape: Sequence[int]) -> None:
    """A mask has the first two dimensions of the input, in the same order."""
    if tuple(mask.shape) != tuple(shape) or mask.dtype != dtypes.bool_:
        raise RuntimeError(
            f"{name}: mask must be boolean, of the shape {tuple(shape)} of steps and batch, True "
            f"where there is input; got {mask.dtype} of shape {tuple(mask.shape)}"
        )


def without_padding(x: Tensor, mask: Tensor) -> Tensor:
    """Zeros where the mask (of the first two dimensions) is False, so that nothing there counts."""
    return where(reshape(mask, (*mask.shape, *[1] * (x.ndim - 2))), x, 0.0)


# --- layers on layers -----------------------------------------------------------------------------


def run_stack(
    kind: str,
    nonlinearity: Nonlinearity,
    input: Tensor,
    states: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    mask: Tensor | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """The output of the last layer and the last states (h_n, or h_n and c_n) of all layers."""
    # In the order of time, for the products of all steps at once.
    x = contiguous(movedim(input, 0, 1)) if batch_first else input
    if mask is not None and batch_first:
        mask = movedim(mask, 0, 1)
    directions = 2 if bidirectional else 1
    per_layer = len(params) // (num_layers * directions)
    last: list[list[Tensor]] = [[] for _ in states]
    for layer in range(num_layers):
        if layer and dropout and train:
            x = drop(x, dropout)
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            weights = _five(params[k * per_layer : (k + 1) * per_layer], has_biases)
            start = [getitem(s, k) for s in states]
            reverse = direction == 1
            result = run_layer(kind, nonlinearity, x, start, weights, mask, reverse)
            for column, sequence in zip(last, result, strict=True):
                column.append(getitem(sequence, 0 if reverse else -1))
            outputs.append(result[0])
        x = cat(outputs, -1) if bidirectional else outputs[0]
    return (movedim(x, 0, 1) if batch_first else x), [stack(column) for column in last]


def _five(weights: Sequence[Tensor], has_biases: bool) -> Weights:
    """weight_ih, weight_hh, bias_ih, bias_hh and weight_hr, None where there is none."""
    w_ih, w_hh, *rest = weights
    b_ih, b_hh = (rest.pop(0), rest.pop(0)) if has_biases else (None, None)
    return w_ih, w_hh, b_ih, b_hh, rest[0] if rest else None


def rnn(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    mask: Tensor | None = None,
    *,
    nonlinearity: Nonlinearity = "tanh",
) -> tuple[Tensor, Tensor]:
    """A stack of simple recurrent layers with any activation g: output and h_n.

    h_t = g(weight_ih x_t + bias_ih + weight_hh h_{t-1} + bias_hh)

    The arguments are those of :func:`lstm`, with one state.
    """
    settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first, mask)
    output, (h,) = run_stack("RNN", nonlinearity, input, (hx,), params, *settings)
    return output, h


def rnn_tanh(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """A stack of simple recurrent layers with tanh: output and h_n.

    h_t = tanh(weight_ih x_t + bias_ih + weight_hh h_{t-1} + bias_hh)

    The arguments are those of :func:`lstm`, with one state.
    """
    settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first, mask)
    return rnn(input, hx, params, *settings, nonlinearity="tanh")


def rnn_relu(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """A stack of simple recurrent layers with ReLU: output and h_n.

    h_t = relu(weight_ih x_t + bias_ih + weight_hh h_{t-1} + bias_hh)

    The arguments are those of :func:`lstm`, with one state.
    """
    settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first, mask)
    return rnn(input, hx, params, *settings, nonlinearity="relu")


def gru(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """A stack of layers of gated recurrent units: output and h_n.

    h_t = (1 - z) * n + z * h_{t-1}, with the gates of :class:`chainrule.nn.GRU`

    The arguments are those of :func:`lstm`, with one state.
    """
    settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first, mask)
    output, (h,) = run_stack("GRU", "", input, (hx,), params, *settings)
    return output, h


def lstm(
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """A stack of LSTM layers: output, h_n and c_n.

    c_t = f * c_{t-1} + i * g; h_t = o * tanh(c_t), with the gates of :class:`chainrule.nn.LSTM`

    Args:
        input: (L, N, D), or (N, L, D) if batch_first.
        hx: the first states (h_0, c_0).
        params: the weights of all layers and directions in the order of the module's parameters.
        has_biases: whether there are biases among them.
        num_layers: how many layers stand on each other.
        dropout: the probability with which outputs between layers are dropped if ``train``.
        bidirectional: whether a second set of weights runs from the end to the start.
        batch_first: whether the batch comes before time.
        mask: (L, N), or (N, L) if batch_first, False on padding.
    """
    settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first, mask)
    output, (h, c) = run_stack("LSTM", "", input, hx, params, *settings)
    return output, h, c
