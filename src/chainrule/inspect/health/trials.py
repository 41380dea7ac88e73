"""A few steps of training on a copy, at the given rate and at others."""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from chainrule.autograd.modes import enable_grad
from chainrule.inspect.core.arguments import call
from chainrule.inspect.health.findings import Seen, rule
from chainrule.inspect.health.objectives import Loss
from chainrule.nn.module.base import Module
from chainrule.ops.reduce.reductions import mean
from chainrule.optim import NotFiniteError, Optimizer
from chainrule.optim.minimizer import Minimizer
from chainrule.random import fork_rng
from chainrule.tensor import Tensor

__all__ = ["Trial", "train_copy"]

STEPS, SECONDS = 40, 2.0
# How far up the loss may be thrown, in times the start: a rate that comes back from 5 and is faster
# than a hundredth of it works; none that works goes to 20.
PEAK, FAR = 5, 20
LEAST = 12  # steps after which a fall or a rise is more than noise


@dataclass(eq=False)
class Trial:
    """What rules about the rate look at: losses of a copy, step by step.

    ``at(factor)`` trains another copy with the rate times a factor.
    """

    model: Module
    loss: Loss
    optimizer: Optimizer
    batches: list[tuple[Any, Any]]
    steps: int = STEPS
    _known: dict[float, list[float]] = field(default_factory=dict)

    @cached_property
    def rate(self) -> float | None:
        """The learning rate of the first group, if it has one that is a number."""
        rate = self.optimizer.param_groups[0].get("lr")
        return float(rate) if isinstance(rate, (int, float)) and rate > 0 else None

    def at(self, factor: float = 1.0) -> list[float]:
        """The loss of each step; the last one is infinite where it was not finite."""
        if factor not in self._known:
            self._known[factor] = train_copy(
                self.model, self.loss, self.optimizer, self.batches, self.steps, factor
            )
        return self._known[factor]

    def fall(self, factor: float = 1.0) -> float:
        """1 - the mean of the last quarter of the losses / the first loss; negative if it rises."""
        losses = self.at(factor)
        if not math.isfinite(losses[-1]):
            return -math.inf
        end = losses[-max(1, len(losses) // 4) :]
        return 1 - sum(end) / len(end) / max(abs(self.start), 1e-12)

    @cached_property
    def start(self) -> float:
        """The mean loss of the batches before any step."""
        losses = self.at(0.0) if len(self.batches) > 1 else self.at(1.0)[:1]
        return sum(losses) / len(losses)


def train_copy(
    model: Module,
    loss: Loss,
    optimizer: Optimizer,
    batches: list[tuple[Any, Any]],
    steps: int = STEPS,
    factor: float = 1.0,
) -> list[float]:
    """Trains copies of a model and its optimizer; the loss of every step."""
    own, stepper = copy.deepcopy((model, optimizer))
    for group in stepper.param_groups:
        if isinstance(group.get("lr"), (int, float)):
            group["lr"] = group["lr"] * factor
    own.train()
    losses: list[float] = []
    began = time.perf_counter()
    if factor == 0:
        steps = min(steps, len(batches))
    with fork_rng(), enable_grad():
        for inputs, targets in itertools.islice(itertools.cycle(batches), steps):

            def closure(inputs: Any = inputs, targets: Any = targets) -> Tensor:
                stepper.zero_grad()
                value = mean(loss(call(own, "doctor", inputs), targets))
                if not isinstance(stepper, Minimizer) and math.isfinite(float(value.detach())):
                    value.backward()
                return value

            try:
                value = closure() if factor == 0 else stepper.step(closure)
            except (NotFiniteError, FloatingPointError, OverflowError):
                value = None
            losses.append(math.inf if value is None else float(value))
            if not math.isfinite(losses[-1]):
                losses[-1] = math.inf
                break
            if time.perf_counter() - began > SECONDS and len(losses) >= LEAST:
                break
    return losses


@rule(
    "rate too high",
    "trial",
    0.0,
    "how much the loss falls in some steps on a copy; it rises, or stays where a hundredth of the "
    "rate brings it down",
    "error",
)
def _too_high(trial: Trial, threshold: float) -> Iterator[Seen]:
    if trial.rate is None or (len(trial.at()) < LEAST and math.isfinite(trial.at()[-1])):
        return
    fall, peak = trial.fall(), max(trial.at()) / max(abs(trial.start), 1e-12)
    if fall >= threshold and peak < PEAK:
        return
    slower = trial.fall(0.01)
    rises = fall < -0.5 and slower > -0.02
    stuck = fall < threshold and slower > max(0.02, fall + 0.02)
    thrown = slower > -0.02 and (peak >= FAR or (peak >= PEAK and slower > fall))
    if rises or stuck or thrown:
        what = "is not finite any more" if fall == -math.inf else f"changes by {-fall:+.0%}"
        yield Seen(
            "optimizer",
            max(fall, -1e9),
            f"in {len(trial.at())} steps on a copy at rate {trial.rate:g} the loss {what} (at "
            f"worst {peak:.3g} times the start), at rate {trial.rate / 100:g} by {-slower:+.1%}",
            f"a rate of about {trial.rate / 100:g} to {trial.rate / 10:g}",
        )


@rule(
    "rate too low",
    "trial",
    0.005,
    "how much the loss falls in some steps on a copy; less, where a hundred times the rate makes "
    "it fall ten times as much",
)
def _too_low(trial: Trial, threshold: float) -> Iterator[Seen]:
    if trial.rate is None or len(trial.at()) < LEAST or not math.isfinite(trial.at()[-1]):
        return
    fall = trial.fall()
    if -threshold < fall < threshold and trial.fall(100.0) > max(0.04, 10 * fall):
        yield Seen(
            "optimizer",
            fall,
            f"in {len(trial.at())} steps on a copy the loss falls by {fall:.2%} at rate "
            f"{trial.rate:g}, by {trial.fall(100.0):.0%} at rate {100 * trial.rate:g}",
            f"a rate of about {10 * trial.rate:g} to {100 * trial.rate:g}",
        )
