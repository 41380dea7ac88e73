"""The uniform distribution on an interval."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.constraints import Constraint, dependent, dependent_property
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import broadcast_all
from chainrule.graph import Box
from chainrule.ops.creation.sampling import rand
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Uniform"]


class Uniform(Distribution):
    """p(x) = 1 / (high - low) for low <= x < high, else 0

    Args:
        low: the lower end.
        high: the upper end, above it.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Uniform
    >>> Uniform(1.0, 3.0).cdf(tensor([1.0, 2.5]))
    tensor([0.0000, 0.7500])
    """

    arg_constraints: ClassVar = {
        "low": dependent(is_discrete=False, event_dim=0),
        "high": dependent(is_discrete=False, event_dim=0),
    }
    has_rsample = True

    def __init__(
        self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None
    ):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not isinstance(self.low.array, Box):
            self._refuse("the parameter high", self.high, constraints.greater_than(self.low))

    @dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        return math.nan * self.high

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        u = rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        inside = (self.low <= self._checked(value)) & (value < self.high)
        return where(inside, -(self.high - self.low).log(), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
