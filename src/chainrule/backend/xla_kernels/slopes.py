"""Slopes of elementwise functions, times the gradient g of the result, and activations."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy import special as jsp

from chainrule.backend.xla_kernels.special import sigmoid

__all__ = [
    "binary_step",
    "elu",
    "elu_backward",
    "erf_backward",
    "gelu",
    "gelu_backward",
    "gelu_tanh",
    "gelu_tanh_backward",
    "hardtanh_backward",
    "log_sigmoid",
    "log_sigmoid_backward",
    "normal_cdf",
    "prelu",
    "prelu_backward",
    "relu_backward",
    "sigmoid_backward",
    "silu",
    "silu_backward",
    "softplus_backward",
    "squared_error",
    "squared_error_backward",
    "tanh_backward",
]

Array = Any
_2_SQRTPI = 2 / math.sqrt(math.pi)
_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_PI = math.sqrt(2 / math.pi)


def squared_error(a: Array, b: Array, scale: float) -> Array:
    """scale * the sum of (a - b)^2"""
    return (scale * jnp.sum(jnp.square(a - b))).astype(a.dtype)


def squared_error_backward(g: Array, a: Array, b: Array, scale: float) -> Array:
    """The gradient of a, 2 scale (a - b) g for one number g; that of b is its negative."""
    return (a - b) * (2 * scale * g)


def relu_backward(g: Array, out: Array) -> Array:
    """The slope at 0 is 0; a NaN passes the gradient on."""
    return jnp.where(out != 0, g, jnp.zeros((), g.dtype))


def tanh_backward(g: Array, out: Array) -> Array:
    """g (1 - out^2) with out = tanh(a)"""
    return g * (1 - out * out)


def sigmoid_backward(g: Array, out: Array) -> Array:
    """g out (1 - out) with out = sigmoid(a)"""
    return g * (out - out * out)


def softplus_backward(g: Array, a: Array) -> Array:
    """g sigmoid(a)"""
    return g * sigmoid(a)


def erf_backward(g: Array, a: Array) -> Array:
    """g 2 / sqrt(pi) exp(-a^2)"""
    return g * (_2_SQRTPI * jnp.exp(-a * a))


# --- activations ----------------------------------------------------------------------------------


def binary_step(a: Array) -> Array:
    """1 from 0 on, 0 below; NaN where a is NaN."""
    return jnp.where(a != a, a, (a >= 0).astype(a.dtype))


def log_sigmoid(a: Array) -> Array:
    """min(a, 0) - log(1 + exp(-|a|)): no overflow."""
    return jnp.minimum(a, 0) - jnp.log1p(jnp.exp(-jnp.abs(a)))


def silu(a: Array) -> Array:
    """a sigmoid(a)"""
    return sigmoid(a) * a


def normal_cdf(a: Array) -> Array:
    """The probability that a standard normal number is below a."""
    if a.dtype.char == "d":
        return 0.5 * jsp.erfc(-a * _SQRT_HALF)
    return 0.5 * jax.lax.erf(a * _SQRT_HALF) + 0.5


def gelu(a: Array) -> Array:
    """a times the probability that a standard normal number is below a."""
    return a * normal_cdf(a)


def gelu_tanh(a: Array) -> Array:
    """a (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))) / 2"""
    return 0.5 * a * (1 + jnp.tanh(a * (_SQRT_2_PI + 0.044715 * _SQRT_2_PI * (a * a))))


def elu(a: Array, alpha: float, scale: float, rate: float) -> Array:
    """scale * (max(a, 0) + alpha * expm1(rate * min(a, 0))): one of the two parts is 0."""
    return scale * (alpha * jnp.expm1(rate * jnp.minimum(a, 0)) + jnp.maximum(a, 0))


def prelu(a: Array, slope: Array) -> Array:
    """a above 0, slope * a below: one of the two parts is 0."""
    return slope * jnp.minimum(a, 0) + jnp.maximum(a, 0)


def log_sigmoid_backward(g: Array, a: Array) -> Array:
    """g (1 - sigmoid(a)), with sigmoid(-a) for the difference: no digits are lost."""
    return g * sigmoid(-a)


def silu_backward(g: Array, a: Array) -> Array:
    """g s (1 + a (1 - s)) with s = sigmoid(a)"""
    s = sigmoid(a)
    return g * (s * (1 + a * (1 - s)))


def gelu_backward(g: Array, a: Array) -> Array:
    """g (P(a) + a p(a)) with the normal distribution P and its density p."""
    density = jnp.exp(-0.5 * (a * a)) * (0.5 * _SQRT_2_PI)
    return g * (normal_cdf(a) + a * density)


def gelu_tanh_backward(g: Array, a: Array) -> Array:
    """g (1 + t + a (1 - t^2) u') / 2 with u = sqrt(2 / pi) (a + 0.044715 a^3) and t = tanh(u)"""
    square = a * a
    t = jnp.tanh(_SQRT_2_PI * (a + 0.044715 * (square * a)))
    inner = _SQRT_2_PI * (1 + 3 * 0.044715 * square)
    return g * (0.5 * (1 + t + a * (1 - t * t) * inner))


def elu_backward(g: Array, a: Array, alpha: float, scale: float, rate: float) -> Array:
    """g scale above 0, g scale alpha rate exp(rate a) below and at 0."""
    below = alpha * scale * rate * jnp.exp(rate * jnp.minimum(a, 0))
    return g * jnp.where(a > 0, jnp.asarray(scale, a.dtype), below)


def prelu_backward(g: Array, a: Array, slope: Array) -> Array:
    """The gradient of a: g above 0, g slope below and at 0."""
    return jnp.where(a > 0, g, g * slope)


def hardtanh_backward(g: Array, a: Array, low: float, high: float) -> Array:
    """g where low < a < high, else 0."""
    return jnp.where((a > low) & (a < high), g, jnp.zeros((), g.dtype))
