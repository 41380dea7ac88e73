"""The logistic-normal distribution: random probabilities that may be correlated."""

from __future__ import annotations

from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.compound.independent import Independent
from chainrule.distributions.numbers.normal import Normal
from chainrule.distributions.compound.transformed_distribution import TransformedDistribution
from chainrule.distributions.transforms import StickBreakingTransform
from chainrule.tensor import Tensor

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """:class:`StickBreakingTransform` of (..., K) independent numbers from Normal(loc, scale).

    The values are K + 1 probabilities y with
    p(y) = prod_k Normal(x[k]; loc[k], scale[k]) / |det dy/dx|

    >>> import chainrule
    >>> from chainrule.distributions import LogisticNormal
    >>> LogisticNormal(chainrule.zeros(2), chainrule.ones(2)).sample().shape
    chainrule.Size([3])
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    base_dist: Independent

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ):
        base = Normal(loc, scale, validate_args=False)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The means of the numbers."""
        return self._normal.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the numbers."""
        return self._normal.scale

    @property
    def _normal(self) -> Normal:
        base = self.base_dist.base_dist
        if not isinstance(base, Normal):
            raise TypeError(f"LogisticNormal: expected numbers from Normal, got {base}")
        return base
