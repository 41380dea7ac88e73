"""Records of the activations and of the layers that change the shape alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from layers.record import Layer

import chainrule

__all__ = ["LAYERS"]

Inputs = Callable[[np.random.Generator], tuple[Any, ...]]


def apart(*shape: int) -> Inputs:
    """Numbers between -4 and 4 that are at least 0.1 away from every multiple of a half."""
    return lambda r: (r.integers(-8, 8, size=shape) * 0.5 + r.uniform(0.1, 0.4, size=shape),)


def normal(*shape: int) -> Inputs:
    return lambda r: (2 * r.normal(size=shape),)


def drawn(x: Any, tau: Any) -> Any:
    return chainrule.nn.functional.gumbel_softmax(x, tau, hard=True)


# An input is changed in place after it was computed: a leaf may not be.
in_place = partial(Layer, note="in place", call=lambda module, x: module(x * 1))
own = partial(Layer, torch=False)  # PyTorch has none
pieces = partial(Layer, second_order=False)  # linear in pieces

LAYERS: list[Layer] = [
    pieces("ReLU", lambda nn: nn.ReLU(), apart(3, 4)),
    in_place("ReLU", lambda nn: nn.ReLU(inplace=True), apart(3, 4), second_order=False),
    pieces("ReLU6", lambda nn: nn.ReLU6(), lambda r: (2 * apart(4, 5)(r)[0],)),
    pieces("LeakyReLU", lambda nn: nn.LeakyReLU(), apart(3, 4)),
    pieces("LeakyReLU", lambda nn: nn.LeakyReLU(0.3), apart(3, 4), note="slope"),
    in_place(
        "LeakyReLU", lambda nn: nn.LeakyReLU(0.3, inplace=True), apart(3, 4), second_order=False
    ),
    Layer("PReLU", lambda nn: nn.PReLU(), apart(3, 4)),
    Layer("PReLU", lambda nn: nn.PReLU(4, 0.1), apart(3, 4, 2), note="channels"),
    pieces("RReLU", lambda nn: nn.RReLU(), apart(3, 4), random=True),
    pieces("Hardtanh", lambda nn: nn.Hardtanh(), apart(3, 4)),
    pieces("Hardtanh", lambda nn: nn.Hardtanh(-2.0, 0.5), apart(3, 4), note="limits"),
    # PyTorch's gradient uses 1/6 in float32; see nn/test_activation.py.
    own("Hardsigmoid", lambda nn: nn.Hardsigmoid(), apart(3, 4), second_order=False),
    Layer("Hardswish", lambda nn: nn.Hardswish(), apart(3, 4)),
    pieces("Hardshrink", lambda nn: nn.Hardshrink(), apart(3, 4)),
    pieces("Softshrink", lambda nn: nn.Softshrink(1.0), apart(3, 4)),
    pieces("Threshold", lambda nn: nn.Threshold(0.5, 7.0), apart(3, 4)),
    Layer("ELU", lambda nn: nn.ELU(), apart(3, 4)),
    Layer("ELU", lambda nn: nn.ELU(1.3), apart(3, 4), note="alpha"),
    in_place("ELU", lambda nn: nn.ELU(1.3, inplace=True), apart(3, 4)),
    Layer("CELU", lambda nn: nn.CELU(2.0), apart(3, 4)),
    Layer("SELU", lambda nn: nn.SELU(), apart(3, 4)),
    Layer("GELU", lambda nn: nn.GELU(), normal(3, 4)),
    Layer("GELU", lambda nn: nn.GELU(approximate="tanh"), normal(3, 4), note="tanh"),
    Layer("SiLU", lambda nn: nn.SiLU(), normal(3, 4)),
    Layer("Mish", lambda nn: nn.Mish(), normal(3, 4)),
    Layer("Softplus", lambda nn: nn.Softplus(), normal(3, 4)),
    Layer("Softplus", lambda nn: nn.Softplus(2.0, 3.0), apart(3, 4), note="beta"),
    Layer("Softsign", lambda nn: nn.Softsign(), apart(3, 4)),
    Layer("Tanh", lambda nn: nn.Tanh(), normal(3, 4)),
    Layer("Tanhshrink", lambda nn: nn.Tanhshrink(), normal(3, 4)),
    Layer("Sigmoid", lambda nn: nn.Sigmoid(), normal(3, 4)),
    Layer("LogSigmoid", lambda nn: nn.LogSigmoid(), normal(3, 4)),
    Layer("Softmax", lambda nn: nn.Softmax(dim=1), normal(3, 4)),
    Layer("Softmin", lambda nn: nn.Softmin(dim=-1), normal(3, 4)),
    Layer("LogSoftmax", lambda nn: nn.LogSoftmax(dim=0), normal(3, 4)),
    Layer("Softmax2d", lambda nn: nn.Softmax2d(), normal(2, 3, 2, 2)),
    Layer("GLU", lambda nn: nn.GLU(1), normal(3, 4)),
    own("BinaryStep", lambda nn: nn.BinaryStep(), apart(3, 4), second_order=False),
    own("Sign", lambda nn: nn.Sign(), apart(3, 4), second_order=False),
    own("LeCunTanh", lambda nn: nn.LeCunTanh(), normal(3, 4)),
    own("SobolevaTanh", lambda nn: nn.SobolevaTanh(0.5, 1.0, 1.5, 2.0), normal(3, 4)),
    own("Gaussian", lambda nn: nn.Gaussian(), normal(3, 4)),
    own(
        "ParametricActivation",
        lambda nn: nn.ParametricActivation(nn.functional.soboleva_tanh, a=0.5, b=1.0, c=1.5, d=2.0),
        normal(3, 4),
    ),
    own(
        "ParametricActivation",
        lambda nn: nn.ParametricActivation(nn.functional.elu, alpha=1.5),
        apart(3, 4),
        note="alpha of ELU",
    ),
    own(
        "ParametricActivation",
        lambda nn: nn.ParametricActivation(drawn, tau=0.5),
        normal(3, 4),
        random=True,
        differentiable=False,
        vmap=False,
        float32=False,
        note="random",
    ),
    Layer("Identity", lambda nn: nn.Identity(3, unused=True), normal(3, 4)),
    Layer("Flatten", lambda nn: nn.Flatten(), normal(2, 3, 4)),
    Layer("Flatten", lambda nn: nn.Flatten(0, 1), normal(2, 3, 4), note="dims"),
    Layer("Unflatten", lambda nn: nn.Unflatten(1, (2, 3)), normal(2, 6, 2)),
]
