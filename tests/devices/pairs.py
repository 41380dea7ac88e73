"""A network on the CPU and the same on a device, whose steps are compiled."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from compiler.nets import batches, make_step

import chainrule
from chainrule import nn, optim
from chainrule.compiler.lowered import Lowered

PLACE = "xla"
STEPS = 7
Make = Callable[[Any], Any]


def adam(params: Any) -> Any:
    return optim.Adam(params, lr=0.02)


def momentum(params: Any) -> Any:
    """Adam makes as much of a gradient that is nothing but rounding errors, like that of a bias
    before a normalization, as of any other."""
    return optim.SGD(params, lr=0.05, momentum=0.9)


class Pair:
    """A network with its optimizer on the CPU, and the same on the device."""

    def __init__(self, make: Callable[[], nn.Module], optimizer: Make = adam):
        chainrule.manual_seed(0)
        self.net = make()
        self.there = copy.deepcopy(self.net).to(PLACE)
        self.ours, self.theirs = (
            optimizer(self.net.parameters()),
            optimizer(self.there.parameters()),
        )
        self.step = make_step(self.net, self.ours)
        self.compiled = chainrule.compile(make_step(self.there, self.theirs))

    def run(self, data: list[tuple[Any, Any]]) -> tuple[list[float], list[float]]:
        """The losses of both."""
        chainrule.manual_seed(1)
        eager = [self.step(x, y).item() for x, y in data]
        chainrule.manual_seed(1)
        found = [self.compiled(x.to(PLACE), y.to(PLACE)) for x, y in data]
        return eager, [loss.item() for loss in found]

    def check(self, rtol: float = 1e-5, atol: float = 1e-6) -> None:
        """Parameters and buffers are the same."""
        there = self.there.state_dict()
        for name, t in self.net.state_dict().items():
            np.testing.assert_allclose(there[name].cpu(), t, rtol, atol, err_msg=name)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def drops_twice() -> nn.Module:
    parts = [nn.Linear(4, 8), nn.Dropout(0.3), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 3)]
    return nn.Sequential(*parts)


def mlp_data(count: int = STEPS) -> list[tuple[Any, Any]]:
    return batches((4,), count)


def lowered(function: Any) -> Lowered:
    """What runs the program that was used last."""
    runner = function._used.runner
    assert isinstance(runner, Lowered)
    return runner
