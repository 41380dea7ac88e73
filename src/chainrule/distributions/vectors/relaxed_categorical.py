"""The relaxed categorical distribution: points of the simplex, and differentiable."""

from __future__ import annotations

import math
from typing import ClassVar, Self

from chainrule.distributions import constraints
from chainrule.distributions.counts.categorical import Categorical
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.compound.transformed_distribution import TransformedDistribution
from chainrule.distributions.transforms import ExpTransform
from chainrule.distributions.utils import standard_exponential
from chainrule.ops.creation.from_data import as_tensor
from chainrule.tensor import Size, Tensor
from chainrule.typing import Shape

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithm y of a :class:`RelaxedOneHotCategorical` point.

    y = log_softmax((logits + g) / temperature) with g from Gumbel(0, 1), and
    p(y) = (K - 1)! temperature^(K - 1) prod_k softmax(logits - temperature y)[k]

    >>> from chainrule import tensor
    >>> from chainrule.distributions.relaxed_categorical import ExpRelaxedCategorical
    >>> d = ExpRelaxedCategorical(tensor(1.0), logits=tensor([0.0, 0.0]))
    >>> d.log_prob(tensor([0.5, 0.5]).log()).exp()
    tensor(0.2500)
    """

    arg_constraints: ClassVar = {
        "temperature": constraints.positive,
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.real_vector  # of which those whose exponentials add up to 1
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        self._categorical = Categorical(probs, logits, validate_args)
        self._temperature = as_tensor(
            temperature,
            dtype=self._categorical._param.dtype,
            device=self._categorical._param.device,
        )
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        new._temperature = self._temperature
        return new

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self._temperature

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

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        noise = standard_exponential(self._extended_shape(sample_shape), self.logits)
        return ((self.logits - noise.log()) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self.event_shape[0]
        score = (self.logits - self._checked(value) * self.temperature).log_softmax(-1).sum(-1)
        return score + math.lgamma(k) + (k - 1) * self.temperature.log()


class RelaxedOneHotCategorical(TransformedDistribution):
    """softmax((logits + g) / temperature) with g from Gumbel(0, 1): for temperature 0 one-hot.

    p(x) = (K - 1)! t^(K - 1) prod_k (probs[k] x[k]^(-t - 1) / sum_j probs[j] x[j]^(-t)) with
    t = temperature (Maddison, Mnih and Teh 2016, https://arxiv.org/abs/1611.00712; Jang, Gu and
    Poole 2016, https://arxiv.org/abs/1611.01144).

    Args:
        temperature: the lower, the closer to the corners.
        probs: (..., K), the probabilities that k is the largest; they are divided by their sum. Or
        logits: (..., K), whose softmax are the probabilities.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import RelaxedOneHotCategorical
    >>> d = RelaxedOneHotCategorical(tensor(0.5), probs=tensor([0.2, 0.8]))
    >>> d.rsample((3,)).shape
    chainrule.Size([3, 2])
    """

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    base_dist: ExpRelaxedCategorical

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        base._validate_args = False
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs
