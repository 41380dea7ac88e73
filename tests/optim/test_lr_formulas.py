"""Schedules against their formulas."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from typing import Any

import pytest
from helpers import assert_close
from optim.schedules import FORMULAS

import chainrule
from chainrule import optim
from chainrule.optim import lr_scheduler as schedules
from chainrule.optim.lr_scheduler import preview


def sgd(lr: Any = 0.8, **settings: Any) -> optim.SGD:
    return optim.SGD([chainrule.zeros(2, requires_grad=True)], lr=lr, **settings)


def train(optimizer: Any, schedule: Any, steps: int) -> list[Any]:
    """The rates used in so many steps."""
    rates = []
    for _ in range(steps):
        rates.append(copy.deepcopy(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        schedule.step()
    return rates


# --- formulas -------------------------------------------------------------------------------------


N = 30


@pytest.mark.parametrize("name", FORMULAS)
def test_formula(name: str) -> None:
    make, formula = FORMULAS[name]
    optimizer = sgd()
    schedule = make(optimizer)
    expected = [formula(i) for i in range(N)]
    assert_close(preview(schedule, N), expected, rtol=1e-12, atol=1e-12)
    assert_close(train(optimizer, schedule, N), expected, rtol=1e-12, atol=1e-12)
    assert schedule.get_last_lr() == [optimizer.param_groups[0]["lr"]]


def test_every_schedule_has_a_formula() -> None:
    classes = {n for n in schedules.__all__ if isinstance(getattr(schedules, n), type)}
    others = {"LRScheduler", "ReduceLROnPlateau", "HalveOnPlateau", "RobbinsMonro"}
    assert {name.split()[0] for name in FORMULAS} == classes - others


@pytest.mark.parametrize("name", FORMULAS)
def test_formula_from_a_state_dict(name: str) -> None:
    """Those beyond PyTorch, too, go on after a pickle of their state."""
    make, formula = FORMULAS[name]
    optimizer = sgd()
    schedule = make(optimizer)
    train(optimizer, schedule, 7)
    files = pickle.dumps((optimizer.state_dict(), schedule.state_dict()))
    fresh = sgd()
    resumed = make(fresh)
    states = pickle.loads(files)
    fresh.load_state_dict(states[0])
    resumed.load_state_dict(states[1])
    expected = [formula(i) for i in range(7, N)]
    assert_close(train(fresh, resumed, N - 7), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["InverseTimeLR", "LinearDecayLR", "HalveEvery"])
def test_our_own_resume_with_last_epoch(name: str) -> None:
    _, formula = FORMULAS[name]
    kind = getattr(schedules, name)
    settings = {"InverseTimeLR": [0.1], "LinearDecayLR": [0.2, 12], "HalveEvery": [4]}[name]
    optimizer = sgd(formula(6))
    optimizer.param_groups[0]["initial_lr"] = 0.8
    resumed = kind(optimizer, *settings, last_epoch=5)
    assert resumed.last_epoch == 6
    assert_close(preview(resumed, 9), [formula(i) for i in range(6, 15)])


def test_inverse_time_decay_falls_from_the_first_step_on() -> None:
    """It contains no warm-up; eta_i <= eta_0, and it is half after i_0 = 1 / eta_d epochs."""
    rates = preview(schedules.InverseTimeLR(sgd(), 1 / 20), 50)
    assert all(b < a for a, b in itertools.pairwise(rates))
    assert rates[0] == 0.8
    assert rates[20] == pytest.approx(0.4)
    optimizer = sgd()
    warm = preview(schedules.WarmupLR(optimizer, 9, schedules.InverseTimeLR(optimizer, 1 / 20)), 50)
    assert warm.index(max(warm)) == 9
    assert_close(warm[9:], rates[:41])


def test_a_tenth_after_150_epochs() -> None:
    """As in the course's figure: the rate is divided by ten at one epoch."""
    rates = preview(schedules.MultiStepLR(sgd(0.1), [150]), 200)
    assert_close(rates, [0.1] * 150 + [0.01] * 50)


def test_a_resumed_warm_restart_goes_on() -> None:
    whole = preview(schedules.CosineAnnealingWarmRestarts(sgd(), 4, T_mult=2), 60)
    for last in (0, 3, 4, 11, 12, 35, 40):
        optimizer = sgd()
        optimizer.param_groups[0]["initial_lr"] = 0.8
        resumed = schedules.CosineAnnealingWarmRestarts(optimizer, 4, T_mult=2, last_epoch=last)
        assert_close(preview(resumed, 10), whole[last + 1 : last + 11])


def test_warm_restarts_hit_their_epochs_exactly() -> None:
    """Restarts with T_mult = 3 come after (3^n - 1) / 2 epochs, large n included."""
    schedule = schedules.CosineAnnealingWarmRestarts(sgd(), 1, T_mult=3)
    for n in range(1, 12):
        schedule.step((3**n - 1) // 2)
        assert schedule.get_last_lr() == [0.8]
        assert (schedule.T_cur, schedule.T_i) == (0, 3**n)


@pytest.mark.parametrize("kind", ["momentum", "betas"])
def test_momentum_goes_the_other_way(kind: str) -> None:
    weights = [chainrule.zeros(1, requires_grad=True)]
    optimizer = optim.SGD(weights, momentum=0.5) if kind == "momentum" else optim.Adam(weights)
    group = optimizer.param_groups[0]
    schedule = schedules.CyclicLR(optimizer, 0.0, 1.0, 4, base_momentum=0.8, max_momentum=0.9)
    for i in range(20):
        height = min(i % 8, 8 - i % 8) / 4
        value = group["momentum"] if kind == "momentum" else group["betas"][0]
        assert value == pytest.approx(0.9 - 0.1 * height)
        assert group["lr"] == pytest.approx(height)
        optimizer.step()
        schedule.step()
    if kind == "betas":
        assert group["betas"][1] == 0.999


def test_a_cycle_after_another_schedule_starts_from_its_own_rate() -> None:
    optimizer = sgd(0.8)
    schedules.ExponentialLR(optimizer, 0.5)
    cyclic = schedules.CyclicLR(optimizer, 0.1, 0.5, 2, cycle_momentum=False)
    assert_close(preview(cyclic, 3), [0.1, 0.3, 0.5])


# --- a metric -------------------------------------------------------------------------------------


def test_halved_when_validation_stops_improving() -> None:
    optimizer = sgd(0.8)
    schedule = schedules.HalveOnPlateau(optimizer)
    rates = []
    for loss in (3.0, 2.0, 2.0, 1.5, 1.6, 1.7, 1.4):
        schedule.step(loss)
        rates += schedule.get_last_lr()
    assert rates == [0.8, 0.8, 0.4, 0.4, 0.2, 0.1, 0.1]


def test_plateau_with_patience_and_a_maximum() -> None:
    optimizer = sgd(0.8)
    schedule = schedules.HalveOnPlateau(optimizer, "max", patience=1, cooldown=1, min_lr=0.3)
    rates = []
    for accuracy in (0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6):
        schedule.step(chainrule.tensor(accuracy))
        rates += schedule.get_last_lr()
    assert rates == [0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.3, 0.3]


def test_nan_counts_as_no_improvement() -> None:
    optimizer = sgd(0.8)
    schedule = schedules.HalveOnPlateau(optimizer)
    for loss in (1.0, math.nan):
        schedule.step(loss)
    assert schedule.get_last_lr() == [0.4]
    assert schedule.best == 1.0
