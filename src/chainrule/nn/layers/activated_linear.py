"""A linear layer and the activation after it as one operation, where nobody could tell."""

from __future__ import annotations

from typing import Any

from chainrule.nn.activations.piecewise import ReLU
from chainrule.nn.activations.smooth import Sigmoid, Tanh
from chainrule.nn.layers.linear import Linear
from chainrule.nn.module.base import Module
from chainrule.nn.module.noting import CALLS
from chainrule.ops.layers.fused import (
    ActivatedLinear,
    linear_relu,
    linear_sigmoid,
    linear_tanh,
)
from chainrule.ops.linalg.matmul import ordinary_linear
from chainrule.tensor import Tensor

__all__ = ["activated"]

_FUSED: dict[type[Module], ActivatedLinear] = {
    ReLU: linear_relu,
    Sigmoid: linear_sigmoid,
    Tanh: linear_tanh,
}
# What these classes do as they come: a function patched into one of them is called as usual.
_FORWARD: dict[type[Module], Any] = {kind: kind.forward for kind in _FUSED}
_LINEAR = Linear.forward


def activated(layer: Linear, activation: Module, input: Tensor) -> Tensor | None:
    """``activation(layer(input))`` in one step; None if that is not possible.

    It is where both are exactly the library's modules, no hook wants to see what is between them,
    and no transformation or trace is on.
    """
    kind: Any = activation.__class__
    op = _FUSED.get(kind)
    if op is None:
        return None
    if kind.forward is not _FORWARD[kind] or kind.__call__ not in CALLS:
        return None
    if Linear.forward is not _LINEAR or Linear.__call__ not in CALLS:
        return None
    if not (layer._calls_forward_alone and activation._calls_forward_alone):
        return None
    held = layer._parameters
    return ordinary_linear(op, input, held.get("weight"), held.get("bias"))
