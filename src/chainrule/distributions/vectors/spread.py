"""What distributions with a matrix share: a covariance, its inverse, or its Cholesky factor."""

from __future__ import annotations

from typing import Self

from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import lazy_property
from chainrule.linalg import cholesky, solve_triangular
from chainrule.ops.creation.patterns import eye
from chainrule.ops.shape.rearrange import flip
from chainrule.tensor import Size, Tensor
from chainrule.typing import Shape

__all__ = ["Spread", "log_diagonal", "squared_length"]


class Spread(Distribution):
    """The base of the distributions with one of ``covariance_matrix``, ``precision_matrix`` and
    ``scale_tril``; the other two are computed when asked for.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import MultivariateNormal
    >>> MultivariateNormal(tensor([0.0]), precision_matrix=tensor([[4.0]])).scale_tril
    tensor([[0.5000]])
    """

    _factor: Tensor  # L with covariance_matrix = L L^T, not expanded to the batch

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new._factor = self._factor
        return new

    def _set_spread(self, name: str, matrix: Tensor, batch_shape: Shape) -> None:
        """Keeps the matrix that was given."""
        if matrix.ndim < 2:
            raise ValueError(
                f"{type(self).__name__}: the parameter {name} must have two dimensions or more, "
                f"got shape {tuple(matrix.shape)}"
            )
        self.__dict__[name] = matrix.expand(*batch_shape, *matrix.shape[-2:])

    def _set_factor(self, name: str, matrix: Tensor) -> None:
        """Finds the Cholesky factor, after the matrix was checked."""
        if name == "scale_tril":
            self._factor = matrix.tril()
        elif name == "covariance_matrix":
            self._factor = cholesky(matrix)
        else:
            # With U upper triangular and P = U U^T, P^-1 = L L^T for the lower triangular L = U^-T.
            upper = flip(cholesky(flip(matrix, (-2, -1))), (-2, -1))
            identity = eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
            self._factor = solve_triangular(upper.mT, identity, upper=False)

    def _expanded(self, matrix: Tensor) -> Tensor:
        return matrix.expand(Size((*self.batch_shape, *matrix.shape[-2:])))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor L."""
        return self._expanded(self._factor)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """L L^T"""
        return self._expanded(self._factor @ self._factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        n = self._factor.shape[-1]
        inverse = solve_triangular(
            self._factor, eye(n, dtype=self._factor.dtype, device=self._factor.device), upper=False
        )
        return self._expanded(inverse.mT @ inverse)


def log_diagonal(factor: Tensor) -> Tensor:
    """The sum of the logarithms of the diagonal: half the logarithm of det(L L^T)."""
    return factor.diagonal(0, -2, -1).log().sum(-1)


def squared_length(factor: Tensor, x: Tensor) -> Tensor:
    """x . (L L^T)^-1 x for vectors x."""
    return solve_triangular(factor, x.unsqueeze(-1), upper=False).squeeze(-1).square().sum(-1)
