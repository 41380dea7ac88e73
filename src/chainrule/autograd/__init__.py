"""The graph and every derivative that can be taken of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NoReturn

from chainrule.autograd import forward_ad, functional
from chainrule.autograd.anomaly import detect_anomaly, record_lines, set_detect_anomaly
from chainrule.autograd.check import GradcheckError, gradcheck, gradgradcheck
from chainrule.autograd.engine import backward, grad
from chainrule.autograd.explain import Explanation, explain
from chainrule.autograd.function import Function, FunctionCtx, once_differentiable
from chainrule.autograd.hooks import (
    register_hook,
    register_post_accumulate_grad_hook,
    retain_grad,
)
from chainrule.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from chainrule.autograd.variable import Variable
from chainrule.tensor import Tensor

__all__ = [
    "Explanation",
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "explain",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "once_differentiable",
    "record_lines",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Iterable[Tensor] | None = None,
) -> None:
    """Adds the gradient of this tensor to the ``.grad`` of every leaf it was computed from."""
    backward(self, gradient, retain_graph, create_graph, inputs)


ABSENT = {
    "NestedIOFunction": "autograd.Function takes and returns tensors; flatten what is nested",
    "enforce_grad_layout_policy": "gradients have the layout of what computed them",
    "grad_mode": "no_grad, enable_grad and set_grad_enabled are in chainrule and in autograd",
    "graph": (
        "what a graph saves cannot be exchanged; utils.checkpoint keeps less of it, and "
        "tensor.register_hook sees gradients"
    ),
    "profiler": "cProfile finds what takes time; autograd.explain tells a backward pass",
    "set_multithreading_enabled": "a backward pass runs in the thread that asks for it",
}


def __getattr__(name: str) -> NoReturn:
    raise import_module("chainrule.absent").absent(__name__, name, ABSENT)


METHODS: dict[str, Callable[..., Any]] = {
    "backward": _backward,
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "retain_grad": retain_grad,
}
for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
