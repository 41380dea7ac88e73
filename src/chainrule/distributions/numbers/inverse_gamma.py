"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.numbers.gamma import Gamma
from chainrule.distributions.compound.transformed_distribution import TransformedDistribution
from chainrule.distributions.transforms import PowerTransform
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x for x from Gamma(concentration, rate).

    p(y) = rate^concentration y^(-concentration - 1) exp(-rate / y) / Gamma(concentration)

    >>> from chainrule.distributions import InverseGamma
    >>> InverseGamma(3.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints: ClassVar = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.positive
    base_dist: Gamma

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ):
        base = Gamma(concentration, rate, validate_args=False)
        super().__init__(base, PowerTransform(-1.0), validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The scale of y."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
