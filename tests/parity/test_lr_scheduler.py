"""The schedules against PyTorch's: rates and momenta step by step, resumed, in files."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from helpers import assert_close, to_array

import chainrule
from chainrule import optim

torch = pytest.importorskip("torch")

STEPS = 60
RATES = (0.5, 0.02)  # of the two groups


@dataclass(frozen=True)
class Case:
    """A schedule of both libraries: ``make(schedules, optimizer, **last_epoch)``."""

    name: str
    label: str
    make: Callable[..., Any]
    optimizer: str = "SGD"
    resumes: bool = True  # whether the constructor takes last_epoch, and PyTorch gets it right


def shown(value: Any) -> str:
    """The same in every run, which the address of a function is not."""
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return getattr(value, "__name__", type(value).__name__) if callable(value) else str(value)


def plain(name: str, *args: Any, optimizer: str = "SGD", **settings: Any) -> Case:
    def make(schedules: Any, optimizer: Any, **more: Any) -> Any:
        return getattr(schedules, name)(optimizer, *args, **settings, **more)

    given = [*map(shown, args), *[f"{k}={shown(v)}" for k, v in settings.items()]]
    resumes = name != "ReduceLROnPlateau"
    return Case(name, f"{name}({', '.join([optimizer, *given])})", make, optimizer, resumes)


def shrinking(i: float) -> float:
    return 1 / (1 + 0.3 * i)


class Powers:
    """A function with state."""

    def __init__(self, base: float):
        self.base = base

    def __call__(self, i: float) -> float:
        return self.base**i


def sequential(s: Any, o: Any) -> Any:
    parts = [
        s.ConstantLR(o, 0.1, 100),
        s.LinearLR(o, 0.2, 1.0, 10),
        s.ExponentialLR(o, 0.9),
        s.CosineAnnealingLR(o, 6, 0.001),
        s.StepLR(o, 3, 0.5),
        s.MultiStepLR(o, [2, 4], 0.3),
    ]
    return s.SequentialLR(o, parts, milestones=[5, 15, 25, 40, 50])


def sequential_of_cycles(s: Any, o: Any) -> Any:
    parts = [
        s.CosineAnnealingWarmRestarts(o, 4, 2),
        s.CyclicLR(o, 0.1, 0.4, 4),
        s.LambdaLR(o, shrinking),
        s.MultiplicativeLR(o, shrinking),
        s.PolynomialLR(o, 20, 2.0),
        s.CosineAnnealingWarmRestarts(o, 3),
    ]
    return s.SequentialLR(o, parts, milestones=[9, 20, 30, 35, 50])


def chained(s: Any, o: Any) -> Any:
    parts = [s.ConstantLR(o, 0.1, 7), s.ExponentialLR(o, 0.95), s.StepLR(o, 11, 0.7)]
    return s.ChainedScheduler(parts)


def chained_with_optimizer(s: Any, o: Any) -> Any:
    parts = [s.LinearLR(o, 0.25, 1.0, 8), s.MultiStepLR(o, [10, 20, 20], 0.5)]
    return s.ChainedScheduler(parts, optimizer=o)


CASES = [
    plain("LambdaLR", shrinking),
    plain("LambdaLR", [shrinking, Powers(0.9)]),
    plain("MultiplicativeLR", shrinking),
    plain("MultiplicativeLR", [Powers(0.99), shrinking]),
    plain("StepLR", 7),
    plain("StepLR", 1, gamma=0.9),
    plain("StepLR", step_size=10, gamma=1.5),
    plain("MultiStepLR", [3, 10, 10, 31]),
    plain("MultiStepLR", [40, 5], gamma=0.5),
    plain("ConstantLR"),
    plain("ConstantLR", factor=0.2, total_iters=13),
    plain("ConstantLR", factor=1.0),
    plain("LinearLR"),
    plain("LinearLR", start_factor=0.1, end_factor=0.8, total_iters=20),
    plain("LinearLR", start_factor=1.0, end_factor=0.0, total_iters=30),
    plain("ExponentialLR", 0.9),
    plain("ExponentialLR", 1.0),
    plain("PolynomialLR"),
    plain("PolynomialLR", total_iters=40, power=0.9),
    plain("PolynomialLR", total_iters=25, power=3),
    plain("CosineAnnealingLR", 10),
    plain("CosineAnnealingLR", 7, eta_min=0.001),
    plain("CosineAnnealingLR", T_max=100),
    plain("CosineAnnealingLR", 1),
    plain("CosineAnnealingWarmRestarts", 10),
    plain("CosineAnnealingWarmRestarts", 4, T_mult=2, eta_min=0.001),
    plain("CosineAnnealingWarmRestarts", 3, 3),
    plain("CyclicLR", 0.01, 0.1, step_size_up=8),
    plain("CyclicLR", 0.01, 0.1, 5, 9, mode="triangular2"),
    plain("CyclicLR", 0.01, 0.1, 5, mode="exp_range", gamma=0.95),
    plain("CyclicLR", [0.01, 0.2], [0.1, 0.3], 6, base_momentum=0.7, max_momentum=[0.9, 0.95]),
    plain("CyclicLR", 0.01, 0.1, 4, cycle_momentum=False),
    plain("CyclicLR", 0.01, 0.1, 6, optimizer="Adam"),
    plain("CyclicLR", 0.01, 0.1, 6, scale_fn=shrinking),
    plain("CyclicLR", 0.01, 0.1, 7, scale_fn=Powers(0.98), scale_mode="iterations"),
    plain("OneCycleLR", 0.1, total_steps=STEPS + 1),
    plain("OneCycleLR", 0.1, epochs=10, steps_per_epoch=7, anneal_strategy="linear"),
    plain("OneCycleLR", [0.1, 0.3], 70, three_phase=True, div_factor=10.0, final_div_factor=50.0),
    plain("OneCycleLR", 0.1, 65, pct_start=0.0),
    plain("OneCycleLR", 0.1, 65, pct_start=1.0, anneal_strategy="linear"),
    plain("OneCycleLR", 0.1, 80, optimizer="Adam", base_momentum=0.8, max_momentum=[0.9, 0.99]),
    plain("OneCycleLR", 0.1, 80, cycle_momentum=False, pct_start=0.5, three_phase=True),
    plain("ReduceLROnPlateau"),
    plain("ReduceLROnPlateau", factor=0.5, patience=2, cooldown=3),
    plain("ReduceLROnPlateau", "max", 0.3, 1, threshold=0.2),
    plain("ReduceLROnPlateau", "min", 0.5, 0, threshold=0.3, threshold_mode="abs"),
    plain("ReduceLROnPlateau", "max", 0.5, 0, threshold=0.3, threshold_mode="abs", min_lr=0.01),
    plain("ReduceLROnPlateau", factor=0.2, patience=1, min_lr=[0.3, 0.001], eps=0.01),
    Case("SequentialLR", "SequentialLR", sequential, resumes=False),
    Case("SequentialLR", "SequentialLR(cycles)", sequential_of_cycles, resumes=False),
    Case("ChainedScheduler", "ChainedScheduler", chained, resumes=False),
    Case("ChainedScheduler", "ChainedScheduler(optimizer)", chained_with_optimizer, resumes=False),
]

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


def optimizers(case: Case, rates: Any = None) -> list[Any]:
    """The optimizer of both libraries, with two groups of different rates."""
    made = []
    for library in (chainrule, torch):
        settings = {"momentum": 0.9} if case.optimizer == "SGD" else {"betas": (0.85, 0.99)}
        groups = [
            {"params": [library.zeros(2, requires_grad=True)], "lr": rate(library) if rates else lr}
            for lr, rate in zip(RATES, rates or RATES, strict=True)
        ]
        made.append(getattr(library.optim, case.optimizer)(groups, lr=0.1, **settings))
    return made


def schedules(case: Case, made: list[Any], **more: Any) -> list[Any]:
    libraries = (chainrule, torch)
    return [
        case.make(library.optim.lr_scheduler, optimizer, **more)
        for library, optimizer in zip(libraries, made, strict=True)
    ]


def settings_of(optimizer: Any) -> list[Any]:
    names = ("lr", "initial_lr", "max_lr", "min_lr", "momentum", "betas", "base_momentum")
    return [
        [np.asarray(to_array(g[n]) if hasattr(g[n], "detach") else g[n]) for n in names if n in g]
        for g in optimizer.param_groups
    ]


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
