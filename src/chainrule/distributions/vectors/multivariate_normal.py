"""The normal distribution of vectors."""

from __future__ import annotations

from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.vectors.spread import Spread, log_diagonal, squared_length
from chainrule.distributions.utils import HALF_LOG_2PI, exactly_one
from chainrule.ops.core.promotion import broadcast_shapes
from chainrule.ops.creation.sampling import randn
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Spread):
    """p(x) = exp(-d . S^-1 d / 2) / sqrt(det(2 pi S)) with d = x - loc and a covariance S = L L^T

    Args:
        loc: (..., D), the mean.
        covariance_matrix: (..., D, D), S, positive definite, or
        precision_matrix: (..., D, D), its inverse, or
        scale_tril: (..., D, D), its Cholesky factor L, which needs no computation.

    >>> import chainrule
    >>> from chainrule.distributions import MultivariateNormal
    >>> d = MultivariateNormal(chainrule.zeros(2), chainrule.eye(2))
    >>> d.log_prob(chainrule.zeros(2)), d.entropy()
    (tensor(-1.8379), tensor(2.8379))
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    loc: Tensor

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if loc.ndim < 1:
            raise ValueError("MultivariateNormal: the parameter loc must have a dimension")
        name, matrix = exactly_one(
            "MultivariateNormal",
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        batch = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch, loc.shape[-1])
        self._set_spread(name, matrix, batch)
        super().__init__(batch, loc.shape[-1:], validate_args)
        self._set_factor(name, matrix)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._factor.square().sum(-1).expand(*self.batch_shape, *self.event_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        noise = randn(
            self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device
        )
        return self.loc + (self._factor @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        distance = squared_length(self._factor, self._checked(value) - self.loc)
        constant = self.event_shape[0] * HALF_LOG_2PI
        return -0.5 * distance - log_diagonal(self._factor) - constant

    def entropy(self) -> Tensor:
        constant = self.event_shape[0] * (0.5 + HALF_LOG_2PI)
        return (constant + log_diagonal(self._factor)).expand(self.batch_shape)
