"""Compiled steps on a device, against eager ones on the CPU."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiler.nets import NETS, batches, make_step

import chainrule
from chainrule import nn, optim
from chainrule.backend import K
from chainrule.backend.tracing import NotLowered
from chainrule.compiler.ahead import Ahead
from chainrule.compiler.lowered import Lowered
from chainrule.compiler.together import Together, worth_packing

pytest.importorskip("jax")

PLACE = "xla"
STEPS = 7
Make = Callable[[Any], Any]


def adam(params: Any) -> Any:
    return optim.Adam(params, lr=0.02)


def momentum(params: Any) -> Any:
    """Adam makes as much of a gradient that is nothing but rounding errors, like that of a bias
    before a normalization, as of any other."""
    return optim.SGD(params, lr=0.05, momentum=0.9)


class Pair:
    """A network with its optimizer on the CPU, and the same on the device."""

    def __init__(self, make: Callable[[], nn.Module], optimizer: Make = adam):
        chainrule.manual_seed(0)
        self.net = make()
        self.there = copy.deepcopy(self.net).to(PLACE)
        self.ours, self.theirs = (
            optimizer(self.net.parameters()),
            optimizer(self.there.parameters()),
        )
        self.step = make_step(self.net, self.ours)
        self.compiled = chainrule.compile(make_step(self.there, self.theirs))

    def run(self, data: list[tuple[Any, Any]]) -> tuple[list[float], list[float]]:
        """The losses of both."""
        chainrule.manual_seed(1)
        eager = [self.step(x, y).item() for x, y in data]
        chainrule.manual_seed(1)
        found = [self.compiled(x.to(PLACE), y.to(PLACE)) for x, y in data]
        return eager, [loss.item() for loss in found]

    def check(self, rtol: float = 1e-5, atol: float = 1e-6) -> None:
        """Parameters and buffers are the same."""
        there = self.there.state_dict()
        for name, t in self.net.state_dict().items():
            np.testing.assert_allclose(there[name].cpu(), t, rtol, atol, err_msg=name)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def mlp_data(count: int = STEPS) -> list[tuple[Any, Any]]:
    return batches((4,), count)


def lowered(function: Any) -> Lowered:
    """What runs the program that was used last."""
    runner = function._used.runner
    assert isinstance(runner, Lowered)
    return runner


# --- the same numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NETS)
def test_networks(name: str) -> None:
    """Losses within 1e-6, dropout's masks included."""
    make, shape = NETS[name]
    pair = Pair(make, momentum if "norm" in name or "cnn" in name else adam)
    eager, found = pair.run(batches(shape, STEPS))
    np.testing.assert_allclose(found, eager, rtol=1e-6, atol=1e-6)
    pair.check()
    lowered(pair.compiled)


OPTIMIZERS: dict[str, Make] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "AdamW, amsgrad": lambda p: optim.AdamW(p, lr=0.01, amsgrad=True),
    "NAdam": lambda p: optim.NAdam(p, lr=0.01),
    "RAdam": lambda p: optim.RAdam(p, lr=0.01),
    "ASGD": lambda p: optim.ASGD(p, lr=0.01),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, centered=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.05),
    "Rprop": lambda p: optim.Rprop(p, lr=0.01),
    "two groups": lambda p: _two_groups(list(p)),
}


def _two_groups(params: list[Any]) -> Any:
    groups = [{"params": params[:2], "lr": 0.1}, {"params": params[2:], "betas": (0.8, 0.99)}]
    return optim.Adam(groups, lr=0.02)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str) -> None:
    """More steps than a table of numbers foresees at first, then an epoch in one call."""
    pair = Pair(mlp, OPTIMIZERS[name])
    eager, found = pair.run(mlp_data(12))
    np.testing.assert_allclose(found, eager, rtol=1e-5, atol=1e-6)
    data = mlp_data(6)
    x, y = (chainrule.cat([pair[i] for pair in data]) for i in range(2))
    wanted = [pair.step(a, b).item() for a, b in data]
    losses = pair.compiled.epoch(x.to(PLACE), y.to(PLACE), batch_size=5)
    assert losses.device.type == PLACE
    np.testing.assert_allclose(losses.cpu(), wanted, rtol=1e-5, atol=1e-6)
    pair.check()


