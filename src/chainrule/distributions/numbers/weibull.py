"""The Weibull distribution: lifetimes."""

from __future__ import annotations

from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.numbers.exponential import Exponential
from chainrule.distributions.compound.transformed_distribution import TransformedDistribution
from chainrule.distributions.transforms import AffineTransform, PowerTransform
from chainrule.distributions.utils import EULER, broadcast_all
from chainrule.ops.creation.patterns import ones_like
from chainrule.tensor import Tensor

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """p(x) = k / scale (x / scale)^(k - 1) exp(-(x / scale)^k) for x > 0, with k = concentration

    Args:
        scale: a lifetime that one in e reaches.
        concentration: above 1 what is old fails more often, below 1 less often.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Weibull
    >>> Weibull(1.0, 1.0).log_prob(tensor(2.0)), Weibull(2.0, 1.0).mean
    (tensor(-2.), tensor(2.))
    """

    arg_constraints: ClassVar = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive

    def __init__(
        self,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(ones_like(self.scale), validate_args=False)
        steps = [
            PowerTransform(self.concentration.reciprocal()),
            AffineTransform(0.0, self.scale),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """E[(x / scale)^n]"""
        return (1 + n / self.concentration).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k).pow(k.reciprocal())

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (self._moment(2) - self._moment(1).square())

    def log_prob(self, value: Tensor) -> Tensor:
        k, z = self.concentration, self._checked(value) / self.scale
        return (k / self.scale).log() + (k - 1).xlogy(z) - z.pow(k)

    def entropy(self) -> Tensor:
        k = self.concentration
        return EULER * (1 - k.reciprocal()) + (self.scale / k).log() + 1
