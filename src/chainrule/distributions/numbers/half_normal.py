"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.numbers.normal import Normal
from chainrule.distributions.compound.transformed_distribution import TransformedDistribution
from chainrule.distributions.transforms import AbsTransform
from chainrule.ops.creation.patterns import zeros_like
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """|x| for x from Normal(0, scale): twice its density on one side.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import HalfNormal
    >>> HalfNormal(1.0).log_prob(tensor(0.0)), HalfNormal(1.0).mean
    (tensor(-0.2258), tensor(0.7979))
    """

    arg_constraints: ClassVar = {"scale": constraints.positive}
    support = constraints.nonnegative
    base_dist: Normal

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None):
        base = Normal(0.0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The standard deviation of x."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return math.sqrt(2 / math.pi) * self.scale

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return (1 - 2 / math.pi) * self.scale.square()

    def log_prob(self, value: Tensor) -> Tensor:
        density = self.base_dist.log_prob(self._checked(value)) + math.log(2)
        return where(value >= 0, density, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return (self._checked(value) / (self.scale * math.sqrt(2))).erf()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * math.sqrt(2) * value.erfinv()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
