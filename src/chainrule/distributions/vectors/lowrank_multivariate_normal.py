"""The normal distribution of vectors that vary in few directions."""

from __future__ import annotations

from typing import ClassVar, Self

from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.vectors.spread import log_diagonal, squared_length
from chainrule.distributions.utils import HALF_LOG_2PI, lazy_property
from chainrule.linalg import cholesky, solve_triangular
from chainrule.ops.core.promotion import broadcast_shapes
from chainrule.ops.creation.patterns import eye
from chainrule.ops.creation.sampling import randn
from chainrule.ops.shape.diagonal import diag_embed
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """:class:`MultivariateNormal` with the covariance S = W W^T + diag(cov_diag).

    W = cov_factor has few columns, R, and no matrix larger than (R, R) is factorized: with
    C = I + W^T diag(cov_diag)^-1 W, det S = det(C) prod(cov_diag), and S^-1 follows from Woodbury's
    identity.

    Args:
        loc: (..., D), the mean.
        cov_factor: (..., D, R), W.
        cov_diag: (..., D), positive.

    >>> import chainrule
    >>> from chainrule.distributions import LowRankMultivariateNormal
    >>> d = LowRankMultivariateNormal(
    ...     chainrule.zeros(2), chainrule.tensor([[1.0], [0.0]]), chainrule.ones(2)
    ... )
    >>> d.covariance_matrix
    tensor([[2., 0.],
            [0., 1.]])
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    loc: Tensor
    cov_factor: Tensor
    cov_diag: Tensor
    _capacitance: Tensor  # the Cholesky factor of C

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ):
        n = loc.shape[-1] if loc.ndim else -1
        if cov_factor.ndim < 2 or cov_factor.shape[-2] != n or cov_diag.shape[-1:] != (n,):
            raise ValueError(
                "LowRankMultivariateNormal: expected loc (..., D), cov_factor (..., D, R) and "
                f"cov_diag (..., D), got {tuple(loc.shape)}, {tuple(cov_factor.shape)}, "
                f"{tuple(cov_diag.shape)}"
            )
        shapes = loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
        batch = broadcast_shapes(*shapes)
        self.loc, self.cov_diag = loc.expand(*batch, n), cov_diag.expand(*batch, n)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        super().__init__(batch, (n,), validate_args)
        scaled = cov_factor / cov_diag.unsqueeze(-1)
        inner = cov_factor.mT @ scaled
        self._capacitance = cholesky(
            inner + eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
        )

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new._capacitance = self._capacitance
        return new

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """W W^T + diag(cov_diag)"""
        return self.cov_factor @ self.cov_factor.mT + diag_embed(self.cov_diag)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        scaled = self.cov_factor / self.cov_diag.unsqueeze(-1)
        part = solve_triangular(self._capacitance, scaled.mT, upper=False)
        return diag_embed(self.cov_diag.reciprocal()) - part.mT @ part

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return cholesky(self.covariance_matrix)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        few = randn(
            (*shape[:-1], self.cov_factor.shape[-1], 1),
            dtype=self.loc.dtype,
            device=self.loc.device,
        )
        along = (self.cov_factor @ few).squeeze(-1)
        return (
            self.loc
            + along
            + self.cov_diag.sqrt() * randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        )

    def _log_det(self) -> Tensor:
        """Half the logarithm of det S."""
        return log_diagonal(self._capacitance) + 0.5 * self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        d = self._checked(value) - self.loc
        scaled = d / self.cov_diag
        along = (self.cov_factor.mT @ scaled.unsqueeze(-1)).squeeze(-1)
        distance = (d * scaled).sum(-1) - squared_length(self._capacitance, along)
        return -0.5 * distance - self._log_det() - self.event_shape[0] * HALF_LOG_2PI

    def entropy(self) -> Tensor:
        return self.event_shape[0] * (0.5 + HALF_LOG_2PI) + self._log_det()
