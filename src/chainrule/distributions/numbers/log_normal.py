"""The log-normal distribution."""

from __future__ import annotations

from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.numbers.normal import Normal
from chainrule.distributions.compound.transformed_distribution import TransformedDistribution
from chainrule.distributions.transforms import ExpTransform
from chainrule.tensor import Tensor

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """exp(x) for x from Normal(loc, scale).

    p(y) = exp(-z^2 / 2) / (y scale sqrt(2 pi)) with z = (log(y) - loc) / scale

    >>> from chainrule import tensor
    >>> from chainrule.distributions import LogNormal
    >>> LogNormal(0.0, 1.0).mean, LogNormal(0.0, 1.0).cdf(tensor(1.0))
    (tensor(1.6487), tensor(0.5000))
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    base_dist: Normal

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ):
        base = Normal(loc, scale, validate_args=False)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + 0.5 * self.scale.square()).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
