"""The exponential distribution."""

from __future__ import annotations

from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.utils import broadcast_all, standard_exponential
from chainrule.ops.creation.patterns import zeros_like
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """p(x) = rate exp(-rate x) for x >= 0

    Args:
        rate: how often per unit; the mean is 1 / rate.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Exponential
    >>> Exponential(2.0).log_prob(tensor([0.0, 1.0]))
    tensor([ 0.6931, -1.3069])
    """

    arg_constraints: ClassVar = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    rate: Tensor

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.reciprocal().square()

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return standard_exponential(self._extended_shape(sample_shape), self.rate) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value: Tensor) -> Tensor:
        return -(-self.rate * self._checked(value)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()
