"""Parts of training steps beside the network: clipping, moments of all batches."""

from __future__ import annotations

from typing import Any

import pytest

import chainrule
from chainrule import backend, nn, optim
from chainrule.backend import K
from chainrule.backend.recorded import check_fails_with
from tests.compiler.nets import NETS, batches, make_step
from tests.compiler.test_equal import bits

MODES = ["reference"] if backend.why_not_native else ["tape", "reference"]


def clipped(net: nn.Module, optimizer: Any, clip: Any) -> Any:
    """A step with clipping, which returns its loss and what clipping returned."""

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        norm = clip(net.parameters())
        optimizer.step()
        return loss, norm

    return step


CLIPS = {
    "norm": lambda p: nn.utils.clip_grad_norm_(p, 0.1),
    "norm that is hardly reached": lambda p: nn.utils.clip_grad_norm_(p, 1.0),
    "largest": lambda p: nn.utils.clip_grad_norm_(p, 0.1, float("inf")),
    "value": lambda p: nn.utils.clip_grad_value_(p, 0.01),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("label", CLIPS)
def test_clipping(label: str, mode: str) -> None:
    outcomes = []
    for compiled in (False, True):
        chainrule.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, momentum=None), nn.Linear(8, 3))
        optimizer = optim.Adam(net.parameters(), lr=0.05)
        step = clipped(net, optimizer, CLIPS[label])
        if compiled:
            step = chainrule.compile(step, mode=mode if mode == "reference" else None)
        values = []
        for x, y in batches((4,), 12):
            loss, norm = step(x, y)
            values.append((loss.item(), None if norm is None else norm.item()))
        outcomes.append((values, bits(net, optimizer)))
        if compiled:
            assert step.repeated >= 8
    assert outcomes[0] == outcomes[1]
    norms = [n for _, n in outcomes[0][0]]
    if label == "norm that is hardly reached":
        assert min(norms) < 1 < max(norms)  # both ways were taken


def test_leaves_that_have_one_gradient_have_it_each_for_itself() -> None:
    outcomes = []
    for compiled in (False, True):
        chainrule.manual_seed(0)
        make, shape = NETS["lstm"]  # both biases have one gradient
        net = make()
        optimizer = optim.SGD(net.parameters(), lr=0.1)
        step = clipped(net, optimizer, CLIPS["norm"])
        step = chainrule.compile(step) if compiled else step
        losses = [step(x, y)[0].item() for x, y in batches(shape, 8)]
        outcomes.append((losses, bits(net, optimizer)))
    assert outcomes[0] == outcomes[1]
    grads = [p.grad.array for p in net.parameters()]
    assert not K.may_share_memory(grads[2], grads[3])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("settings", [{}, {"weight": True}, {"ignored": True}])
def test_smoothed_losses(settings: dict[str, bool], mode: str) -> None:
    outcomes = []
    weight = chainrule.tensor([0.5, 1.0, 2.0]) if settings.get("weight") else None
    for compiled in (False, True):
        chainrule.manual_seed(0)
        net = nn.Linear(4, 3)
        optimizer = optim.SGD(net.parameters(), lr=0.1)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()  # noqa: B023
            loss = nn.functional.cross_entropy(net(x), y, weight, label_smoothing=0.1)  # noqa: B023
            loss.backward()
            optimizer.step()  # noqa: B023
            return loss

        called = (
            chainrule.compile(step, mode=mode if mode == "reference" else None)
            if compiled
            else step
        )
        values = []
        for i, (x, y) in enumerate(batches((4,), 12)):
            if settings.get("ignored") and i % 3:
                y[: i % 4] = -100  # how many count is another number each time
            values.append(called(x, y).item())
        outcomes.append((values, bits(net, optimizer)))
        if compiled:
            assert called.repeated >= 8
    assert outcomes[0] == outcomes[1]


class Wrong(Exception):
    """What a step says of its loss."""


def checked(net: nn.Module, optimizer: Any) -> Any:
    """A step that looks at its loss, and returns more than that."""

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        output = net(x)
        loss = nn.functional.cross_entropy(output, y)
        if not K.all_finite([loss.array]):
            raise Wrong("no number")
        check_fails_with(lambda: Wrong("no number"))
        loss.backward()
        optimizer.step()
        return chainrule.cat([loss.detach().reshape(1), output.detach().reshape(-1)])

    return step


@pytest.mark.parametrize("bad", [False, True])
def test_epochs_of_vectors_and_the_error_of_a_check(bad: bool) -> None:
    (x, y), *_ = batches((4,), 1, size=60)
    if bad:
        x[38] = float("nan")
    outcomes = []
    for compiled in (False, True):
        chainrule.manual_seed(0)
        net = nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 3)
        )
        optimizer = optim.Adam(net.parameters(), lr=0.05)
        step = checked(net, optimizer)
        rows: Any = None
        try:
            if compiled:
                step = chainrule.compile(step)
                rows = step.epoch(x, y, batch_size=5).tolist()
            else:
                rows = [step(x[i : i + 5], y[i : i + 5]).tolist() for i in range(0, 60, 5)]
        except Wrong:
            assert bad
        state = chainrule.get_rng_state().tolist()
        outcomes.append((rows, bits(net, optim.SGD([chainrule.ones(1)], lr=1)), state))
    net_bits = [(rows, found[: len(net.state_dict())], state) for rows, found, state in outcomes]
    assert net_bits[0] == net_bits[1]
    assert (outcomes[0][0] is None) == bad


SCHEDULES = {
    "exponential": lambda o: optim.lr_scheduler.ExponentialLR(o, 0.97),
    "sequence": lambda o: optim.lr_scheduler.SequentialLR(
        o,
        [optim.lr_scheduler.LinearLR(o, 0.1, total_iters=5), optim.lr_scheduler.StepLR(o, 3, 0.5)],
        milestones=[5],
    ),
    "moves the momentum": lambda o: optim.lr_scheduler.CyclicLR(
        o, 0.01, 0.2, step_size_up=4, cycle_momentum=True
    ),
}


@pytest.mark.parametrize("bad", [False, True])
@pytest.mark.parametrize("label", SCHEDULES)
def test_schedules_inside_epochs(label: str, bad: bool) -> None:
    (x, y), *_ = batches((4,), 1, size=60)
    if bad:
        x[38] = float("nan")
    outcomes = []
    for compiled in (False, True):
        chainrule.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        groups = [{"params": net[0].parameters()}, {"params": net[2].parameters(), "lr": 0.1}]
        optimizer = optim.SGD(groups, lr=0.05, momentum=0.5)
        schedule = SCHEDULES[label](optimizer)
        step = make_step(net, optimizer)
        losses: list[float] = []
        try:
            if compiled:
                step = chainrule.compile(step)
                losses += step.epoch(x, y, batch_size=5, schedule=schedule).tolist()
            else:
                for i in range(0, 60, 5):
                    losses.append(step(x[i : i + 5], y[i : i + 5]).item())
                    schedule.step()
        except optim.NotFiniteError:
            assert bad
            losses = []
        state = repr(schedule.state_dict()), [g["lr"] for g in optimizer.param_groups]
        parameters = [p.detach().tolist() for p in net.parameters()]
        outcomes.append((losses, parameters, schedule.last_epoch, state[1], optimizer.state_dict()))
    assert repr(outcomes[0]) == repr(outcomes[1])
    assert schedule.last_epoch == (7 if bad else 12)
