"""Compacting any pruned network, and what is not followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from regularize.networks import F64
from regularize.compacting import check, unsettle

import chainrule
from chainrule import models, nn
from chainrule.regularize import prune


def randn(*shape: int, seed: int = 0) -> Any:
    return chainrule.randn(shape, dtype=F64, generator=chainrule.Generator().manual_seed(seed))


def size(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def _flat(out: Any) -> list[Any]:
    return [t for o in out for t in _flat(o)] if isinstance(out, tuple) else [out]


# --- any pruned network ---------------------------------------------------------------------------


ARCHITECTURES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "mlp": (lambda: models.MLP(6, [12, 10], 3, norm="batch"), (2, 6)),
    "sigmoid": (lambda: models.MLP(6, [12, 10], 3, activation="sigmoid"), (2, 6)),
    "convnet": (lambda: models.MnistConvNet(channels=(4, 5), width=12), (2, 1, 28, 28)),
    "cifar": (models.CifarNet, (2, 3, 32, 32)),
    "resnet": (lambda: models.ResNet(8, width=4), (2, 3, 8, 8)),
    "lstm": (lambda: models.SequenceModel(4, 8, 2, num_layers=2, bidirectional=True), (2, 3, 4)),
}


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("seed", [0, 1])
def test_random_masks_of_any_sparsity(name: str, seed: int) -> None:
    make, shape = ARCHITECTURES[name]
    chainrule.manual_seed(seed)
    net = unsettle(make())
    prune.structured(net, 0.5)
    prune.magnitude(net, 0.9 + 0.05 * seed, where="*")
    small = check(net, randn(*shape))
    assert size(small) < size(net)


class Gate(nn.Module):
    """Channels weighed by what a small network makes of their means."""

    def __init__(self, channels: int):
        super().__init__()
        self.squeeze, self.excite = nn.Linear(channels, 3), nn.Linear(3, channels)

    def forward(self, x: Any) -> Any:
        weight = self.excite(self.squeeze(x.mean((2, 3))).relu()).sigmoid()
        return x * weight[:, :, None, None]


class Scale(nn.Module):
    """A parameter and a buffer for each channel."""

    def __init__(self, channels: int):
        super().__init__()
        self.scale = nn.Parameter(chainrule.randn(channels, 1, 1))
        self.shift = nn.Buffer(chainrule.randn(channels, 1, 1))

    def forward(self, x: Any) -> Any:
        return x * self.scale + self.shift


class Mean(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.mean((2, 3))


class Cells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.readout = nn.LSTMCell(3, 5), nn.Linear(5, 2)

    def forward(self, x: Any) -> Any:
        state = None
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
        return self.readout(state[0])


def chain(*layers: Any) -> Callable[[], Any]:
    return lambda: nn.Sequential(*[layer() for layer in layers])


def conv(*args: Any, **settings: Any) -> Callable[[], Any]:
    return lambda: nn.Conv2d(*args, **settings)


ODD: dict[str, tuple[Callable[[], Any], tuple[int, ...], tuple[int, ...]]] = {
    "padding": (
        chain(
            conv(1, 3, 3, padding=1),
            nn.Sigmoid,
            conv(3, 4, 3, padding=1),
            nn.ReLU,
            Mean,
            lambda: nn.Linear(4, 2),
        ),
        (2, 1, 6, 6),
        (3, 1, 9, 7),
    ),
    "padded average": (
        chain(
            conv(1, 3, 3),
            nn.Sigmoid,
            lambda: nn.AvgPool2d(3, 2, 1),
            conv(3, 4, 2),
            Mean,
            lambda: nn.Linear(4, 2),
        ),
        (2, 1, 8, 8),
        (3, 1, 9, 7),
    ),
    "gate": (
        chain(
            conv(1, 4, 3), nn.ReLU, lambda: Gate(4), conv(4, 3, 3), Mean, lambda: nn.Linear(3, 2)
        ),
        (2, 1, 7, 7),
        (3, 1, 9, 9),
    ),
    "scale": (
        chain(conv(1, 4, 3), lambda: Scale(4), conv(4, 3, 3), Mean),
        (2, 1, 7, 7),
        (3, 1, 9, 9),
    ),
    "local norm": (
        chain(conv(1, 4, 3), lambda: nn.LocalResponseNorm(3), conv(4, 2, 3)),
        (2, 1, 7, 7),
        (3, 1, 9, 9),
    ),
    "instance norm": (
        chain(conv(1, 4, 3), lambda: nn.InstanceNorm2d(4), conv(4, 2, 3)),
        (2, 1, 7, 7),
        (3, 1, 9, 9),
    ),
    "shuffle": (
        chain(conv(1, 8, 3), lambda: nn.PixelShuffle(2), conv(2, 2, 3)),
        (2, 1, 7, 7),
        (3, 1, 9, 9),
    ),
    "over time": (
        chain(
            lambda: nn.Conv1d(2, 4, 3),
            nn.Tanh,
            lambda: nn.Linear(6, 5),
            nn.ReLU,
            lambda: nn.Conv1d(4, 2, 2),
        ),
        (2, 2, 8),
        (3, 2, 8),
    ),
    "unflatten": (
        chain(
            lambda: nn.Linear(4, 12),
            nn.ReLU,
            lambda: nn.Unflatten(1, (3, 2, 2)),
            conv(3, 2, 2),
            nn.Flatten,
        ),
        (2, 4),
        (5, 4),
    ),
    "maxout": (
        chain(lambda: nn.Linear(4, 6), lambda: nn.Maxout(6, 4, 2), lambda: nn.Linear(4, 2)),
        (2, 4),
        (5, 4),
    ),
    "weight norm": (
        chain(
            lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 6)),
            nn.ReLU,
            lambda: nn.Linear(6, 5),
            nn.Tanh,
            lambda: nn.Linear(5, 2),
        ),
        (2, 4),
        (5, 4),
    ),
    "transformer": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        (2, 5, 8),
        (3, 4, 8),
    ),
    "cells": (Cells, (2, 4, 3), (3, 6, 3)),
    "deep transitions": (lambda: nn.DeepRNN(3, 4, 2, batch_first=True), (2, 4, 3), (3, 7, 3)),
    "peepholes": (lambda: nn.PeepholeLSTM(3, 4, batch_first=True), (2, 4, 3), (3, 7, 3)),
    "three layers": (
        lambda: models.SequenceModel(3, 5, 2, kind="gru", num_layers=3),
        (2, 4, 3),
        (3, 7, 3),
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_networks_with_zeros_give_the_same_on_inputs_of_another_size(name: str) -> None:
    make, shape, other = ODD[name]
    for seed in range(3):
        chainrule.manual_seed(seed)
        net = unsettle(make())
        zero = (0.25, 0.35, 0.45)[seed]
        for key, p in net.named_parameters():
            if "parametrizations" not in key:
                for dim in range(min(2, p.ndim)):
                    keep = (chainrule.rand(p.shape[dim]) > zero).double()
                    p.data = (p.data.movedim(dim, -1) * keep).movedim(-1, dim)
        small = prune.compact(net, randn(*shape), strict=False)
        x = randn(*other, seed=5)
        a, b = _flat(net(x))[0].detach(), _flat(small(x))[0].detach()
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-9, atol=1e-11)
        assert size(small) <= size(net) + 4  # where a bias had to be made


# --- what it does not follow ----------------------------------------------------------------------


class Sorted(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.sort(-1).values


class Fixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x).tanh().reshape(-1, 4))


def test_an_operation_that_mixes_units_is_named() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Sequential(Sorted()), nn.Linear(4, 2))
    assert prune.compact(net)[0].out_features == 4  # nothing to do, nothing to complain about
    prune.structured(net, count=1, where="0.weight")
    with pytest.raises(RuntimeError, match="unit . of '0' does nothing.*in '2.0' \\(Sorted\\)"):
        prune.compact(net)
    assert prune.compact(net, strict=False)[0].out_features == 4
    layer_norm = models.MLP(3, [4], 2, norm="layer")
    prune.structured(layer_norm, count=1, where="0.weight")
    with pytest.raises(RuntimeError, match="because of .*'1' \\(LayerNorm\\)"):
        prune.compact(layer_norm)


def test_a_size_written_into_forward_is_told() -> None:
    net = Fixed().double()
    prune.remove_units(net, {"first": [0]})
    with pytest.raises(RuntimeError, match="Fixed does not run with fewer units"):
        prune.compact(net)


def test_a_part_of_the_units_chosen_by_place_keeps_all() -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 4), nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x)[:, :2])

    net = Half().double()
    net.second.weight.data[:, 0] = 0
    assert check(net, randn(2, 3)).first.out_features == 4


def test_grouped_channels_stay() -> None:
    net = unsettle(
        nn.Sequential(nn.Conv2d(2, 4, 1), nn.Conv2d(4, 4, 3, groups=4), nn.Conv2d(4, 2, 1))
    )
    net[2].weight.data[:, 1] = 0
    assert check(net, randn(2, 2, 5, 5))[0].out_channels == 4


def test_shared_layers_stay_shared() -> None:
    chainrule.manual_seed(0)
    shared = nn.Linear(4, 4).double()
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), shared, nn.Tanh(), shared, nn.Linear(4, 2))
    net = net.double()
    prune.remove_units(net, {"0": [1]}, randn(2, 3))
    small = check(net, randn(2, 3))
    assert small[2] is small[4]
    assert (small[2].in_features, small[2].out_features) == (3, 3)
    tied = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3), nn.Linear(3, 2)).double()
    tied[2].weight = tied[0].weight
    tied[3].weight.data[:, 0] = 0
    small = check(tied, randn(2, 3))
    assert small[0].weight is small[2].weight


def test_bad_arguments() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    with pytest.raises(ValueError, match="size of an input cannot be seen.*pass example_input"):
        prune.compact(net)
    with pytest.raises(ValueError, match="inputs must be 'select' or 'keep', got 'drop'"):
        prune.compact(net, chainrule.ones(1, 1, 4, 4), inputs="drop")
    with pytest.raises(ValueError, match="repeats must be positive"):
        prune.speedup(net, net, chainrule.ones(1, 1, 4, 4), repeats=0)


def test_speedup_measures_both() -> None:
    net = nn.Sequential(
        nn.Linear(8, 600), nn.ReLU(), nn.Linear(600, 600), nn.ReLU(), nn.Linear(600, 1)
    )
    prune.remove_units(net, {"0": range(500), "2": range(500)})
    small = prune.compact(net)
    measured = prune.speedup(net, small, chainrule.randn(256, 8), repeats=5)
    assert measured.factor > 1.5
    assert measured.parameters == (size(net), size(small))
    assert measured.nonzero[0] == measured.nonzero[1]
    assert measured.difference < 1e-5
    assert "times faster" in str(measured)
