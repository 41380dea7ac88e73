"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.numbers.cauchy import Cauchy
from chainrule.distributions.compound.transformed_distribution import TransformedDistribution
from chainrule.distributions.transforms import AbsTransform
from chainrule.ops.creation.patterns import full_like, zeros_like
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """|x| for x from Cauchy(0, scale): twice its density on one side.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import HalfCauchy
    >>> HalfCauchy(1.0).cdf(tensor(1.0))
    tensor(0.5000)
    """

    arg_constraints: ClassVar = {"scale": constraints.positive}
    support = constraints.nonnegative
    base_dist: Cauchy

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None):
        base = Cauchy(0.0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The median."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return full_like(self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return full_like(self.scale, math.inf)

    def log_prob(self, value: Tensor) -> Tensor:
        density = self.base_dist.log_prob(self._checked(value)) + math.log(2)
        return where(value >= 0, density, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 / math.pi * (self._checked(value) / self.scale).atan()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (0.5 * math.pi * value).tan()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
