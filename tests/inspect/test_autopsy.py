"""The autopsy names operation, layer, line and sample: in forward, loss, backward and update."""

from __future__ import annotations

import math
from typing import Any

import chainrule
import pytest
from chainrule import inspect, nn, optim
from chainrule.nn import functional as F


class Roots(nn.Module):
    """Computes a root in its own line."""

    def __init__(self, start: float = 1.0):
        super().__init__()
        self.layer = nn.Linear(2, 2, bias=False)
        nn.init.constant_(self.layer.weight, start)

    def forward(self, x: Any) -> Any:
        h = self.layer(x)
        return chainrule.sqrt(h)  # the line


X = chainrule.tensor([[1.0, 2.0], [3.0, -4.0], [1.0, 1.0]])


def test_an_operation_of_the_forward_pass() -> None:
    found = inspect.autopsy(Roots(), X)
    assert (found.where, found.operation, found.layer, found.samples) == (
        "forward",
        "sqrt",
        "",
        [1],
    )
    assert "return chainrule.sqrt(h)  # the line" in found.line
    assert "test_autopsy.py" in str(found)
    assert found.remedy


def test_a_layer_of_a_ready_network_has_no_line() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    nn.init.constant_(net[1].weight, 3e38)
    found = inspect.autopsy(net, X * 100)
    assert (found.where, found.layer, found.operation, found.line) == ("forward", "1", "linear", "")


def test_an_operation_of_the_loss() -> None:
    net = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
    nn.init.constant_(net[0].weight, 1000.0)

    def loss(output: Any, target: Any) -> Any:
        return -(target * chainrule.log(1 - output)).mean()

    found = inspect.autopsy(net, X, chainrule.ones(3, 1), loss)
    assert (found.where, found.operation, found.samples) == ("loss", "log", [0, 2])
    assert "chainrule.log(1 - output)" in found.line


def test_an_operation_of_the_backward_pass() -> None:
    net = Roots(0.0)
    found = inspect.autopsy(net, X, chainrule.ones(3, 2), F.mse_loss)
    assert (found.where, found.operation, found.samples) == ("backward", "sqrt", [0, 1, 2])
    assert "return chainrule.sqrt(h)  # the line" in found.line
    assert "turned a finite gradient" in found.message


def test_one_sample_of_the_backward_pass() -> None:
    net = Roots()
    x = chainrule.tensor([[1.0, 2.0], [2.0, -2.0], [1.0, 1.0]])
    found = inspect.autopsy(net, x, chainrule.ones(3, 2), F.mse_loss)
    assert (found.where, found.layer, found.samples) == ("backward", "", [1])


def test_the_update() -> None:
    net = nn.Linear(2, 1)
    optimizer = optim.SGD(net.parameters(), lr=1e38)
    target = chainrule.full((3, 1), 1e5)
    found = inspect.autopsy(net, X, target, F.mse_loss, optimizer)
    assert (found.where, found.layer, found.operation) == ("update", "weight", "SGD")
    assert "rate 1e+38" in found.message
    assert bool(net.weight.isfinite().all())


def test_data_and_parameters() -> None:
    net = nn.Linear(2, 1)
    target = chainrule.tensor([[1.0], [math.inf], [0.0]])
    found = inspect.autopsy(net, X, target, F.mse_loss)
    assert (found.where, found.samples) == ("target", [1])
    with chainrule.no_grad():
        net.bias.fill_(math.nan)
    found = inspect.autopsy(net, X)
    assert (found.where, found.layer) == ("parameter", "bias")


def test_all_is_finite() -> None:
    net = nn.Linear(2, 1)
    optimizer = optim.Adam(net.parameters())
    found = inspect.autopsy(net, X, chainrule.ones(3, 1), F.mse_loss, optimizer)
    assert found.where == ""
    assert str(found) == "everything is finite: forward, loss, backward and update"
    with pytest.raises(TypeError, match="no picture"):
        found.plot()