@pytest.mark.parametrize("name", ["batch norm", "dropout", "lstm"])
def test_epochs_in_an_order(name: str) -> None:
    make, shape = NETS[name]
    pair = Pair(make, momentum)
    data = batches(shape, 4)
    pair.run(data)
    x, y = (chainrule.cat([part[i] for part in data]) for i in range(2))
    order = chainrule.arange(20).flip(0)
    chainrule.manual_seed(2)
    rows = order.reshape(4, 5)
    wanted = [pair.step(x[r], y[r]).item() for r in rows]
    chainrule.manual_seed(2)
    losses = pair.compiled.epoch(x.to(PLACE), y.to(PLACE), batch_size=5, order=order.to(PLACE))
    np.testing.assert_allclose(losses.cpu(), wanted, rtol=1e-5, atol=1e-6)
    pair.check()


def drops_twice() -> nn.Module:
    parts = [nn.Linear(4, 8), nn.Dropout(0.3), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 3)]
    return nn.Sequential(*parts)


def test_epochs_draw_step_by_step() -> None:
    """All masks of a step, then those of the next one."""
    pair = Pair(drops_twice, momentum)
    data = mlp_data(6)
    pair.run(data)
    chainrule.manual_seed(2)
    wanted = [pair.step(x, y).item() for x, y in data]
    after = chainrule.rand(3)
    chainrule.manual_seed(2)
    x, y = (chainrule.cat([part[i] for part in data]).to(PLACE) for i in range(2))
    losses = pair.compiled.epoch(x, y, batch_size=5)
    assert chainrule.equal(chainrule.rand(3), after)
    np.testing.assert_allclose(losses.cpu(), wanted, rtol=1e-5, atol=1e-6)
    pair.check()


@pytest.mark.parametrize("epoch", [True, False])
def test_steps_that_did_nothing_have_drawn_nothing(epoch: bool) -> None:
    pair = Pair(drops_twice, momentum)
    data = mlp_data(6)
    pair.run(data)
    x, y = (chainrule.cat([part[i] for part in data]) for i in range(2))
    x[17] = math.nan  # in the fourth batch

    def eager() -> None:
        for a, b in zip(x.split(5), y.split(5), strict=True):
            pair.step(a, b)

    def repeated() -> None:
        if epoch:
            pair.compiled.epoch(x.to(PLACE), y.to(PLACE), batch_size=5).cpu()
        for a, b in zip(x.split(5), y.split(5), strict=True):
            last = pair.compiled(a.to(PLACE), b.to(PLACE))
        last.item()

    after = []
    for run in (eager, repeated):
        chainrule.manual_seed(2)
        with pytest.raises(RuntimeError, match="not finite|NaN"):
            run()
        after.append(chainrule.rand(3))
    assert chainrule.equal(*after)
    pair.check()


def test_steps_that_are_done_again_have_their_random_numbers() -> None:
    """Where a check comes out otherwise than recorded, and that is no error."""
    net = drops_twice().to(PLACE)

    def step(x: Any) -> Any:
        return net(x).nansum() if K.all_finite([x.array]) else x.nansum() + net(x).nansum()

    compiled = chainrule.compile(step)

    def run(step: Any) -> list[float]:
        chainrule.manual_seed(3)
        found = []
        for k in range(8):
            x = chainrule.ones(5, 4)
            x[0] = math.inf if k == 5 else 1.0
            found += [step(x.to(PLACE)), chainrule.rand(2).sum()]
        return [t.item() for t in found]

    with chainrule.no_grad():
        run(compiled)
        np.testing.assert_allclose(run(compiled), run(step), rtol=1e-6)
    assert compiled.repeated > 4


