"""Recurrent layers: each layer and direction is one node over all steps.

The operation here is given the products of all steps with the weights of the input; ONNX's nodes
make these themselves. So the linear operation before it becomes part of the node, where its weights
are constants, and else the products are handed through by a matrix of ones and zeros.

=====  ==================  ==================  ================================
layer  gates here          gates of ONNX       how it is told
=====  ==================  ==================  ================================
LSTM   i, f, g, o          i, o, f, c          the four parts change places
GRU    r, z, n             z, r, h             and ``linear_before_reset``
RNN    one                 one                 ``activations``
=====  ==================  ==================  ================================
"""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.onnx.graph import is_fixed
from chainrule.onnx.site import Made, Rule, Site
from chainrule.ops.creation.patterns import eye, zeros
from chainrule.ops.shape.joining import chunk
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import unsqueeze
from chainrule.tensor import Tensor

__all__ = ["RULES"]


def _moved(x: Tensor, order: Sequence[int]) -> Tensor:
    """The gates in ONNX's order, with a first dimension for the direction."""
    parts = chunk(x.detach(), len(order), 0)
    return unsqueeze(cat([parts[k] for k in order]), 0)


def _weights(s: Site, i: int, what: str) -> Tensor:
    found = s.fixed_tensor(i)
    if found is None:
        s.fail(f"its {what} are no constants: they are computed from the inputs of the model")
    return found


def _node(
    s: Site,
    kind: str,
    order: Sequence[int],
    states: Sequence[int],
    hidden: int,
    bias_hh: Tensor | None,
    **how: str | int | list[str],
) -> tuple[str, str, str]:
    """The node: all h (L, N, D), and the last states (1, N, D)."""
    weight_hh = _weights(s, hidden, "weights").detach()
    gates, size = weight_hh.shape
    source = s.source(0)
    fused = source is not None and source.name == "linear" and source.ndim() == 3
    fixed = [source.fixed_tensor(i) for i in range(1, source.count)] if fused and source else []
    bias = zeros(gates, dtype=weight_hh.dtype)
    if source is not None and fixed and all(t is not None for t in fixed):
        x, weight_ih = source.x(), fixed[0]
        bias = fixed[1].detach() if len(fixed) > 1 and fixed[1] is not None else bias
    else:
        x, weight_ih = s.x(), eye(gates, dtype=weight_hh.dtype)
    if weight_ih is None:
        s.fail("its weights are no constants")
    other = zeros(gates, dtype=weight_hh.dtype) if bias_hh is None else bias_hh.detach()
    both = cat([_moved(bias, order), _moved(other, order)], 1)
    constants = [
        s.constant(_moved(weight_ih, order), name=f"{s.path}/W"),
        s.constant(_moved(weight_hh, order), name=f"{s.path}/R"),
        s.constant(both, name=f"{s.path}/B"),
    ]
    first = [s.add("Unsqueeze", s.x(i), s.integers([0])) for i in states]
    direction = "reverse" if s.param("reverse") else "forward"
    made = s.add(
        kind,
        x,
        *constants,
        "",
        *first,
        outputs=1 + len(states),
        hidden_size=int(size),
        direction=direction,
        **how,
    )
    all_states = s.add("Squeeze", made[0], s.integers([1]))
    return all_states, made[1], made[-1]


def _refuse_mask(s: Site, inputs: int) -> None:
    if s.count > inputs:
        s.fail("sequences of different lengths (a mask, or a packed sequence) are not written")


def _lstm(s: Site) -> Made:
    if s.param("projected"):
        s.fail("LSTM of ONNX has no projection (proj_size)")
    _refuse_mask(s, 4)
    h, _, c = _node(s, "LSTM", (0, 3, 1, 2), (1, 2), 3, None)
    # Of c the last state is told, which a slice may ask for; over one step it is all of them.
    s.graph.known["last cell", s.number] = c
    length = s.shape()[0]
    return h, c if is_fixed(length) and length[0] == 1 else None, None


def _gru(s: Site) -> Made:
    bias, count = None, 3
    if s.count > 3 and s.input_dtype(3).is_floating_point:
        bias, count = _weights(s, 3, "biases"), 4
    _refuse_mask(s, count)
    h, _, _ = _node(s, "GRU", (1, 0, 2), (1,), 2, bias, linear_before_reset=1)
    return h, None


def _rnn(s: Site) -> Made:
    _refuse_mask(s, 3)
    kinds = {"tanh": "Tanh", "relu": "Relu", "sigmoid": "Sigmoid"}
    name = s.param("nonlinearity")
    if name not in kinds:
        s.fail(f"RNN of ONNX has no activation {name!r}")
    h, _, _ = _node(s, "RNN", (0,), (1,), 2, None, activations=[kinds[name]])
    return h


RULES: dict[str, Rule] = {
    "gru_sequence": _gru,
    "lstm_sequence": _lstm,
    "rnn_sequence": _rnn,
}
