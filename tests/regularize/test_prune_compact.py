"""Compacting dense, convolutional, residual and recurrent networks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
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


# --- dense ----------------------------------------------------------------------------------------


def test_dense_units_without_outgoing_or_incoming_weights() -> None:
    chainrule.manual_seed(0)
    net = models.MLP(5, [8, 6], 3, activation="sigmoid").double()
    net[0].weight.data[2] = 0  # a constant unit: sigmoid(b) goes into the next bias
    net[2].weight.data[:, 4] = 0  # nobody looks at unit 4
    net[4].weight.data[:, [1, 3]] = 0
    small = check(net, randn(2, 5))
    assert [m.out_features for m in small if isinstance(m, nn.Linear)] == [6, 4, 3]
    assert type(small) is nn.Sequential
    assert size(net) == 8 * 6 + 6 * 9 + 3 * 7  # the model itself is as it was


def test_what_a_dead_unit_alone_looks_at_goes_with_it() -> None:
    net = models.MLP(2, [4, 4, 4], 1, activation="tanh").double()
    net[6].weight.data[:, 1:] = 0  # one unit of the last layer is left,
    net[4].weight.data[0, 1:] = 0  # and looks at one unit of the layer before
    small = check(net, randn(2, 2))
    assert [m.out_features for m in small if isinstance(m, nn.Linear)] == [4, 1, 1, 1]


def test_unused_inputs_are_left_out() -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).double()
    net[0].weight.data[:, [0, 2]] = 0
    small = check(net, randn(2, 4))
    assert isinstance(small[0], prune.SelectInputs)
    assert small[0].index.tolist() == [1, 3]
    assert small[1].in_features == 2
    assert check(net, randn(2, 4), inputs="keep")[0].in_features == 4


def test_no_example_is_needed_for_features_and_sequences() -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    net[2].weight.data[:, 0] = 0
    assert prune.compact(net)[0].out_features == 2
    assert prune.compact(models.SequenceModel(3, 4, 2)).recurrent.hidden_size == 4


def test_a_layer_keeps_a_unit() -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)).double()
    net[2].weight.data[:] = 0
    small = check(net, randn(2, 4))
    assert small[-1].in_features == 1
    assert small(randn(2, 4)).shape == (2, 2)


def test_masks_are_gone_and_modes_and_frozen_parameters_stay() -> None:
    net = models.MLP(6, [20], 2, dropout=0.5)
    net[0].weight.requires_grad_(False)
    prune.magnitude(net, 0.9)
    small = prune.compact(net)
    assert prune.masks(small) == {}
    assert small.training
    layers = [m for m in small if isinstance(m, nn.Linear)]
    assert not layers[0].weight.requires_grad
    assert layers[1].weight.requires_grad
    assert layers[0].out_features < 20
    assert net.training
    assert set(prune.masks(net)) == {"0.weight", "3.weight"}


def test_a_compact_network_can_be_trained_and_saved(tmp_path: Path) -> None:
    net = models.MLP(3, [8], 2)
    prune.remove_units(net, {"0": [0, 5], "input": [1]})
    small = prune.compact(net)
    loss = small(chainrule.ones(4, 3)).sum()
    loss.backward()
    assert small[1].weight.grad.shape == (6, 2)
    chainrule.save(small, tmp_path / "small")
    back = chainrule.load(tmp_path / "small")
    x = chainrule.randn(2, 3)
    np.testing.assert_array_equal(back(x).detach(), small(x).detach())


# --- convolutions and normalization ---------------------------------------------------------------


def test_convolutions_with_batch_normalization() -> None:
    chainrule.manual_seed(1)
    net = unsettle(
        nn.Sequential(
            nn.Conv2d(2, 6, 3, padding=1, bias=False),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.Conv2d(6, 5, 3, padding=1),
            nn.BatchNorm2d(5),
            nn.LeakyReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(5 * 9, 4),
            nn.BatchNorm1d(4),
            nn.Tanh(),
            nn.Linear(4, 2),
        )
    )
    prune.remove_units(net, {"0": [1, 4], "3": [0], "8": [2]}, randn(2, 2, 6, 6))
    small = check(net, randn(2, 2, 6, 6))
    assert (small[0].out_channels, small[1].num_features, small[3].in_channels) == (4, 4, 4)
    assert (small[3].out_channels, small[8].in_features, small[8].out_features) == (4, 36, 3)
    assert small[1].running_mean.shape == (4,)


def test_a_constant_channel_goes_into_the_bias_unless_the_border_is_padded() -> None:
    def build(**settings: Any) -> Any:
        chainrule.manual_seed(2)
        net = unsettle(
            nn.Sequential(
                nn.Conv2d(1, 3, 3),
                nn.BatchNorm2d(3),
                nn.Sigmoid(),
                nn.AvgPool2d(2),
                nn.Conv2d(3, 2, 3, bias=False, **settings),
            )
        )
        net[1].weight.data[1] = 0  # the channel is sigmoid(bias) everywhere
        return net

    x = randn(2, 1, 12, 12)
    small = check(build(), x)
    assert small[0].out_channels == 2
    assert small[4].bias is not None
    assert check(build(padding=1, padding_mode="reflect"), x)[0].out_channels == 2
    assert check(build(padding=1), x)[0].out_channels == 3  # at the border it matters


@pytest.mark.parametrize(
    ("layers", "shape"),
    [
        (lambda: [nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Conv1d(4, 3, 3, stride=2)], (2, 2, 9)),
        (lambda: [nn.Conv3d(1, 4, 2), nn.PReLU(4), nn.Conv3d(4, 2, 2)], (2, 1, 4, 4, 4)),
        (lambda: [nn.ConvTranspose2d(2, 4, 3), nn.ELU(), nn.Conv2d(4, 2, 1)], (2, 2, 4, 4)),
        (lambda: [nn.Conv2d(2, 4, 3), nn.ReLU(), nn.ConvTranspose2d(4, 2, 2)], (2, 2, 4, 4)),
        (
            lambda: [
                nn.Conv2d(1, 4, 3, flip=True),
                nn.InstanceNorm2d(4, affine=True),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
                nn.Linear(4, 2),
            ],
            (2, 1, 6, 6),
        ),
    ],
)
def test_other_convolutions(layers: Callable[[], list[Any]], shape: tuple[int, ...]) -> None:
    net = unsettle(nn.Sequential(*layers()))
    prune.remove_units(net, {"0": [0, 2]}, randn(*shape))
    small = check(net, randn(*shape))
    assert small[0].out_channels == 2


def test_models_with_a_forward_of_their_own() -> None:
    net = unsettle(models.LeNet())
    prune.remove_units(
        net, {"c1": [3], "c3": [1, 5, 7], "c5": list(range(60)), "f6": [0]}, randn(2, 1, 32, 32)
    )
    small = check(net, randn(2, 1, 32, 32))
    sizes = (small.c1.out_channels, small.c3.out_channels, small.c5.out_channels)
    assert sizes == (5, 13, 60)
    assert (small.f6.in_features, small.f6.out_features, small.output.in_features) == (60, 83, 83)


# --- residual sums --------------------------------------------------------------------------------


def test_residual_networks() -> None:
    chainrule.manual_seed(3)
    net = unsettle(models.ResNet(8, width=4))
    x = randn(2, 3, 8, 8)
    # Inside a block, and a channel of the sums: the stem's, which two convolutions add to.
    prune.remove_units(net, {"layer2.0.conv1": [0, 3], "conv1": [1], "layer3.0.conv2": [5]}, x)
    small = check(net, x)
    assert small.layer2[0].conv1.out_channels == 6
    assert (small.conv1.out_channels, small.layer1[0].conv2.out_channels) == (3, 3)
    assert small.layer2[0].downsample[0].in_channels == 3
    assert (small.fc.in_features, small.layer3[0].downsample[0].out_channels) == (15, 15)


def test_a_channel_that_one_branch_needs_stays() -> None:
    net = nn.Sequential(
        nn.Linear(3, 4),
        nn.Residual(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 4))),
        nn.Linear(4, 2),
    ).double()
    net[1].module[2].weight.data[1] = 0
    net[1].module[2].bias.data[1] = 0  # nothing is added to unit 1, but the link passes it
    net[1].module[0].weight.data[[0, 2]] = 0
    small = check(net, randn(2, 3))
    assert small[0].out_features == 4
    assert small[1].module[0].out_features == 3
    net[0].weight.data[1] = 0  # now the sum is a constant,
    assert check(net, randn(2, 3))[0].out_features == 3  # which goes into two biases


@pytest.mark.parametrize(
    "net",
    [
        nn.Sequential(nn.Linear(3, 4), nn.SkipConcat(nn.Linear(4, 3)), nn.Linear(7, 2)),
        nn.Sequential(nn.Linear(3, 4), nn.Highway(4), nn.Linear(4, 2)),
    ],
    ids=["concatenation", "highway"],
)
def test_other_links(net: Any) -> None:
    net = net.double()
    found = prune.units(net, randn(2, 3))
    layer = found[0].layer
    prune.remove_units(net, {layer: [1, 2]}, randn(2, 3))
    small = check(net, randn(2, 3))
    assert small[0].out_features == 2


# --- recurrent networks ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("settings", [{}, {"num_layers": 2}, {"each_step": False}])
def test_recurrent_units(kind: str, settings: dict[str, Any]) -> None:
    net = models.SequenceModel(3, 6, 2, kind=kind, **settings).double().eval()
    layers = settings.get("num_layers", 1)
    gone = {f"recurrent_l{k}": [1, 4, 5][: 2 + k] for k in range(layers)}
    prune.remove_units(net, gone | {"input": [2]}, randn(2, 5, 3))
    small = check(net, randn(2, 5, 3))
    assert small[0].index.tolist() == [0, 1]
    assert (small[1].recurrent.input_size, small[1].recurrent.hidden_size) == (2, 4)
    assert small[1].readout.in_features == 4
    # sequences of other lengths, too
    longer = randn(4, 9, 3)
    np.testing.assert_allclose(small(longer).detach(), net(longer).detach(), atol=1e-12)


def test_both_directions_keep_as_many_units() -> None:
    net = models.SequenceModel(3, 5, 2, kind="lstm", bidirectional=True).double().eval()
    prune.remove_units(net, {"recurrent_l0": [0, 1], "recurrent_l0_reverse": [3]}, randn(2, 4, 3))
    small = check(net, randn(2, 4, 3))
    assert small.recurrent.hidden_size == 4
    assert small.readout.in_features == 8


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_units_that_only_feed_themselves_go(kind: str) -> None:
    net = models.SequenceModel(2, 5, 2, kind=kind).double()
    hh = net.recurrent.weight_hh_l0.data
    for gate in range(hh.shape[0] // 5):
        hh[gate * 5 : gate * 5 + 3, 3:] = 0  # units 3 and 4 lead to themselves alone
    net.readout.weight.data[:, 3:] = 0
    assert check(net, randn(2, 6, 2)).recurrent.hidden_size == 3


def test_a_unit_of_a_simple_network_that_rests_at_a_number() -> None:
    net = models.SequenceModel(2, 4, 2, kind="rnn").double()
    net.recurrent.weight_ih_l0.data[1] = 0
    net.recurrent.weight_hh_l0.data[1] = 0
    net.recurrent.weight_hh_l0.data[:, 1] = 0
    assert check(net, randn(2, 6, 2)).recurrent.hidden_size == 3  # tanh(b) in the readout's bias
    net.recurrent.weight_hh_l0.data[0, 1] = 1.0  # before the first step it is 0, not tanh(b)
    assert check(net, randn(2, 6, 2)).recurrent.hidden_size == 4


class LastState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.gru = nn.GRU(4, 5, batch_first=True)
        self.norm = nn.BatchNorm1d(5)
        self.head = nn.Linear(5, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.norm(self.gru(self.embedding(x))[1][-1]))


def test_embeddings_and_last_states() -> None:
    net = unsettle(LastState())
    x = chainrule.tensor([[1, 2, 3], [4, 5, 6]])
    prune.remove_units(net, {"embedding": [0], "gru_l0": [2, 3]}, x)
    small = prune.compact(net, x)
    assert (small.embedding.embedding_dim, small.gru.hidden_size) == (3, 3)
    np.testing.assert_allclose(small(x).detach(), net(x).detach(), atol=1e-12)
