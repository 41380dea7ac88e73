"""Epochs of optimizers whose constants move, and of schedules that move more than rates."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import chainrule
from chainrule import backend, optim
from chainrule.compiler.tape import Tape
from tests.compiler.nets import NETS, batches, make_step
from tests.compiler.test_equal import PLAIN, bits

pytestmark = pytest.mark.skipif(backend.current() != "native", reason="no compiled kernels")

LR = optim.lr_scheduler


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many steps each call of a tape took."""
    found: list[int] = []
    plain = Tape.epoch

    def epoch(self: Tape, times: int, *rest: Any) -> Any:
        done = plain(self, times, *rest)
        found.append(done[0])
        return done

    monkeypatch.setattr(Tape, "epoch", epoch)
    return found


def run(
    make: Any, compiled: bool, schedule_of: Any = None, bad: bool = False, twice: bool = False
) -> tuple[Any, ...]:
    """Twelve steps; all that is left of them."""
    chainrule.manual_seed(0)
    (x, y), *_ = batches((4,), 1, size=60)
    if bad:
        x[48] = float("nan")
    net = NETS["mlp"][0]()
    optimizer = make(list(net.parameters()))
    schedule = None if schedule_of is None else schedule_of(optimizer)
    step: Any = make_step(net, optimizer)
    if twice:
        one = step

        def step(x: Any, y: Any) -> Any:
            one(x, y)
            return one(x, y)

    losses: list[float] = []
    try:
        if compiled:
            step = chainrule.compile(step, fullgraph=True)
            losses += step.epoch(x, y, batch_size=5, schedule=schedule).tolist()
        else:
            for i in range(0, 60, 5):
                losses.append(step(x[i : i + 5], y[i : i + 5]).item())
                if schedule is not None:
                    schedule.step()
    except optim.NotFiniteError:
        assert bad
        losses.clear()
    settings = [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]
    state = None if schedule is None else schedule.state_dict()
    made = [p.detach().numpy().tobytes() for p in net.parameters()] if bad else bits(net, optimizer)
    return losses, made, repr(settings), repr(state), repr(optimizer.state_dict()["state"])


