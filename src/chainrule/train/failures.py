"""How often training fails: the same network from many starts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from chainrule import nn
from chainrule.backend import dtypes
from chainrule.nn.module.evaluation import evaluating
from chainrule.ops.elementwise.functions import erfinv
from chainrule.ops.creation.from_data import tensor
from chainrule.optim.names import OptimizerLike
from chainrule.tensor import Tensor
from chainrule.train.batches import floating_dtype, to_tensor
from chainrule.train.batched.fit import ManyFits, fit_many
from chainrule.train.losses import LossLike
from chainrule.typing import ArrayLike

__all__ = ["FailureRate", "binomial_interval", "failure_rate"]


# The largest loss that is no failure, or what says so of outputs and targets.
Solved = float | Callable[[Tensor, Tensor], Any]


@dataclass
class FailureRate:
    """Failures of so many starts, their rate, and an interval for the probability behind it."""

    failures: int
    starts: int
    interval: tuple[float, float]
    confidence: float
    failed: list[bool]
    fits: ManyFits

    @property
    def rate(self) -> float:
        """The fraction of the starts that failed."""
        return self.failures / self.starts

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"failed {self.failures} of {self.starts} times ({self.rate:.0%}; "
            f"{self.confidence:.0%} interval {low:.1%} to {high:.1%})"
        )


def failure_rate(
    model: Callable[[], nn.Module],
    data: Sequence[ArrayLike],
    loss: LossLike,
    optimizer: OptimizerLike | None = None,
    *,
    solved: Solved,
    starts: int = 20,
    seed: int = 0,
    confidence: float = 0.95,
    method: str = "wilson",
    **options: Any,
) -> FailureRate:
    """Trains a network from many starts, all at once, and counts those that fail.

    Args:
        model: makes a new network.
        data: (x, y).
        loss: see :class:`Trainer`.
        optimizer: see :func:`fit_many`.
        solved: the largest loss of the last epoch that is no failure, or a function
            ``solved(output, y)`` of the outputs for x that says whether they are good.
        starts: how many.
        seed: of the first start; the others have the next seeds.
        confidence: of the interval.
        method: of the interval, see :func:`binomial_interval`.
        options: more arguments of :func:`fit_many`, such as ``epochs`` and ``batch_size``.

    >>> from chainrule import models, problems, train
    >>> xor = problems.boolean("xor")
    >>> result = train.failure_rate(
    ...     lambda: models.MLP(2, [2], 1, "tanh"), (xor.inputs, xor.targets), "bce_with_logits",
    ...     "rprop", solved=0.1, starts=5, epochs=200,
    ... )
    >>> result.starts, len(result.failed)
    (5, 5)
    """
    if starts < 1:
        raise ValueError(f"failure_rate: starts must be positive, got {starts}")
    seeds = range(seed, seed + starts)
    fits = fit_many(model, data, loss, optimizer, seeds=seeds, **options)
    failed = [not _is_solved(fits, i, data, solved) for i in range(starts)]
    failures = failed.count(True)
    interval = binomial_interval(failures, starts, confidence, method)
    return FailureRate(failures, starts, interval, confidence, failed, fits)


def _is_solved(fits: ManyFits, i: int, data: Sequence[ArrayLike], solved: Solved) -> bool:
    history, model = fits.histories[i], fits.models[i]
    if history.ending == "diverged":
        return False
    if not callable(solved):
        return len(history) > 0 and history[-1]["loss"] <= solved
    x, y = (to_tensor(part, floating_dtype(model)) for part in data[:2])
    with evaluating(model):
        output = model(x).detach()
    return bool(solved(output, y))


def binomial_interval(
    k: int, n: int, confidence: float = 0.95, method: str = "wilson"
) -> tuple[float, float]:
    """An interval for a probability of which k of n trials came true.

    "wilson" is (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n) with p = k / n
    and the normal quantile z; "exact" is that of Clopper and Pearson, which is never too narrow.

    >>> from chainrule import train
    >>> low, high = train.binomial_interval(6, 20)
    >>> round(low, 4), round(high, 4)
    (0.1455, 0.519)
    """
    if not 0 <= k <= n or n < 1 or not 0 < confidence < 1:
        raise ValueError(
            "binomial_interval: needs 0 <= k <= n, n >= 1 and a confidence between 0 and 1, got "
            f"k={k}, n={n}, confidence={confidence}"
        )
    if method == "exact":
        tail = (1 - confidence) / 2
        low = 0.0 if k == 0 else _solve(lambda p: 1 - _at_most(k - 1, n, p), tail)
        high = 1.0 if k == n else _solve(lambda p: -_at_most(k, n, p), -tail)
        return low, high
    if method != "wilson":
        raise ValueError(f"binomial_interval: method must be 'wilson' or 'exact', got {method!r}")
    z = math.sqrt(2) * float(erfinv(tensor(confidence, dtype=dtypes.float64)))
    p = k / n
    center, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
    low, high = (center - half) / (1 + z * z / n), (center + half) / (1 + z * z / n)
    return (0.0 if k == 0 else low), (1.0 if k == n else high)


def _at_most(k: int, n: int, p: float) -> float:
    """The probability of at most k of n, in logarithms that do not overflow."""
    if p <= 0 or p >= 1:
        return 1.0 if p <= 0 or k >= n else 0.0
    whole = math.lgamma(n + 1)
    return math.fsum(
        math.exp(
            whole
            - math.lgamma(i + 1)
            - math.lgamma(n - i + 1)
            + i * math.log(p)
            + (n - i) * math.log1p(-p)
        )
        for i in range(k + 1)
    )


def _solve(rising: Callable[[float], float], value: float) -> float:
    """Where a rising function of [0, 1] has a value, by halving."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > value else (middle, high)
    return (low + high) / 2
