"""The distribution of Fisher and Snedecor: a ratio of variances."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import broadcast_all, tiny_of
from chainrule.ops.creation.parametric import random_log_gamma
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """(s / df1) / (t / df2) with s from Chi2(df1) and t from Chi2(df2).

    p(x) = r^(df1/2) x^(df1/2 - 1) (1 + r x)^(-(df1 + df2)/2) / B(df1/2, df2/2) with r = df1 / df2

    >>> from chainrule.distributions import FisherSnedecor
    >>> FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints: ClassVar = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        inside = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return where(self.df1 > 2, inside, math.nan)

    @property
    def variance(self) -> Tensor:
        m, n = self.df1, self.df2
        finite = 2 * n.square() * (m + n - 2) / (m * (n - 2).square() * (n - 4))
        return where(n > 4, finite, math.nan)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        s, t = (
            random_log_gamma(half.expand(shape)) - half.log()
            for half in (0.5 * self.df1, 0.5 * self.df2)
        )
        x = (s - t).exp()
        return x.clamp_min(tiny_of(x))

    def log_prob(self, value: Tensor) -> Tensor:
        m, n, r = 0.5 * self.df1, 0.5 * self.df2, self.df1 / self.df2
        log_beta = m.lgamma() + n.lgamma() - (m + n).lgamma()
        power = m * r.log() + (m - 1).xlogy(self._checked(value))
        return power - (m + n) * (r * value).log1p() - log_beta
