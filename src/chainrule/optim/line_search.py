"""How far to go along a direction: searches for a step that lowers the loss enough.

With phi(t) = loss(x + t d), a step t satisfies Armijo's condition if the loss falls at least by the
part ``c1`` of what the slope promises, phi(t) <= phi(0) + c1 t phi'(0), and the strong Wolfe
conditions if moreover the slope has become flat, |phi'(t)| <= c2 |phi'(0)|. Where the loss or its
gradient is not finite, the loss counts as infinite: the step shrinks.

Every search is a function of an :class:`~chainrule.optim.objective.Objective`, the point, the loss
and gradient there, the direction and the first step to try; it returns a :class:`Search`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from chainrule.ops.linalg.matmul import matmul
from chainrule.optim.objective import Objective
from chainrule.tensor import Tensor

__all__ = [
    "LINE_SEARCHES",
    "Search",
    "backtracking",
    "cubic_minimum",
    "dot",
    "exact",
    "strong_wolfe",
]


@dataclass
class Search:
    """What a line search found: the step, and the point, loss and gradient there.

    ``success`` is whether the step satisfies the search's conditions; if not, ``reason`` says why,
    and the step is the best one seen (0, with the point it started from, if none was lower).
    """

    step: float
    x: Tensor
    loss: float
    gradient: Tensor
    evaluations: int
    success: bool
    reason: str = ""

    def is_lower_than(self, loss: float) -> bool:
        """Whether it moved, and not to a higher loss."""
        return self.step > 0 and self.loss <= loss


def dot(a: Tensor, b: Tensor) -> float:
    """The scalar product of two vectors."""
    return float(matmul(a, b))


class _Line:
    """The loss along a line, with the slope, and a count of evaluations."""

    def __init__(self, f: Objective, x: Tensor, loss: float, g: Tensor, d: Tensor):
        self.f, self.x, self.d = f, x, d
        self.start = _Trial(0.0, x, loss, g, dot(g, d))
        self.evaluations = 0

    def loss(self, t: float) -> float:
        self.evaluations += 1
        return self.f.value(self.x + t * self.d)

    def trial(self, t: float) -> _Trial:
        """Loss and gradient after a step; a gradient that is not finite makes the loss infinite."""
        self.evaluations += 1
        x = self.x + t * self.d
        loss, g = self.f.value_and_gradient(x)
        slope = dot(g, self.d)
        return _Trial(t, x, loss if math.isfinite(slope) else math.inf, g, slope)

    def is_enough(self, t: float, loss: float, c1: float) -> bool:
        """Armijo's condition."""
        return loss <= self.start.loss + c1 * t * self.start.slope

    def result(self, at: _Trial, success: bool, reason: str = "") -> Search:
        return Search(at.t, at.x, at.loss, at.g, self.evaluations, success, reason)


@dataclass
class _Trial:
    t: float
    x: Tensor
    loss: float
    g: Tensor
    slope: float


# --- Armijo ---------------------------------------------------------------------------------------


def backtracking(
    f: Objective,
    x: Tensor,
    loss: float,
    g: Tensor,
    d: Tensor,
    step: float = 1.0,
    *,
    c1: float = 1e-4,
    shrink: float = 0.5,
    max_evals: int = 50,
) -> Search:
    """Shrinks the step by a factor until Armijo's condition holds.

    >>> import chainrule
    >>> from chainrule.optim.line_search import backtracking
    >>> from chainrule.optim.objective import Objective
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> f = Objective([w], lambda: (w * w).sum())
    >>> loss, g = f.value_and_gradient()
    >>> found = backtracking(f, f.vector(), loss, g, -g, step=4.0)
    >>> found.step, found.loss, found.success
    (0.5, 0.0, True)
    """
    line = _Line(f, x, loss, g, d)
    if not line.start.slope < 0:
        return line.result(line.start, False, UPHILL)
    t = step
    while line.evaluations < max_evals:
        if line.is_enough(t, line.loss(t), c1):
            trial = line.trial(t)
            if line.is_enough(t, trial.loss, c1):
                return line.result(trial, True)
        t *= shrink
    return line.result(line.start, False, f"Armijo's condition failed in {max_evals} evaluations")


# --- exact on a quadratic -------------------------------------------------------------------------


def exact(
    f: Objective,
    x: Tensor,
    loss: float,
    g: Tensor,
    d: Tensor,
    step: float = 1.0,
    *,
    c1: float = 1e-4,
    max_evals: int = 50,
) -> Search:
    """The minimum along the line of a quadratic loss, from the slopes at two points.

    phi' is a straight line there, with its zero at t = step phi'(0) / (phi'(0) - phi'(step)). For
    other losses that is a guess, which must satisfy Armijo's condition or is shrunk.
    """
    line = _Line(f, x, loss, g, d)
    if not line.start.slope < 0:
        return line.result(line.start, False, UPHILL)
    probe = line.trial(step)
    bend = probe.slope - line.start.slope
    t = step
    if math.isfinite(probe.loss) and bend > 0:
        t = -step * line.start.slope / bend
        trial = line.trial(t)
        if line.is_enough(t, trial.loss, c1):
            return line.result(trial, True)
    elif line.is_enough(step, probe.loss, c1):  # no curvature: the loss falls on and on
        return line.result(probe, True)
    rest = max_evals - line.evaluations
    found = backtracking(f, x, loss, g, d, t / 2, c1=c1, max_evals=rest)
    found.evaluations += line.evaluations
    return found


