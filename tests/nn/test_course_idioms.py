"""The ways in which courses write networks."""

from __future__ import annotations

import copy
from collections import OrderedDict

import numpy as np
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.nn import functional as F


class Classifier(nn.Module):
    """Layers in ``__init__``, the computation in ``forward``, activations as functions."""

    def __init__(self, hidden: int = 8):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.pool = nn.MaxPool2d(2, 2)
        self.drop = nn.Dropout(0.5)
        self.fc1 = nn.Linear(2 * 3 * 3, hidden)
        self.fc2 = nn.Linear(hidden, 3)

    def forward(self, x: chainrule.Tensor) -> chainrule.Tensor:
        x = self.pool(F.relu(self.conv(x)))
        x = chainrule.flatten(x, 1)
        return self.fc2(self.drop(F.relu(self.fc1(x))))


def images() -> chainrule.Tensor:
    return chainrule.from_numpy(np.random.default_rng(0).normal(size=(4, 1, 8, 8)).astype("f4"))


def test_subclass_with_forward() -> None:
    net = Classifier()
    loss = nn.CrossEntropyLoss()(net(images()), chainrule.tensor([0, 1, 2, 1]))
    loss.backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in net.parameters())


def test_sequential_and_add_module_by_name() -> None:
    net = nn.Sequential()
    net.add_module("fc1", nn.Linear(4, 3))
    net.add_module("relu", nn.ReLU())
    net.add_module("fc2", nn.Linear(3, 1))
    other = nn.Sequential(
        OrderedDict([("fc1", nn.Linear(4, 3)), ("relu", nn.ReLU()), ("fc2", nn.Linear(3, 1))])
    )
    other.load_state_dict(net.state_dict())
    x = chainrule.ones(2, 4)
    assert repr(other) == repr(net)
    assert_close(other(x), net(x), rtol=0, atol=0)


def test_parameters_names_and_modules() -> None:
    net = Classifier()
    counts = {name: p.numel() for name, p in net.named_parameters()}
    assert counts == {
        "conv.weight": 18,
        "conv.bias": 2,
        "fc1.weight": 144,
        "fc1.bias": 8,
        "fc2.weight": 24,
        "fc2.bias": 3,
    }
    assert sum(p.numel() for p in net.parameters() if p.requires_grad) == sum(counts.values())
    assert [type(m).__name__ for m in net.modules()] == [
        "Classifier",
        "Conv2d",
        "MaxPool2d",
        "Dropout",
        "Linear",
        "Linear",
    ]


def test_apply_initializes_every_layer() -> None:
    def initialize(module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.constant_(module.weight, 0.5)
            nn.init.zeros_(module.bias)

    net = Classifier()
    assert net.apply(initialize) is net
    assert_close(net.fc1.weight, np.full((8, 18), 0.5, np.float32))
    assert_close(net.fc2.bias, np.zeros(3, np.float32))
    assert float(net.conv.weight.std()) > 0


def test_train_and_eval_mode() -> None:
    net, x = Classifier(), images()
    chainrule.manual_seed(0)
    assert net.training
    assert bool((net(x) != net(x)).any())
    net.eval()
    assert not net.drop.training
    with chainrule.no_grad():
        assert_close(net(x), net(x), rtol=0, atol=0)
    net.train()
    assert net.drop.training


def test_gradient_descent_by_hand() -> None:
    """zero_grad, backward, and an update without recording, until the best weights are kept."""
    chainrule.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    x = chainrule.linspace(-1, 1, 20).reshape(20, 1)
    y, criterion = x**2, nn.MSELoss()
    best, best_loss, first = None, float("inf"), None
    for _ in range(200):
        loss = criterion(net(x), y)
        net.zero_grad()
        loss.backward()
        if loss.item() < best_loss:
            best, best_loss = copy.deepcopy(net.state_dict()), loss.item()
        first = loss.item() if first is None else first
        with chainrule.no_grad():
            for p in net.parameters():
                p -= 0.2 * p.grad
    net.load_state_dict(best)
    assert criterion(net(x), y).item() == best_loss < first / 5


def test_device_and_half_precision() -> None:
    device = chainrule.device("cpu")
    net = Classifier().to(device)
    assert next(net.parameters()).device == device
    out = net.eval().half()(images().to(device).half())
    assert out.dtype == chainrule.float16
