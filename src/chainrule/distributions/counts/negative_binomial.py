"""The negative binomial distribution: successes before a number of failures."""

from __future__ import annotations

from typing import ClassVar

from chainrule.autograd.modes import no_grad
from chainrule.distributions import constraints
from chainrule.distributions.counts.odds import Odds
from chainrule.ops.creation.parametric import poisson, random_log_gamma
from chainrule.ops.elementwise.functions import softplus
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Odds):
    """P(k) = Gamma(n + k) / (k! Gamma(n)) probs^k (1 - probs)^n for k = 0, 1, ..., n = total_count

    A sample is a Poisson number whose rate is a gamma number.

    Args:
        total_count: the failures that end the trials; any number above 0.
        probs: the probability of success in each, below 1, or
        logits: log(probs / (1 - probs)).

    >>> from chainrule import tensor
    >>> from chainrule.distributions import NegativeBinomial
    >>> NegativeBinomial(1.0, probs=tensor(0.5)).log_prob(tensor([0.0, 2.0])).exp()
    tensor([0.5000, 0.1250])
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    total_count: Tensor

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        (self.total_count,) = self._set_odds(probs, logits, total_count)
        super().__init__(self.param_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp_min(0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            n = self.total_count.expand(self._extended_shape(sample_shape))
            return poisson((random_log_gamma(n) + self.logits).exp())

    def log_prob(self, value: Tensor) -> Tensor:
        n, k = self.total_count, self._checked(value)
        ways = (n + k).lgamma() - (1 + k).lgamma() - n.lgamma()
        ways = where(n + k == 0, 0.0, ways)
        return ways - k * softplus(-self.logits) - n * softplus(self.logits)
