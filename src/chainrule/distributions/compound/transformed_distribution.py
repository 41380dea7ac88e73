"""The distribution of a function of a random value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from chainrule.autograd.modes import no_grad
from chainrule.distributions import constraints
from chainrule.distributions.constraints import Constraint, dependent_property
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.compound.independent import Independent
from chainrule.distributions.transforms.base import (
    ComposeTransform,
    Transform,
    checked_transforms,
)
from chainrule.distributions.utils import sum_rightmost
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Size, Tensor
from chainrule.typing import Shape

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """y = f(x) for x from ``base_distribution``: log p(y) = log p(x) - log |det dy/dx|

    Args:
        base_distribution: of x.
        transforms: f, or several functions of which the first is applied first.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import ExpTransform, Normal, TransformedDistribution
    >>> d = TransformedDistribution(Normal(0.0, 1.0), ExpTransform())  # LogNormal(0.0, 1.0)
    >>> d.log_prob(tensor(1.0)), d.cdf(tensor(1.0))
    (tensor(-0.9189), tensor(0.5000))
    """

    arg_constraints: ClassVar = {}
    base_dist: Distribution
    transforms: list[Transform]

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ):
        if not isinstance(transforms, (Transform, list, tuple)):
            raise ValueError(
                "TransformedDistribution: transforms must be a Transform or a list of them, got "
                f"{type(transforms).__name__}"
            )
        several = [transforms] if isinstance(transforms, Transform) else transforms
        self.transforms = checked_transforms("TransformedDistribution", several)
        whole = ComposeTransform(self.transforms)
        self.base_dist = _fitted(self._checked_base(base_distribution), whole)
        shape = whole.forward_shape(self.base_dist._extended_shape())
        extra = max(len(self.base_dist.event_shape) - whole.domain.event_dim, 0)
        cut = len(shape) - whole.codomain.event_dim - extra
        self.has_rsample = self.base_dist.has_rsample
        super().__init__(shape[:cut], shape[cut:], validate_args)

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        new = super().expand(batch_shape, _instance)
        shape = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self.event_shape))
        cut = len(shape) - len(self.base_dist.event_shape)
        new.base_dist, new.transforms = self.base_dist.expand(shape[:cut]), self.transforms
        new.has_rsample = self.has_rsample
        return new

    @dependent_property(is_discrete=False)
    def support(self) -> Constraint:
        if not self.transforms:
            return self.base_dist.support
        region = self.transforms[-1].codomain
        more = len(self.event_shape) - region.event_dim
        return constraints.independent(region, more) if more > 0 else region

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        y, dims = self._checked(value), len(self.event_shape)
        change: Tensor | int = 0
        for t in reversed(self.transforms):
            x = t.inv(y)
            dims += t.domain.event_dim - t.codomain.event_dim
            own = t.log_abs_det_jacobian(x, y)
            change = change + sum_rightmost(own, dims - t.domain.event_dim)
            y = x
        base = sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))
        return base - change

    def cdf(self, value: Tensor) -> Tensor:
        sign, y = self._sign(), self._checked(value)
        for t in reversed(self.transforms):
            y = t.inv(y)
        return _turned(self.base_dist.cdf(y), sign)

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(_turned(value, self._sign())))

    def _forward(self, x: Tensor) -> Tensor:
        for t in self.transforms:
            x = t(x)
        return x

    def _sign(self) -> Tensor | int:
        return ComposeTransform(self.transforms).sign


def _turned(probability: Tensor, sign: Tensor | int) -> Tensor:
    """p for an increasing function, 1 - p for a decreasing one."""
    if isinstance(sign, int):
        return probability if sign > 0 else 1 - probability
    return where(sign > 0, probability, 1 - probability)


def _fitted(base: Distribution, transform: ComposeTransform) -> Distribution:
    """The base with parameters and values of the shapes that the transform has."""
    needed, shape = transform.domain.event_dim, base._extended_shape()
    if len(shape) < needed:
        raise ValueError(
            f"TransformedDistribution: {transform.parts} need values of {needed} dimensions, but "
            f"{base} has shape {tuple(shape)}"
        )
    full = transform.inverse_shape(transform.forward_shape(shape))
    if full != shape:
        base = base.expand(Size(full[: len(full) - len(base.event_shape)]))
    more = needed - len(base.event_shape)
    return Independent(base, more) if more > 0 else base
