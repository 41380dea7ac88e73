"""Little programs that must give the same facts in both libraries."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")

Story = Callable[[Any], Any]


class Stories(list[Story]):
    """The programs of a file: used as a decorator it takes one more."""

    def __call__(self, function: Story) -> Story:
        self.append(function)
        return function


def check(story: Story) -> None:
    """Tells a program to both libraries and compares the facts."""
    __tracebackhide__ = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = (story(lib) for lib in (chainrule, torch))
    assert_same(ours, theirs)


def net(lib: Any) -> Any:
    """A network that holds something of every kind, and one module twice."""
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.scale = nn.Parameter(lib.ones(4))
            self.register_buffer("count", lib.zeros(2))
            self.register_buffer("hidden", lib.zeros(1), persistent=False)
            self.blocks = nn.ModuleList([nn.Linear(4, 4, bias=False), self.first])
            self.last = nn.Sequential(OrderedDict(act=nn.Tanh(), out=nn.Linear(4, 2)))
            self.nothing = None
            self.register_parameter("absent", None)

        def forward(self, x: Any) -> Any:
            return self.last(self.blocks[0](self.first(x) * self.scale))

    module = Net().double()
    with lib.no_grad():
        for k, p in enumerate(module.parameters()):
            p.copy_(lib.arange(p.numel()).reshape(p.shape) * 0.07 * (-1) ** k - 0.2)
    return module


def rows(lib: Any, requires_grad: bool = True) -> Any:
    x = lib.tensor([[0.3, -0.2, 1.0], [0.5, 0.1, -0.4]], dtype=lib.float64)
    return x.requires_grad_(requires_grad)


def outcome(function: Callable[[], Any]) -> Any:
    """What a call gives, or the type of its exception."""
    try:
        result = function()
    except Exception as error:  # noqa: BLE001
        return type(error).__name__
    return result if isinstance(result, (str, int, list, tuple)) else "fine"


def assert_same(ours: Any, theirs: Any) -> None:
    """Tensors and numbers to rounding, everything else exactly."""
    __tracebackhide__ = True
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), f"{ours} is not {theirs}"
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    elif isinstance(theirs, (float, torch.Tensor)):
        assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    else:
        assert ours == theirs