def test_schedules_of_epochs_and_steps() -> None:
    pair = Pair(mlp, lambda p: optim.SGD(p, lr=0.2, momentum=0.5))
    schedules = [optim.lr_scheduler.ExponentialLR(o, 0.8) for o in (pair.ours, pair.theirs)]
    for x, y in mlp_data():
        a = pair.step(x, y).item()
        b = pair.compiled(x.to(PLACE), y.to(PLACE)).item()
        assert math.isclose(a, b, rel_tol=1e-5)
        for schedule in schedules:
            schedule.step()
    data = mlp_data(4)
    for x, y in data:
        pair.step(x, y)
        schedules[0].step()
    x, y = (chainrule.cat([part[i] for part in data]).to(PLACE) for i in range(2))
    pair.compiled.epoch(x, y, batch_size=5, schedule=schedules[1])
    assert pair.ours.param_groups[0]["lr"] == pair.theirs.param_groups[0]["lr"]
    pair.check()


def test_gradients_are_left_behind() -> None:
    pair = Pair(mlp)
    pair.run(mlp_data())
    for p, q in zip(pair.net.parameters(), pair.there.parameters(), strict=True):
        np.testing.assert_allclose(q.grad.cpu(), p.grad, rtol=1e-5, atol=1e-6)
    held = [q.grad for q in pair.there.parameters()]
    pair.theirs.zero_grad()
    assert all(q.grad is None for q in pair.there.parameters())
    pair.run(mlp_data(1))
    for p, q in zip(pair.net.parameters(), pair.there.parameters(), strict=True):
        np.testing.assert_allclose(q.grad.cpu(), p.grad, rtol=1e-5, atol=1e-6)
    assert held[0].shape == (8, 4)


def test_inference() -> None:
    chainrule.manual_seed(0)
    net = mlp().eval()
    there = chainrule.compile(copy.deepcopy(net).to(PLACE))
    for x, _ in mlp_data():
        with chainrule.no_grad():
            np.testing.assert_allclose(there(x.to(PLACE)).cpu(), net(x), rtol=1e-6, atol=1e-6)
    with chainrule.no_grad():  # results are the caller's own
        a = there(mlp_data()[0][0].to(PLACE))
        before = a.cpu()
        there(chainrule.zeros(5, 4, device=PLACE))
    assert chainrule.equal(a.cpu(), before)


def test_hessian_products() -> None:
    chainrule.manual_seed(0)
    net, (x, y) = mlp(), mlp_data()[0]
    names = [n for n, _ in net.named_parameters()]

    def product_on(place: str) -> Callable[..., Any]:
        module = copy.deepcopy(net).to(place)
        a, b = x.to(place), y.to(place)
        values = tuple(p.detach() for p in module.parameters())

        def loss(*values: Any) -> Any:
            tensors = dict(zip(names, values, strict=True))
            out = chainrule.func.functional_call(module, tensors, (a,))
            return nn.functional.cross_entropy(out, b)

        return lambda *v: chainrule.func.hvp(loss, values, v)

    tangents = [chainrule.randn(p.shape) for p in net.parameters()]
    wanted = product_on("cpu")(*tangents)
    compiled = chainrule.compile(product_on(PLACE), fullgraph=True)
    for _ in range(4):
        found = compiled(*[t.to(PLACE) for t in tangents])
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.cpu(), b, rtol=1e-5, atol=1e-6)


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


# --- checks ---------------------------------------------------------------------------------------


def test_a_gradient_that_is_not_finite_changes_nothing() -> None:
    pair = Pair(mlp)
    data = mlp_data()
    pair.run(data)
    before = copy.deepcopy(pair.there.state_dict())
    steps = pair.theirs.state_dict()["state"][0]["step"]
    x, y = data[0]
    with pytest.raises(RuntimeError, match="not finite|NaN"):
        pair.compiled((x * math.nan).to(PLACE), y.to(PLACE)).item()
    for name, t in pair.there.state_dict().items():
        assert chainrule.equal(t.cpu(), before[name].cpu()), name
    assert pair.theirs.state_dict()["state"][0]["step"] == steps
    a, b = pair.run(data)
    np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


