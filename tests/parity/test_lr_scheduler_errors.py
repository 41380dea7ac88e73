"""Steps to an epoch, warnings and errors of schedules, as PyTorch has them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from helpers import assert_close
from parity.schedule_cases import CASES, Case, optimizers, plain, schedules, settings_of

import chainrule


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


# --- one schedule in both libraries ---------------------------------------------------------------


def metric(i: int) -> float:
    """A loss that falls in jumps, with a bad one now and then."""
    return 3.0 / (1 + i // 6) + (1.0 if i % 7 == 3 else 0.0)


# --- steps to an epoch, warnings ------------------------------------------------------------------


EPOCHS = [3, 10, 2, 31, 7, 0, 14]


TAKES_EPOCHS = [c for c in CASES if c.name not in ("SequentialLR", "ChainedScheduler")]


@pytest.mark.parametrize("case", TAKES_EPOCHS, ids=lambda c: c.label)
def test_steps_to_an_epoch(case: Case) -> None:
    made = optimizers(case)
    both = schedules(case, made)
    for epoch in EPOCHS:
        counts = []
        for optimizer, schedule in zip(made, both, strict=True):
            optimizer.step()
            value = [metric(epoch)] if case.name == "ReduceLROnPlateau" else []
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                schedule.step(*value, epoch)
            counts.append([w.category for w in caught])
        assert counts[0] == counts[1]
        assert_close(settings_of(made[0]), settings_of(made[1]), rtol=1e-11, atol=1e-15)


def test_warm_restarts_at_fractions_of_an_epoch() -> None:
    case = plain("CosineAnnealingWarmRestarts", 4, T_mult=2)
    made = optimizers(case)
    both = schedules(case, made)
    for i in range(1, 100):
        for schedule in both:
            schedule.step(i / 7)
        assert_close(settings_of(made[0]), settings_of(made[1]), rtol=1e-9, atol=1e-12)


@each_case
def test_the_same_warnings_in_the_wrong_order(case: Case) -> None:
    """A schedule is stepped before its optimizer, then after it, then twice."""
    counts = []
    for library, optimizer in zip((chainrule, torch), optimizers(case), strict=True):
        schedule = case.make(library.optim.lr_scheduler, optimizer)
        value = [1.0] if case.name == "ReduceLROnPlateau" else []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            schedule.step(*value)
            optimizer.step()
            schedule.step(*value)
            schedule.step(*value)
        order = "Detected call of `lr_scheduler.step\\(\\)` before `optimizer.step\\(\\)`"
        counts.append([w.category for w in caught if order.replace("\\", "") in str(w.message)])
        assert len(caught) == len(counts[-1])
    assert counts[0] == counts[1]


@pytest.mark.parametrize("stepped", [False, True])
def test_steps_count_from_the_first_schedule(stepped: bool) -> None:
    """A step made before there was a schedule does not count, one under another schedule does."""
    counts = []
    for library, optimizer in zip((chainrule, torch), optimizers(CASES[0]), strict=True):
        optimizer.step()
        schedule = library.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        if stepped:
            optimizer.step()
            schedule = library.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            schedule.step()
        counts.append(len(caught))
    assert counts == [0, 0] if stepped else counts == [1, 1]


# --- errors ---------------------------------------------------------------------------------------


WRONG: list[tuple[str, str, Callable[[Any, Any], Any]]] = [
    ("no optimizer", "SGD", lambda s, o: s.StepLR([1], 2)),
    ("no optimizer, cyclic", "SGD", lambda s, o: s.CyclicLR(None, 0.1, 1)),
    ("no optimizer, one cycle", "SGD", lambda s, o: s.OneCycleLR(None, 0.1, 1)),
    ("no optimizer, plateau", "SGD", lambda s, o: s.ReduceLROnPlateau(3)),
    ("no initial_lr", "SGD", lambda s, o: s.StepLR(o, 2, last_epoch=3)),
    ("too few functions", "SGD", lambda s, o: s.LambdaLR(o, [shrinking])),
    ("too many functions", "SGD", lambda s, o: s.MultiplicativeLR(o, [shrinking] * 3)),
    ("no function", "SGD", lambda s, o: s.MultiplicativeLR(o, 0.9)),
    ("a factor above one", "SGD", lambda s, o: s.ConstantLR(o, 1.1)),
    ("a negative factor", "SGD", lambda s, o: s.ConstantLR(o, -0.1)),
    ("start_factor zero", "SGD", lambda s, o: s.LinearLR(o, 0.0)),
    ("end_factor above one", "SGD", lambda s, o: s.LinearLR(o, 0.5, 1.5)),
    ("T_0 zero", "SGD", lambda s, o: s.CosineAnnealingWarmRestarts(o, 0)),
    ("T_0 no integer", "SGD", lambda s, o: s.CosineAnnealingWarmRestarts(o, 2.5)),
    ("T_mult zero", "SGD", lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 0)),
    ("eta_min no number", "SGD", lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 1, "a")),
    ("a negative epoch", "SGD", lambda s, o: s.CosineAnnealingWarmRestarts(o, 2).step(-1)),
    ("base_lr too long", "SGD", lambda s, o: s.CyclicLR(o, [0.1] * 3, 1.0)),
    ("max_lr too long", "SGD", lambda s, o: s.CyclicLR(o, 0.1, [1.0] * 3)),
    ("mode", "SGD", lambda s, o: s.CyclicLR(o, 0.1, 1.0, mode="square")),
    ("no momentum", "Adagrad", lambda s, o: s.CyclicLR(o, 0.1, 1.0)),
    ("no momentum, one cycle", "Adagrad", lambda s, o: s.OneCycleLR(o, 0.1, 10)),
    ("no length", "SGD", lambda s, o: s.OneCycleLR(o, 0.1)),
    ("half a length", "SGD", lambda s, o: s.OneCycleLR(o, 0.1, epochs=3)),
    ("a negative length", "SGD", lambda s, o: s.OneCycleLR(o, 0.1, -1)),
    ("no integer", "SGD", lambda s, o: s.OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=1.5)),
    ("pct_start", "SGD", lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=1.5)),
    ("pct_start an integer", "SGD", lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=1)),
    ("anneal_strategy", "SGD", lambda s, o: s.OneCycleLR(o, 0.1, 10, anneal_strategy="sin")),
    ("factor one", "SGD", lambda s, o: s.ReduceLROnPlateau(o, factor=1.0)),
    ("plateau mode", "SGD", lambda s, o: s.ReduceLROnPlateau(o, "least")),
    ("threshold_mode", "SGD", lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="some")),
    ("min_lr", "SGD", lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1])),
    ("no schedulers", "SGD", lambda s, o: s.SequentialLR(o, [], [])),
    ("milestones", "SGD", lambda s, o: s.SequentialLR(o, [s.StepLR(o, 2)], [3])),
    ("no scheduler", "SGD", lambda s, o: s.SequentialLR(o, [3], [])),
    ("plateau", "SGD", lambda s, o: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], [])),
    ("nothing to chain", "SGD", lambda s, o: s.ChainedScheduler([])),
    ("plateau in a chain", "SGD", lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)])),
    ("the base class", "SGD", lambda s, o: s.LRScheduler(o)),
]


@pytest.mark.parametrize(("label", "kind", "call"), WRONG, ids=[w[0] for w in WRONG])
def test_the_same_errors(label: str, kind: str, call: Callable[[Any, Any], Any]) -> None:
    kinds = []
    for library in (chainrule, torch):
        groups = [{"params": [library.zeros(2, requires_grad=True)]} for _ in range(2)]
        optimizer = getattr(library.optim, kind)(groups, lr=0.1)
        with pytest.raises(Exception) as caught:  # noqa: PT011
            call(library.optim.lr_scheduler, optimizer)
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]


def test_one_cycle_ends() -> None:
    for library in (chainrule, torch):
        optimizer = library.optim.SGD([library.zeros(1, requires_grad=True)], lr=0.1)
        schedule = library.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 3)
        for _ in range(3):
            optimizer.step()
            schedule.step()
        with pytest.raises(ValueError, match="Tried to step 4 times"):
            schedule.step()


def test_a_group_added_later() -> None:
    """Schedules that scale go on with it; those with settings for each group cannot."""
    rates = []
    for library in (chainrule, torch):
        schedules = library.optim.lr_scheduler
        optimizer = library.optim.SGD([library.zeros(1, requires_grad=True)], lr=0.1)
        exponential = schedules.ExponentialLR(optimizer, 0.5)
        by_function = schedules.LambdaLR(optimizer, shrinking)
        plateau = schedules.ReduceLROnPlateau(optimizer, patience=0)
        limited = schedules.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.1])
        optimizer.add_param_group({"params": [library.zeros(1, requires_grad=True)], "lr": 0.8})
        optimizer.step()
        exponential.step()
        for _ in range(2):
            plateau.step(1.0)
        rates.append([float(group["lr"]) for group in optimizer.param_groups])
        limited.step(1.0)
        with pytest.raises(RuntimeError, match="The number of param groups"):
            limited.step(1.0)
        with pytest.raises(ValueError, match="groups|zip"):
            by_function.step()
    assert_close(rates[0], rates[1])
    assert_close(rates[0], [0.005, 0.04])
