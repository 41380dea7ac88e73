"""One schedule in both libraries, and its files."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from helpers import assert_close
from parity.schedule_cases import CASES, Case, optimizers, schedules, settings_of

from chainrule import optim


torch = pytest.importorskip("torch")


STEPS = 60


RATES = (0.5, 0.02)  # of the two groups


def shrinking(i: float) -> float:
    return 1 / (1 + 0.3 * i)


def chained(s: Any, o: Any) -> Any:
    parts = [s.ConstantLR(o, 0.1, 7), s.ExponentialLR(o, 0.95), s.StepLR(o, 11, 0.7)]
    return s.ChainedScheduler(parts)


def chained_with_optimizer(s: Any, o: Any) -> Any:
    parts = [s.LinearLR(o, 0.25, 1.0, 8), s.MultiStepLR(o, [10, 20, 20], 0.5)]
    return s.ChainedScheduler(parts, optimizer=o)


each_case = pytest.mark.parametrize("case", CASES, ids=[c.label for c in CASES])


def test_every_schedule_of_pytorch_has_a_case() -> None:
    theirs = set(torch.optim.lr_scheduler.__all__)
    assert theirs <= set(optim.lr_scheduler.__all__)
    assert theirs - {"LRScheduler"} == {case.name for case in CASES}
    assert len({case.label for case in CASES}) == len(CASES)


@pytest.mark.parametrize("name", sorted(torch.optim.lr_scheduler.__all__))
def test_arguments_are_pytorchs(name: str) -> None:
    theirs = inspect.signature(getattr(torch.optim.lr_scheduler, name)).parameters
    ours = inspect.signature(getattr(optim.lr_scheduler, name)).parameters
    assert [(p.name, p.default) for p in ours.values()] == [
        (p.name, p.default) for p in theirs.values()
    ]


# --- one schedule in both libraries ---------------------------------------------------------------


def metric(i: int) -> float:
    """A loss that falls in jumps, with a bad one now and then."""
    return 3.0 / (1 + i // 6) + (1.0 if i % 7 == 3 else 0.0)


def advance(optimizer: Any, schedule: Any, i: int) -> None:
    optimizer.step()
    if "ReduceLROnPlateau" in type(schedule).__name__:
        schedule.step(metric(i))
    else:
        schedule.step()


def compare(made: list[Any], both: list[Any], first: int = 0, last: int = STEPS) -> None:
    for i in range(first, last):
        for optimizer, schedule in zip(made, both, strict=True):
            advance(optimizer, schedule, i)
        assert_close(settings_of(made[0]), settings_of(made[1]), rtol=1e-11, atol=1e-15)
        rates = [[float(lr) for lr in schedule.get_last_lr()] for schedule in both]
        assert_close(rates[0], rates[1], rtol=1e-11, atol=1e-15)


@each_case
def test_sequences_are_equal(case: Case) -> None:
    made = optimizers(case)
    both = schedules(case, made)
    assert_close(settings_of(made[0]), settings_of(made[1]), rtol=1e-12)
    assert_close(both[0].get_last_lr(), both[1].get_last_lr(), rtol=1e-12)
    compare(made, both)


@each_case
def test_sequences_of_tensor_rates_are_equal(case: Case) -> None:
    """A rate that is a tensor stays the same tensor."""
    rates = [lambda lib, lr=lr: lib.tensor(lr, dtype=lib.float64) for lr in RATES]
    made = optimizers(case, rates)
    tensors = [group["lr"] for group in made[0].param_groups]
    compare(made, schedules(case, made))
    assert all(g["lr"] is t for g, t in zip(made[0].param_groups, tensors, strict=True))


# PyTorch forgets all warm restarts but the last; test_a_resumed_warm_restart_goes_on has ours.
RESUMED = [
    pytest.param(case, at, id=f"{case.label}-{at}")
    for case in CASES
    for at in ((4,) if "T_mult" in case.label or case.label.endswith("(SGD, 3, 3)") else (4, 23))
    if case.resumes
]


@pytest.mark.parametrize(("case", "at"), RESUMED)
def test_resumed_with_last_epoch(case: Case, at: int) -> None:
    old = optimizers(case)
    before = schedules(case, old)
    compare(old, before, last=at)
    made = optimizers(case)
    for new, done in zip(made, old, strict=True):
        new.load_state_dict(done.state_dict())
    compare(made, schedules(case, made, last_epoch=at), at + 1)


# --- files ----------------------------------------------------------------------------------------


@each_case
def test_states_have_the_same_names_and_values(case: Case) -> None:
    made = optimizers(case)
    both = schedules(case, made)
    compare(made, both, last=17)
    same_state(both[0].state_dict(), both[1].state_dict())


def same_state(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert set(ours) == set(theirs)
    for key, value in theirs.items():
        if key == "_schedulers":
            for a, b in zip(ours[key], value, strict=True):
                same_state(a, b)
        elif isinstance(value, float) or (isinstance(value, list) and isinstance(value[0], float)):
            assert_close(ours[key], value, rtol=1e-11)
        else:
            assert ours[key] == value, key


@each_case
def test_a_state_of_pytorch_goes_on(case: Case) -> None:
    made = optimizers(case)
    both = schedules(case, made)
    compare(made, both, last=23)
    fresh = optimizers(case)[0]
    resumed = case.make(optim.lr_scheduler, fresh)
    fresh.load_state_dict(made[1].state_dict())
    resumed.load_state_dict(both[1].state_dict())
    compare([fresh, made[1]], [resumed, both[1]], 23)


@each_case
def test_pytorch_goes_on_from_our_state(case: Case) -> None:
    made = optimizers(case)
    both = schedules(case, made)
    compare(made, both, last=23)
    fresh = optimizers(case)[1]
    resumed = case.make(torch.optim.lr_scheduler, fresh)
    for mine, theirs in zip(made[0].param_groups, fresh.param_groups, strict=True):
        theirs.update({k: v for k, v in mine.items() if k != "params"})
    resumed.load_state_dict(both[0].state_dict())
    compare([made[0], fresh], [both[0], resumed], 23)
