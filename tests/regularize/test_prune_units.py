"""Units and inputs by their influence on the loss."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from regularize.networks import F64

import chainrule
from chainrule import models, nn
from chainrule.regularize import prune

MSE = nn.MSELoss()


def randn(*shape: int, seed: int = 0) -> Any:
    return chainrule.randn(shape, dtype=F64, generator=chainrule.Generator().manual_seed(seed))


def small() -> tuple[Any, Any]:
    chainrule.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    return net, (randn(20, 3), randn(20, 2, seed=1))


def gated(net: Any, data: Any, gates: np.ndarray) -> float:
    """The loss with a gate on the output of each hidden unit."""
    hidden = net[1](net[0](data[0])) * chainrule.tensor(gates)
    return float(MSE(net[2](hidden), data[1]))


def test_units_of_a_chain() -> None:
    net, _ = small()
    found = prune.units(net, where="*")
    assert [(u.layer, u.index) for u in found] == [
        *[("0", i) for i in range(5)],
        *[("input", i) for i in range(3)],
    ]
    assert found[2].parts == [("0.weight", 0, 2), ("0.bias", 0, 2), ("2.weight", 1, 2)]
    assert found[-1].outgoing == [("0.weight", 1, 2)]


def test_units_of_a_residual_network_are_tied() -> None:
    net = models.ResNet(8, width=4)
    found = prune.units(net, chainrule.randn(2, 3, 8, 8))
    layers = {u.layer for u in found}
    assert layers == {
        "conv1",
        "layer1.0.conv1",
        "layer2.0.conv1",
        "layer2.0.downsample.0",
        "layer3.0.conv1",
        "layer3.0.downsample.0",
    }
    stem = next(u for u in found if u.layer == "conv1")
    assert stem.tied == [("layer1.0.conv2", 0)]
    assert ("bn1.running_var", 0, 0) in stem.parts
    assert {name for name, _, _ in stem.outgoing} == {
        "layer1.0.conv1.weight",
        "layer2.0.conv1.weight",
        "layer2.0.downsample.0.weight",
    }


def test_relevance_is_the_derivative_by_a_gate() -> None:
    net, data = small()
    ones, h = np.ones(5), 1e-6
    found = prune.unit_relevance(net, MSE, data, method="gradient")["0"].numpy()
    for i in range(5):
        e = h * np.eye(5)[i]
        slope = (gated(net, data, ones + e) - gated(net, data, ones - e)) / (2 * h)
        assert found[i] == pytest.approx(-slope, abs=1e-8)


def test_curvature_is_the_quadratic_in_a_gate() -> None:
    net, data = small()
    found = prune.unit_relevance(net, MSE, data)["0"].numpy()
    removed = prune.unit_relevance(net, MSE, data, method="ablation")["0"].numpy()
    for i in range(5):
        gates = np.ones(5)
        gates[i] = 0
        change = gated(net, data, gates) - gated(net, data, np.ones(5))
        assert removed[i] == pytest.approx(change, abs=1e-7)
        assert found[i] == pytest.approx(change, abs=1e-7)  # the loss is quadratic in a gate


def test_relevance_of_recurrent_units_is_that_of_a_gate_on_the_state() -> None:
    net = models.SequenceModel(2, 4, 1, kind="rnn").double()
    data = (randn(6, 5, 2), randn(6, 5, 1, seed=1))
    found = prune.unit_relevance(net, MSE, data, method="gradient")["recurrent_l0"].numpy()
    r = net.recurrent

    def loss(gates: np.ndarray) -> float:
        gate = chainrule.tensor(gates)
        h, outs = chainrule.zeros(6, 4, dtype=F64), []
        for t in range(5):
            pre = data[0][:, t] @ r.weight_ih_l0.T + r.bias_ih_l0 + r.bias_hh_l0
            h = (pre + (gate * h) @ r.weight_hh_l0.T).tanh()
            outs.append(net.readout(gate * h))
        return float(MSE(chainrule.stack(outs, 1), data[1]))

    for i in range(4):
        e = 1e-6 * np.eye(4)[i]
        slope = (loss(np.ones(4) + e) - loss(np.ones(4) - e)) / 2e-6
        assert found[i] == pytest.approx(-slope, abs=1e-8)


def test_skeletonize_removes_the_least_relevant() -> None:
    net, data = small()
    relevance = prune.unit_relevance(net, MSE, data, method="ablation")["0"].numpy()
    step = prune.skeletonize(net, MSE, data, count=1, method="ablation")
    i = int(relevance.argmin())
    assert (net[2].weight.detach().numpy()[:, i] == 0).all()
    assert (net[0].weight.detach().numpy()[i] == 0).all()
    assert net[0].bias[i] == 0
    assert step.measured == pytest.approx(step.predicted, abs=1e-7)
    assert (step.pruned, step.remaining, step.total) == (1, 4, 5)
    again = prune.skeletonize(net, MSE, data, 0.6)
    assert (again.pruned, again.remaining) == (2, 2)
    assert prune.compact(net)[0].out_features == 2
    assert float(prune.unit_relevance(net, MSE, data)["0"][i]) == 0.0


def test_inputs_that_do_nothing_are_found() -> None:
    chainrule.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1)).double()
    net[0].weight.data[:, 2] = 0.001
    x = randn(30, 4)
    step = prune.skeletonize(net, MSE, (x, net(x).detach()), count=1, where="input")
    assert (net[0].weight.detach().numpy()[:, 2] == 0).all()
    assert step.measured < 1e-4
    assert prune.compact(net)[0].index.tolist() == [0, 1, 3]


def test_channels_with_normalization_in_each_layer() -> None:
    chainrule.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 6, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24, 3),
    ).double()
    x = randn(10, 1, 6, 6)
    net(x)
    loss = nn.CrossEntropyLoss()
    data = (x, chainrule.arange(10) % 3)
    for method in ("gradient", "curvature", "ablation"):
        other = copy.deepcopy(net)
        step = prune.skeletonize(other, loss, data, 0.5, method=method, scope="layer")
        assert step.pruned == 5
        compact = prune.compact(other, x[:2])
        assert (compact[0].out_channels, compact[3].out_channels) == (2, 3)
        assert other[1].bias.detach().numpy()[other[1].weight.detach().numpy() == 0].sum() == 0


def test_a_layer_keeps_its_last_unit() -> None:
    net, data = small()
    assert prune.skeletonize(net, MSE, data, count=4).remaining == 1
    with pytest.raises(ValueError, match="cannot remove 1 of 1 units; each.* keeps one at least"):
        prune.skeletonize(net, MSE, data, count=1)
    with pytest.raises(ValueError, match="cannot prune 2 of 5, of which 1 are left"):
        prune.skeletonize(net, MSE, data, count=2)


def test_bad_arguments() -> None:
    net, data = small()
    with pytest.raises(ValueError, match="method must be one of"):
        prune.unit_relevance(net, MSE, data, method="size")
    with pytest.raises(ValueError, match="'conv' matches no layer whose units can be removed"):
        prune.units(net, where="conv")
    with pytest.raises(ValueError, match="no unit 7 of layer '0'.*it has \\[0, 1, 2, 3, 4\\]"):
        prune.remove_units(net, {"0": [7]})
    with pytest.raises(
        ValueError, match="no unit 0 of layer '2'.*the layers are \\['0', 'input'\\]"
    ):
        prune.remove_units(net, {"2": [0]})
    with pytest.raises(ValueError, match="there are no hidden units.*\\['input'\\]"):
        prune.units(nn.Linear(2, 2))
