"""The Poisson distribution: how often something rare happens."""

from __future__ import annotations

from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.utils import broadcast_all
from chainrule.ops.creation.parametric import poisson
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """P(k) = rate^k exp(-rate) / k! for k = 0, 1, 2, ...

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Poisson
    >>> Poisson(2.0).log_prob(tensor([0.0, 2.0])).exp()
    tensor([0.1353, 0.2707])
    """

    arg_constraints: ClassVar = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return poisson(self.rate.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        return self._checked(value).xlogy(self.rate) - self.rate - (value + 1).lgamma()
