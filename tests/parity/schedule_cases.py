"""Schedules of all kinds in both libraries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from helpers import to_array

import chainrule


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
