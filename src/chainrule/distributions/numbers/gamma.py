"""The gamma distribution."""

from __future__ import annotations

from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.utils import broadcast_all, tiny_of
from chainrule.ops.creation.parametric import random_log_gamma
from chainrule.ops.elementwise.gamma import gammaincinv
from chainrule.ops.elementwise.special import gammainc
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """p(x) = rate^concentration x^(concentration - 1) exp(-rate x) / Gamma(concentration)

    A sample moves with the concentration as the quantile that it is, so that its derivative is
    exact.

    Args:
        concentration: the shape; it counts the exponential waiting times that x adds up.
        rate: how often per unit.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Gamma
    >>> d = Gamma(2.0, 1.0)
    >>> d.log_prob(tensor(1.0)), d.mean, d.cdf(tensor(2.0))
    (tensor(-1.), tensor(2.), tensor(0.5940))
    """

    arg_constraints: ClassVar = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative
    has_rsample = True
    concentration: Tensor
    rate: Tensor

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp_min(0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = (random_log_gamma(self.concentration.expand(shape)) - self.rate.log()).exp()
        return x.clamp_min(tiny_of(x))

    def log_prob(self, value: Tensor) -> Tensor:
        a, b = self.concentration, self.rate
        return a * b.log() + (a - 1).xlogy(self._checked(value)) - b * value - a.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        return gammainc(self.concentration, self.rate * self._checked(value))

    def icdf(self, value: Tensor) -> Tensor:
        return gammaincinv(self.concentration, value) / self.rate

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()
