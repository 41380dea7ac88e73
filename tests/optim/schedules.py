"""An optimizer to schedule, and the formulas of schedules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from chainrule.optim import lr_scheduler as schedules


FORMULAS: dict[str, tuple[Callable[[Any], Any], Callable[[int], float]]] = {
    "StepLR": (lambda o: schedules.StepLR(o, 4, 0.5), lambda i: 0.8 * 0.5 ** (i // 4)),
    "HalveEvery": (lambda o: schedules.HalveEvery(o, 4), lambda i: 0.8 / 2 ** (i // 4)),
    "MultiStepLR": (
        lambda o: schedules.MultiStepLR(o, [10, 3], 0.1),
        lambda i: 0.8 if i < 3 else 0.08 if i < 10 else 0.008,
    ),
    "ConstantLR": (lambda o: schedules.ConstantLR(o, 0.25, 6), lambda i: 0.2 if i < 6 else 0.8),
    "ConstantLR from zero": (
        lambda o: schedules.ConstantLR(o, 0.0, 6),
        lambda i: 0.0 if i < 6 else 0.8,
    ),
    "LinearLR": (
        lambda o: schedules.LinearLR(o, 0.5, 1.0, 8),
        lambda i: 0.8 * min(1.0, 0.5 + i / 16),
    ),
    "LinearDecayLR": (
        lambda o: schedules.LinearDecayLR(o, 0.2, 12),
        lambda i: max(0.2, 0.8 - 0.05 * i),
    ),
    "LinearDecayLR upward": (
        lambda o: schedules.LinearDecayLR(o, 1.4, 12),
        lambda i: min(1.4, 0.8 + 0.05 * i),
    ),
    "ExponentialLR": (lambda o: schedules.ExponentialLR(o, 0.9), lambda i: 0.8 * 0.9**i),
    "InverseTimeLR": (lambda o: schedules.InverseTimeLR(o, 0.1), lambda i: 0.8 / (1 + i / 10)),
    "PolynomialLR": (
        lambda o: schedules.PolynomialLR(o, 20, 2),
        lambda i: 0.8 * max(0.0, 1 - i / 20) ** 2,
    ),
    "CosineAnnealingLR": (
        lambda o: schedules.CosineAnnealingLR(o, 7, 0.2),
        lambda i: 0.2 + 0.3 * (1 + math.cos(math.pi * i / 7)),
    ),
    "CosineAnnealingWarmRestarts": (
        lambda o: schedules.CosineAnnealingWarmRestarts(o, 2, 2),
        lambda i: (
            0.4
            * (
                1
                + math.cos(
                    math.pi * (i + 2 - 2 ** int(math.log2(i + 2))) / 2 ** int(math.log2(i + 2))
                )
            )
        ),
    ),
    "CyclicLR": (
        lambda o: schedules.CyclicLR(o, 0.1, 0.9, 4, cycle_momentum=False),
        lambda i: 0.1 + 0.2 * min(i % 8, 8 - i % 8),
    ),
    "OneCycleLR": (
        lambda o: schedules.OneCycleLR(
            o,
            1.0,
            31,
            pct_start=11 / 31,
            anneal_strategy="linear",
            cycle_momentum=False,
            div_factor=2.0,
            final_div_factor=10.0,
        ),
        lambda i: 0.5 + 0.05 * i if i <= 10 else 1.0 - 0.95 * (i - 10) / 20,
    ),
    "LambdaLR": (lambda o: schedules.LambdaLR(o, lambda i: 1 / (i + 1)), lambda i: 0.8 / (i + 1)),
    "MultiplicativeLR": (
        lambda o: schedules.MultiplicativeLR(o, lambda i: i / (i + 1)),
        lambda i: 0.8 / (i + 1),
    ),
    "SequentialLR": (
        lambda o: schedules.SequentialLR(
            o, [schedules.ConstantLR(o, 0.5, 99), schedules.InverseTimeLR(o, 1.0)], [5]
        ),
        lambda i: 0.4 if i < 5 else 0.8 / (1 + i - 5),
    ),
    "ChainedScheduler": (
        lambda o: schedules.ChainedScheduler(
            [schedules.ExponentialLR(o, 0.9), schedules.InverseTimeLR(o, 1.0)]
        ),
        lambda i: 0.8 * 0.9**i / (1 + i),
    ),
    "WarmupLR": (
        lambda o: schedules.WarmupLR(o, 4, schedules.ExponentialLR(o, 0.9)),
        lambda i: 0.16 * (i + 1) if i < 4 else 0.8 * 0.9 ** (i - 4),
    ),
    "WarmupLR alone": (
        lambda o: schedules.WarmupLR(o, 4, start_factor=0.5),
        lambda i: 0.4 + 0.1 * i if i < 4 else 0.8,
    ),
}
