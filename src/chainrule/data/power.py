"""Transforms that make skewed columns more like a normal distribution."""

from __future__ import annotations

import math
from typing import Self

from chainrule.data.preprocess import Transform, check_finite, floating, training_part
from chainrule.ops.creation.patterns import ones_like
from chainrule.ops.elementwise.functions import exp, expm1, log, log1p, sqrt
from chainrule.ops.elementwise.logic import isnan, where
from chainrule.ops.reduce.order import amax, amin
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.ops.reduce.reductions import mean, var
from chainrule.ops.reduce.reductions import sum as sum_of
from chainrule.ops.shape.views import movedim, reshape
from chainrule.ops.index.subscript import numbers_of
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = ["LogTransform", "PowerTransform"]

LIMIT = 5.0  # of the exponents that are tried
GOLDEN = (math.sqrt(5) - 1) / 2


def _need_positive(transform: Transform, x: Tensor, shifted: Tensor, rule: str) -> None:
    bad = shifted.detach() <= 0
    found = any_of(bad)
    if numbers_of(found) is not None and bool(found):
        columns = any_of(bad, (0, *range(2, x.ndim))).tolist()
        raise ValueError(
            f"{type(transform).__name__}: column {columns.index(True)}, counted from 0, has values "
            f"that are not {rule}"
        )


class LogTransform(Transform):
    """The logarithm of positive columns, log(x + shift); nothing is learned.

    >>> import chainrule
    >>> LogTransform()(chainrule.tensor([[0.0, 9.0]]))
    tensor([[0.0000, 2.3026]])
    """

    def __init__(self, shift: float = 1.0):
        super().__init__()
        if not math.isfinite(shift):
            raise ValueError(f"LogTransform: shift must be finite, got {shift}")
        self.shift = float(shift)

    def fit(self, x: ArrayLike) -> Self:
        """Checks that the logarithm exists."""
        self(x)
        return self

    def forward(self, x: ArrayLike) -> Tensor:
        """The logarithm."""
        x = check_finite(self, floating(self, x))
        _need_positive(self, x, x + self.shift, f"greater than {-self.shift:g}")
        return log1p(x) if self.shift == 1 else log(x + self.shift)

    def inverse(self, x: ArrayLike) -> Tensor:
        """The input from its logarithm."""
        x = floating(self, x)
        return expm1(x) if self.shift == 1 else exp(x) - self.shift

    def extra_repr(self) -> str:
        return f"shift={self.shift:g}"


class PowerTransform(Transform):
    """The power of each column under which the training part is most like a normal distribution.

    ::

        box-cox (x > 0):     (x^p - 1) / p
        yeo-johnson:         ((1 + x)^p - 1) / p              for x >= 0
                             -((1 - x)^(2 - p) - 1) / (2 - p) for x < 0

    with logarithms where an exponent is zero. Each exponent p (``power``) maximizes the likelihood
    and lies between -5 and 5. With ``standardize`` the result has mean 0 and variance 1.

    Box and Cox, 1964; Yeo and Johnson, 2000.

    >>> import chainrule
    >>> x = chainrule.exp(chainrule.linspace(-2, 2, 101)).reshape(-1, 1)
    >>> PowerTransform("box-cox").fit(x).power.round(decimals=3).abs()
    tensor([0.], dtype=chainrule.float64)
    """

    fitted_names = ("power", "mean", "scale")

    def __init__(self, method: str = "yeo-johnson", *, standardize: bool = True):
        super().__init__()
        if method not in ("yeo-johnson", "box-cox"):
            raise ValueError(
                f"PowerTransform: method must be 'yeo-johnson' or 'box-cox', got {method!r}"
            )
        self.method, self.standardize = method, standardize

    def fit(self, x: ArrayLike) -> Self:
        """Learns the exponent of each column."""
        x = training_part(self, x)
        if self.method == "box-cox":
            _need_positive(self, x, x, "positive; use 'yeo-johnson'")
        values = x if x.ndim == 2 else reshape(movedim(x, 1, -1), (-1, x.shape[1]))
        varies = amax(values, 0) > amin(values, 0)
        power = where(varies, self._most_likely(values), ones_like(values[0]))
        y = self._powered(values, power)
        center, spread = mean(y, 0), sqrt(var(y, 0, correction=0))
        if not self.standardize:
            center, spread = 0 * center, ones_like(spread)
        scale = where(varies & (spread > 0), spread, ones_like(spread))
        return self.keep(power=power, mean=center, scale=scale)

    def _log(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """log(x), or log(1 + |x|), and where x is negative."""
        if self.method == "box-cox":
            return log(x), x < 0
        negative = x < 0
        return log1p(where(negative, -x, x)), negative

    def _powered(self, x: Tensor, power: Tensor) -> Tensor:
        t, negative = self._log(x)
        p = where(negative, 2 - power, power)
        flat = p == 0
        safe = where(flat, ones_like(p), p)
        y = where(flat, t, expm1(safe * t) / safe)
        return where(negative, -y, y)

    def _likelihood(self, values: Tensor, power: Tensor) -> Tensor:
        """The logarithm of the likelihood of each column; -inf where it overflows."""
        t, negative = self._log(values)
        y = self._powered(values, power)
        found = -0.5 * values.shape[0] * log(var(y, 0, correction=0))
        found = found + (power - 1) * sum_of(where(negative, -t, t), 0)
        return where(isnan(found), -math.inf, found)

    def _most_likely(self, values: Tensor) -> Tensor:
        """Golden sections of all columns at once."""
        low, high = ones_like(values[0]) * -LIMIT, ones_like(values[0]) * LIMIT
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left, at_right = self._likelihood(values, left), self._likelihood(values, right)
        for _ in range(50):
            go = at_left < at_right  # the maximum lies on the right
            low, high = where(go, left, low), where(go, high, right)
            new = where(go, low + GOLDEN * (high - low), high - GOLDEN * (high - low))
            at_new = self._likelihood(values, new)
            left, right = where(go, right, new), where(go, new, left)
            at_left, at_right = where(go, at_right, at_new), where(go, at_new, at_left)
        return (low + high) / 2

    def forward(self, x: ArrayLike) -> Tensor:
        """The transformed input."""
        x = self.checked(x, "power")
        if self.method == "box-cox":
            _need_positive(self, x, x, "positive")
        y = self._powered(x, self.fitted("power", x))
        return (y - self.fitted("mean", x)) / self.fitted("scale", x)

    def inverse(self, x: ArrayLike) -> Tensor:
        """The input from its transformed values."""
        x = self.shaped(x, "power")
        y = x * self.fitted("scale", x) + self.fitted("mean", x)
        power = self.fitted("power", x)
        negative = (y < 0) & (self.method == "yeo-johnson")
        p = where(negative, 2 - power, power)
        flat = p == 0
        safe = where(flat, ones_like(p), p)
        size = where(negative, -y, y)
        t = where(flat, size, log1p(safe * size) / safe)
        if self.method == "box-cox":
            return exp(t)
        return where(negative, -expm1(t), expm1(t))

    def extra_repr(self) -> str:
        return repr(self.method) + ", standardize=False" * (not self.standardize)
