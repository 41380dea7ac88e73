"""Masks: weights that stay at zero, by size, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import nn, optim, train
from chainrule.regularize import L2, FlatMinimum, prune
from regularize.networks import weights


def dense() -> nn.Module:
    chainrule.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).double()


def zeros_of(model: nn.Module) -> dict[str, np.ndarray]:
    return {name: ~mask.numpy() for name, mask in prune.masks(model).items()}


def train_a_little(model: nn.Module, optimizer: Any, shape: tuple[int, ...] = (16, 4)) -> None:
    generator = chainrule.Generator().manual_seed(1)
    dtype = next(model.parameters()).dtype
    for _ in range(5):
        x = chainrule.randn(shape, dtype=dtype, generator=generator)
        out = model(x)
        out = out[0] if isinstance(out, tuple) else out
        optimizer.zero_grad()
        ((out - 1) ** 2).mean().backward()
        optimizer.step()


def test_global_magnitude_prunes_the_smallest_of_all() -> None:
    net = dense()
    before = weights(net)
    step = prune.magnitude(net, 0.5)
    after = weights(net)
    smallest = np.argsort(np.abs(before))[:18]
    expected = before.copy()
    expected[smallest] = 0
    np.testing.assert_array_equal(after, expected)
    assert (step.pruned, step.remaining, step.total, step.sparsity) == (18, 18, 36, 0.5)
    assert prune.sparsity(net) == 0.5
    assert not prune.masks(net).keys() & {"0.bias", "2.bias"}


def test_magnitude_of_each_layer() -> None:
    net = dense()
    prune.magnitude(net, 0.5, scope="layer")
    assert {n: int(z.sum()) for n, z in zeros_of(net).items()} == {"0.weight": 12, "2.weight": 6}


def test_a_target_counts_what_is_pruned_already() -> None:
    net = dense()
    prune.magnitude(net, 0.25)
    first = zeros_of(net)
    step = prune.magnitude(net, 0.75)
    assert (step.pruned, step.remaining) == (18, 9)
    assert all((zeros_of(net)[n] >= z).all() for n, z in first.items())
    assert prune.magnitude(net, count=3).remaining == 6


def test_where_chooses_and_biases_can_be_pruned() -> None:
    net = dense()
    prune.magnitude(net, 0.5, where=["0.*"])
    assert set(prune.masks(net)) == {"0.weight", "0.bias"}


def test_structured_prunes_rows_with_their_biases() -> None:
    net = dense()
    norms = np.linalg.norm(net[0].weight.detach().numpy(), axis=1)
    step = prune.structured(net, count=2, where="0.weight")
    gone = np.argsort(norms)[:2]
    rows = np.abs(net[0].weight.detach().numpy()).sum(1)
    assert set(np.flatnonzero(rows == 0)) == set(gone)
    assert set(np.flatnonzero(net[0].bias.detach().numpy() == 0)) == set(gone)
    assert (step.pruned, step.remaining, step.total) == (2, 4, 6)


def test_structured_along_inputs_and_over_all_layers() -> None:
    net = dense()
    prune.structured(net, count=1, dim=1, p=1, where="2.weight")
    assert (np.abs(net[2].weight.detach().numpy()).sum(0) == 0).sum() == 1
    assert "2.bias" not in prune.masks(net)
    step = prune.structured(dense(), 0.5, scope="global")
    assert (step.pruned, step.total) == (4, 8)


OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
    "adam": lambda p: optim.Adam(p, lr=0.1, weight_decay=0.1),
    "rprop": lambda p: optim.Rprop(p, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_pruned_weights_stay_zero_under_an_optimizer_made_before(name: str) -> None:
    net = dense()
    optimizer = OPTIMIZERS[name](net.parameters())
    train_a_little(net, optimizer)
    prune.magnitude(net, 0.6)
    zeros, kept = zeros_of(net), net[0].weight.detach().numpy().copy()
    train_a_little(net, optimizer)
    for n, z in zeros.items():
        module, _, attribute = n.rpartition(".")
        assert (getattr(net.get_submodule(module), attribute).detach().numpy()[z] == 0).all()
    assert (net[0].weight.detach().numpy() != kept)[~zeros["0.weight"]].all()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: nn.Conv2d(1, 4, 3), (2, 1, 6, 6)),
        (lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True), (5, 2, 3)),
        (lambda: nn.GRU(3, 4), (5, 2, 3)),
        (lambda: nn.ConvTranspose1d(2, 3, 3), (2, 2, 6)),
    ],
)
@pytest.mark.parametrize("dtype", [chainrule.float32, chainrule.float64])
def test_masks_on_any_layer(layer: Any, shape: tuple[int, ...], dtype: Any) -> None:
    net = layer().to(dtype)
    prune.magnitude(net, 0.5)
    train_a_little(net, optim.Adam(net.parameters(), lr=0.1), shape)
    assert prune.sparsity(net) == 0.5
    assert next(net.parameters()).dtype == dtype


def test_the_trainer_keeps_masks_and_penalties_see_the_weights() -> None:
    net = dense().float()
    trainer = train.Trainer(net, "mse", "adam", penalties=[L2(1e-3)], progress=False)
    x = chainrule.randn(32, 4)
    trainer.fit((x, x[:, :2]), epochs=1)
    prune.magnitude(net, 0.5)
    history = trainer.fit((x, x[:, :2]), epochs=3)
    assert prune.sparsity(net) == 0.5
    assert history[-1]["l2"] > 0
    squares = sum((net[i].weight.detach().numpy() ** 2).sum() for i in (0, 2))
    assert float(L2(1.0, where="*.weight")(net)) == pytest.approx(0.5 * squares, rel=1e-4)


def test_a_penalty_by_functional_calls_sees_pruned_weights() -> None:
    net, x = dense(), chainrule.randn(3, 4, dtype=chainrule.float64)
    prune.magnitude(net, 0.5)
    by_name = float(FlatMinimum(1.0, where="*.weight")(net, x))
    assert by_name == float(FlatMinimum(1.0)(net, x))


def test_state_dict_holds_the_masks() -> None:
    net = dense()
    prune.magnitude(net, 0.5)
    other = prune.set_masks(dense(), prune.masks(net))
    other.load_state_dict(net.state_dict())
    x = chainrule.randn(3, 4, dtype=chainrule.float64)
    np.testing.assert_array_equal(other(x).detach(), net(x).detach())
    assert "0.parametrizations.weight.0.mask" in net.state_dict()


def test_remove_leaves_ordinary_parameters_with_zeros() -> None:
    net = dense()
    names = [n for n, _ in net.named_parameters()]
    parameter = net[0].weight
    prune.magnitude(net, 0.5)
    value = net[0].weight.detach().numpy()
    assert prune.remove(net) is net
    assert {n for n, _ in net.named_parameters()} == set(names)
    assert net[0].weight is parameter
    np.testing.assert_array_equal(net[0].weight.detach(), value)
    assert prune.masks(net) == {}


def test_shared_weights_are_masked_everywhere() -> None:
    first, second = nn.Linear(3, 3).double(), nn.Linear(3, 3).double()
    second.weight = first.weight
    net = nn.Sequential(first, nn.Tanh(), second, first)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    step = prune.magnitude(net, count=4)
    assert step.total == 9
    train_a_little(net, optimizer, (4, 3))
    np.testing.assert_array_equal(net[0].weight.detach(), net[2].weight.detach())
    assert (net[2].weight.detach().numpy() == 0).sum() == 4
    prune.remove(net)
    assert net[0].weight is net[2].weight
    assert (net[0].weight.detach().numpy() == 0).sum() == 4


def test_gradients_of_a_masked_network() -> None:
    net = dense()
    prune.magnitude(net, 0.5)
    x = chainrule.randn(3, 4, dtype=chainrule.float64)
    params = {n: p.detach() for n, p in net.named_parameters()}
    f = lambda *values: chainrule.func.functional_call(  # noqa: E731
        net, dict(zip(params, values, strict=True)), (x,)
    )
    assert chainrule.autograd.gradcheck(f, [p.requires_grad_() for p in params.values()])


# --- what is refused ------------------------------------------------------------------------------


def test_pruning_more_than_there_is() -> None:
    net = dense()
    with pytest.raises(ValueError, match="cannot prune 37 of 36, of which 36 are left"):
        prune.magnitude(net, count=37)
    prune.magnitude(net, count=30)
    with pytest.raises(ValueError, match="cannot prune 7 of 36, of which 6 are left"):
        prune.magnitude(net, count=7)
    with pytest.raises(ValueError, match="sparsity of 0.5 was asked for, but 0.83"):
        prune.magnitude(net, 0.5)
    with pytest.raises(ValueError, match="cannot prune 9 of 6"):
        prune.structured(dense(), count=9, where="0.weight")
    prune.magnitude(net, 1.0)
    data = (chainrule.ones(1, 4).double(), chainrule.ones(1, 2).double())
    with pytest.raises(ValueError, match="all of the 36 weights are pruned already"):
        prune.obd(net, nn.MSELoss(), data, count=1)


def test_a_refused_plan_changes_nothing() -> None:
    net = dense()
    with pytest.raises(ValueError, match="cannot prune 13 of 12"):
        prune.magnitude(net, count=13, scope="layer")
    assert prune.masks(net) == {}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sparsity": 1.5}, ValueError, "from 0 to 1, got 1.5"),
        ({"sparsity": 0.5, "count": 3}, TypeError, "either sparsity or count"),
        ({}, TypeError, "either sparsity or count"),
        ({"count": -1}, ValueError, "whole number >= 0, got -1"),
        ({"count": 1.5}, ValueError, "whole number >= 0"),
        ({"sparsity": 0.5, "scope": "row"}, ValueError, "'global' or 'layer', got 'row'"),
        ({"sparsity": 0.5, "where": "conv*"}, ValueError, "'conv\\*' matches no parameter"),
        ({"sparsity": 0.5, "where": 3}, TypeError, "where must be a pattern"),
    ],
)
def test_bad_arguments(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        prune.magnitude(dense(), **arguments)


def test_what_cannot_be_pruned() -> None:
    with pytest.raises(TypeError, match="expected a Module, got int"):
        prune.magnitude(3, 0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="has no shape yet"):
        prune.magnitude(nn.LazyLinear(3), 0.5)
    with pytest.raises(ValueError, match="has no weights"):
        prune.magnitude(nn.BatchNorm1d(3), 0.5)
    with pytest.raises(IndexError, match="dim 2 is out of range for '0.weight'"):
        prune.structured(dense(), 0.5, dim=2)
    with pytest.raises(ValueError, match="'0.bias' of shape \\(6,\\) has no slices"):
        prune.structured(dense(), 0.5, where="0.*")
    with pytest.raises(KeyError, match="no parameter '5.weight'"):
        prune.set_masks(dense(), {"5.weight": chainrule.ones(2)})
    with pytest.raises(ValueError, match="must be a tensor of its shape \\(6, 4\\), got \\(2,\\)"):
        prune.set_masks(dense(), {"0.weight": chainrule.ones(2)})
