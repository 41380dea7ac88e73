"""Networks for the tests of penalties, and their gradients by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule
from chainrule import nn

__all__ = [
    "F64",
    "Recurrent",
    "assert_gradient",
    "convolutional",
    "network",
    "numeric",
    "weights",
]

F64 = chainrule.float64


def network(seed: int = 0) -> Any:
    chainrule.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()


class Recurrent(nn.Module):
    """The last output of an LSTM, normalized, with a skip from the last input."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)
        self.norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, 2)
        self.skip = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.norm(self.lstm(x)[0][:, -1])) + self.skip(x[:, -1])


def convolutional() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Tanh(), nn.Flatten(), nn.Linear(8, 2)
    )


def weights(model: nn.Module) -> np.ndarray:
    """All weight matrices as one vector."""
    return np.concatenate([p.detach().numpy().ravel() for p in model.parameters() if p.ndim >= 2])


def numeric(value: Callable[[], Any], p: Any, h: float = 1e-6) -> np.ndarray:
    """The gradient by a parameter from central differences."""
    found = np.zeros(p.shape)
    array = p.detach().numpy()
    for i in np.ndindex(*p.shape):
        old = array[i]
        array[i] = old + h
        high = float(value())
        array[i] = old - h
        low = float(value())
        array[i] = old
        found[i] = (high - low) / (2 * h)
    return found


def assert_gradient(penalty: Any, model: nn.Module, *inputs: Any, tol: float = 1e-7) -> None:
    """Compares the gradient of a penalty by each parameter with differences."""
    model.zero_grad()
    penalty(model, *inputs).backward()
    seen = False
    for name, p in model.named_parameters():
        expected = numeric(lambda: penalty(model, *inputs).detach(), p)
        got = np.zeros(p.shape) if p.grad is None else p.grad.numpy()
        np.testing.assert_allclose(got, expected, rtol=tol, atol=tol, err_msg=name)
        seen = seen or bool(np.abs(expected).max() > 1e-3)
    assert seen
