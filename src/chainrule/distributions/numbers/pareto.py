"""The Pareto distribution: a power law above a least value."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.constraints import Constraint, dependent_property
from chainrule.distributions.numbers.exponential import Exponential
from chainrule.distributions.compound.transformed_distribution import TransformedDistribution
from chainrule.distributions.transforms import AffineTransform, ExpTransform
from chainrule.distributions.utils import broadcast_all
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """p(x) = alpha scale^alpha / x^(alpha + 1) for x >= scale

    Args:
        scale: the least value.
        alpha: the exponent of the tail.

    >>> from chainrule.distributions import Pareto
    >>> Pareto(1.0, 3.0).mean
    tensor(1.5000)
    """

    arg_constraints: ClassVar = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(
        self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None
    ):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=False)
        steps = [ExpTransform(), AffineTransform(0.0, self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    @dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        return where(self.alpha > 1, self.alpha * self.scale / (self.alpha - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha
        finite = self.scale.square() * a / ((a - 1).square() * (a - 2))
        return where(a > 2, finite, math.inf)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()
