"""A small network of two layers, for tests of its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

import chainrule
from chainrule import Tensor
from chainrule.curvature import parameter_jacobian

__all__ = ["flat_jacobian", "network", "normal", "params", "softmax", "tensor"]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def tensor(array: Any) -> Tensor:
    return chainrule.tensor(np.asarray(array))


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def network(p: dict[str, Any], x: Tensor) -> Tensor:
    """Two layers with tanh between them; works for a sample and for a batch."""
    return (x @ p["w"].T + p["b"]).tanh() @ p["out"][0].T


def params(outputs: int = 3) -> dict[str, Any]:
    return {
        "w": tensor(normal(4, 2)),
        "b": tensor(normal(4, seed=1)),
        "out": [tensor(normal(outputs, 4, seed=2))],
    }


def flat_jacobian(p: Any, x: Tensor) -> np.ndarray:
    """The parameter Jacobian as a matrix, a row for each element of the output."""
    j = parameter_jacobian(network, x, p)
    parts = [j["w"], j["b"], j["out"][0]]
    outputs = network(p, x).numel()
    return np.concatenate([part.numpy().reshape(outputs, -1) for part in parts], axis=1)
