"""Slopes of elementwise functions, times the gradient g of the result."""

from __future__ import annotations

import math

import numpy as np

from chainrule.backend.numpy_kernels.elementwise import where
from chainrule.backend.numpy_kernels.special import sigmoid

__all__ = [
    "erf_backward",
    "relu_backward",
    "sigmoid_backward",
    "softplus_backward",
    "squared_error",
    "squared_error_backward",
    "tanh_backward",
]

_2_SQRTPI = 2 / math.sqrt(math.pi)


def squared_error(a: np.ndarray, b: np.ndarray, scale: float) -> np.generic:
    """scale * the sum of (a - b)^2"""
    difference = np.subtract(a, b).ravel()
    return a.dtype.type(scale * float(difference.dot(difference)))


def squared_error_backward(
    g: np.ndarray | np.generic, a: np.ndarray, b: np.ndarray, scale: float
) -> np.ndarray:
    """The gradient of a, 2 scale (a - b) g for one number g; that of b is its negative."""
    return np.subtract(a, b) * (a.dtype.type(2 * scale) * g)


def relu_backward(g: np.ndarray, out: np.ndarray) -> np.ndarray:
    """The slope at 0 is 0; a NaN passes the gradient on."""
    return where(out != 0, g, 0.0)


def tanh_backward(g: np.ndarray, out: np.ndarray) -> np.ndarray:
    """g (1 - out^2) with out = tanh(a)"""
    return g * (1 - out * out)


def sigmoid_backward(g: np.ndarray, out: np.ndarray) -> np.ndarray:
    """g out (1 - out) with out = sigmoid(a)"""
    return g * (out - out * out)


def softplus_backward(g: np.ndarray, a: np.ndarray) -> np.ndarray:
    """g sigmoid(a)"""
    return g * sigmoid(a)


def erf_backward(g: np.ndarray, a: np.ndarray) -> np.ndarray:
    """g 2 / sqrt(pi) exp(-a^2)"""
    return g * (_2_SQRTPI * np.exp(-a * a))
