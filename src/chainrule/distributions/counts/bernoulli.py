"""The Bernoulli distribution: yes or no."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.counts.odds import Odds
from chainrule.ops.creation.patterns import arange
from chainrule.ops.creation.sampling import bernoulli
from chainrule.ops.elementwise.functions import softplus
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Bernoulli"]


class Bernoulli(Odds, ExponentialFamily):
    """P(1) = probs, P(0) = 1 - probs

    Args:
        probs: the probability of 1, or
        logits: log(probs / (1 - probs)).

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Bernoulli
    >>> Bernoulli(probs=0.25).log_prob(tensor([0.0, 1.0])).exp()
    tensor([0.7500, 0.2500])
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ):
        self._set_odds(probs, logits)
        super().__init__(self.param_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        likelier = (self.probs >= 0.5).to(self.probs.dtype)
        return where(self.probs == 0.5, math.nan, likelier)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return bernoulli(self.probs.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        return self._checked(value) * self.logits - softplus(self.logits)

    def entropy(self) -> Tensor:
        return softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(2, dtype=self._param.dtype, device=self._param.device).reshape(
            -1, *[1] * len(self.batch_shape)
        )
        return values.expand(-1, *self.batch_shape) if expand else values
