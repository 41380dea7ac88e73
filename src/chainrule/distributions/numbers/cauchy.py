"""The Cauchy distribution: without mean or variance."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import broadcast_all, standard_cauchy
from chainrule.ops.creation.patterns import full_like
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """p(x) = 1 / (pi scale (1 + ((x - loc) / scale)^2))

    Args:
        loc: the median.
        scale: half the width at half the height.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Cauchy
    >>> Cauchy(0.0, 1.0).cdf(tensor([0.0, 1.0]))
    tensor([0.5000, 0.7500])
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        noise = standard_cauchy(self._extended_shape(sample_shape), self.loc)
        return self.loc + self.scale * noise

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - z.square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return z.atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
