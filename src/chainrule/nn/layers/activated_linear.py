"""A linear layer and the activation after it as one operation, where nobody could tell."""

from __future__ import annotations

from chainrule.nn.activations.piecewise import ReLU
from chainrule.nn.activations.smooth import Sigmoid, Tanh
from chainrule.nn.layers.linear import Linear
from chainrule.nn.module.base import Module
from chainrule.ops.layers.fused import ActivatedLinear
from chainrule.ops.linalg.matmul import ordinary_linear
from chainrule.tensor import Tensor

__all__ = ["activated"]

_FUSED: dict[type[Module], ActivatedLinear] = {
    ReLU: ActivatedLinear("relu"),
    Sigmoid: ActivatedLinear("sigmoid"),
    Tanh: ActivatedLinear("tanh"),
}


def activated(layer: Linear, activation: Module, input: Tensor) -> Tensor | None:
    """``activation(layer(input))`` in one step; None if that is not possible.

    It is where both are exactly the library's modules, no hook wants to see what is between them,
    and no transformation or trace is on.
    """
    op = _FUSED.get(activation.__class__)
    if op is None or not (layer._calls_forward_alone and activation._calls_forward_alone):
        return None
    held = layer._parameters
    return ordinary_linear(op, input, held.get("weight"), held.get("bias"))
