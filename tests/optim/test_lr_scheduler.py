"""Schedules: tensors as rates, schedules of schedules, their order, conditions and errors."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from optim.schedules import FORMULAS

import chainrule
from chainrule import optim
from chainrule.optim import lr_scheduler as schedules
from chainrule.optim.lr_scheduler import preview, robbins_monro


def sgd(lr: Any = 0.8, **settings: Any) -> optim.SGD:
    return optim.SGD([chainrule.zeros(2, requires_grad=True)], lr=lr, **settings)


# --- rates that are tensors -----------------------------------------------------------------------


SCALING = [n for n in FORMULAS if n not in ("CyclicLR", "OneCycleLR")]


@pytest.mark.parametrize("name", SCALING)
def test_each_rate_of_a_list_is_scaled(name: str) -> None:
    """A list with a tensor of rates for one parameter and a number for another."""
    make, _ = FORMULAS[name]
    factors = np.array([[1.0, 0.5, 0.25]])
    rates = chainrule.tensor(0.8 * factors, dtype=chainrule.float64)
    params = [chainrule.zeros(2, 3, requires_grad=True), chainrule.zeros(4, requires_grad=True)]
    optimizer = optim.SGD(params, lr=[rates, 0.8])
    schedule = make(optimizer)
    alone = {f: preview(make(sgd(0.8 * f)), 15) for f in (1.0, 0.5, 0.25)}
    for i in range(15):
        tensor, number = optimizer.param_groups[0]["lr"]
        assert tensor is rates
        expected = np.array([[alone[f][i] for f in (1.0, 0.5, 0.25)]])
        assert_close(tensor, expected, rtol=1e-12, atol=1e-12)
        assert number == pytest.approx(alone[1.0][i])
        optimizer.step()
        schedule.step()
        assert schedule.get_last_lr()[0][0] is not rates


def test_plateau_reduces_each_rate() -> None:
    rates = chainrule.tensor([0.8, 0.1], dtype=chainrule.float64)
    params = [chainrule.zeros(2, requires_grad=True), chainrule.zeros(2, requires_grad=True)]
    optimizer = optim.SGD(params, lr=[rates, 0.4])
    schedule = schedules.HalveOnPlateau(optimizer, min_lr=0.3)
    for _ in range(2):
        schedule.step(1.0)
    assert_close(rates, np.array([0.4, 0.1]))
    assert optimizer.param_groups[0]["lr"][1] == 0.3


def test_groups_may_share_a_tensor() -> None:
    rate = chainrule.tensor(0.8, dtype=chainrule.float64)
    groups = [{"params": [chainrule.zeros(1, requires_grad=True)]} for _ in range(2)]
    optimizer = optim.SGD(groups, lr=rate)
    exponential = schedules.ExponentialLR(optimizer, 0.5)
    plateau = schedules.HalveOnPlateau(optimizer)
    optimizer.step()
    exponential.step()
    assert float(rate) == 0.4
    plateau.step(1.0)
    plateau.step(1.0)
    assert float(rate) == 0.2


def test_scheduled_tensor_rates_move_the_parameters() -> None:
    w = chainrule.tensor([1.0, 1.0], dtype=chainrule.float64, requires_grad=True)
    rates = chainrule.tensor([0.1, 0.2], dtype=chainrule.float64)
    optimizer = optim.SGD([w], lr=rates)
    schedule = schedules.ExponentialLR(optimizer, 0.5)
    expected = np.ones(2)
    for i in range(5):
        expected = expected - np.array([0.1, 0.2]) * 0.5**i * 2 * expected
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        schedule.step()
    assert_close(w, expected)


@pytest.mark.parametrize("lr", ["list", "tensor"])
def test_schedules_that_set_rates_refuse_rates_of_parameters(lr: str) -> None:
    rates: Any = [0.1] if lr == "list" else chainrule.tensor([0.1, 0.2])
    optimizer = sgd(rates, momentum=0.9)
    with pytest.raises(ValueError, match="CyclicLR: sets the rate of a whole group to one number"):
        schedules.CyclicLR(optimizer, 0.1, 1.0)
    with pytest.raises(ValueError, match="OneCycleLR: .*group 0 has rates of its own"):
        schedules.OneCycleLR(optimizer, 1.0, 10)


# --- schedules of schedules -----------------------------------------------------------------------


def test_nested_schedules() -> None:
    """A sequence and a chain as parts of a sequence begin at their epoch 0."""

    def parts(o: Any) -> list[Any]:
        chain = schedules.ChainedScheduler(
            [schedules.ExponentialLR(o, 0.5), schedules.ConstantLR(o, 0.1, 2)]
        )
        inner = [schedules.ConstantLR(o, 0.5, 99), schedules.StepLR(o, 1, 0.25)]
        return [chain, schedules.SequentialLR(o, inner, [2])]

    first = [0.08, 0.04, 0.2, 0.1]  # 0.8 / 2^i, a tenth of it for two steps
    second = [0.4, 0.4, 0.8, 0.2]
    optimizer = sgd()
    made = schedules.SequentialLR(optimizer, parts(optimizer), [4])
    assert_close(preview(made, 8), first + second)
    optimizer = sgd()
    made = schedules.SequentialLR(optimizer, parts(optimizer)[::-1], [4])
    assert_close(preview(made, 8), second + first)


def test_rates_changed_by_hand_stay_changed() -> None:
    optimizer = sgd()
    schedule = schedules.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.02
    schedule.step()
    assert schedule.get_last_lr() == [0.01]


def test_a_schedule_written_as_for_pytorch() -> None:
    class Root(schedules.LRScheduler):
        def get_lr(self) -> list[Any]:
            return [base / math.sqrt(self.last_epoch + 1) for base in self.base_lrs]

    assert_close(preview(Root(sgd()), 4), [0.8 / math.sqrt(i) for i in (1, 2, 3, 4)])


def test_preview_changes_nothing() -> None:
    class Counter:
        calls = 0

        def __call__(self, i: int) -> float:
            self.calls += 1
            return 1.0

    counter = Counter()
    optimizer = sgd(momentum=0.9)
    parts = [schedules.LambdaLR(optimizer, counter), schedules.CyclicLR(optimizer, 0.1, 1.0, 3)]
    schedule = schedules.SequentialLR(optimizer, parts, [2])
    before = (counter.calls, schedule.state_dict(), copy.deepcopy(optimizer.state_dict()))
    preview(schedule, 20)
    assert before == (counter.calls, schedule.state_dict(), optimizer.state_dict())
    assert optimizer._steps_taken == 0


def test_preview_of_a_group() -> None:
    groups = [{"params": [chainrule.zeros(1, requires_grad=True)], "lr": lr} for lr in (0.1, 0.8)]
    schedule = schedules.ExponentialLR(optim.SGD(groups), 0.5)
    assert preview(schedule, 3, group=1) == [0.8, 0.4, 0.2]


# --- the order of steps ---------------------------------------------------------------------------


def test_a_schedule_before_its_optimizer_warns_once() -> None:
    optimizer = sgd()
    schedule = schedules.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match=r"`lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        schedule.step()
    schedule.step()  # warnings are errors here


def test_the_right_order_does_not_warn() -> None:
    optimizer = sgd()
    schedule = schedules.StepLR(optimizer, 2)
    optimizer.step()
    schedule.step()


def test_a_step_of_the_users_is_not_accused() -> None:
    class Mine(optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            pass

    optimizer = Mine([chainrule.zeros(1, requires_grad=True)], {"lr": 0.1})
    schedule = schedules.StepLR(optimizer, 2)
    optimizer.step()
    schedule.step()


def test_get_lr_and_epochs_warn() -> None:
    schedule = schedules.StepLR(sgd(), 2)
    with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
        schedule.get_lr()
    schedule.optimizer.step()
    with pytest.warns(UserWarning, match=r"The epoch parameter in `scheduler.step\(\)`"):
        schedule.step(3)
    assert schedule.get_last_lr() == pytest.approx([0.08])


# --- the conditions of Robbins and Monro ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rate", "diverges", "squares"),
    [
        ("1/t", lambda t: 1 / t, True, True),
        ("t^-0.6", lambda t: t**-0.6, True, True),
        ("t^-1/2", lambda t: t**-0.5, True, False),
        ("t^-0.3", lambda t: t**-0.3, True, False),
        ("t^-1.2", lambda t: t**-1.2, False, True),
        ("t^-2", lambda t: 5 / t**2, False, True),
        ("constant", lambda t: 0.1, True, False),
        ("0.99^t", lambda t: 0.99**t, False, True),
        ("1/(1 + t/100)", lambda t: 1 / (1 + t / 100), True, True),
        ("log(t)/t", lambda t: math.log(t + 1) / t, True, True),
        ("1/(t log t)", lambda t: 1 / (t * math.log(t + 1)), None, True),
        ("0.9999^t", lambda t: 0.9999**t, None, True),
    ],
)
def test_robbins_monro(name: str, rate: Any, diverges: bool | None, squares: bool) -> None:
    result = robbins_monro(rate)
    assert (result.rates_diverge, result.squares_converge) == (diverges, squares)
    both = None if diverges is None else diverges and squares
    assert result.satisfied is both


def test_robbins_monro_returns_sums_and_the_exponent() -> None:
    result = robbins_monro(lambda t: t**-0.75, 4096)
    t = np.arange(1, 4097.0)
    assert result.horizon == 4096
    assert result.sum_rates == pytest.approx((t**-0.75).sum())
    assert result.sum_squares == pytest.approx((t**-1.5).sum())
    assert result.exponent == pytest.approx(0.75, abs=1e-4)
    assert result == robbins_monro(list(t**-0.75))


def test_robbins_monro_of_schedules() -> None:
    assert robbins_monro(schedules.InverseTimeLR(sgd(), 0.5)).satisfied
    assert robbins_monro(schedules.ExponentialLR(sgd(), 0.999)).rates_diverge is False
    assert robbins_monro(schedules.CosineAnnealingLR(sgd(), 50)).squares_converge is False
    assert robbins_monro(schedules.LinearDecayLR(sgd(), 0.0, 100)).rates_diverge is False


def test_robbins_monro_does_not_suffice() -> None:
    """On x^4 from 10 the rates 1/t satisfy it, and the iterates overflow (errata 76)."""
    x = chainrule.tensor(10.0, dtype=chainrule.float64, requires_grad=True)
    optimizer = optim.SGD([x], lr=1.0)
    schedule = schedules.InverseTimeLR(optimizer, 1.0)
    assert robbins_monro(schedule).satisfied
    by_hand = 10.0
    for t in range(1, 6):
        optimizer.zero_grad()
        (x**4).backward()
        optimizer.step()
        schedule.step()
        by_hand -= 4 * by_hand**3 / t
        assert float(x) == pytest.approx(by_hand, rel=1e-9)
    assert abs(by_hand) > 1e290
    optimizer.zero_grad()
    (x**4).backward()
    with pytest.raises(RuntimeError, match="1 infinite values; no parameter was changed"):
        optimizer.step()


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        (lambda t: -1.0, "finite and not negative, got a_1 = -1.0"),
        (lambda t: math.nan if t == 3 else 1.0, "got a_3 = nan"),
        ([0.1] * 10, "at least 64 rates to judge, got 10"),
    ],
    ids=["negative", "nan", "few"],
)
def test_robbins_monro_refuses(rates: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        robbins_monro(rates)


# --- the size of batches --------------------------------------------------------------------------


def test_the_rate_grows_with_the_batch() -> None:
    """eta / (2 b) is kept."""
    for lr, b, new in ((0.1, 32, 256), (0.5, 100, 10), (1.0, 3, 7)):
        assert schedules.batch_scaled_lr(lr, b, new) / (2 * new) == pytest.approx(lr / (2 * b))
    scaled = schedules.batch_scaled_lr([chainrule.tensor([0.1, 0.2]), 0.3], 10, 20)
    assert_close(scaled[0], np.array([0.2, 0.4], np.float32), rtol=1e-6)
    assert scaled[1] == 0.6


def test_the_noise_of_a_step_stays_with_the_batch_scaled_rate() -> None:
    """The variance of the change per example seen: a step of rate eta and batch b has
    eta^2 Var(g) / b for b examples, so eta / b kept means the same for each of them."""
    r = np.random.default_rng(0)
    gradients = r.normal(size=200_000)
    spread = {}
    for b in (10, 40):
        lr = schedules.batch_scaled_lr(0.1, 10, b)
        steps = -lr * gradients[: len(gradients) // b * b].reshape(-1, b).mean(axis=1)
        spread[b] = steps.var() / b
    assert spread[40] == pytest.approx(spread[10], rel=0.05)


# --- bad input ------------------------------------------------------------------------------------


WRONG: list[tuple[str, Callable[[Any], Any], type[Exception], str]] = [
    ("step_size", lambda o: schedules.StepLR(o, 0), ValueError, "StepLR: invalid step_size: 0"),
    ("gamma", lambda o: schedules.ExponentialLR(o, -0.5), ValueError, "invalid gamma: -0.5"),
    ("T_max", lambda o: schedules.CosineAnnealingLR(o, 0), ValueError, "invalid T_max: 0"),
    ("total", lambda o: schedules.LinearLR(o, total_iters=0), ValueError, "invalid total_iters: 0"),
    ("start", lambda o: schedules.LinearLR(o, 0), ValueError, "greater than 0 .*start_factor=0"),
    ("factor", lambda o: schedules.ConstantLR(o, 2), ValueError, "between 0 and 1, got factor=2"),
    ("decay", lambda o: schedules.InverseTimeLR(o, -1), ValueError, "InverseTimeLR: invalid decay"),
    ("final", lambda o: schedules.LinearDecayLR(o, -1, 3), ValueError, "invalid final_lr: -1"),
    ("warm-up", lambda o: schedules.WarmupLR(o, 0), ValueError, "invalid warmup_iters: 0"),
    ("sizes", lambda o: schedules.CyclicLR(o, 0.1, 1, 0), ValueError, "invalid step_size_up: 0"),
    ("mode", lambda o: schedules.CyclicLR(o, 0.1, 1, mode="a"), ValueError, "or 'exp_range', got"),
    (
        "scale_mode",
        lambda o: schedules.CyclicLR(o, 0.1, 1, scale_mode="epochs"),
        ValueError,
        "scale_mode must be 'cycle' or 'iterations', got 'epochs'",
    ),
    (
        "div_factor",
        lambda o: schedules.OneCycleLR(o, 0.1, 9, div_factor=0),
        ValueError,
        "invalid div_factor: 0",
    ),
    ("lambda", lambda o: schedules.LambdaLR(o, 0.5), TypeError, "should be a function.* float"),
    ("optimizer", lambda o: schedules.StepLR("SGD", 2), TypeError, "StepLR: str is not an Optim"),
    ("resume", lambda o: schedules.StepLR(o, 2, last_epoch=4), KeyError, "load the optimizer's st"),
    (
        "milestones",
        lambda o: schedules.SequentialLR(o, [schedules.StepLR(o, 1)] * 3, [4, 2]),
        ValueError,
        r"milestones must not fall, got \[4, 2\]",
    ),
    (
        "other optimizer",
        lambda o: schedules.SequentialLR(o, [schedules.StepLR(sgd(), 1)], []),
        ValueError,
        "the StepLR at index 0 has another one",
    ),
    (
        "batch_size",
        lambda o: schedules.batch_scaled_lr(0.1, 0, 5),
        ValueError,
        "batch_scaled_lr: invalid batch_size: 0",
    ),
    (
        "preview",
        lambda o: preview(schedules.HalveOnPlateau(o), 3),
        TypeError,
        "rates of HalveOnPlateau depend on a metric",
    ),
    ("metric", lambda o: schedules.HalveOnPlateau(o).step("low"), ValueError, "could not convert"),
    (
        "another state",
        lambda o: schedules.StepLR(o, 2).load_state_dict(
            schedules.CosineAnnealingLR(o, 3).state_dict()
        ),
        ValueError,
        r"StepLR.load_state_dict: .*\['T_max', 'eta_min'\].*\['gamma', 'step_size'\] are needed",
    ),
    (
        "parts of a state",
        lambda o: schedules.ChainedScheduler([schedules.StepLR(o, 2)]).load_state_dict(
            {"_schedulers": []}
        ),
        ValueError,
        "the state has 0 schedulers, this one has 1",
    ),
]


@pytest.mark.parametrize(("name", "call", "kind", "message"), WRONG, ids=[w[0] for w in WRONG])
def test_wrong_calls(
    name: str, call: Callable[[Any], Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        call(sgd(momentum=0.9))


def test_a_state_of_more_groups_is_refused() -> None:
    groups = [{"params": [chainrule.zeros(1, requires_grad=True)]} for _ in range(2)]
    state = schedules.StepLR(optim.SGD(groups), 2).state_dict()
    with pytest.raises(ValueError, match="rates of 2 groups, the optimizer has 1"):
        schedules.StepLR(sgd(), 2).load_state_dict(state)


def test_an_optimizer_without_a_rate() -> None:
    class Fixed(optim.Optimizer):
        pass

    optimizer = Fixed([chainrule.zeros(1, requires_grad=True)], {})
    with pytest.raises(ValueError, match="StepLR: Fixed has no learning rate"):
        schedules.StepLR(optimizer, 2)


def test_an_error_in_a_step_leaves_no_mark() -> None:
    optimizer = sgd()
    schedule = schedules.LambdaLR(optimizer, lambda i: 1 / (1 - i))
    optimizer.step()
    with pytest.raises(ZeroDivisionError):
        schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.8
    schedule.last_epoch = 0
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()
