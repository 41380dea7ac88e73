"""Networks with other weights and the same function (M44)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import inspect, models, nn
from chainrule.func import jacrev


def network(activation: Any = "tanh", hidden: Any = (3,)) -> nn.Sequential:
    chainrule.manual_seed(1)
    return models.MLP(2, list(hidden), 2, activation).double()


def weights(model: nn.Module) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])


def test_all_forty_eight_equal_networks_of_three_tanh_units() -> None:
    """2^n n! weights for one function: w2 tanh(w1 x) = (-w2) tanh(-w1 x), and any order."""
    net = network()
    x = chainrule.randn(7, 2, dtype=chainrule.float64)
    expected, slope = net(x).detach().numpy(), jacrev(net)(x[0]).detach().numpy()
    seen = set()
    for order in itertools.permutations(range(3)):
        for count in range(4):
            for units in itertools.combinations(range(3), count):
                other = inspect.flipped_units(inspect.permuted_units(net, 0, order), 0, units)
                np.testing.assert_allclose(other(x).detach().numpy(), expected, rtol=1e-12)
                found = jacrev(other)(x[0]).detach().numpy()
                np.testing.assert_allclose(found, slope, rtol=1e-12)
                seen.add(tuple(weights(other).round(12)))
    assert len(seen) == 48


def test_the_formulas_and_the_model_itself() -> None:
    net = network()
    before = weights(net)
    other = inspect.permuted_units(net, 0, [2, 0, 1])
    assert other[0].weight.tolist() == net[0].weight[[2, 0, 1]].tolist()
    assert other[0].bias.tolist() == net[0].bias[[2, 0, 1]].tolist()
    assert other[2].weight.tolist() == net[2].weight[:, [2, 0, 1]].tolist()
    other = inspect.flipped_units(net, 0)
    assert other[0].weight.tolist() == (-net[0].weight).tolist()
    assert other[2].weight.tolist() == (-net[2].weight).tolist()
    assert other[2].bias.tolist() == net[2].bias.tolist()
    assert weights(net).tolist() == before.tolist()


def test_deep_networks_and_other_activations() -> None:
    x = chainrule.randn(7, 2, dtype=chainrule.float64)
    for activation in ("relu", "gelu", lambda: nn.PReLU(4), "linear", "softsign"):
        made = activation() if callable(activation) else activation
        net = network([made, "tanh"], (4, 5)).eval()
        if isinstance(made, nn.PReLU):
            with chainrule.no_grad():
                made.weight.copy_(chainrule.tensor([0.1, 0.2, 0.3, 0.4]))
        for layer, order in ((0, [3, 1, 0, 2]), (2, [4, 3, 2, 1, 0])):
            other = inspect.permuted_units(net, layer, order)
            np.testing.assert_allclose(other(x).detach(), net(x).detach(), rtol=1e-12)
            assert not np.array_equal(weights(other), weights(net))
    dropped = models.MLP(2, [4], 1, "tanh", dropout=0.5).double().eval()
    other = inspect.flipped_units(dropped, 0, [0, 2])
    np.testing.assert_allclose(other(x).detach(), dropped(x).detach(), rtol=1e-12)
    bare = nn.Sequential(nn.Linear(2, 3, bias=False), nn.Hardtanh(), nn.Linear(3, 1)).double()
    np.testing.assert_allclose(inspect.flipped_units(bare, 0)(x).detach(), bare(x).detach())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inspect.flipped_units(network("relu"), 0), "ReLU is not odd"),
        (lambda: inspect.flipped_units(network("sigmoid"), 0), "Sigmoid is not odd"),
        (lambda: inspect.flipped_units(network(), 0, [3]), "numbers from 0 to 2, got \\[3\\]"),
        (lambda: inspect.flipped_units(network(), 0, [1, 1]), "different numbers"),
        (lambda: inspect.permuted_units(network(), 0, [0, 1]), "each of the 3 units once"),
        (lambda: inspect.permuted_units(network(), 1, [0]), "dense layer .*place 1, got Tanh"),
        (lambda: inspect.permuted_units(network(), 2, [0, 1]), "its units are outputs"),
        (lambda: inspect.permuted_units(network(), 9, [0]), "the place of a layer in it"),
        (
            lambda: inspect.permuted_units(models.MLP(2, [3], 1, norm="batch"), 0, [0, 1, 2]),
            "stands BatchNorm1d, which is not known",
        ),
        (
            lambda: inspect.permuted_units(models.MLP(2, [3], 1, "softmax"), 0, [0, 1, 2]),
            "stands Softmax",
        ),
    ],
)
def test_what_would_change_the_function_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
