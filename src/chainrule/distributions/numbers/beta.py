"""The beta distribution: a random probability."""

from __future__ import annotations

from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.vectors.dirichlet import Dirichlet
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.utils import broadcast_all, eps_of, tiny_of
from chainrule.ops.creation.parametric import random_log_gamma
from chainrule.ops.elementwise.special import xlog1py
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """p(x) = x^(a - 1) (1 - x)^(b - 1) Gamma(a + b) / (Gamma(a) Gamma(b)) for 0 < x < 1

    A sample is g / (g + h) with gamma numbers g and h.

    Args:
        concentration1: a, the weight of 1.
        concentration0: b, the weight of 0.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Beta
    >>> Beta(2.0, 2.0).log_prob(tensor(0.5)).exp()
    tensor(1.5000)
    """

    arg_constraints: ClassVar = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return Dirichlet(stack([self.concentration1, self.concentration0], -1)).mode[..., 0]

    @property
    def variance(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return a * b / ((a + b).square() * (a + b + 1))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        g, h = (
            random_log_gamma(c.expand(shape)) for c in (self.concentration1, self.concentration0)
        )
        x = (g - h).sigmoid()
        return x.clamp(tiny_of(x), 1 - eps_of(x))

    def log_prob(self, value: Tensor) -> Tensor:
        a, b = self.concentration1, self.concentration0
        logs = (a - 1).xlogy(self._checked(value)) + xlog1py(b - 1, -value)
        return logs - self._log_normalizer(a, b)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        a, b = natural_params
        return a.lgamma() + b.lgamma() - (a + b).lgamma()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        own = (a - 1) * a.digamma() + (b - 1) * b.digamma()
        return self._log_normalizer(a, b) - own + (a + b - 2) * (a + b).digamma()