# --- strong Wolfe ---------------------------------------------------------------------------------


def strong_wolfe(
    f: Objective,
    x: Tensor,
    loss: float,
    g: Tensor,
    d: Tensor,
    step: float = 1.0,
    *,
    c1: float = 1e-4,
    c2: float = 0.9,
    max_evals: int = 25,
    tolerance_change: float = 1e-9,
) -> Search:
    """Brackets a step that satisfies the strong Wolfe conditions, then zooms in on it.

    Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6, with cubic interpolation:
    the steps it tries are those of PyTorch's LBFGS.

    >>> import chainrule
    >>> from chainrule.optim.line_search import strong_wolfe
    >>> from chainrule.optim.objective import Objective
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> f = Objective([w], lambda: (w * w).sum())
    >>> loss, g = f.value_and_gradient()
    >>> found = strong_wolfe(f, f.vector(), loss, g, -g, step=4.0)
    >>> found.step, found.evaluations, found.success
    (0.5, 2, True)
    """
    line = _Line(f, x, loss, g, d)
    if not line.start.slope < 0:
        return line.result(line.start, False, UPHILL)
    ends, done = _bracket(line, step, c1, c2, max_evals)
    if not done:
        ends, done = _zoom(line, ends, c1, c2, max_evals, tolerance_change)
    best = ends[_lower(ends)]
    if done:
        return line.result(best, True)
    if line.evaluations < max_evals:
        return line.result(best, False, "the interval around the step became too small")
    return line.result(best, False, f"the Wolfe conditions failed in {max_evals} evaluations")


def _bracket(
    line: _Line, step: float, c1: float, c2: float, max_evals: int
) -> tuple[list[_Trial], bool]:
    """Two steps with a good one between them; or a good one, and True."""
    before, now = line.start, line.trial(step)
    for i in range(max_evals - 1):
        # PyTorch compares with the step before from the third one on; the book, from the second.
        if not line.is_enough(now.t, now.loss, c1) or (i > 1 and now.loss >= before.loss):
            return [before, now], False
        if abs(now.slope) <= -c2 * line.start.slope:
            return [now], True
        if now.slope >= 0:
            return [before, now], False
        bounds = now.t + 0.01 * (now.t - before.t), now.t * 10
        before, now = now, line.trial(cubic_minimum(before, now, bounds))
    return [line.start, now], False


def _zoom(
    line: _Line, ends: list[_Trial], c1: float, c2: float, max_evals: int, small: float
) -> tuple[list[_Trial], bool]:
    """Narrows the bracket around a step that satisfies the conditions, until it is found."""
    size, stuck = float(line.d.abs().max()), False
    low = _lower(ends)
    while line.evaluations < max_evals and abs(ends[1].t - ends[0].t) * size >= small:
        t, stuck = _off_the_ends(cubic_minimum(ends[0], ends[1]), ends[0].t, ends[1].t, stuck)
        now = line.trial(t)
        if not line.is_enough(t, now.loss, c1) or now.loss >= ends[low].loss:
            ends[1 - low] = now
            low = _lower(ends)
            continue
        if abs(now.slope) <= -c2 * line.start.slope:
            return [now], True
        if now.slope * (ends[1 - low].t - ends[low].t) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = now
    return ends, False


def _lower(ends: list[_Trial]) -> int:
    """Which end has the lower loss."""
    return 0 if ends[0].loss <= ends[-1].loss else 1


def _off_the_ends(t: float, a: float, b: float, stuck: bool) -> tuple[float, bool]:
    """Moves a step near an end of the interval off it, if it is the second one near an end."""
    left, right = min(a, b), max(a, b)
    margin = 0.1 * (right - left)
    if min(right - t, t - left) >= margin:
        return t, False
    if stuck or t >= right or t <= left:
        return (right - margin if abs(t - right) < abs(t - left) else left + margin), False
    return t, True


def cubic_minimum(a: _Trial, b: _Trial, bounds: tuple[float, float] | None = None) -> float:
    """The minimum of the cubic through two points with their slopes, within bounds.

    The middle if there is none, or if a value is not finite.
    """
    first, last = (a, b) if a.t <= b.t else (b, a)
    low, high = bounds or (first.t, last.t)
    width = last.t - first.t
    if width and math.isfinite(a.loss) and math.isfinite(b.loss):
        d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
        square = d1 * d1 - a.slope * b.slope
        if square >= 0:
            d2 = math.sqrt(square)
            part = _ratio(last.slope + d2 - d1, last.slope - first.slope + 2 * d2)
            t = last.t - width * part
            if not math.isnan(t):
                return min(max(t, low), high)
    return (low + high) / 2


def _ratio(a: float, b: float) -> float:
    """a / b; infinite if only b is zero (the loss is a straight line)."""
    if b:
        return a / b
    return math.copysign(math.inf, a) if a else math.nan


UPHILL = "the direction does not lead downhill"
LINE_SEARCHES: dict[str, Callable[..., Search]] = {
    "backtracking": backtracking,
    "exact": exact,
    "strong_wolfe": strong_wolfe,
}
