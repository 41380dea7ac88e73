"""The relaxed Bernoulli distribution: between 0 and 1, and differentiable."""

from __future__ import annotations

from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.counts.odds import Odds
from chainrule.distributions.compound.transformed_distribution import TransformedDistribution
from chainrule.distributions.transforms import SigmoidTransform
from chainrule.distributions.utils import standard_exponential
from chainrule.ops.elementwise.functions import softplus
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(Odds):
    """The logit of a relaxed Bernoulli number: (logits + l) / temperature with l logistic.

    p(y) = temperature exp(d) / (1 + exp(d))^2 with d = logits - temperature y

    >>> from chainrule import tensor
    >>> from chainrule.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
    >>> LogitRelaxedBernoulli(1.0, logits=0.0).log_prob(tensor(0.0)).exp()
    tensor(0.2500)
    """

    arg_constraints: ClassVar = {
        "temperature": constraints.positive,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.real
    has_rsample = True
    temperature: Tensor

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ):
        (self.temperature,) = self._set_odds(probs, logits, temperature)
        super().__init__(self.param_shape, validate_args=validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        # A logistic number is the difference of the logarithms of two exponential ones.
        shape = self._extended_shape(sample_shape)
        first, second = (standard_exponential(shape, self._param) for _ in range(2))
        return (self.logits + first.log() - second.log()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        d = self.logits - self.temperature * self._checked(value)
        return self.temperature.log() - softplus(d) - softplus(-d)


class RelaxedBernoulli(TransformedDistribution):
    """sigmoid((logits + l) / temperature) with l logistic: for temperature 0 a Bernoulli number.

    With odds o = x / (1 - x) and a = probs / (1 - probs), and t = temperature,
    p(x) = t a o^(-t - 1) / ((1 - x)^2 (1 + a o^(-t))^2) (Maddison, Mnih and Teh 2016,
    https://arxiv.org/abs/1611.00712; Jang, Gu and Poole 2016, https://arxiv.org/abs/1611.01144).

    Args:
        temperature: the lower, the closer to 0 or 1.
        probs: the probability to be closer to 1 than to 0, or
        logits: log(probs / (1 - probs)).

    >>> from chainrule import tensor
    >>> from chainrule.distributions import RelaxedBernoulli
    >>> RelaxedBernoulli(tensor(1.0), probs=0.5).log_prob(tensor(0.3))
    tensor(0.)
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ):
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        base._validate_args = False
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """log(probs / (1 - probs))"""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability to be closer to 1 than to 0."""
        return self.base_dist.probs