def test_an_epoch_that_diverges_ends_before_the_step() -> None:
    pair = Pair(mlp)
    data = mlp_data(6)
    pair.run(data)
    x, y = (chainrule.cat([part[i] for part in data]) for i in range(2))
    x[17] = math.nan  # in the fourth batch
    for a, b in zip(x.split(5)[:3], y.split(5)[:3], strict=True):
        pair.step(a, b)
    losses = pair.compiled.epoch(x.to(PLACE), y.to(PLACE), batch_size=5)
    # The step runs in its own mode, whenever its numbers are read.
    with chainrule.no_grad(), pytest.raises(RuntimeError, match="not finite|NaN") as caught:
        losses.cpu()
    assert "in call 3 of 6" in "".join(caught.value.__notes__)
    pair.check()


def test_an_epoch_that_diverges_undoes_what_was_sent_behind_it() -> None:
    """Epochs and steps do not wait for each other; the first error comes, and nothing after it."""
    pair = Pair(mlp)
    data = mlp_data(6)
    pair.run(data)
    x, y = (chainrule.cat([part[i] for part in data]) for i in range(2))
    bad = x.clone()
    bad[17] = math.nan
    for a, b in [*data, *data[:3]]:
        pair.step(a, b)
    there, bad, targets = x.to(PLACE), bad.to(PLACE), y.to(PLACE)
    count = pair.theirs.state_dict()["state"][0]["step"]

    def run() -> None:
        pair.compiled.epoch(there, targets, batch_size=5)
        pair.compiled.epoch(bad, targets, batch_size=5)
        pair.compiled(there[:5], targets[:5])
        pair.compiled.epoch(there, targets, batch_size=5).cpu()

    with pytest.raises(RuntimeError, match="not finite|NaN") as caught:
        run()
    assert caught.value.__notes__[0] == "in call 3 of 6, counted from 0"
    assert "those after it did nothing" in caught.value.__notes__[1]
    assert pair.theirs.state_dict()["state"][0]["step"] == count + 9
    pair.check()
    wanted, found = pair.run(data)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_open_steps_hold_few_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large ones are looked at soon, small ones all at once."""
    pair, data = Pair(mlp), mlp_data(40)
    monkeypatch.setattr("chainrule.compiler.waiting.HELD", 4 * (5 * 4 * 4 + 5 * 8))
    eager, found = [], []
    for x, y in data:
        eager.append(pair.step(x, y))
        found.append(pair.compiled(x.to(PLACE), y.to(PLACE)))
        runner = pair.compiled._used.runner if pair.compiled.repeated else None
        assert runner is None or len(runner.waiting.calls) <= 4
    np.testing.assert_allclose([t.item() for t in found], [t.item() for t in eager], rtol=1e-5)


def test_epochs_that_do_again_what_is_no_error() -> None:
    """Epochs of one step and of several, and the rows that they returned."""
    limit = chainrule.tensor([1.0], device=PLACE)

    def step(x: Any) -> Any:
        return (x * limit).sum() if K.all_finite([x.array]) else (x * 0).nansum() - 1

    x = chainrule.arange(8.0).reshape(4, 2)
    for rows in (1, 4):
        compiled = chainrule.compile(step)
        for _ in range(4):
            compiled(x[:1].to(PLACE))
        bad = x[:rows].clone()
        bad[-1] = math.inf
        first = compiled.epoch(x[:rows].to(PLACE), batch_size=1)
        second = compiled.epoch(bad.to(PLACE), batch_size=1)
        third = compiled.epoch(x[:rows].to(PLACE), batch_size=1)
        sums = x[:rows].sum(1).tolist()
        assert first.tolist() == third.tolist() == sums
        assert second.tolist() == [*sums[:-1], -1.0]


def test_gradients_stay_where_they_are() -> None:
    """They are the program's own memory, as on the CPU; a copy is the user's."""
    pair = Pair(mlp)
    pair.run(mlp_data())
    leaf = pair.there[0].weight
    held, kept = leaf.grad, leaf.grad.clone()
    before = kept.cpu()
    places = []
    for x, y in mlp_data(4):
        pair.compiled(x.to(PLACE), y.to(PLACE))
        places.append(leaf.grad.array.raw.unsafe_buffer_pointer())
    assert leaf.grad is held
    assert len(set(places)) == 1
    assert chainrule.equal(kept.cpu(), before)
    assert not chainrule.equal(held.cpu(), before)


def test_a_number_out_of_range_is_the_eager_error() -> None:
    table = nn.Embedding(5, 3).to(PLACE)
    read = chainrule.compile(lambda i: table(i).sum(), fullgraph=True)
    with chainrule.no_grad():
        for _ in range(4):
            read(chainrule.tensor([1, 4], device=PLACE)).item()
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            read(chainrule.tensor([1, 5], device=PLACE)).item()
        assert read(chainrule.tensor([1, 2], device=PLACE)).shape == ()


def test_memory_that_runs_out_names_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(mlp)
    pair.run(mlp_data())

    def full(*args: Any) -> Any:
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 123 bytes.")

    monkeypatch.setattr(lowered(pair.compiled), "fast", full)
    x, y = mlp_data()[0]
    with pytest.raises(chainrule.cuda.OutOfMemoryError, match=r"f32\[5,4\].*smaller batch"):
        pair.compiled(x.to(PLACE), y.to(PLACE))
    monkeypatch.undo()
    a = pair.step(x, y).item()
    assert math.isclose(pair.compiled(x.to(PLACE), y.to(PLACE)).item(), a, rel_tol=1e-5)


# --- between devices ------------------------------------------------------------------------------


def test_checkpoints_move_between_devices(tmp_path: Any) -> None:
    pair = Pair(mlp)
    pair.run(mlp_data())
    for optimizer, net in ((pair.theirs, pair.there),):
        chainrule.save(
            {"net": net.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "a"
        )
    known = chainrule.load(tmp_path / "a", map_location="cpu")
    net = mlp()
    optimizer = adam(net.parameters())
    net.load_state_dict(known["net"])
    optimizer.load_state_dict(known["optimizer"])
    for name, t in pair.there.state_dict().items():
        assert t.cpu().numpy().tobytes() == net.state_dict()[name].numpy().tobytes()
    step, (x, y) = make_step(net, optimizer), mlp_data()[0]
    wanted = pair.compiled(x.to(PLACE), y.to(PLACE)).item()
    assert math.isclose(step(x, y).item(), wanted, rel_tol=1e-6)


def test_what_cannot_be_one_program_runs_as_it_is() -> None:
    pair = Pair(mlp)

    def step(x: Any, y: Any) -> Any:
        loss = nn.functional.cross_entropy(pair.there(x), y)
        return loss * 2 if loss.item() > 0 else loss

    compiled = chainrule.compile(step)
    x, y = mlp_data()[0]
    x, y = x.to(PLACE), y.to(PLACE)
    with chainrule.no_grad():
        wanted = [compiled(x, y).item()]
        with pytest.warns(UserWarning, match="reads numbers of a tensor"):
            wanted.append(compiled(x, y).item())
        assert wanted == [compiled(x, y).item()] * 2


def test_a_program_that_xla_refuses_draws_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs kernel by kernel, with the masks that it would have had."""

    def refused(*args: Any) -> Any:
        raise NotLowered("planted")

    monkeypatch.setattr("chainrule.backend.xla_programs.called", refused)
    net = lambda: nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))  # noqa: E731
    pair = Pair(net, momentum)
    with pytest.warns(UserWarning, match="kernel by kernel, .* no program of XLA's: planted"):
        eager, found = pair.run(mlp_data())
    np.testing.assert_allclose(found, eager, rtol=1e-6, atol=1e-6)
    pair.check()
