"""The categorical distribution: one of K."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.constraints import Constraint, dependent_property
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import (
    exactly_one,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from chainrule.ops.core.promotion import broadcast_shapes
from chainrule.ops.creation.patterns import arange, full
from chainrule.ops.creation.sampling import multinomial
from chainrule.tensor import Size, Tensor
from chainrule.typing import Shape

__all__ = ["Categorical"]


class Categorical(Distribution):
    """P(k) = probs[k] for k = 0..K-1

    Args:
        probs: (..., K), not negative; they are divided by their sum. Or
        logits: (..., K), whose softmax are the probabilities.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Categorical
    >>> d = Categorical(probs=tensor([1.0, 1.0, 2.0]))
    >>> d.log_prob(tensor([0, 2])).exp(), d.entropy()
    (tensor([0.2500, 0.5000]), tensor(1.0397))
    """

    arg_constraints: ClassVar = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        name, given = exactly_one(type(self).__name__, probs=probs, logits=logits)
        if not isinstance(given, Tensor) or given.ndim < 1:
            raise ValueError(f"Categorical: the parameter {name} must be a tensor with a dimension")
        if name == "probs":
            self.__dict__["probs"] = given / given.sum(-1, True)
        else:
            self.__dict__["logits"] = given - given.logsumexp(-1, True)
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.shape

    @property
    def _num_events(self) -> int:
        return self._param.shape[-1]

    @dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return full(self.batch_shape, math.nan, dtype=self._param.dtype, device=self._param.device)

    @property
    def mode(self) -> Tensor:
        return self._param.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return full(self.batch_shape, math.nan, dtype=self._param.dtype, device=self._param.device)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        sizes = Size(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        drawn = multinomial(rows, sizes.numel(), True) if sizes.numel() else rows[:, :0].long()
        return drawn.mT.reshape(self._extended_shape(sizes))

    def log_prob(self, value: Tensor) -> Tensor:
        index = self._checked(value).long()
        shape = broadcast_shapes(index.shape, self.batch_shape)
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, index.expand(shape).unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return -self.probs.xlogy(self.logits.exp()).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._num_events, device=self._param.device).reshape(
            -1, *[1] * len(self.batch_shape)
        )
        return values.expand(-1, *self.batch_shape) if expand else values
