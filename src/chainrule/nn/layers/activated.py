"""A layer and the activation after it as one operation, where nobody could tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.graph import mode
from chainrule.nn.activations.piecewise import ReLU, ReLU6
from chainrule.nn.activations.smooth import Sigmoid, Tanh
from chainrule.nn.layers.linear import Linear
from chainrule.nn.layers.norm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from chainrule.nn.layers.norm_functions import with_running_moments
from chainrule.nn.module.base import Module
from chainrule.nn.module.noting import CALLS
from chainrule.ops.core.pointwise import F32, F64
from chainrule.ops.layers.fused import (
    ActivatedLinear,
    linear_relu,
    linear_sigmoid,
    linear_tanh,
)
from chainrule.ops.layers.norm import Limits
from chainrule.ops.linalg.matmul import ordinary_linear
from chainrule.tensor import Tensor

__all__ = ["ACTIVATED"]

_FUSED: dict[type[Module], ActivatedLinear] = {
    ReLU: linear_relu,
    Sigmoid: linear_sigmoid,
    Tanh: linear_tanh,
}
# What holds numbers between limits.
_LIMITS: dict[type[Module], Limits] = {ReLU: (0.0, None), ReLU6: (0.0, 6.0)}
_NORMS: tuple[type[Module], ...] = (BatchNorm1d, BatchNorm2d, BatchNorm3d)
_KINDS: tuple[type[Module], ...] = (Linear, *_NORMS, *_FUSED, *_LIMITS)
# What these classes do as they come: a function patched into one of them is called as usual.
_FORWARD: dict[type[Module], Any] = {kind: kind.forward for kind in _KINDS}


def _are_ordinary(layer: Module, activation: Module) -> bool:
    """Whether both are exactly the library's modules, and no hook wants to see what is between."""
    for module in (layer, activation):
        kind: Any = module.__class__
        if kind.forward is not _FORWARD[kind] or kind.__call__ not in CALLS:
            return False
        if not module._calls_forward_alone:
            return False
    return True


def _activated_linear(layer: Linear, activation: Module, input: Tensor) -> Tensor | None:
    op = _FUSED.get(activation.__class__)
    if op is None or not _are_ordinary(layer, activation):
        return None
    held = layer._parameters
    return ordinary_linear(op, input, held.get("weight"), held.get("bias"))


def _activated_norm(layer: Any, activation: Module, input: Tensor) -> Tensor | None:
    """With running moments, and where nothing is recorded."""
    limits = _LIMITS.get(activation.__class__)
    if limits is None or mode.flags or layer.training or not _are_ordinary(layer, activation):
        return None
    if not isinstance(input, Tensor) or input.ndim not in layer.ndims or not input.array.size:
        return None
    moments, affine = (layer.running_mean, layer.running_var), (layer.weight, layer.bias)
    x, eps = input.array, layer.eps
    if (x.dtype is not F32 and x.dtype is not F64) or eps < 0.0:
        return None
    if moments[0] is None or moments[1] is None:
        return None
    for t in (*moments, *affine):
        if t is not None and (t.array.dtype is not x.dtype or t.array.shape != x.shape[1:2]):
            return None
    return with_running_moments("batch_norm", input, *moments, *affine, eps, limits)


# ``activation(layer(input))`` in one step, by the class of the layer; None where that is not
# possible: a transformation or a trace is on, or somebody could see what is between them.
ACTIVATED: dict[type[Module], Callable[[Any, Module, Tensor], Tensor | None]] = {
    Linear: _activated_linear,
    **dict.fromkeys(_NORMS, _activated_norm),
}
