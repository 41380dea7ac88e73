"""Transforms of numbers: each element by itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from chainrule.distributions import constraints
from chainrule.distributions.transforms.base import Transform, broadcast_with
from chainrule.distributions.utils import eps_of, sum_rightmost, tiny_of
from chainrule.ops.creation.patterns import full_like
from chainrule.ops.elementwise.functions import softplus
from chainrule.tensor import Size, Tensor
from chainrule.typing import Shape

if TYPE_CHECKING:
    from chainrule.distributions.distribution import Distribution

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "PowerTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
]


class _Numbers(Transform):
    """An increasing function of a real number without settings, unless a class says otherwise."""

    domain = constraints.real
    bijective = True
    sign = 1

    def _settings(self) -> tuple[Any, ...]:
        return ()


class ExpTransform(_Numbers):
    """y = exp(x)

    >>> from chainrule import tensor
    >>> from chainrule.distributions.transforms import ExpTransform
    >>> ExpTransform().inv(tensor(1.0))
    tensor(0.)
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SigmoidTransform(_Numbers):
    """y = 1 / (1 + exp(-x)), kept inside (0, 1)

    >>> from chainrule import tensor
    >>> from chainrule.distributions.transforms import SigmoidTransform
    >>> SigmoidTransform()(tensor(0.0))
    tensor(0.5000)
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return x.sigmoid().clamp(tiny_of(x), 1 - eps_of(x))

    def _inverse(self, y: Tensor) -> Tensor:
        y = y.clamp(tiny_of(y), 1 - eps_of(y))
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(x) - softplus(-x)


class SoftplusTransform(_Numbers):
    """y = log(1 + exp(x))

    >>> from chainrule import tensor
    >>> from chainrule.distributions.transforms import SoftplusTransform
    >>> SoftplusTransform()(tensor(0.0))
    tensor(0.6931)
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y + (-(-y).expm1()).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(_Numbers):
    """y = tanh(x)

    The inverse of a y that was rounded to 1 is infinite; with ``cache_size=1`` it is the x that y
    was computed from.

    >>> from chainrule import tensor
    >>> from chainrule.distributions.transforms import TanhTransform
    >>> f = TanhTransform(cache_size=1)
    >>> f.inv(f(tensor(30.0)))
    tensor(30.)
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return log_one_minus_tanh_squared(x)


def log_one_minus_tanh_squared(x: Tensor) -> Tensor:
    """log(1 - tanh(x)^2), which stays exact where tanh(x) rounds to 1."""
    return 2 * (math.log(2) - x - softplus(-2 * x))


class AbsTransform(Transform):
    """y = |x|, whose inverse is taken to be y.

    >>> from chainrule import tensor
    >>> from chainrule.distributions.transforms import AbsTransform
    >>> AbsTransform()(tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y

    def _settings(self) -> tuple[Any, ...]:
        return ()


class PowerTransform(Transform):
    """y = x^exponent for x > 0

    >>> from chainrule import tensor
    >>> from chainrule.distributions.transforms import PowerTransform
    >>> PowerTransform(2.0).inv(tensor(9.0))
    tensor(3.)
    """

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor | float, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Tensor | int:
        return _sign(self.exponent)

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Shape) -> Size:
        return broadcast_with(shape, self.exponent)

    def inverse_shape(self, shape: Shape) -> Size:
        return broadcast_with(shape, self.exponent)

    def _settings(self) -> tuple[Any, ...]:
        return (self.exponent,)


class AffineTransform(Transform):
    """y = loc + scale x

    Args:
        loc: where 0 goes.
        scale: by how much distances grow.
        event_dim: the dimensions of one value, 0 for numbers.

    >>> from chainrule import tensor
    >>> from chainrule.distributions.transforms import AffineTransform
    >>> AffineTransform(1.0, -2.0).sign
    -1
    """

    bijective = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        event_dim: int = 0,
        cache_size: int = 0,
    ):
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        region = constraints.real
        self.domain = constraints.independent(region, event_dim) if event_dim else region
        self.codomain = self.domain

    @property
    def sign(self) -> Tensor | int:
        return _sign(self.scale)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            change = self.scale.abs().log().expand(broadcast_with(x.shape, self.scale))
        else:
            change = full_like(x, math.log(abs(self.scale)) if self.scale else -math.inf)
        return sum_rightmost(change, self.event_dim)

    def forward_shape(self, shape: Shape) -> Size:
        return broadcast_with(shape, self.loc, self.scale)

    def inverse_shape(self, shape: Shape) -> Size:
        return broadcast_with(shape, self.loc, self.scale)

    def _settings(self) -> tuple[Any, ...]:
        return self.loc, self.scale


def _sign(x: Tensor | float) -> Tensor | int:
    return x.sign() if isinstance(x, Tensor) else (x > 0) - (x < 0)


class CumulativeDistributionTransform(Transform):
    """y = F(x), the distribution function of a continuous distribution of numbers.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import CumulativeDistributionTransform, Normal
    >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(tensor(0.0))
    tensor(0.5000)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Distribution, cache_size: int = 0):
        super().__init__(cache_size)
        self.distribution = distribution
        self.domain = distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)

    def _settings(self) -> tuple[Any, ...]:
        return (self.distribution,)
