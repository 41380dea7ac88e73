"""The Wishart distribution: random covariances."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.vectors.spread import Spread, log_diagonal
from chainrule.distributions.utils import exactly_one
from chainrule.linalg import cholesky, solve_triangular
from chainrule.ops.core.promotion import broadcast_shapes
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.creation.parametric import random_log_gamma
from chainrule.ops.creation.patterns import arange
from chainrule.ops.creation.sampling import randn
from chainrule.ops.elementwise.logic import where
from chainrule.ops.shape.diagonal import diag_embed
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Wishart"]


class Wishart(Spread):
    """The sum of x x^T over df vectors x (D,) from MultivariateNormal(0, V), for any df > D - 1.

    p(X) = det(X)^((df - D - 1)/2) exp(-trace(V^-1 X)/2) / (2^(df D/2) det(V)^(df/2) Gamma_D(df/2))

    A sample is L A A^T L^T with V = L L^T and Bartlett's triangular A: normal numbers below the
    diagonal, roots of chi-squared numbers on it.

    Args:
        df: the degrees of freedom.
        covariance_matrix: (..., D, D), V, positive definite, or
        precision_matrix: (..., D, D), its inverse, or
        scale_tril: (..., D, D), its Cholesky factor L.

    >>> import chainrule
    >>> from chainrule.distributions import Wishart
    >>> d = Wishart(3.0, chainrule.eye(2))
    >>> d.mean, d.log_prob(chainrule.eye(2))
    (tensor([[3., 0.],
            [0., 3.]]), tensor(-3.5310))
    """

    arg_constraints: ClassVar = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        name, matrix = exactly_one(
            "Wishart",
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        df = as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = broadcast_shapes(df.shape, matrix.shape[:-2])
        self.df = df.expand(batch)
        self._set_spread(name, matrix, batch)
        super().__init__(batch, matrix.shape[-2:], validate_args)
        if self._validate_args:
            limit = constraints.greater_than(matrix.shape[-1] - 1)
            self._refuse("the parameter df", self.df, limit)
        self._set_factor(name, matrix)

    @property
    def _size(self) -> int:
        return self.event_shape[-1]

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._size - 1
        return where(factor > 0, factor, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        d = v.diagonal(0, -2, -1)
        return self.df[..., None, None] * (v.square() + d.unsqueeze(-1) * d.unsqueeze(-2))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        below = randn(shape, dtype=self.df.dtype, device=self.df.device).tril(-1)
        half = self._halves().expand(shape[:-1])
        roots = (0.5 * (random_log_gamma(half) + math.log(2))).exp()
        root = self._factor @ (below + diag_embed(roots))
        return root @ root.mT

    def _halves(self) -> Tensor:
        """(df - k) / 2 for k = 0..D-1"""
        return 0.5 * (
            self.df.unsqueeze(-1) - arange(self._size, dtype=self.df.dtype, device=self.df.device)
        )

    def _log_gamma(self) -> Tensor:
        """log Gamma_D(df / 2), the multivariate gamma function."""
        n = self._size
        return self._halves().lgamma().sum(-1) + n * (n - 1) / 4 * math.log(math.pi)

    def log_prob(self, value: Tensor) -> Tensor:
        n, df, own = self._size, self.df, log_diagonal(self._factor)
        root = cholesky(self._checked(value))
        trace = solve_triangular(self._factor, root, upper=False).square().sum((-2, -1))
        normalizer = df * (0.5 * n * math.log(2) + own) + self._log_gamma()
        return (df - n - 1) * log_diagonal(root) - 0.5 * trace - normalizer

    def entropy(self) -> Tensor:
        n, df, own = self._size, self.df, log_diagonal(self._factor)
        spread = (n + 1) * (own + 0.5 * n * math.log(2))
        mean_log = 0.5 * (df - n - 1) * self._halves().digamma().sum(-1)
        return spread + self._log_gamma() - mean_log + 0.5 * n * df
