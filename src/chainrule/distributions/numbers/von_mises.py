"""The von Mises distribution: a random angle."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import broadcast_all
from chainrule.ops.creation.parametric import random_von_mises
from chainrule.ops.elementwise.special import i0e, i1e
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["VonMises"]


class VonMises(Distribution):
    """p(x) = exp(concentration cos(x - loc)) / (2 pi I_0(concentration)) for angles x

    Args:
        loc: the mean angle.
        concentration: 0 for a uniform angle; large, 1 / concentration is the variance.

    >>> import math
    >>> from chainrule import tensor
    >>> from chainrule.distributions import VonMises
    >>> VonMises(tensor(0.0), tensor(1.0)).log_prob(tensor([0.0, math.pi]))
    tensor([-1.0738, -3.0738])
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor, concentration: Tensor, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """1 - E[cos(x - loc)], the circular variance."""
        return 1 - self._mean_cosine()

    def _mean_cosine(self) -> Tensor:
        """I_1 / I_0 at the concentration, without overflow."""
        return i1e(self.concentration) / i0e(self.concentration)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return random_von_mises(self.loc.expand(shape), self.concentration.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        cosine = (self._checked(value) - self.loc).cos()
        return self.concentration * cosine - self._log_normalizer()

    def _log_normalizer(self) -> Tensor:
        return math.log(2 * math.pi) + i0e(self.concentration).log() + self.concentration

    def entropy(self) -> Tensor:
        return self._log_normalizer() - self.concentration * self._mean_cosine()
