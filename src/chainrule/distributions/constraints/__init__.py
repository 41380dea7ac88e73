"""Regions that parameters and samples must lie in, such as ``constraints.positive``.

A constraint without settings is an object (``real``, ``simplex``), one with settings a class
(``interval(0, 1)``). ``check(value)`` says for each value, not for each number, whether it lies in
the region: where ``event_dim`` is 1 a value is a vector, where it is 2 a matrix.
"""

from __future__ import annotations

from chainrule.distributions.constraints.base import (
    Constraint,
    dependent,
    dependent_property,
    is_dependent,
)
from chainrule.distributions.constraints.matrices import (
    corr_cholesky,
    lower_cholesky,
    lower_triangular,
    positive_definite,
    positive_semidefinite,
    square,
    symmetric,
)
from chainrule.distributions.constraints.numbers import (
    boolean,
    greater_than,
    greater_than_eq,
    half_open_interval,
    integer_interval,
    interval,
    less_than,
    nonnegative,
    nonnegative_integer,
    positive,
    positive_integer,
    real,
    unit_interval,
)
from chainrule.distributions.constraints.parts import (
    MixtureSameFamilyConstraint,
    cat,
    stack,
)
from chainrule.distributions.constraints.vectors import (
    independent,
    multinomial,
    one_hot,
    real_vector,
    simplex,
)

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]
