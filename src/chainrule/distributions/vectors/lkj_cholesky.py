"""Random correlation matrices."""

from __future__ import annotations

import math
from typing import ClassVar, Self

from chainrule.autograd.modes import no_grad
from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import broadcast_all, tiny_of
from chainrule.ops.creation.parametric import random_log_gamma
from chainrule.ops.creation.patterns import arange
from chainrule.ops.creation.sampling import randn
from chainrule.ops.shape.diagonal import diag_embed
from chainrule.ops.shape.padding import pad
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """The Cholesky factor L of a correlation matrix M whose density is det(M)^(concentration - 1).

    The rows of L are unit vectors and independent of each other: of row i = 1..D-1 the first i
    entries have a uniform direction, and the square of their length is Beta(i/2, b)-distributed
    with b = concentration + (D - 1 - i)/2, so that
    p(L) = prod_i L[i, i]^(2 b - 2) Gamma(b + i/2) / (Gamma(b) pi^(i/2))
    (the onion method: Lewandowski, Kurowicka and Joe 2009).

    Args:
        dim: D
        concentration: 1 for a uniform matrix; the larger, the weaker the correlations.

    >>> import chainrule
    >>> from chainrule.distributions import LKJCholesky
    >>> L = LKJCholesky(3, 2.0).sample()
    >>> bool(((L @ L.mT).diagonal() - 1).abs().max() < 1e-6)
    True
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    concentration: Tensor

    def __init__(
        self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None
    ):
        if dim < 2:
            raise ValueError(f"LKJCholesky: dim must be an integer of at least 2, got {dim}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new.dim = self.dim
        return new

    def _shapes(self) -> tuple[Tensor, Tensor]:
        """i/2 and b of the rows i = 1..D-1."""
        half = 0.5 * arange(
            1, self.dim, dtype=self.concentration.dtype, device=self.concentration.device
        )
        return half, self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 1) - half

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            half, b = (s.expand(*shape[:-2], self.dim - 1) for s in self._shapes())
            squared = (random_log_gamma(half) - random_log_gamma(b)).sigmoid()
            normal = randn(shape, dtype=b.dtype, device=b.device).tril(-1)[..., 1:, :]
            direction = normal / normal.square().sum(-1, True).sqrt()
            rows = pad(direction * squared.sqrt().unsqueeze(-1), (0, 0, 1, 0))
            rest = (1 - rows.square().sum(-1)).clamp_min(tiny_of(rows)).sqrt()
            return rows + diag_embed(rest)

    def log_prob(self, value: Tensor) -> Tensor:
        half, b = self._shapes()
        diagonal = self._checked(value).diagonal(0, -2, -1)[..., 1:]
        normalizer = b.lgamma() - (b + half).lgamma() + half * math.log(math.pi)
        return ((2 * b - 2) * diagonal.log() - normalizer).sum(-1)
