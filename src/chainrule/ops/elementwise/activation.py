"""Activations that are primitives: for stability, or because they are measured to be faster.

A composition takes a node and a pass over the memory for each operation. Forward and backward
together on 32 x 64 float32 numbers, the primitive is 2.1 (elu), 2.1 (leaky_relu), 1.7 (gelu_tanh),
1.5 (log_sigmoid) times as fast with the NumPy kernels, and more with the compiled ones. The other
activations are written in operations in ``nn/activations/functions.py``.
"""

from __future__ import annotations

import math

from chainrule.backend import K
from chainrule.ops.elementwise.functions import exp, on_arrays, sigmoid, tanh, zeros_like_of
from chainrule.ops.elementwise.logic import where
from chainrule.ops.core.pointwise import binary, unary
from chainrule.ops.core.primitive import Elementwise
from chainrule.tensor import Tensor
from chainrule.typing import Value

__all__ = [
    "binary_step",
    "elu",
    "gelu",
    "gelu_tanh",
    "hardtanh",
    "log_sigmoid",
    "normal_cdf",
    "prelu",
    "silu",
]

_SQRT_2_PI = math.sqrt(2 / math.pi)

binary_step = unary("binary_step", lambda d: zeros_like_of(d), "0 for x < 0, else 1.", kinds="f")
log_sigmoid = unary(
    "log_sigmoid",
    on_arrays("log_sigmoid_backward", lambda d, x: d * sigmoid(-x)),
    "log(1 / (1 + exp(-x)))",
    kinds="f",
)
silu = unary(
    "silu",
    on_arrays("silu_backward", lambda d, x: d * _silu_slope(x)),
    "x / (1 + exp(-x))",
    kinds="fc",
)
normal_cdf = unary(
    "normal_cdf",
    lambda d, x: d * _normal_density(x),
    "The probability that a standard normal number is below x.",
    kinds="f",
)
gelu = unary(
    "gelu",
    on_arrays("gelu_backward", lambda d, x: d * (normal_cdf(x) + x * _normal_density(x))),
    "x Phi(x), Phi the normal distribution function.",
    kinds="f",
)
gelu_tanh = unary(
    "gelu_tanh",
    on_arrays("gelu_tanh_backward", lambda d, x: d * _gelu_tanh_slope(x)),
    "x Phi(x), with Phi approximated by a tanh.",
    kinds="f",
)
prelu = binary(
    "prelu",
    lambda d, x, y: _prelu_change(d, x, y),
    lambda d, x: where(x > 0, 0.0, d * x),
    "x for x > 0, y x for x <= 0.",
    kinds="f",
)
# scale * x for x > 0, scale * alpha * (exp(rate x) - 1) for x <= 0: ELU, SELU and CELU in one.
elu = Elementwise("elu", [lambda d, x, alpha, scale, rate: _elu_change(d, x, alpha, scale, rate)])
# Like clamp, but the slope at the limits is PyTorch's 0.
hardtanh = Elementwise(
    "hardtanh",
    [lambda d, x, low, high: _hardtanh_change(d, x, low, high)],
    kernel="clamp",
)


def _silu_slope(x: Value) -> Value:
    s = sigmoid(x)
    return s * (1 + x * (1 - s))


def _gelu_tanh_slope(x: Value) -> Value:
    square = x * x
    t = tanh(_SQRT_2_PI * (x + 0.044715 * (square * x)))
    inner = _SQRT_2_PI * (1 + 3 * 0.044715 * square)
    return 0.5 * (1 + t + x * (1 - t * t) * inner)


def _normal_density(x: Value) -> Value:
    return exp(-0.5 * (x * x)) * (0.5 * _SQRT_2_PI)


def _prelu_change(d: Value, x: Value, y: Value) -> Value:
    if not isinstance(d, Tensor):
        return K.prelu_backward(d, x, y)
    return where(x > 0, d, d * y)


def _hardtanh_change(d: Value, x: Value, low: float, high: float) -> Value:
    if not isinstance(d, Tensor):
        return K.hardtanh_backward(d, x, low, high)
    return where((x > low) & (x < high), d, 0.0)


def _elu_change(d: Value, x: Value, alpha: float, scale: float, rate: float) -> Value:
    if not isinstance(d, Tensor):
        return K.elu_backward(d, x, alpha, scale, rate)
    negative = where(x > 0, 0.0, x)
    below = alpha * scale * rate * exp(negative if rate == 1 else rate * negative)
    return d * where(x > 0, scale, below)
