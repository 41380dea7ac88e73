"""Rates and schedules of networks that are trained at once: each has its own."""

from __future__ import annotations

from typing import Any

import pytest
from train.many import classes
from train.test_many import compare, folds, small

from chainrule import optim, train
from chainrule.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau, StepLR

DATA, HELD_OUT = folds(*classes(60))


@pytest.mark.parametrize("lr", [None, [0.1, 0.2, 0.05, 0.3]])
def test_schedules_are_those_of_networks_alone(lr: list[float] | None) -> None:
    fits = compare(
        small(dropout=0.2),
        DATA,
        "cross_entropy",
        optim.AdamW,
        validation=HELD_OUT,
        lr=lr,
        schedule=lambda o: CosineAnnealingLR(o, 20),
        schedule_each="batch",
        early_stopping=3,  # some networks leave before others
        epochs=8,
        batch_size=16,
    )
    assert fits.jobs == 1
    assert all(h["lr"][0] > 2 * h["lr"][-1] for h in fits.histories)
    assert lr is None or len({len(h) for h in fits.histories}) > 1


def test_a_schedule_that_waits_for_a_loss_sees_that_of_its_network() -> None:
    fits = compare(
        small(),
        DATA,
        "cross_entropy",
        optim.SGD,
        validation=HELD_OUT,
        lr=[0.1, 1.0, 3.0, 9.0],
        schedule=lambda o: ReduceLROnPlateau(o, factor=0.1, patience=1),
        epochs=12,
    )
    fallen = [h["lr"][0] / h["lr"][-1] for h in fits.histories]
    assert min(fallen) == 1  # while it goes on falling
    assert max(fallen) > 5


def test_the_rates_of_groups_are_scaled_together() -> None:
    def grouped(params: Any, lr: float = 0.1) -> optim.Optimizer:
        first, *others = params
        return optim.SGD([{"params": others}, {"params": [first], "lr": 6 * lr}], lr=lr)

    compare(
        small(),
        DATA,
        "cross_entropy",
        grouped,
        lr=[0.01, 0.1, 0.2, 0.3],
        schedule=lambda o: StepLR(o, 2),
        epochs=5,
    )


def test_what_is_no_schedule_is_refused() -> None:
    given: dict[str, Any] = {"seeds": range(2), "epochs": 1}
    x, y = classes(10)
    optimizer = optim.SGD(small()().parameters(), lr=0.1)
    for schedule in (StepLR(optimizer, 2), "cosine"):
        with pytest.raises(TypeError, match="must be a function that makes one"):
            train.fit_many(small(), (x, y), "cross_entropy", schedule=schedule, **given)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="make a learning-rate schedule for an optimizer, got int"):
        train.fit_many(small(), (x, y), "cross_entropy", schedule=lambda o: 3, **given)  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="schedule_each must be 'epoch' or 'batch', got 'step'"):
        train.fit_many(small(), (x, y), "cross_entropy", schedule_each="step", **given)
