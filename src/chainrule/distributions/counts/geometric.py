"""The geometric distribution: failures before the first success."""

from __future__ import annotations

from typing import ClassVar

from chainrule.autograd.modes import no_grad
from chainrule.distributions import constraints
from chainrule.distributions.counts.odds import Odds
from chainrule.distributions.utils import clamp_probs, standard_exponential
from chainrule.ops.creation.patterns import zeros_like
from chainrule.ops.elementwise.functions import softplus
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Geometric"]


class Geometric(Odds):
    """P(k) = (1 - probs)^k probs for k = 0, 1, 2, ...

    Args:
        probs: the probability of success, in (0, 1], or
        logits: log(probs / (1 - probs)).

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Geometric
    >>> Geometric(probs=0.5).log_prob(tensor([0.0, 2.0])).exp()
    tensor([0.5000, 0.1250])
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ):
        self._set_odds(probs, logits)
        super().__init__(self.param_shape, validate_args=validate_args)
        if self._validate_args and probs is not None:
            self._refuse("the parameter probs", self.probs, constraints.positive)

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        # An exponential number of the rate -log(1 - probs), cut to an integer.
        with no_grad():
            noise = standard_exponential(self._extended_shape(sample_shape), self._param)
            return (noise / -(-clamp_probs(self.probs)).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        failed, succeeded = -softplus(self.logits), -softplus(-self.logits)
        return self._checked(value) * failed + succeeded

    def entropy(self) -> Tensor:
        return (softplus(self.logits) - self.probs * self.logits) / self.probs
