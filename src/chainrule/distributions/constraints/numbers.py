"""Regions of numbers: each element by itself."""

from __future__ import annotations

from chainrule.distributions.constraints.base import Constraint
from chainrule.ops.elementwise.functions import remainder
from chainrule.tensor import Tensor

__all__ = [
    "boolean",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "integer_interval",
    "interval",
    "less_than",
    "nonnegative",
    "nonnegative_integer",
    "positive",
    "positive_integer",
    "real",
    "unit_interval",
]

Bound = Tensor | float


class _real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # not NaN


class greater_than(Constraint):
    """x > lower_bound

    >>> from chainrule import tensor
    >>> from chainrule.distributions import constraints
    >>> constraints.greater_than(1.0).check(tensor([1.0, 2.0]))
    tensor([False,  True])
    """

    def __init__(self, lower_bound: Bound):
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class greater_than_eq(Constraint):
    """x >= lower_bound

    >>> from chainrule import tensor
    >>> from chainrule.distributions import constraints
    >>> constraints.greater_than_eq(1.0).check(tensor([0.0, 1.0]))
    tensor([False,  True])
    """

    def __init__(self, lower_bound: Bound):
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class less_than(Constraint):
    """x < upper_bound

    >>> from chainrule import tensor
    >>> from chainrule.distributions import constraints
    >>> constraints.less_than(1.0).check(tensor([0.0, 1.0]))
    tensor([ True, False])
    """

    def __init__(self, upper_bound: Bound):
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class interval(Constraint):
    """lower_bound <= x <= upper_bound

    >>> from chainrule import tensor
    >>> from chainrule.distributions import constraints
    >>> constraints.interval(-1.0, 1.0).check(tensor([0.0, 1.0, 2.0]))
    tensor([ True,  True, False])
    """

    def __init__(self, lower_bound: Bound, upper_bound: Bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class half_open_interval(interval):
    """lower_bound <= x < upper_bound

    >>> from chainrule import tensor
    >>> from chainrule.distributions import constraints
    >>> constraints.half_open_interval(-1.0, 1.0).check(tensor([0.0, 1.0, 2.0]))
    tensor([ True, False, False])
    """

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class integer_interval(interval):
    """The integers from lower_bound to upper_bound, both included.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import constraints
    >>> constraints.integer_interval(0, 2).check(tensor([0.0, 0.5, 2.0]))
    tensor([ True, False,  True])
    """

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _is_integer(value) & super().check(value)


class _integer_from(greater_than_eq):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _is_integer(value) & super().check(value)


def _is_integer(value: Tensor) -> Tensor:
    return value == value if value.dtype.name == "bool" else remainder(value, 1) == 0


real, boolean = _real(), _boolean()
positive, nonnegative = greater_than(0.0), greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
nonnegative_integer, positive_integer = _integer_from(0), _integer_from(1)
