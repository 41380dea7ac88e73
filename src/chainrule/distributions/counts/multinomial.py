"""The multinomial distribution: how often each of K was drawn."""

from __future__ import annotations

import math
from typing import ClassVar, Self

from chainrule.distributions import constraints
from chainrule.distributions.counts.categorical import Categorical
from chainrule.distributions.constraints import Constraint, dependent_property
from chainrule.distributions.distribution import Distribution
from chainrule.ops.creation.patterns import arange, ones_like, zeros
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Size, Tensor
from chainrule.typing import Shape

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """P(x) = n! prod_k probs[k]^x[k] / x[k]! for counts x that add up to n = total_count

    Args:
        total_count: the number of draws.
        probs: (..., K), not negative; they are divided by their sum. Or
        logits: (..., K), whose softmax are the probabilities.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Multinomial
    >>> Multinomial(2, probs=tensor([0.5, 0.5])).log_prob(tensor([1.0, 1.0])).exp()
    tensor(0.5000)
    """

    arg_constraints: ClassVar = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if not isinstance(total_count, int):
            raise NotImplementedError(
                f"Multinomial: total_count must be one number for all, got {total_count!r}"
            )
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        new.total_count = self.total_count
        return new

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = zeros(
            self._extended_shape(sample_shape),
            dtype=self._categorical._param.dtype,
            device=self._categorical._param.device,
        )
        return counts.scatter_add(-1, drawn, ones_like(drawn, dtype=counts.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        ways = (self._checked(value).sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return ways + where(value == 0, 0.0, value * self.logits).sum(-1)

    def entropy(self) -> Tensor:
        # E[log x!] of each count, which is binomial.
        n, p = self.total_count, self.probs
        k = arange(n + 1, dtype=p.dtype, device=p.device).reshape(-1, *[1] * p.ndim)
        log_ways = math.lgamma(n + 1) - (k + 1).lgamma() - (n - k + 1).lgamma()
        weight = (log_ways + k.xlogy(p) + (n - k).xlogy(1 - p)).exp()
        mean_logs = (weight * (k + 1).lgamma()).sum(0).sum(-1)
        return n * self._categorical.entropy() - math.lgamma(n + 1) + mean_logs
