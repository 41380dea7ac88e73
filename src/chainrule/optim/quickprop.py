"""Quickprop: a jump to the minimum of a parabola through the last two slopes, for each weight."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Unpack

from chainrule.ops.elementwise.functions import sign
from chainrule.ops.elementwise.logic import where
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.rules import decayed, fused
from chainrule.optim.settings import NOT_NEGATIVE, Implementation, Interval
from chainrule.typing import Params, Rates, Value

__all__ = ["Quickprop"]


class Quickprop(Optimizer):
    """Newton's method for each weight by itself, its curvature taken from the last two gradients.

    d(t) = d(t-1) g(t) / (g(t-1) - g(t)); p <- p + d(t)

    with these exceptions (Fahlman, 1988), in words for a weight whose last step was downhill:

    - without a last step (the first one, or after a gradient of zero), d = -lr g;
    - where g is as steep as before or nearly so, g(t) / g(t-1) >= growth / (1 + growth), the
      parabola is flat or opens downward, or its minimum is far away: d = growth d(t-1);
    - while g has the sign of the last gradient, -lr g is added to d (unless ``gradient_term`` is
      off), so that a weight whose steps have become tiny can go on. If the sign has changed, the
      minimum lies between, and d goes there: on a parabola exactly.

    For whole batches: slopes of different samples make no parabola.

    Args:
        params: the parameters, or groups of them.
        lr: epsilon, the rate of the gradient steps: a number, or tensors that fit the parameters
            (default 1e-2).
        growth: mu, how many times as large as the last a step may be (default 1.75).
        weight_decay: the strength of the penalty ||p||^2 / 2 (default 0).
        gradient_term: whether to add -lr g while the slope keeps its sign. Without it, the second
            step on a parabola is exact from either side.
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([5.0], requires_grad=True)
    >>> optimizer = optim.Quickprop([w], lr=0.6)
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     ((w - 3) ** 2).sum().backward()
    ...     optimizer.step()
    >>> w.detach()
    tensor([3.])
    """

    keeps_step = False
    ranges: ClassVar = {
        "growth": Interval(0, math.inf, "()"),
        "weight_decay": NOT_NEGATIVE,
    }

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-2,
        growth: float = 1.75,
        weight_decay: float = 0,
        gradient_term: bool = True,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        defaults = {
            "lr": lr,
            "growth": growth,
            "weight_decay": weight_decay,
            "gradient_term": gradient_term,
            "maximize": maximize,
        }
        super().__init__(params, defaults, implementation)

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("prev", "delta")

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        names = ("growth", "weight_decay", "gradient_term", "maximize")
        return {name: group[name] for name in names}

    @staticmethod
    @fused("quickprop")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        prev: Value,
        d: Value,
        *,
        growth: float,
        weight_decay: float,
        gradient_term: bool,
        maximize: bool,
    ) -> tuple[Value, ...]:
        g = decayed(p, g, weight_decay, maximize)
        # A step d is always downhill, sign(d) = -sign(prev). Times -sign(d) the last slope is
        # positive, and the present one is positive where its sign has not changed.
        way = -sign(d)
        slope, last = way * g, way * prev
        steep = slope >= growth / (1 + growth) * last
        gap = where(last > slope, last - slope, 1.0)
        jump = where(steep, growth, slope / gap) * d
        use_gradient = (d == 0) | (slope > 0) if gradient_term else d == 0
        d = where(use_gradient, jump - lr * g, jump)
        return p + d, g, d
