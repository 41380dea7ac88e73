"""The generalized Pareto distribution: what exceeds a threshold."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.constraints import Constraint, dependent_property
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import broadcast_all, standard_exponential
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """p(x) = (1 + c z)^(-1 - 1/c) / scale with z = (x - loc) / scale >= 0 and c = concentration

    Above c = 0 the tail is a power law, at 0 exponential; below, x ends at loc - scale / c. A
    sample is loc + scale (exp(c e) - 1) / c with an exponential number e.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import GeneralizedPareto
    >>> GeneralizedPareto(0.0, 1.0, 0.0).log_prob(tensor(2.0))
    tensor(-2.)
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        c = self.concentration
        end = self.loc - self.scale / where(c == 0, 1.0, c)
        return constraints.interval(self.loc, where(c < 0, end, math.inf))

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return where(c < 1, self.loc + self.scale / (1 - c), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        finite = self.scale.square() / ((1 - c).square() * (1 - 2 * c))
        return where(c < 0.5, finite, math.inf)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        noise = standard_exponential(self._extended_shape(sample_shape), self.loc)
        return self._quantile(noise)

    def _quantile(self, e: Tensor) -> Tensor:
        """x whose probability to be exceeded is exp(-e)."""
        near, c = self._near_zero()
        z = where(near, e + 0.5 * self.concentration * e.square(), (c * e).expm1() / c)
        return self.loc + self.scale * z

    def _near_zero(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is so small that one term of a series is exact; else itself."""
        near = self.concentration.abs() < 1e-10
        return near, where(near, 1.0, self.concentration)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability to exceed a value, -log(1 + c z) / c."""
        near, c = self._near_zero()
        z = (self._checked(value) - self.loc) / self.scale
        return -where(near, z - 0.5 * self.concentration * z.square(), (c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of at most a value."""
        return (-self.log_survival_function(value).exp()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        rest = self.log_survival_function(value)
        return (1 + self.concentration) * rest - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self._quantile(-(-value).log1p())

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
