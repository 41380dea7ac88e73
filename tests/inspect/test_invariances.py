"""The invariances of normalizations, cell by cell, and units that stay alike."""

from __future__ import annotations

from typing import Any

import pytest

import chainrule
from chainrule import inspect, models, nn
from chainrule.inspect.theory.invariances import TRANSFORMATIONS
from chainrule.nn.utils.parametrizations import weight_norm

# Table 10.1 of document 004: transformations as columns, invariant (1) or not (0).
PRINTED = {
    "batch norm": (1, 0, 1, 1, 1, 0),
    "weight norm": (1, 0, 1, 0, 0, 0),
    "layer norm": (1, 1, 0, 1, 0, 1),
    "self norm": (0, 0, 0, 0, 0, 0),
}


def networks(dtype: Any) -> dict[str, nn.Module]:
    def layer() -> nn.Module:
        return nn.Linear(6, 5, bias=False, dtype=dtype)

    return {
        "batch norm": nn.Sequential(layer(), nn.BatchNorm1d(5, dtype=dtype), nn.Tanh()),
        "weight norm": nn.Sequential(weight_norm(layer()), nn.ReLU()),
        "layer norm": nn.Sequential(layer(), nn.LayerNorm(5, dtype=dtype), nn.Tanh()),
        "self norm": nn.Sequential(layer(), nn.SELU()),
    }


@pytest.mark.parametrize("dtype", [chainrule.float32, chainrule.float64])
def test_all_cells_of_the_table(dtype: Any) -> None:
    chainrule.manual_seed(0)
    x = chainrule.randn(16, 6, dtype=dtype)
    table = inspect.invariance_table(networks(dtype), x)
    right = 0
    for name, row in PRINTED.items():
        assert list(table[name]) == list(TRANSFORMATIONS)
        for transformation, expected in zip(TRANSFORMATIONS, row, strict=True):
            deviation = table.deviations[name][transformation]
            assert table[name][transformation] == bool(expected), (name, transformation, deviation)
            assert deviation < 1e-3 if expected else deviation > 0.1  # no cell is a close call
            right += 1
    assert right == 24
    text = str(table)
    assert text.count("invariant") == 10
    assert "single training case re-scaling" in text


def test_deep_networks_convolutions_and_dropout() -> None:
    chainrule.manual_seed(0)
    x = chainrule.randn(12, 6)
    deep = models.MLP(6, [8, 8], 2, bias=False, norm="batch", dropout=0.3)
    found = inspect.invariances(deep, x)
    assert found["weight matrix re-scaling"]
    assert found["data set re-centering"]
    assert not found["weight matrix re-centering"]
    images = chainrule.randn(8, 2, 5, 5)
    conv = nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3))
    found = inspect.invariances(conv, images)
    assert found["weight vector re-scaling"]
    assert found["data set re-scaling"]
    assert not inspect.invariances(nn.Conv2d(2, 3, 3), images)["data set re-scaling"]


def test_the_network_is_left_alone() -> None:
    chainrule.manual_seed(0)
    model = networks(chainrule.float32)["batch norm"].eval()
    state = {k: v.clone() for k, v in model.state_dict().items()}
    inspect.invariances(model, chainrule.randn(16, 6))
    assert not model.training
    assert all(bool((v == state[k]).all()) for k, v in model.state_dict().items())


def test_wrong_calls_of_the_table() -> None:
    x = chainrule.randn(4, 6)
    with pytest.raises(ValueError, match=r"no weights named 'w'; there are \['0.weight'\]"):
        inspect.invariances(nn.Sequential(nn.Linear(6, 2)), x, weight="w")
    with pytest.raises(ValueError, match="no weights of two or more dimensions"):
        inspect.invariances(nn.BatchNorm1d(6), x)
    with pytest.raises(ValueError, match="scale must be positive and not 1"):
        inspect.invariances(nn.Linear(6, 2), x, scale=1.0)


def test_units_with_equal_weights_get_equal_gradients() -> None:
    """Symmetry is broken by different weights, or by the next layer."""
    chainrule.manual_seed(0)
    x, y = chainrule.randn(7, 2), chainrule.randn(7, 1)
    loss = nn.MSELoss()
    net = models.MLP(2, [4], 1, "tanh")
    assert inspect.symmetry(net, x, y, loss) == {}
    for p in net.parameters():
        nn.init.constant_(p, 0.3)
    assert inspect.symmetry(net, x, y, loss) == {"0": [[0, 1, 2, 3]]}
    loss(net(x), y).backward()
    rows = net[0].weight.grad
    assert bool((rows == rows[0]).all())
    net[2].weight.detach()[0, 3] = 1.0  # the next layer tells the last one apart
    assert nn.init.symmetric_units(net) == {"0": [[0, 1, 2, 3]]}
    assert inspect.symmetry(net, x, y, loss) == {"0": [[0, 1, 2]]}


@pytest.mark.parametrize("groups", [1, 2])
def test_units_of_transposed_convolutions(groups: int) -> None:
    """Their weights have the outputs along the second axis, within groups."""
    chainrule.manual_seed(0)
    layer = nn.ConvTranspose2d(4, 6, 3, stride=2, groups=groups)
    net = nn.Sequential(layer, nn.Tanh(), nn.Conv2d(6, 1, 2))
    x = chainrule.randn(5, 4, 3, 3)
    y = chainrule.randn(*net(x).shape)
    assert inspect.symmetry(net, x, y, nn.MSELoss()) == {}
    first, second = (0, 4) if groups == 1 else (0, 2)
    with chainrule.no_grad():
        layer.weight[: 4 // groups, second] = layer.weight[: 4 // groups, first]
        layer.bias[second] = layer.bias[first]
        net[2].weight[0, second] = net[2].weight[0, first]
    assert nn.init.symmetric_units(net) == {"0": [[first, second]]}
    assert inspect.symmetry(net, x, y, nn.MSELoss()) == {"0": [[first, second]]}
    with chainrule.no_grad():
        net[2].weight[0, second] += 1
    assert inspect.symmetry(net, x, y, nn.MSELoss()) == {}


def test_units_of_other_groups_see_other_inputs() -> None:
    for layer in (nn.Conv1d(4, 4, 3, groups=2), nn.ConvTranspose1d(4, 4, 3, groups=2)):
        for p in layer.parameters():
            nn.init.constant_(p, 0.5)
        assert nn.init.symmetric_units(layer) == {"": [[0, 1], [2, 3]]}


@pytest.mark.parametrize("groups", [1, 2])
def test_invariances_of_transposed_convolutions(groups: int) -> None:
    """The batch norm behind them takes away the scale of each unit, as for convolutions."""
    chainrule.manual_seed(0)
    layer = nn.ConvTranspose2d(4, 6, 3, bias=False, groups=groups)
    found = inspect.invariances(
        nn.Sequential(layer, nn.BatchNorm2d(6)), chainrule.randn(8, 4, 5, 5)
    )
    assert found["weight matrix re-scaling"]
    assert found["weight vector re-scaling"]
    assert found["data set re-scaling"]
    assert not found["weight matrix re-centering"]
    assert not inspect.invariances(layer, chainrule.randn(8, 4, 5, 5))["weight vector re-scaling"]
