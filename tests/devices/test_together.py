"""The state of compiled steps on a device, between steps, and the numbers of their updates."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from compiler.nets import batches
from devices.pairs import PLACE, STEPS, Pair, lowered, mlp, mlp_data

import chainrule
from chainrule import nn
from chainrule.compiler.ahead import Ahead
from chainrule.compiler.together import Together, worth_packing

pytest.importorskip("jax")

# --- state that lies together ---------------------------------------------------------------------


def test_a_state_lies_in_a_list_until_it_is_read() -> None:
    pair = Pair(mlp)
    data = mlp_data()
    pair.run(data)
    runner = lowered(pair.compiled)
    assert runner.state is not None
    assert len(runner.state.cells) == 12  # parameters and two moments
    weight = pair.there[0].weight
    assert weight.array.owner is runner.state
    pair.check()
    assert weight.array.owner is None
    pair.run(data)
    pair.check()


def test_what_is_written_between_steps_counts() -> None:
    pair = Pair(mlp)
    data = mlp_data()
    pair.run(data)
    with chainrule.no_grad():
        for net in (pair.net, pair.there):
            net[0].weight.mul_(0.5)
            net[2].bias[0] = 1.0
    a, b = pair.run(data)
    np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
    state = copy.deepcopy(pair.net.state_dict())
    pair.run(data)
    for net in (pair.net, pair.there):
        net.load_state_dict(state)
    a, b = pair.run(data)
    np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
    pair.check()


def test_functions_that_share_their_state() -> None:
    """A step, another form of it and an evaluation in turns: each sees what the others left."""
    pair = Pair(mlp)
    evaluate = chainrule.compile(lambda x: pair.there(x))
    whole, part = mlp_data(), batches((4,), STEPS, size=3)
    for (x, y), (u, v) in zip(whole, part, strict=True):
        for a, b in ((x, y), (u, v)):
            wanted, found = pair.step(a, b).item(), pair.compiled(a.to(PLACE), b.to(PLACE)).item()
            assert math.isclose(wanted, found, rel_tol=1e-5, abs_tol=1e-6)
        with chainrule.no_grad():
            np.testing.assert_allclose(
                evaluate(x.to(PLACE)).cpu(), pair.net(x), rtol=1e-5, atol=1e-6
            )
    pair.check()


def test_views_of_parameters_show_what_a_step_made() -> None:
    pair = Pair(mlp)
    row = pair.there[0].weight.detach()[1]
    pair.run(mlp_data())
    np.testing.assert_allclose(row.cpu(), pair.net[0].weight.detach()[1], rtol=1e-5, atol=1e-6)


def test_many_small_arrays_lie_together() -> None:
    few = [chainrule.ones(2, device=PLACE).array for _ in range(31)]
    assert worth_packing(few) == []
    one = chainrule.ones(2, device=PLACE).array
    large = chainrule.empty(1 << 13, dtype=chainrule.float64, device=PLACE).array
    assert worth_packing([*few[:5], large, *few[5:], one]) == [*range(5), *range(6, 33)]
    assert worth_packing([*few, few[0]]) == []


def deep() -> nn.Module:
    """A network of many small parameters, and of large ones; in float64, as normalizing few numbers
    again and again makes rounding large."""
    layers = [nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU()) for _ in range(6)]
    return nn.Sequential(nn.Linear(4, 2200), nn.Linear(2200, 8), *layers, nn.Linear(8, 3)).double()


@pytest.mark.parametrize("way", ["steps", "epoch", "epoch, as on a GPU"])
def test_networks_whose_small_parameters_lie_together(way: str) -> None:
    """On a GPU they do so also within a loop over steps."""
    pair, epoch = Pair(deep), way != "steps"
    data = [(x.double(), y) for x, y in mlp_data(9)]
    pair.run(data[:5])
    lowered(pair.compiled).stays_together = "GPU" in way
    state = lowered(pair.compiled).state
    assert state is not None
    assert 0 < state.apart < len(state.cells) - 32
    before = pair.there[0].weight.detach().clone()
    if epoch:
        x, y = (chainrule.cat(parts).to(PLACE) for parts in zip(*data[5:], strict=True))
        losses = pair.compiled.epoch(x, y, batch_size=len(data[0][0]))
        for (a, b), loss in zip(data[5:], losses, strict=True):
            assert math.isclose(pair.step(a, b).item(), loss.item(), rel_tol=1e-5, abs_tol=1e-6)
        for ours, theirs in zip(pair.net.parameters(), pair.there.parameters(), strict=True):
            np.testing.assert_allclose(theirs.grad.cpu(), ours.grad, rtol=1e-4, atol=1e-8)
    else:
        pair.run(data[5:])
    assert (before != pair.there[0].weight).any()
    pair.check()


def test_cells_of_two_owners() -> None:
    cells = [chainrule.full((2,), float(i), device=PLACE).array for i in range(4)]
    one, two = Together(cells), Together(cells)
    one.put([flat + 1 for flat in one.take()])
    two.put([flat + 1 for flat in two.take()])  # takes what the first one holds
    assert [c.numpy()[0] for c in cells] == [2.0, 3.0, 4.0, 5.0]


# --- numbers of updates ---------------------------------------------------------------------------


def test_rates_that_change_are_followed() -> None:
    pair = Pair(mlp)
    for i, (x, y) in enumerate(mlp_data(14)):
        for optimizer in (pair.ours, pair.theirs):
            optimizer.param_groups[0]["lr"] = 0.02 if i % 3 else 0.01
        wanted, found = pair.step(x, y).item(), pair.compiled(x.to(PLACE), y.to(PLACE)).item()
        assert math.isclose(wanted, found, rel_tol=1e-5, abs_tol=1e-6)
    assert lowered(pair.compiled).lowerings == 1
    pair.check()


def test_tables_grow_while_they_are_right() -> None:
    pair = Pair(mlp)
    pair.run(mlp_data(40))
    ahead: Ahead = lowered(pair.compiled).ahead
    assert len(ahead.rows) > 8
    pair.theirs.param_groups[0]["lr"] = 0.5
    pair.run(mlp_data(1))
    assert len(ahead.rows) == 1
