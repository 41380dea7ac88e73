"""Traces of optimizers under gradients that are given, and what every optimizer has to hold."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from helpers import assert_close

import chainrule
from chainrule import Tensor

__all__ = [
    "GRADIENTS",
    "START",
    "check_left_alone",
    "check_resume",
    "follow",
    "parameter",
]

START = np.array([0.5, -1.0, 2.0, 0.3])
# Signs that stay, change, change twice, and zeros; a scale that varies.
GRADIENTS = np.random.default_rng(7).normal(size=(12, 4)) * np.array([1.0, 0.3, 2.0, 1.0])
GRADIENTS[:, 1] = np.abs(GRADIENTS[:, 1])
GRADIENTS[3:5, 3] = 0.0

Make = Callable[[Sequence[Tensor]], Any]


def parameter(values: Any = START) -> Tensor:
    return chainrule.tensor(np.array(values), requires_grad=True)


def follow(
    optimizer: Any, p: Tensor, gradients: Any = GRADIENTS, losses: Sequence[float] | None = None
) -> np.ndarray:
    """Where the parameter is after each step, if these are its gradients (and losses)."""
    places = []
    for t, g in enumerate(gradients):
        p.grad = chainrule.tensor(np.array(g))
        if losses is None:
            optimizer.step()
        else:
            optimizer.step(lambda t=t: losses[t])
        places.append(p.detach().numpy().copy())
    return np.array(places)


def check_resume(make: Make, losses: Sequence[float] | None = None) -> None:
    """An optimizer that was saved, pickled and loaded goes on as if nothing had been."""
    p = parameter()
    whole = follow(make([p]), p, losses=losses)
    p = parameter()
    first = make([p])
    follow(first, p, GRADIENTS[:5], losses and losses[:5])
    q = parameter(p.detach().numpy())
    second = make([q])
    second.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
    assert_close(follow(second, q, GRADIENTS[5:], losses and losses[5:]), whole[5:], 0, 0)
    again = parameter(p.detach().numpy())  # the state matters: without it the rest differs
    rest = follow(make([again]), again, GRADIENTS[5:], losses and losses[5:])
    assert np.abs(rest - whole[5:]).max() > 1e-6


def check_left_alone(make: Make) -> None:
    """A parameter without gradient is not changed, and gets no state."""
    p, other = parameter(), parameter()
    optimizer = make([other, p])
    p.grad = chainrule.tensor(GRADIENTS[0])
    optimizer.step(lambda: 1.0)
    assert_close(other, START, 0, 0)
    assert other not in optimizer.state
    assert np.abs(p.detach().numpy() - START).min() > 0
