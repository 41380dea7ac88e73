"""The Laplace distribution: exponential on both sides."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import broadcast_all, standard_exponential
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Laplace"]


class Laplace(Distribution):
    """p(x) = exp(-|x - loc| / scale) / (2 scale)

    Args:
        loc: the mean.
        scale: the mean distance from it.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Laplace
    >>> Laplace(0.0, 1.0).log_prob(tensor([0.0, -2.0]))
    tensor([-0.6931, -2.6931])
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
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        # The difference of two exponential numbers; no logarithm of 0 can occur.
        shape = self._extended_shape(sample_shape)
        noise = standard_exponential(shape, self.loc) - standard_exponential(shape, self.loc)
        return self.loc + self.scale * noise

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -z.abs() - (2 * self.scale).log()

    def cdf(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        side = value - 0.5
        return self.loc - self.scale * side.sign() * (-2 * side.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
