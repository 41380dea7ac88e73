"""Independent values of one distribution, taken together as one value."""

from __future__ import annotations

from typing import ClassVar, Self

from chainrule.distributions import constraints
from chainrule.distributions.constraints import Constraint, dependent_property
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import sum_rightmost
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Independent"]


class Independent(Distribution):
    """p(x) = prod_i p_i(x_i) over the last ``reinterpreted_batch_ndims`` dimensions of the batch.

    Args:
        base_distribution: of the x_i.
        reinterpreted_batch_ndims: how many dimensions of its batch become part of a value.

    >>> import chainrule
    >>> from chainrule.distributions import Independent, Normal
    >>> d = Independent(Normal(chainrule.zeros(2, 3), 1.0), 1)
    >>> d.batch_shape, d.event_shape, d.log_prob(chainrule.zeros(2, 3))
    (chainrule.Size([2]), chainrule.Size([3]), tensor([-2.7568, -2.7568]))
    """

    arg_constraints: ClassVar = {}
    base_dist: Distribution

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ):
        batch = self._checked_base(base_distribution).batch_shape
        if not 0 <= reinterpreted_batch_ndims <= len(batch):
            raise ValueError(
                f"Independent: reinterpreted_batch_ndims must lie between 0 and {len(batch)}, the "
                f"dimensions of the batch {tuple(batch)}, got {reinterpreted_batch_ndims}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self._set_flags()
        cut = len(batch) - reinterpreted_batch_ndims
        event = (*batch[cut:], *base_distribution.event_shape)
        super().__init__(batch[:cut], event, validate_args)

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        new = super().expand(batch_shape, _instance)
        own = self.event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand((*batch_shape, *own))
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        new._set_flags()
        return new

    def _set_flags(self) -> None:
        base = self.base_dist
        self.has_rsample = base.has_rsample
        self.has_enumerate_support = (
            base.has_enumerate_support and not self.reinterpreted_batch_ndims
        )

    @dependent_property
    def support(self) -> Constraint:
        base, dims = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(base, dims) if dims else base

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Independent: all combinations of values are too many")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
