"""What a schedule will do, without doing it: its rates ahead, and the conditions on their sums."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from chainrule.optim.lr_scheduler.base import LRScheduler, copied
from chainrule.optim.lr_scheduler.plateau import ReduceLROnPlateau

__all__ = ["RobbinsMonro", "preview", "robbins_monro"]

CRITICAL = 0.01  # exponents so near to the critical one are taken for it


def preview(scheduler: LRScheduler, steps: int, group: int = 0) -> list[Any]:
    """The rates of a group for so many steps from now on; scheduler and optimizer stay as they are.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    >>> optim.lr_scheduler.preview(scheduler, 5)
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """
    if isinstance(scheduler, ReduceLROnPlateau):
        raise TypeError(
            f"preview: the rates of {type(scheduler).__name__} depend on a metric that is not "
            "known yet"
        )
    double = copy.copy(scheduler.optimizer)
    double.param_groups = [
        {k: v if k == "params" else copied(v) for k, v in g.items()} for g in double.param_groups
    ]
    double._steps_taken += 1  # the order of steps is of no concern here
    schedule = copy.deepcopy(scheduler, {id(scheduler.optimizer): double})
    rates = []
    for i in range(steps):
        if i:
            schedule.step()
        rates.append(copied(double.param_groups[group]["lr"]))
    return rates


@dataclass(frozen=True)
class RobbinsMonro:
    """Whether rates a_t satisfy sum a_t = inf and sum a_t^2 < inf, as far as could be seen.

    ``sum_rates`` and ``sum_squares`` are the sums up to the horizon, ``exponent`` is the p of
    a_t ~ t^-p there. A verdict is None where the horizon is too near to tell. The conditions do not
    suffice for convergence: the gradient has to be Lipschitz, too, or the iterates bounded.
    """

    horizon: int
    sum_rates: float
    sum_squares: float
    exponent: float
    rates_diverge: bool | None
    squares_converge: bool | None

    @property
    def satisfied(self) -> bool | None:
        """Whether both conditions hold."""
        if False in (self.rates_diverge, self.squares_converge):
            return False
        return None if None in (self.rates_diverge, self.squares_converge) else True


def robbins_monro(
    schedule: LRScheduler | Callable[[int], float] | Sequence[float], horizon: int = 2**14
) -> RobbinsMonro:
    """Tells whether rates satisfy the conditions of Robbins and Monro (1951).

    The verdict is numerical. With S_k the sum of the a_t for 2^k <= t < 2^(k+1), the sum of all
    diverges if S_k grows like 2^(s k) with s > 0 and converges if s < 0; if s = 0, it diverges if
    S_k falls more slowly than 1 / k. s and this speed are those of the last blocks before the
    horizon: what a schedule does after it cannot be known, and where s has not settled by then
    (rates with logarithms, a slow decay) the verdict is None; a larger horizon may help.

    Args:
        schedule: a function of t = 1, 2, ...; a schedule, from its epoch on; or the rates.
        horizon: how many rates are looked at (all that are given, of a list).

    >>> from chainrule import optim
    >>> result = optim.lr_scheduler.robbins_monro(lambda t: 1 / t)
    >>> result.satisfied, round(result.exponent, 2)
    (True, 1.0)
    >>> optim.lr_scheduler.robbins_monro(lambda t: 1 / t**0.5).squares_converge
    False
    """
    if isinstance(schedule, LRScheduler):
        rates = [float(rate) for rate in preview(schedule, horizon)]
    elif callable(schedule):
        rates = [float(schedule(t)) for t in range(1, horizon + 1)]
    else:
        rates = [float(rate) for rate in schedule]
    if len(rates) < 64:
        raise ValueError(f"robbins_monro: needs at least 64 rates to judge, got {len(rates)}")
    for t, rate in enumerate(rates, 1):
        if not 0 <= rate < math.inf:
            raise ValueError(
                f"robbins_monro: rates must be finite and not negative, got a_{t} = {rate}"
            )
    squares = [rate * rate for rate in rates]
    growth, diverge = _diverges(rates)
    _, squares_diverge = _diverges(squares)
    return RobbinsMonro(
        horizon=len(rates),
        sum_rates=math.fsum(rates),
        sum_squares=math.fsum(squares),
        exponent=1 - growth,
        rates_diverge=diverge,
        squares_converge=None if squares_diverge is None else not squares_diverge,
    )


def _diverges(terms: list[float]) -> tuple[float, bool | None]:
    """The growth s of the block sums S_k ~ 2^(s k) at the end, and whether all of them diverge."""
    blocks = [
        math.fsum(terms[2**k - 1 : 2 ** (k + 1) - 1])
        for k in range((len(terms) + 1).bit_length() - 1)
    ]
    if not blocks[-1]:
        return -math.inf, False
    k = len(blocks) - 1
    steps = [math.log2(b / a) for a, b in zip(blocks[-4:], blocks[-3:], strict=False)]
    growth = _limit(*steps)
    if abs(growth) <= CRITICAL:
        speed = -steps[-1] / math.log2((k + 1) / k)  # q of S_k ~ k^-q
        return growth, None if 0.5 < speed < 1.5 else speed <= 0.5
    # A logarithm in the rates moves s by what it moved last, at most k times more.
    farthest = steps[-1] + k * (steps[-1] - steps[-2])
    if steps[-1] > 0:
        return growth, True if farthest > -CRITICAL else None
    return growth, False if farthest < -CRITICAL else None


def _limit(a: float, b: float, c: float) -> float:
    """Where three values of a sequence lead (Aitken), if they come nearer to it; else the last."""
    second = c - 2 * b + a
    if abs(c - b) >= abs(b - a) or second == 0:
        return c
    return c - (c - b) ** 2 / second
