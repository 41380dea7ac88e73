"""From a region to a transform of all real numbers into it.

``biject_to(region)`` is one to one, for densities; ``transform_to(region)`` need not be, for
parameters that are optimized.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from chainrule.distributions import constraints, transforms
from chainrule.distributions.constraints import Constraint
from chainrule.distributions.transforms import Transform
from chainrule.tensor import Tensor

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory: TypeAlias = Callable[[Any], Transform]


class ConstraintRegistry:
    """Which transform leads into a region, by the class of the region.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import constraints, transform_to
    >>> transform_to(constraints.positive)(tensor([-1.0, 0.0, 1.0]))
    tensor([0.3679, 1.0000, 2.7183])
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}

    def register(
        self, constraint: Constraint | type[Constraint], factory: Factory | None = None
    ) -> Any:
        """Names the function that makes the transform for regions of a class; a decorator, too."""
        if factory is None:
            return lambda given: self.register(constraint, given)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(
                f"register: expected a constraint or a class of constraints, got {constraint!r}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """The transform into this region."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"no transform into {constraint!r} is registered")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _both(constraint: Constraint | type[Constraint], factory: Factory) -> None:
    biject_to.register(constraint, factory)
    transform_to.register(constraint, factory)


def _above(region: Any) -> Transform:
    low = region.lower_bound
    if not isinstance(low, Tensor) and low == 0:
        return transforms.ExpTransform()
    shift = transforms.AffineTransform(low, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


def _below(region: Any) -> Transform:
    turn = transforms.AffineTransform(region.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), turn])


def _between(region: Any) -> Transform:
    low, high = region.lower_bound, region.upper_bound
    unit = transforms.SigmoidTransform()
    if not isinstance(low, Tensor) and not isinstance(high, Tensor) and (low, high) == (0, 1):
        return unit
    return transforms.ComposeTransform([unit, transforms.AffineTransform(low, high - low)])


_both(constraints.real, lambda region: transforms.identity_transform)
_both(constraints.greater_than, _above)
_both(constraints.greater_than_eq, _above)
_both(constraints.less_than, _below)
_both(constraints.interval, _between)
_both(constraints.half_open_interval, _between)
_both(constraints.corr_cholesky, lambda region: transforms.CorrCholeskyTransform())
biject_to.register(constraints.simplex, lambda region: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda region: transforms.SoftmaxTransform())
transform_to.register(
    constraints.lower_cholesky, lambda region: transforms.LowerCholeskyTransform()
)
for _region in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_region, lambda region: transforms.PositiveDefiniteTransform())


def _registered_parts(registry: ConstraintRegistry) -> None:
    """Regions made of others: the transforms of the parts."""
    registry.register(
        constraints.independent,
        lambda r: transforms.IndependentTransform(
            registry(r.base_constraint), r.reinterpreted_batch_ndims
        ),
    )
    registry.register(
        constraints.cat,
        lambda r: transforms.CatTransform([registry(c) for c in r.cseq], r.dim, r.lengths),
    )
    registry.register(
        constraints.stack,
        lambda r: transforms.StackTransform([registry(c) for c in r.cseq], r.dim),
    )


_registered_parts(biject_to)
_registered_parts(transform_to)
