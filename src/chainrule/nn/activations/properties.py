"""What an activation is like, as data: range, monotonicity, slopes, saturation.

For the known activations range, monotonicity and the largest slope come from a table of exact
values; for any other function, and for the rest, they are found numerically.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from chainrule.backend import dtypes
from chainrule.nn.activations import functions as F
from chainrule.nn.module.base import Module
from chainrule.nn.activations.moments import as_function, slope
from chainrule.nn.layers.shape import Identity
from chainrule.ops.creation.from_data import tensor
from chainrule.tensor import Tensor

__all__ = ["activation_properties"]

INF = math.inf
SATURATED = 0.01  # an activation is saturated where its slope is smaller than this


@dataclass(frozen=True)
class Interval:
    """An interval of real numbers; ``closed`` says for each end whether it belongs to it.

    >>> str(Interval(0.0, INF, (True, False))), 0.0 in Interval(0.0, INF)
    ('[0, inf)', False)
    """

    low: float
    high: float
    closed: tuple[bool, bool] = (False, False)

    def __contains__(self, x: float) -> bool:
        above = x >= self.low if self.closed[0] else x > self.low
        return above and (x <= self.high if self.closed[1] else x < self.high)

    def __str__(self) -> str:
        left, right = "(["[self.closed[0]], ")]"[self.closed[1]]
        return f"{left}{self.low:g}, {self.high:g}{right}"


@dataclass(frozen=True)
class ActivationProperties:
    """The properties of an activation f.

    Attributes:
        range: the values it takes; an end that is only approached is open.
        monotonic: "increasing" (strictly), "non-decreasing", "decreasing", "non-increasing", "no".
        max_slope: the largest slope, or its limit.
        max_slope_at: the interval from the first to the last place where it is taken; both ends are
            infinite where it is only approached.
        slope_at_zero: what the library takes for f'(0), also at a kink.
        one_sided_slopes_at_zero: the slopes to the left and to the right of 0.
        identity_near_zero: whether f(x) = x to first order at 0.
        saturation: the regions out to infinity where |f'| < 0.01.
        derivative_support: the smallest interval outside of which f' is 0.
        derivative: f' as a function of tensors.
    """

    name: str
    range: Interval
    monotonic: str
    max_slope: float
    max_slope_at: Interval
    value_at_zero: float
    slope_at_zero: float
    one_sided_slopes_at_zero: tuple[float, float]
    identity_near_zero: bool
    saturation: tuple[Interval, ...]
    derivative_support: Interval
    derivative: Callable[[Tensor], Tensor]

    @property
    def lower_bound(self) -> float:
        """The greatest lower bound of the values."""
        return self.range.low

    @property
    def upper_bound(self) -> float:
        """The least upper bound of the values."""
        return self.range.high


# --- known activations ----------------------------------------------------------------------------


class Facts(NamedTuple):
    """Exact properties: the range as "(low, high]", the largest slope and where it is taken."""

    low: float
    high: float
    ends: str
    monotonic: str
    max_slope: float
    at: tuple[float, float]


UP, LEVEL, NOT = "increasing", "non-decreasing", "no"
EVERYWHERE, RIGHT, ZERO = (-INF, INF), (0.0, INF), (0.0, 0.0)
_LAMBDA_ALPHA = F.SELU_SCALE * F.SELU_ALPHA

# By function; the options of the function are the arguments.
KNOWN: dict[Callable[..., Any], Callable[..., Facts | None]] = {
    F.sigmoid: lambda: Facts(0, 1, "()", UP, 0.25, ZERO),
    F.tanh: lambda: Facts(-1, 1, "()", UP, 1, ZERO),
    F.lecun_tanh: lambda: Facts(-1.7159, 1.7159, "()", UP, 1.7159 * 2 / 3, ZERO),
    F.soboleva_tanh: lambda a=1.0, b=1.0, c=1.0, d=1.0: (
        Facts(-1, 1, "()", UP, 1, ZERO) if a == b == c == d == 1 else None
    ),
    F.softsign: lambda: Facts(-1, 1, "()", UP, 1, ZERO),
    F.relu: lambda: Facts(0, INF, "[)", LEVEL, 1, RIGHT),
    F.relu6: lambda: Facts(0, 6, "[]", LEVEL, 1, (0.0, 6.0)),
    F.hardtanh: lambda min_val=-1.0, max_val=1.0: Facts(
        min_val, max_val, "[]", LEVEL, 1, (min_val, max_val)
    ),
    F.hardsigmoid: lambda: Facts(0, 1, "[]", LEVEL, 1 / 6, (-3.0, 3.0)),
    F.hardswish: lambda: Facts(-0.375, INF, "[)", NOT, 1.5, (3.0, 3.0)),
    F.leaky_relu: lambda negative_slope=0.01: (
        Facts(-INF, INF, "()", UP, 1, RIGHT) if 0 < negative_slope < 1 else None
    ),
    F.elu: lambda alpha=1.0: Facts(
        -alpha, INF, "()", UP, max(1.0, alpha), RIGHT if alpha <= 1 else ZERO
    ),
    F.celu: lambda alpha=1.0: Facts(-alpha, INF, "()", UP, 1, RIGHT),
    F.selu: lambda: Facts(-_LAMBDA_ALPHA, INF, "()", UP, _LAMBDA_ALPHA, ZERO),
    F.softplus: lambda beta=1.0, threshold=20.0: Facts(0, INF, "()", UP, 1, (INF, INF)),
    F.logsigmoid: lambda: Facts(-INF, 0, "()", UP, 1, (-INF, -INF)),
    F.tanhshrink: lambda: Facts(-INF, INF, "()", UP, 1, (INF, INF)),
    F.binary_step: lambda: Facts(0, 1, "[]", LEVEL, 0, EVERYWHERE),
    F.sign: lambda: Facts(-1, 1, "[]", LEVEL, 0, EVERYWHERE),
    F.gaussian: lambda: Facts(
        0, 1, "(]", NOT, math.sqrt(2 / math.e), (-math.sqrt(0.5), -math.sqrt(0.5))
    ),
}


_OF_VECTORS = (F.softmax, F.softmin, F.log_softmax, F.gumbel_softmax, F.glu)


def _mixing(name: str) -> str:
    return (
        f"activation_properties: expected an elementwise function, but each output of {name} "
        "depends on more than one input"
    )


def activation_properties(activation: str | Callable[..., Tensor]) -> ActivationProperties:
    """The properties of an activation: a name, a module, or any elementwise function.

    What mixes the entries of its input, as softmax does, is refused.

    >>> from chainrule import nn
    >>> p = nn.activation_properties("sigmoid")
    >>> str(p.range), p.max_slope, p.monotonic
    ('(0, 1)', 0.25, 'increasing')
    >>> nn.activation_properties(nn.ReLU()).one_sided_slopes_at_zero
    (0.0, 1.0)
    """
    name, function, facts = _understood(activation)
    scan = Scan(function)
    scan.check_elementwise(name)
    if facts is None:
        span, monotonic, (top, at) = scan.range(), scan.monotonic(), scan.max_slope()
    else:
        span = Interval(float(facts.low), float(facts.high), _closed(facts.ends))
        monotonic, top, at = (
            facts.monotonic,
            float(facts.max_slope),
            Interval(*facts.at, _at(facts)),
        )
    value, at_zero, left, right = scan.at_zero()
    near = all(abs(s - 1) < 1e-4 for s in (left, right))
    return ActivationProperties(
        name,
        span,
        monotonic,
        top,
        at,
        value,
        at_zero,
        (left, right),
        near and abs(value) < 1e-9,
        scan.saturation(),
        scan.support(),
        slope(function),
    )


def _closed(ends: str) -> tuple[bool, bool]:
    return ends[0] == "[", ends[1] == "]"


def _at(facts: Facts) -> tuple[bool, bool]:
    """A point is closed, a region of constant slope open."""
    point = facts.at[0] == facts.at[1] and math.isfinite(facts.at[0])
    return point, point


def _understood(
    activation: str | Callable[..., Tensor],
) -> tuple[str, Callable[[Tensor], Tensor], Facts | None]:
    """The name, the function without options, and what the table knows of it."""
    if isinstance(activation, Identity) or activation in ("identity", "linear"):
        return "Identity", lambda x: x * 1, Facts(-INF, INF, "()", UP, 1, EVERYWHERE)
    function = as_function(activation)
    options: dict[str, Any] = {}
    name = getattr(function, "__name__", type(function).__name__)
    if isinstance(activation, Module):
        name = type(activation).__name__
        plain = getattr(type(activation), "function", None)
        if plain is not None:
            held = {k: getattr(activation, k) for k in activation._options}
            options = {k: v for k, v in held.items() if k != "inplace"}
            function = plain
        else:
            # A copy, so that learned parameters can take part in float64 and without training.
            function = copy.deepcopy(activation).double().eval()
    if function in _OF_VECTORS:
        raise ValueError(_mixing(name))
    known = KNOWN.get(function)
    return name, partial(function, **options), None if known is None else known(**options)


# --- any function ---------------------------------------------------------------------------------


class Scan:
    """A function and its slope on a fine grid, with what can be told from them."""

    def __init__(self, function: Callable[[Tensor], Tensor]):
        self.function, self.derivative = function, slope(function)
        middle = [i / 64 for i in range(-64 * 20, 64 * 20 + 1)]
        tail = [20 * 1.5**i for i in range(1, 16)]
        self.points = [-x for x in reversed(tail)] + middle + tail
        self.values, self.slopes = self._at(self.points), self._at(self.points, True)
        # Where the function has values: an exponential may overflow far out.
        pairs = zip(self.values, self.slopes, strict=True)
        finite = [math.isfinite(v) and math.isfinite(s) for v, s in pairs]
        self.points, self.values, self.slopes = (
            [x for x, ok in zip(column, finite, strict=True) if ok]
            for column in (self.points, self.values, self.slopes)
        )
        if not self.points:
            raise ValueError("activation_properties: the function has no finite values")

    def _at(self, points: list[float], derivative: bool = False) -> list[float]:
        x = tensor(points, dtype=dtypes.float64)
        out = self.derivative(x) if derivative else self.function(x).detach()
        if tuple(out.shape) != tuple(x.shape):
            raise ValueError(
                "activation_properties: expected an elementwise function, but an input of shape "
                f"{tuple(x.shape)} gave {tuple(out.shape)}"
            )
        return out.tolist()

    def check_elementwise(self, name: str) -> None:
        """Refuses a function whose values change when it is given other points beside them."""
        some = [i for i, x in enumerate(self.points) if -1 < x < 3][::-1]
        alone = self._at([self.points[i] for i in some])
        before = [self.values[i] for i in some]
        if any(abs(a - b) > 1e-9 * (1 + abs(b)) for a, b in zip(alone, before, strict=True)):
            raise ValueError(_mixing(name))

    def at_zero(self) -> tuple[float, float, float, float]:
        """f(0), f'(0) and the slopes to the left and right."""
        left, here, right = self._at([-1e-9, 0.0, 1e-9], True)
        return self._at([0.0])[0], here, left, right

    # --- values -----------------------------------------------------------------------------------

    def range(self) -> Interval:
        low, low_closed = self._bound(-1)
        high, high_closed = self._bound(1)
        return Interval(low, high, (low_closed, high_closed))

    def _bound(self, sign: int) -> tuple[float, bool]:
        """The largest value of sign * f, times sign, and whether it is taken."""
        values = [sign * v for v in self.values]
        limits = [sign * self._limit(side) for side in (-1, 1)]
        best = max(range(len(values)), key=values.__getitem__)
        if INF in limits:
            return sign * INF, False
        if values[best] > max(limits) and 0 < best < len(values) - 1:
            x = self._peak(lambda t: sign * self._at([t])[0], best)
            return self._at([x])[0] + 0.0, True
        bound = max(limits)
        reached = [v == bound for v in values]
        return sign * bound + 0.0, all(reached) or self._is_taken(reached)  # 0.0, never -0.0

    def _limit(self, side: int) -> float:
        """The value at infinity: what is still changing far out has none."""
        far, further = self._at([side * 1e6, side * 1e8])
        if not (math.isfinite(far) and math.isfinite(further)):
            edge = self.values[-1 if side > 0 else 0]
            far = further = edge if math.isfinite(edge) and math.isnan(further) else further
        largest = max(map(abs, self.values))  # which something periodic does not exceed
        if abs(further - far) > 1e-3 * (1 + abs(far)) and abs(further) > 1.001 * largest:
            return math.copysign(INF, further)
        return further

    def _is_taken(self, reached: list[bool]) -> bool:
        """Whether a bound is taken, not only reached because numbers are rounded.

        A plateau begins where the function was still changing; rounding makes one where it was not.
        """
        ends = [i for i in range(len(reached) - 1) if reached[i] != reached[i + 1]]
        return any(abs(self.values[i + 1] - self.values[i]) > 1e-8 for i in ends)

    def monotonic(self) -> str:
        pairs = list(zip(self.values, self.values[1:], strict=False))
        noise = [1e-13 * max(abs(a), abs(b)) for a, b in pairs]
        steps = [b - a if abs(b - a) > e else 0.0 for (a, b), e in zip(pairs, noise, strict=True)]
        rises, falls = max(steps) > 0, min(steps) < 0
        if rises and falls:
            return NOT
        level = [s == 0 for x, s in zip(self.points, steps, strict=False) if abs(x) < 5]
        strictly = not any(level) and not any(self.range().closed)
        if rises:
            return UP if strictly else LEVEL
        return "decreasing" if falls and strictly else "non-increasing"

    # --- slopes -----------------------------------------------------------------------------------

    def max_slope(self) -> tuple[float, Interval]:
        top = max(self.slopes)
        places = [i for i, s in enumerate(self.slopes) if s >= top - 1e-12 * abs(top)]
        first, last = places[0], places[-1]
        if first == last and first in (0, len(self.points) - 1):  # still growing at the end
            end = math.copysign(INF, self.points[first])
            return INF, Interval(end, end)
        if first == last:
            x = self._peak(lambda t: self._at([t], True)[0], first)
            return self._at([x], True)[0], Interval(x, x, (True, True))
        low = -INF if first == 0 else self.points[first]
        high = INF if last == len(self.points) - 1 else self.points[last]
        return top, Interval(low, high)

    def saturation(self) -> tuple[Interval, ...]:
        flat = [abs(s) < SATURATED for s in self.slopes]
        if all(flat):
            return (Interval(-INF, INF),)
        regions = []
        if flat[0]:
            regions.append(Interval(-INF, self._edge(flat.index(False) - 1, 1), (False, True)))
        if flat[-1]:
            last = len(flat) - flat[::-1].index(False)
            regions.append(Interval(self._edge(last, -1), INF, (True, False)))
        return tuple(regions)

    def _edge(self, place: int, step: int) -> float:
        """Where the slope stops being small, between a grid point and the next, by bisection."""
        inside, outside = self.points[place], self.points[place + step]
        while abs(outside - inside) > 1e-12 * max(1.0, abs(inside)):
            middle = 0.5 * (inside + outside)
            if abs(self._at([middle], True)[0]) < SATURATED:
                inside = middle
            else:
                outside = middle
        return inside

    def support(self) -> Interval:
        zero = [s == 0 for s in self.slopes]
        if all(zero):
            return Interval(0.0, 0.0)
        first, last = zero.index(False), len(zero) - 1 - zero[::-1].index(False)
        # A slope that is 0 because it is too small for a number was small before.
        low = self.points[first - 1] if first and abs(self.slopes[first]) > 1e-6 else -INF
        ends = last < len(zero) - 1 and abs(self.slopes[last]) > 1e-6
        return Interval(low, self.points[last + 1] if ends else INF)

    def _peak(self, function: Callable[[float], float], place: int) -> float:
        """The point of the largest value between the neighbours of a grid point, by sections."""
        low, high = self.points[place - 1], self.points[place + 1]
        golden = (math.sqrt(5) - 1) / 2
        a, b = high - golden * (high - low), low + golden * (high - low)
        at_a, at_b = function(a), function(b)
        while high - low > 1e-9:
            if at_a < at_b:
                low, a, at_a = a, b, at_b
                b = low + golden * (high - low)
                at_b = function(b)
            else:
                high, b, at_b = b, a, at_a
                a = high - golden * (high - low)
                at_a = function(a)
        # At a kink the grid point itself can be the best.
        return max((0.5 * (low + high), self.points[place]), key=function)
