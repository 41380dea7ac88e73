"""Regions of vectors."""

from __future__ import annotations

from chainrule.distributions.constraints.base import Constraint, all_of_last, checked
from chainrule.distributions.constraints.numbers import Bound, boolean, real
from chainrule.tensor import Tensor

__all__ = ["independent", "multinomial", "one_hot", "real_vector", "simplex"]


class independent(Constraint):
    """Values of ``base_constraint`` in the last dimensions, which together are one value.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import constraints
    >>> vectors = constraints.independent(constraints.positive, 1)
    >>> vectors.check(tensor([[1.0, 2.0], [1.0, -2.0]]))
    tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        if reinterpreted_batch_ndims < 0:
            raise ValueError(
                "constraints: reinterpreted_batch_ndims must not be negative, got "
                f"{reinterpreted_batch_ndims}"
            )
        (self.base_constraint,) = checked("independent", [base_constraint])
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        valid = self.base_constraint.check(value)
        if valid.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(
                f"constraints: expected values with at least {self.event_dim} dimensions, got "
                f"shape {tuple(value.shape)}"
            )
        return all_of_last(valid, self.reinterpreted_batch_ndims)


class _simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _one_hot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class multinomial(Constraint):
    """Counts, which add up to ``upper_bound``.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import constraints
    >>> constraints.multinomial(3).check(tensor([[1.0, 2.0], [1.0, 1.0]]))
    tensor([ True, False])
    """

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Bound):
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) == self.upper_bound)


real_vector = independent(real, 1)
simplex, one_hot = _simplex(), _one_hot()
