"""Recurrent layers whose products are convolutions: the loops of ``recurrent.py`` with those."""

from __future__ import annotations

from typing import Any

from chainrule.backend.numpy_kernels.conv import convolution, convolution_input
from chainrule.backend.numpy_kernels.recurrent import (
    Array,
    Product,
    gate_scales,
    lstm_loop,
    lstm_loop_backward,
    rnn_loop,
    rnn_loop_backward,
)

__all__ = [
    "conv_lstm_sequence",
    "conv_lstm_sequence_backward",
    "conv_rnn_sequence",
    "conv_rnn_sequence_backward",
]


def _settings(w: Array, x: Array) -> dict[str, Any]:
    """A convolution with w that keeps the size of x."""
    ones = (1,) * (w.ndim - 2)
    padding = tuple((k - 1) // 2 for k in w.shape[2:])
    size = x.shape[-len(ones) :]
    return {"size": size, "stride": ones, "padding": padding, "dilation": ones, "groups": 1}


def _convolved(w: Array, x: Array) -> Product:
    settings = _settings(w, x)
    return lambda h, memory: convolution(h, w, **settings)


def _spread(w: Array, x: Array) -> Product:
    """The transpose of that convolution."""
    settings = _settings(w, x)
    return lambda g, memory: convolution_input(g, w, **settings)


def conv_rnn_sequence(
    x: Array, h0: Array, w: Array, *mask: Array, nonlinearity: str, reverse: bool
) -> Array:
    """h_t = g(x_t + w * h_{t-1})"""
    return rnn_loop(x, h0, _convolved(w, x), mask, nonlinearity, reverse)


def conv_rnn_sequence_backward(
    g: Array, out: Array, w: Array, *mask: Array, nonlinearity: str, reverse: bool
) -> tuple[Array, Array]:
    """The gradients of x and h0."""
    return rnn_loop_backward(g, out, _spread(w, out), mask, nonlinearity, reverse)


def conv_lstm_sequence(
    x: Array, h0: Array, c0: Array, w: Array, *mask: Array, reverse: bool
) -> tuple[Array, Array, Array]:
    """i, f, g, o = gates(x_t + w * h_{t-1}); c_t = f c_{t-1} + i g; h_t = o tanh(c_t)

    Returns h, c and the gates, which the backward kernel reads.
    """
    column = (-1, *[1] * (w.ndim - 2))
    scale, shift = (s.reshape(column) for s in gate_scales(c0.shape[1], x.dtype, 2, 4))
    product = _convolved(w * scale[..., None], x)
    return lstm_loop(x * scale, h0, c0, product, None, mask, scale, shift, reverse)


def conv_lstm_sequence_backward(
    gh: Array,
    gc: Array,
    c_out: Array,
    gates: Array,
    c0: Array,
    w: Array,
    *mask: Array,
    reverse: bool,
) -> tuple[Array, Array, Array, Array]:
    """The gradients of x, h0 and c0, and those of h (for the same rule as a projected LSTM)."""
    product = _spread(w, c0)
    return lstm_loop_backward(gh, gc, c_out, gates, c0, product, None, mask, reverse)
