"""The continuous Bernoulli distribution: for values between 0 and 1, such as pixels."""

from __future__ import annotations

import math
from typing import ClassVar, Self

from chainrule.distributions import constraints
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.counts.odds import Odds
from chainrule.ops.creation.patterns import zeros_like
from chainrule.ops.creation.sampling import rand
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["ContinuousBernoulli"]

_SMALL = 0.3  # below this the differences of the exact formulas cancel more than the series leaves
_SERIES = (1 / 24, -1 / 2880, 1 / 181440, -1 / 9676800, 1 / 479001600)  # B_2k / (2k (2k)!)


class ContinuousBernoulli(Odds, ExponentialFamily):
    """p(x) = h exp(h x) / (exp(h) - 1) for 0 <= x <= 1, with h = logits

    This is probs^x (1 - probs)^(1 - x), normalized (Loaiza-Ganem and Cunningham 2019,
    https://arxiv.org/abs/1907.06845).

    Args:
        probs: in (0, 1); unlike that of a Bernoulli distribution, not the mean. Or
        logits: log(probs / (1 - probs)).
        lims: PyTorch's limits of the probs at which a series takes the place of 0 / 0; here that is
            decided by the rounding errors.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import ContinuousBernoulli
    >>> ContinuousBernoulli(probs=0.5).log_prob(tensor(0.3)), ContinuousBernoulli(probs=0.9).mean
    (tensor(0.), tensor(0.6699))
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):
        self._set_odds(probs, logits)
        self._lims = lims
        super().__init__(self.param_shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new._lims = self._lims
        return new

    def _apart(self, limit: float) -> tuple[Tensor, Tensor]:
        """Where the logits are close to 0, and the logits with 1 in those places."""
        near = self.logits.abs() < limit
        return near, where(near, 1.0, self.logits)

    def _series(self, derivative: int) -> Tensor:
        """A derivative of log((exp(h) - 1) / h) - h / 2 at small h: sum_k B_2k h^2k / (2k (2k)!)"""
        out = zeros_like(self.logits)
        for k, c in reversed(list(enumerate(_SERIES, 1))):
            power = 2 * k - derivative
            out = out + c * math.perm(2 * k, derivative) * self.logits.pow(power)
        return out

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (h,) = natural_params
        near, far = self._apart(_SMALL)
        size = far.abs()
        exact = (-(-size).expm1() / size).log() + far.relu()
        return where(near, 0.5 * h + self._series(0), exact)

    @property
    def mean(self) -> Tensor:
        near, far = self._apart(_SMALL)
        return where(near, 0.5 + self._series(1), -1 / (-far).expm1() - 1 / far)

    @property
    def variance(self) -> Tensor:
        near, far = self._apart(_SMALL)
        exact = 1 / far.square() - 0.25 / (0.5 * far).sinh().square()
        return where(near, self._series(2), exact)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        u = rand(
            self._extended_shape(sample_shape), dtype=self._param.dtype, device=self._param.device
        )
        return self.icdf(u)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._checked(value) * self.logits - self._log_normalizer(self.logits)

    def cdf(self, value: Tensor) -> Tensor:
        near, h = self._apart(1e-4)
        x, eta = self._checked(value), self.logits
        # (exp(h x) - 1) / (exp(h) - 1); for h > 0 without overflow.
        rising = (h * (x - 1)).exp() * (-h * x).expm1() / (-h).expm1()
        exact = where(h > 0, rising, (h * x).expm1() / h.expm1())
        tilt = x * (1 - x) * (0.5 * eta - (1 - 2 * x) * eta.square() / 12)
        return where(near, x - tilt, exact).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        near, h = self._apart(1e-4)
        u, eta = value, self.logits
        # log(1 + u (exp(h) - 1)) / h; for h > 0 from the other end.
        falling = 1 + ((1 - u) * (-h).expm1()).log1p() / h
        exact = where(h > 0, falling, (u * h.expm1()).log1p() / h)
        tilt = u * (1 - u) * (0.5 * eta + (1 - 2 * u) * eta.square() / 6)
        return where(near, u + tilt, exact)

    def entropy(self) -> Tensor:
        return self._log_normalizer(self.logits) - self.logits * self.mean
