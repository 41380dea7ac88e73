"""Activation kernels, with as few temporary arrays as possible."""

from __future__ import annotations

import math
import numpy as np

from chainrule.backend.numpy_kernels.elementwise import where
from chainrule.backend.numpy_kernels.special import erf, sigmoid, special
from chainrule.backend.numpy_kernels.operands import Operand

__all__ = [
    "binary_step",
    "elu",
    "elu_backward",
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
    "silu",
    "silu_backward",
]

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_PI = math.sqrt(2 / math.pi)
_ndtr = special("ndtr")


def binary_step(a: np.ndarray) -> np.ndarray:
    """1 from 0 on, 0 below; NaN where a is NaN."""
    return np.heaviside(a, a.dtype.type(1))


def log_sigmoid(a: np.ndarray) -> np.ndarray:
    """min(a, 0) - log(1 + exp(-|a|)): no overflow."""
    out = np.abs(a, out=np.empty_like(a))
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.log1p(out, out=out)
    return np.subtract(np.minimum(a, 0), out, out=out)


def silu(a: np.ndarray) -> np.ndarray:
    """a sigmoid(a)"""
    out = sigmoid(a)
    out *= a
    return out


def normal_cdf(a: np.ndarray) -> np.ndarray:
    """The probability that a standard normal number is below a."""
    if a.dtype.char == "d":
        return _ndtr(a)  # exact far to the left, where the sum below would cancel
    out = erf(a * _SQRT_HALF)
    out *= 0.5
    out += 0.5
    return out


def gelu(a: np.ndarray) -> np.ndarray:
    """a times the probability that a standard normal number is below a."""
    return a * normal_cdf(a)


def gelu_tanh(a: np.ndarray) -> np.ndarray:
    """a (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))) / 2"""
    out = np.multiply(a, a, out=np.empty_like(a))
    out *= 0.044715 * _SQRT_2_PI
    out += _SQRT_2_PI
    out *= a
    np.tanh(out, out=out)
    out += 1
    out *= a
    out *= 0.5
    return out


def elu(a: np.ndarray, alpha: float, scale: float, rate: float) -> np.ndarray:
    """scale * (max(a, 0) + alpha * expm1(rate * min(a, 0))): one of the two parts is 0."""
    out = np.minimum(a, 0, out=np.empty_like(a))
    if rate != 1:
        out *= rate
    np.expm1(out, out=out)
    if alpha != 1:
        out *= alpha
    out += np.maximum(a, 0)
    if scale != 1:
        out *= scale
    return out


def prelu(a: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """a above 0, slope * a below: one of the two parts is 0."""
    return slope * np.minimum(a, 0) + np.maximum(a, 0)


# --- slopes, times the gradient g -----------------------------------------------------------------


def log_sigmoid_backward(g: np.ndarray, a: np.ndarray) -> np.ndarray:
    """g (1 - sigmoid(a)), with sigmoid(-a) for the difference: no digits are lost."""
    return g * sigmoid(-a)


def silu_backward(g: np.ndarray, a: np.ndarray) -> np.ndarray:
    """g s (1 + a (1 - s)) with s = sigmoid(a)"""
    s = sigmoid(a)
    return g * (s * (1 + a * (1 - s)))


def gelu_backward(g: np.ndarray, a: np.ndarray) -> np.ndarray:
    """g (P(a) + a p(a)) with the normal distribution P and its density p."""
    density = np.exp(-0.5 * (a * a)) * (0.5 * _SQRT_2_PI)
    return g * (normal_cdf(a) + a * density)


def gelu_tanh_backward(g: np.ndarray, a: np.ndarray) -> np.ndarray:
    """g (1 + t + a (1 - t^2) u') / 2 with u = sqrt(2 / pi) (a + 0.044715 a^3) and t = tanh(u)"""
    square = a * a
    t = np.tanh(_SQRT_2_PI * (a + 0.044715 * (square * a)))
    inner = _SQRT_2_PI * (1 + 3 * 0.044715 * square)
    return g * (0.5 * (1 + t + a * (1 - t * t) * inner))


def elu_backward(
    g: np.ndarray, a: np.ndarray, alpha: float, scale: float, rate: float
) -> np.ndarray:
    """g scale above 0, g scale alpha rate exp(rate a) below and at 0."""
    below = alpha * scale * rate * np.exp(rate * np.minimum(a, 0))
    return g * where(a > 0, scale, below)


def prelu_backward(g: np.ndarray, a: np.ndarray, slope: Operand) -> np.ndarray:
    """The gradient of a: g above 0, g slope below and at 0."""
    return where(a > 0, g, g * slope)


def hardtanh_backward(g: np.ndarray, a: np.ndarray, low: float, high: float) -> np.ndarray:
    """g where low < a < high, else 0."""
    return where((a > low) & (a < high), g, 0.0)
