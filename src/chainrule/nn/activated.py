"""A linear layer and the activation after it as one operation, where nobody could tell."""

from __future__ import annotations

from typing import Any

from chainrule.nn.activation_modules import ReLU, Sigmoid, Tanh
from chainrule.nn.linear import Linear
from chainrule.nn.module import Module
from chainrule.ops.fused import ActivatedLinear
from chainrule.tensor import Tensor

__all__ = ["activated"]

_FUSED: dict[type[Module], ActivatedLinear] = {
    ReLU: ActivatedLinear("relu"),
    Sigmoid: ActivatedLinear("sigmoid"),
    Tanh: ActivatedLinear("tanh"),
}


def activated(layer: Linear, activation: Module | None, input: Any) -> Tensor | None:
    """``activation(layer(input))`` in one step; None if that is not possible.

    It is where both are exactly the library's modules, no hook wants to see what is between them,
    and no transformation or trace is on.
    """
    op = _FUSED.get(activation.__class__)  # type: ignore[arg-type]
    if op is None or not (_is_itself(layer) and _is_itself(activation)):
        return None
    held = layer._parameters
    return op.on_layer(input, held.get("weight"), held.get("bias"))  # type: ignore[arg-type]


def _is_itself(module: Any) -> bool:
    """Whether a call is the forward of the module's class and nothing else."""
    held = module.__dict__
    return not (
        held["_forward_hooks"] or held["_forward_pre_hooks"] or held["_backward_hooks"]
        or held["_backward_pre_hooks"] or "forward" in held
    )  # fmt: skip