@pytest.mark.parametrize("case", PLAIN, ids=[c.label for c in PLAIN])
def test_every_optimizer_in_an_epoch(case: Any, at_once: list[int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager, compiled = [run(lambda p: case.make(optim, p), way) for way in (False, True)]
    assert eager == compiled
    assert at_once == ([] if case.name == "SparseAdam" else [8])  # whose rule is Python's


NUMBERS = {
    "NAdam": lambda p: optim.NAdam(p, lr=0.01),
    "RAdam": lambda p: optim.RAdam(p, lr=0.01),
    "ASGD": lambda p: optim.ASGD(p, lr=0.05, t0=4),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.05, lr_decay=0.1),
    "groups": lambda p: optim.NAdam([{"params": p[:1], "lr": 0.1}, {"params": p[1:]}], lr=0.01),
}


@pytest.mark.parametrize("bad", [False, True])
@pytest.mark.parametrize("label", NUMBERS)
def test_constants_that_move_come_as_a_table(label: str, bad: bool, at_once: list[int]) -> None:
    eager, compiled = [run(NUMBERS[label], way, bad=bad) for way in (False, True)]
    assert eager == compiled
    assert at_once == [5 if bad else 8]


SCHEDULES = {
    "one cycle, momentum": (
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        lambda o: LR.OneCycleLR(o, max_lr=0.2, total_steps=20),
    ),
    "one cycle, betas": (
        lambda p: optim.Adam(p, lr=0.01),
        lambda o: LR.OneCycleLR(o, max_lr=0.02, total_steps=20),
    ),
    "cyclic, momentum": (
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        lambda o: LR.CyclicLR(o, 0.01, 0.2, step_size_up=4, cycle_momentum=True),
    ),
    "rates of NAdam": (NUMBERS["NAdam"], lambda o: LR.ExponentialLR(o, 0.9)),
    "rates of groups": (NUMBERS["groups"], lambda o: LR.StepLR(o, 3)),
    "rates of Adam": (lambda p: optim.Adam(p, lr=0.01), lambda o: LR.ExponentialLR(o, 0.9)),
}


@pytest.mark.parametrize("bad", [False, True])
@pytest.mark.parametrize("label", SCHEDULES)
def test_schedules_come_as_a_table(label: str, bad: bool, at_once: list[int]) -> None:
    make, schedule_of = SCHEDULES[label]
    eager, compiled = [run(make, way, schedule_of, bad) for way in (False, True)]
    assert eager == compiled
    assert at_once == [5 if bad else 8]


@pytest.mark.parametrize("kind", ["SGD", "Adam", "NAdam"])
def test_two_steps_of_one_optimizer_in_a_step(kind: str, at_once: list[int]) -> None:
    """The numbers of the second follow those of the first."""

    def make(p: Any) -> Any:
        return getattr(optim, kind)(p, lr=0.01)

    assert run(make, False, twice=True) == run(make, True, twice=True)
    assert at_once == ([] if kind == "NAdam" else [8])


def test_settings_that_ask_for_other_states_are_seen() -> None:
    """Momentum from a step on: the optimizer keeps a state that it did not keep before."""
    outcomes = []
    for compiled in (False, True):
        chainrule.manual_seed(0)
        net = NETS["mlp"][0]()
        optimizer = optim.SGD(net.parameters(), lr=0.1)
        step: Any = make_step(net, optimizer)
        step = chainrule.compile(step, fullgraph=True) if compiled else step
        losses = []
        for k, (x, y) in enumerate(batches((4,), 16)):
            if k == 8:
                optimizer.param_groups[0]["momentum"] = 0.9
            losses.append(step(x, y).item())
        outcomes.append((losses, bits(net, optimizer)))
    assert outcomes[0] == outcomes[1]


def test_momentum_that_a_schedule_brings_up_from_nothing() -> None:
    """There is no table then: the steps run one by one."""

    class Late(LR.LRScheduler):
        """A rate that stays, and a momentum from the tenth step on."""

        def get_lr(self) -> list[float]:
            if self.last_epoch >= 10:
                self.optimizer.param_groups[0]["momentum"] = 0.9
            return [g["lr"] for g in self.optimizer.param_groups]

    def make(p: Any) -> Any:
        return optim.SGD(p, lr=0.1)

    assert run(make, False, Late) == run(make, True, Late)


@pytest.mark.parametrize("moving", [False, True])
def test_rates_of_each_parameter(moving: bool, at_once: list[int]) -> None:
    """Rates that are arrays are read anew at each step, also where they change in place."""
    outcomes = []
    for compiled in (False, True):
        chainrule.manual_seed(0)
        (x, y), *_ = batches((4,), 1, size=60)
        net = NETS["mlp"][0]()
        rates = [chainrule.tensor(0.01 * (i + 1)) for i in range(4)]
        optimizer = optim.Adam([{"params": list(net.parameters()), "lr": rates}])
        inner = make_step(net, optimizer)

        def step(x: Any, y: Any) -> Any:
            if moving:
                for r in rates:  # noqa: B023
                    r.mul_(0.9)
            return inner(x, y)  # noqa: B023

        if compiled:
            function = chainrule.compile(step, fullgraph=True)
            losses = function.epoch(x, y, batch_size=5).tolist()
            assert not [i for i in function.program.instructions if i.way == "python"]
            optimizer.param_groups[0]["lr"] = 0.5  # one number for all is another kind
            losses.append(function(x[:5], y[:5]).item())
        else:
            losses = [step(x[i : i + 5], y[i : i + 5]).item() for i in range(0, 60, 5)]
            optimizer.param_groups[0]["lr"] = 0.5
            losses.append(step(x[:5], y[:5]).item())
        outcomes.append((losses, bits(net, optimizer)))
    assert outcomes[0] == outcomes[1]
    assert at_once == [8]


def test_a_rate_for_each_network_of_a_stack_is_kept() -> None:
    """As fit_many has them: views that repeat a number along all dimensions but the first."""
    outcomes = []
    for compiled in (False, True):
        chainrule.manual_seed(0)
        w = chainrule.randn(3, 4, 2).requires_grad_()
        x = chainrule.randn(3, 5, 4)
        rates = chainrule.tensor([0.1, 0.2, 0.3])
        spread = rates.reshape(3, 1, 1).expand(3, 4, 2)
        optimizer = optim.SGD([{"params": [w], "lr": [spread]}])

        def step() -> Any:
            optimizer.zero_grad()  # noqa: B023
            loss = (x @ w).pow(2).mean()  # noqa: B023
            loss.backward()
            optimizer.step()  # noqa: B023
            return loss

        function: Any = chainrule.compile(step, fullgraph=True) if compiled else step
        losses = []
        for k in range(12):
            if k == 6:
                rates.mul_(0.5)
            losses.append(function().item())
        outcomes.append((losses, w.detach().tolist()))
        if compiled:
            assert function.repeated == 9
            assert function.program.instructions[-1].way == "kept"
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "RAdam", "NAdam", "Adamax"])
@pytest.mark.parametrize("begin", [0, 320, 36_000])
def test_corrections_that_have_nearly_come_to_one(kind: str, begin: int) -> None:
    """1 - beta^t stays where it is for some steps, and then moves again."""
    outcomes = []
    for compiled in (False, True):
        chainrule.manual_seed(0)
        w = chainrule.randn(3, dtype=chainrule.float64).requires_grad_()
        optimizer = getattr(optim, kind)([w], lr=0.01)

        def step() -> Any:
            optimizer.zero_grad()  # noqa: B023
            loss = (w**4 - w).sum()  # noqa: B023
            loss.backward()
            optimizer.step()  # noqa: B023
            return loss

        function: Any = chainrule.compile(step, fullgraph=True) if compiled else step
        for _ in range(5):
            function()
        optimizer.state[w]["step"] += begin
        losses = function.repeat(90).tolist() if compiled else [step().item() for _ in range(90)]
        outcomes.append((losses, w.detach().tolist()))
    assert outcomes[0] == outcomes[1]
