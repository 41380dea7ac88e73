"""The categorical distribution over unit vectors."""

from __future__ import annotations

from typing import ClassVar, Self

from chainrule.distributions import constraints
from chainrule.distributions.counts.categorical import Categorical
from chainrule.distributions.distribution import Distribution
from chainrule.ops.creation.patterns import eye
from chainrule.ops.index.reading import one_hot
from chainrule.tensor import Size, Tensor
from chainrule.typing import Shape

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """P(e_k) = probs[k] for the unit vectors e_k, k = 0..K-1

    Args:
        probs: (..., K), not negative; they are divided by their sum. Or
        logits: (..., K), whose softmax are the probabilities.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import OneHotCategorical
    >>> OneHotCategorical(probs=tensor([1.0, 3.0])).log_prob(tensor([0.0, 1.0])).exp()
    tensor(0.7500)
    """

    arg_constraints: ClassVar = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        self._categorical = Categorical(probs, logits, validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
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
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    def _vectors(self, index: Tensor) -> Tensor:
        return one_hot(index, self.event_shape[0]).to(self._param.dtype)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._vectors(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return self._vectors(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        return self._categorical.log_prob(self._checked(value).argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = eye(n, dtype=self._param.dtype, device=self._param.device).reshape(
            n, *[1] * len(self.batch_shape), n
        )
        return values.expand(n, *self.batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """:class:`OneHotCategorical` whose samples have the derivative of the probabilities.

    The derivative is an estimate with a bias, not that of the samples, which have none (Bengio,
    Leonard and Courville 2013, https://arxiv.org/abs/1308.3432).

    >>> from chainrule import tensor
    >>> from chainrule.distributions import OneHotCategoricalStraightThrough
    >>> p = tensor([0.5, 0.5], requires_grad=True)
    >>> x = OneHotCategoricalStraightThrough(probs=p).rsample()
    >>> bool(x.sum() == 1), x.requires_grad
    (True, True)
    """

    has_rsample = True

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
