"""Compiled steps on a device, against eager ones on the CPU."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiler.nets import NETS, batches, make_step
from devices.pairs import (
    PLACE,
    STEPS,
    Make,
    Pair,
    adam,
    lowered,
    mlp,
    mlp_data,
    momentum,
    drops_twice,
)

import chainrule
from chainrule import nn, optim
from chainrule.backend.tracing import NotLowered

pytest.importorskip("jax")


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
