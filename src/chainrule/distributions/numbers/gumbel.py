"""The Gumbel distribution: the largest of many."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import EULER, broadcast_all, standard_exponential
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Gumbel"]


class Gumbel(Distribution):
    """p(x) = exp(-z - exp(-z)) / scale with z = (x - loc) / scale

    A sample is loc - scale log(e) with an exponential number e.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Gumbel
    >>> Gumbel(0.0, 1.0).log_prob(tensor(0.0)), Gumbel(0.0, 1.0).mean
    (tensor(-1.), tensor(0.5772))
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
        return self.loc + EULER * self.scale

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return math.pi**2 / 6 * self.scale.square()

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        noise = standard_exponential(self._extended_shape(sample_shape), self.loc)
        return self.loc - self.scale * noise.log()

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -z - (-z).exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return (-(-z).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)
