"""The normal distribution."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.utils import HALF_LOG_2PI, broadcast_all
from chainrule.ops.creation.sampling import randn
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Normal"]


class Normal(ExponentialFamily):
    """p(x) = exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi))

    Args:
        loc: the mean.
        scale: the standard deviation.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Normal
    >>> Normal(0.0, 1.0).log_prob(tensor([0.0, 1.0]))
    tensor([-0.9189, -1.4189])
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

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
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        noise = randn(
            self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device
        )
        return self.loc + self.scale * noise

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -0.5 * z.square() - self.scale.log() - HALF_LOG_2PI

    def cdf(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return 0.5 * (-z * math.sqrt(0.5)).erfc()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * math.sqrt(2) * (2 * value - 1).erfinv()

    def entropy(self) -> Tensor:
        return 0.5 + HALF_LOG_2PI + self.scale.log()
