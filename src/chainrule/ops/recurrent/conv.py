"""Recurrent layers whose products are convolutions, over a whole sequence as one primitive.

They are the simple network and the LSTM of this folder with another product: a convolution that
keeps the size, whose gradients by the state and by the weight are the two other
primitives of ``ops/layers/conv_primitives.py``. That of the weight is one such gradient over the
L * N images of all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.ops.layers.conv_primitives import (
    convolution,
    convolution_input,
    convolution_weight,
)
from chainrule.ops.core.batching import rule_of
from chainrule.ops.core.primitive import Primitive
from chainrule.ops.recurrent.lstm import lstm_rules
from chainrule.ops.recurrent.rnn import rnn_rules
from chainrule.ops.recurrent.steps import lstm_steps, rnn_steps
from chainrule.ops.recurrent.support import (
    Product,
    batch_rule,
    before,
    check_gates,
    check_nonlinearity,
    check_weight,
    operands,
)
from chainrule.ops.shape.views import flatten, reshape
from chainrule.tensor import Tensor
from chainrule.typing import V, Value

__all__: list[str] = []  # the functions are public as nn.functional's
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()

# --- the product ----------------------------------------------------------------------------------


def _settings(x: Value, kernel: tuple[int, ...]) -> dict[str, Any]:
    """The parameters of a convolution that keeps the size of x."""
    ones = (1,) * len(kernel)
    padding = tuple([(k - 1) // 2 for k in kernel])
    size = tuple(x.shape[-len(kernel) :])
    return {"size": size, "stride": ones, "padding": padding, "dilation": ones, "groups": 1}


def _of(h: V, w: V) -> V:
    """w * h, for the states of one step (N, C, *space) or of all (L, N, C, *space)."""
    if h.ndim > w.ndim:
        out = _of(flatten(h, 0, 1), w)
        return reshape(out, (*h.shape[:2], *out.shape[1:]))
    return convolution(h, w, **_settings(h, tuple(w.shape[2:])))


def _by_state(g: V, w: V) -> V:
    return convolution_input(g, w, **_settings(g, tuple(w.shape[2:])))


def _by_weight(g: V, states: V, first: V, reverse: bool, w: V) -> V:
    h, kernel = before(states, first, reverse), tuple(w.shape[2:])
    how = _settings(h, kernel) | {"size": kernel}
    return convolution_weight(flatten(h, 0, 1), flatten(g, 0, 1), **how)


CONVOLUTION = Product(_of, _by_state, _by_weight)


def _of_each(h: Tensor, w: Tensor) -> Tensor:
    """w * h for a batch of networks with weights of their own, which become groups."""
    how = _settings(h, tuple(w.shape[3:]))
    return rule_of(convolution)(convolution, w.shape[0], (h, w), (True, True), how)


def _each(by_steps: Callable[..., Any]) -> Callable[..., Any]:
    """Single steps for such a batch: time is the second dimension."""

    def run(x: Tensor, *others: Tensor, **how: Any) -> Any:
        return by_steps(x, *others, **how, product=_of_each, dim=1 - x.ndim)

    return run


# --- the simple network ---------------------------------------------------------------------------

_conv_rnn = Primitive(
    "conv_rnn_sequence",
    *rnn_rules(CONVOLUTION, "conv_rnn_sequence_backward"),
    batch_rule(1, _each(rnn_steps)),
)


def conv_rnn_sequence(
    input: Tensor,
    h0: Tensor,
    weight_hh: Tensor,
    mask: Tensor | None = None,
    *,
    nonlinearity: str | Callable[[Tensor], Tensor] = "tanh",
    reverse: bool = False,
) -> Tensor:
    """h_t = g(input_t + weight_hh * h_{t-1}) for all steps t, as one operation.

    * is a convolution that keeps the size, in one to three dimensions of space. ``nonlinearity`` is
    "tanh", "relu", "sigmoid" or any function of a tensor (then step by step); ``reverse`` runs from
    the last step to the first.

    Shape: input (L, N, C, \\*space), h0 (N, C, \\*space), weight_hh (C, C, \\*kernel); output as
    the input.
    """
    inputs = _operands("conv_rnn_sequence", input, [h0], weight_hh, mask, 1)
    if callable(nonlinearity):
        how: Any = {"product": _of, "dim": -input.ndim, "reverse": reverse}
        return rnn_steps(*inputs, nonlinearity=nonlinearity, **how)
    check_nonlinearity("conv_rnn_sequence", nonlinearity)
    return _conv_rnn(*inputs, nonlinearity=nonlinearity, reverse=reverse)


def _operands(
    op: str, input: Tensor, states: list[Tensor], w: Tensor, mask: Tensor | None, gates: int
) -> tuple[Tensor, ...]:
    space = getattr(w, "ndim", 3) - 2
    if space not in (1, 2, 3):
        raise RuntimeError(
            f"{op}: weight_hh must be (channels of all gates, channels, *kernel) with a kernel of "
            f"1, 2 or 3 dimensions, got {tuple(w.shape)}"
        )
    inputs = operands(op, input, states, [w], mask, space)
    for s in states:
        h = s.shape[1]
        check_weight(op, "weight_hh", w, (gates * h, h, *w.shape[2:]))
        check_gates(op, input, gates * h)
    return inputs


# --- LSTM -----------------------------------------------------------------------------------------

# The third output, the gates, is what the backward kernel reads; it is not handed out.
_conv_lstm = Primitive(
    "conv_lstm_sequence",
    *lstm_rules(CONVOLUTION, "conv_lstm_sequence_backward"),
    batch_rule(2, _each(lstm_steps)),
)


def conv_lstm_sequence(
    input: Tensor,
    h0: Tensor,
    c0: Tensor,
    weight_hh: Tensor,
    mask: Tensor | None = None,
    *,
    reverse: bool = False,
) -> tuple[Tensor, Tensor]:
    """The states h and c of an LSTM with convolutions for products, as one operation.

    i, f, g, o = input_t + weight_hh * h_{t-1}, in four parts of the channels;
    c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g); h_t = sigmoid(o) tanh(c_t)

    Shape: input (L, N, 4 C, \\*space), h0 and c0 (N, C, \\*space), weight_hh (4 C, C, \\*kernel); h
    and c (L, N, C, \\*space).
    """
    inputs = _operands("conv_lstm_sequence", input, [h0, c0], weight_hh, mask, 4)
    out = _conv_lstm(*inputs, reverse=reverse)
    return out[0], out[1]
