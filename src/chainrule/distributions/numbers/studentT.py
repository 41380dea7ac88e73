"""Student's t distribution."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import broadcast_all
from chainrule.ops.creation.parametric import random_log_gamma
from chainrule.ops.creation.sampling import randn
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["StudentT"]


class StudentT(Distribution):
    """loc + scale z / sqrt(s / df) with z from Normal(0, 1) and s from Chi2(df).

    p(x) = (1 + t^2 / df)^(-(df + 1) / 2) / (scale sqrt(df) B(1/2, df/2)) with t = (x - loc) / scale

    Args:
        df: the degrees of freedom; the smaller, the heavier the tails.
        loc: the median.
        scale: the width.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import StudentT
    >>> StudentT(1.0).log_prob(tensor(0.0)), StudentT(3.0).variance
    (tensor(-1.1447), tensor(3.))
    """

    arg_constraints: ClassVar = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale.square() * self.df / (self.df - 2)
        return where(self.df > 2, finite, where(self.df > 1, math.inf, math.nan * self.df))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        half = 0.5 * self.df
        log_ratio = random_log_gamma(half.expand(shape)) - half.log()  # log(s / df)
        z = randn(shape, dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * z * (-0.5 * log_ratio).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        t = (self._checked(value) - self.loc) / self.scale
        tail = 0.5 * (self.df + 1) * (t.square() / self.df).log1p()
        return -tail - self._log_beta() - 0.5 * self.df.log() - self.scale.log()

    def _log_beta(self) -> Tensor:
        """log B(1/2, df/2)"""
        half = 0.5 * self.df
        return half.lgamma() - (half + 0.5).lgamma() + 0.5 * math.log(math.pi)

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        spread = (half + 0.5) * ((half + 0.5).digamma() - half.digamma())
        return self.scale.log() + spread + 0.5 * self.df.log() + self._log_beta()
