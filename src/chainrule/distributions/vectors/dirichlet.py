"""The Dirichlet distribution: random probabilities."""

from __future__ import annotations

from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.utils import tiny_of
from chainrule.ops.creation.parametric import random_log_gamma
from chainrule.ops.elementwise.logic import where
from chainrule.ops.index.reading import one_hot
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """p(x) = Gamma(sum(c)) prod_i x_i^(c_i - 1) / Gamma(c_i) for probabilities x, c = concentration

    A sample is the softmax of logarithms of gamma numbers.

    Args:
        concentration: (..., K), positive.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import Dirichlet
    >>> d = Dirichlet(tensor([1.0, 1.0, 2.0]))
    >>> d.mean, d.log_prob(tensor([0.25, 0.25, 0.5]))
    (tensor([0.2500, 0.2500, 0.5000]), tensor(1.0986))
    """

    arg_constraints: ClassVar = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.ndim < 1:
            raise ValueError("Dirichlet: the parameter concentration must have a dimension")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        c = self.concentration
        above = (c - 1).clamp_min(0)
        corner = one_hot(c.argmax(-1), c.shape[-1]).to(c.dtype)
        return where((c < 1).all(-1, True), corner, above / above.sum(-1, True))

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = random_log_gamma(self.concentration.expand(shape)).softmax(-1)
        return x.clamp_min(tiny_of(x))

    def log_prob(self, value: Tensor) -> Tensor:
        c = self.concentration
        return (c - 1).xlogy(self._checked(value)).sum(-1) - self._log_normalizer(c)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (c,) = natural_params
        return c.lgamma().sum(-1) - c.sum(-1).lgamma()

    def entropy(self) -> Tensor:
        c = self.concentration
        total = c.sum(-1)
        mean_logs = c.digamma() - total.digamma().unsqueeze(-1)
        return self._log_normalizer(c) - ((c - 1) * mean_logs).sum(-1)
