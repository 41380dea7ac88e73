"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import ClassVar, Self

from chainrule.autograd.modes import no_grad
from chainrule.distributions.counts.categorical import Categorical
from chainrule.distributions.constraints import (
    Constraint,
    MixtureSameFamilyConstraint,
    dependent_property,
)
from chainrule.distributions.distribution import Distribution
from chainrule.ops.core.promotion import broadcast_shapes
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """p(x) = sum_k P(k) p_k(x)

    Args:
        mixture_distribution: P, a :class:`Categorical` over K.
        component_distribution: the p_k, along the last dimension, of size K, of its batch.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Categorical, MixtureSameFamily, Normal
    >>> d = MixtureSameFamily(
    ...     Categorical(probs=tensor([0.5, 0.5])), Normal(tensor([-1.0, 1.0]), 1.0)
    ... )
    >>> d.mean, d.variance, d.log_prob(tensor(0.0))
    (tensor(0.), tensor(2.), tensor(-1.4189))
    """

    arg_constraints: ClassVar = {}

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "MixtureSameFamily: mixture_distribution must be a Categorical, got "
                f"{type(mixture_distribution).__name__}"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "MixtureSameFamily: component_distribution must be a Distribution, got "
                f"{type(component_distribution).__name__}"
            )
        weights, parts = mixture_distribution.param_shape, component_distribution.batch_shape
        if not parts or weights[-1] != parts[-1]:
            raise ValueError(
                f"MixtureSameFamily: {weights[-1]} weights, but the components have the batch "
                f"shape {tuple(parts)}, whose last dimension counts them"
            )
        try:
            batch = broadcast_shapes(weights[:-1], parts[:-1])
        except RuntimeError:
            raise ValueError(
                f"MixtureSameFamily: weights {tuple(weights)} do not fit the components "
                f"{tuple(parts)}"
            ) from None
        self._mixture_distribution = mixture_distribution
        self._component_distribution = (
            component_distribution
            if batch == parts[:-1]
            else component_distribution.expand((*batch, parts[-1]))
        )
        super().__init__(batch, component_distribution.event_shape, validate_args)

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        new = super().expand(batch_shape, _instance)
        count = self._component_distribution.batch_shape[-1]
        new._component_distribution = self._component_distribution.expand((*batch_shape, count))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        return new

    @property
    def mixture_distribution(self) -> Categorical:
        """P"""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The p_k."""
        return self._component_distribution

    @dependent_property
    def support(self) -> Constraint:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weights(self) -> Tensor:
        """The weights, with the dimensions of a value behind them."""
        probs = self._mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * len(self.event_shape))

    @property
    def _at(self) -> int:
        """The dimension that counts the components."""
        return -1 - len(self.event_shape)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(self._at)

    @property
    def variance(self) -> Tensor:
        """The mean of the variances and the variance of the means."""
        parts, weights = self._component_distribution, self._weights()
        apart = (parts.mean - self.mean.unsqueeze(self._at)).square()
        return (weights * (parts.variance + apart)).sum(self._at)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            parts = self._component_distribution.sample(sample_shape)
            chosen = self._mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            index = chosen.reshape(*chosen.shape, 1, *[1] * len(self.event_shape))
            index = index.expand(*chosen.shape, 1, *self.event_shape)
            return parts.gather(parts.ndim + self._at, index).squeeze(self._at)

    def log_prob(self, value: Tensor) -> Tensor:
        each = self._component_distribution.log_prob(self._padded(value))
        return (each + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def cdf(self, value: Tensor) -> Tensor:
        each = self._component_distribution.cdf(self._padded(value))
        return (each * self._mixture_distribution.probs).sum(-1)

    def _padded(self, value: Tensor) -> Tensor:
        """A value with a dimension for the components."""
        return self._checked(value).unsqueeze(self._at)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self._mixture_distribution},\n  "
            f"{self._component_distribution})"
        )
