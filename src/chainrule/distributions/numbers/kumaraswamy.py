"""The Kumaraswamy distribution: like the beta distribution, with a closed cdf."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.compound.transformed_distribution import TransformedDistribution
from chainrule.distributions.transforms import AffineTransform, PowerTransform
from chainrule.distributions.numbers.uniform import Uniform
from chainrule.distributions.utils import EULER, broadcast_all
from chainrule.ops.creation.patterns import ones_like, zeros_like
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.special import xlog1py
from chainrule.tensor import Tensor

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """p(x) = a b x^(a - 1) (1 - x^a)^(b - 1) for 0 < x < 1

    A sample is (1 - u^(1/b))^(1/a) with u from Uniform(0, 1).

    Args:
        concentration1: a
        concentration0: b

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Kumaraswamy
    >>> Kumaraswamy(1.0, 1.0).log_prob(tensor(0.3)), Kumaraswamy(1.0, 3.0).mean
    (tensor(0.), tensor(0.2500))
    """

    arg_constraints: ClassVar = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        one = ones_like(self.concentration1)
        steps = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        base = Uniform(zeros_like(one), one, validate_args=False)
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """E[x^n] = b B(1 + n / a, b)"""
        first, b = 1 + n / self.concentration1, self.concentration0
        return b * (first.lgamma() + b.lgamma() - (first + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inside = ((a - 1) / (a * b - 1)).pow(a.reciprocal())
        return where((a < 1) | (b < 1), math.nan, inside)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).square()

    def log_prob(self, value: Tensor) -> Tensor:
        a, b = self.concentration1, self.concentration0
        powers = (a - 1).xlogy(self._checked(value)) + xlog1py(b - 1, -value.pow(a))
        return (a * b).log() + powers

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + EULER
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - (a * b).log()
