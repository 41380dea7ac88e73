"""The binomial distribution: successes in a number of trials."""

from __future__ import annotations

from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.constraints import Constraint, dependent_property
from chainrule.distributions.counts.odds import Odds
from chainrule.ops.creation.parametric import random_binomial
from chainrule.ops.creation.patterns import arange
from chainrule.ops.elementwise.functions import minimum, softplus
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Binomial"]


class Binomial(Odds):
    """P(k) = n! / (k! (n - k)!) probs^k (1 - probs)^(n - k) for k = 0..n, n = total_count

    Args:
        total_count: the number of trials.
        probs: the probability of success in each, or
        logits: log(probs / (1 - probs)).

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Binomial
    >>> Binomial(3, probs=tensor(0.5)).log_prob(tensor([0.0, 1.0])).exp()
    tensor([0.1250, 0.3750])
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    total_count: Tensor

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        (self.total_count,) = self._set_odds(probs, logits, total_count)
        super().__init__(self.param_shape, validate_args=validate_args)

    @dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return random_binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        n, k = self.total_count, self._checked(value)
        ways = (n + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma()
        return ways + k * self.logits - n * softplus(self.logits)

    def entropy(self) -> Tensor:
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = int(self.total_count.max())
        if bool((self.total_count != n).any()):
            raise NotImplementedError(
                "Binomial: the values of distributions with different total_count differ in number"
            )
        values = arange(n + 1, dtype=self._param.dtype, device=self._param.device).reshape(
            -1, *[1] * len(self.batch_shape)
        )
        return values.expand(-1, *self.batch_shape) if expand else values
