"""Regions that parameters and samples must lie in, such as ``constraints.positive``.

A constraint without settings is an object (``real``, ``simplex``), one with settings a class
(``interval(0, 1)``). ``check(value)`` says for each value, not for each number, whether it lies in
the region: where ``event_dim`` is 1 a value is a vector, where it is 2 a matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.backend import K
from chainrule.linalg import eigvalsh
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.elementwise.functions import remainder
from chainrule.ops.shape.stacking import cat as concatenated
from chainrule.ops.shape.stacking import stack as stacked
from chainrule.tensor import Tensor

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

Bound = Tensor | float


class Constraint:
    """A region of values; ``is_discrete`` says that it holds separate points only.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import constraints
    >>> constraints.positive.check(tensor([-1.0, 2.0]))
    tensor([False,  True])
    >>> constraints.simplex.check(tensor([[0.5, 0.5], [0.5, 0.6]])), constraints.simplex.event_dim
    (tensor([ True, False]), 1)
    """

    is_discrete: bool = False
    event_dim: int = 0

    def check(self, value: Tensor) -> Tensor:
        """Which of the values lie in the region."""
        raise NotImplementedError(f"{self!r} has no check")

    def __repr__(self) -> str:
        derived = ("event_dim", "is_discrete")
        settings = ", ".join(f"{k}={_shown(v)}" for k, v in vars(self).items() if k not in derived)
        name = type(self).__name__.lstrip("_")
        return f"{name}({settings})" if settings else name


def _shown(setting: object) -> object:
    """A bound as it is printed: a number, not a tensor without dimensions."""
    return setting.item() if isinstance(setting, Tensor) and setting.ndim == 0 else setting


def _all(valid: Tensor, dims: int) -> Tensor:
    """Whether the last dimensions hold nothing but True."""
    return valid.reshape(*valid.shape[: valid.ndim - dims], -1).all(-1) if dims else valid


# --- regions that depend on other parameters ------------------------------------------------------


class _dependent(Constraint):
    """A region that depends on other parameters, so that it cannot be checked alone."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0):
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool = False, event_dim: int = 0) -> _dependent:
        return _dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("constraints: a region that depends on other parameters has no check")


dependent = _dependent()


def is_dependent(constraint: object) -> bool:
    """Whether a region depends on other parameters.

    >>> from chainrule import distributions
    >>> constraints = distributions.constraints
    >>> constraints.is_dependent(distributions.Uniform.support)
    True
    """
    return isinstance(constraint, (_dependent, dependent_property))


class dependent_property(property):
    """A property that gives a distribution's region, which depends on its parameters.

    Of the class it is known beforehand whether the region is discrete and what dimensions its
    values have.

    >>> from chainrule.distributions import Uniform
    >>> Uniform.support.is_discrete, Uniform(1.0, 3.0).support
    (False, interval(lower_bound=1.0, upper_bound=3.0))
    """

    def __init__(
        self,
        fget: Callable[[Any], Constraint] | None = None,
        *,
        is_discrete: bool = False,
        event_dim: int = 0,
    ):
        super().__init__(fget)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fget: Callable[[Any], Constraint]) -> dependent_property:
        return dependent_property(fget, is_discrete=self.is_discrete, event_dim=self.event_dim)


# --- numbers --------------------------------------------------------------------------------------


class _real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # not NaN


class greater_than(Constraint):
    """x > lower_bound"""

    def __init__(self, lower_bound: Bound):
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class greater_than_eq(Constraint):
    """x >= lower_bound"""

    def __init__(self, lower_bound: Bound):
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class less_than(Constraint):
    """x < upper_bound"""

    def __init__(self, upper_bound: Bound):
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class interval(Constraint):
    """lower_bound <= x <= upper_bound"""

    def __init__(self, lower_bound: Bound, upper_bound: Bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class half_open_interval(interval):
    """lower_bound <= x < upper_bound"""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class integer_interval(interval):
    """The integers from lower_bound to upper_bound, both included."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _is_integer(value) & super().check(value)


class _integer_from(greater_than_eq):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _is_integer(value) & super().check(value)


def _is_integer(value: Tensor) -> Tensor:
    return value == value if value.dtype.name == "bool" else remainder(value, 1) == 0


# --- vectors --------------------------------------------------------------------------------------


class independent(Constraint):
    """Values of ``base_constraint`` in the last dimensions, which together are one value."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint = base_constraint
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
        return _all(valid, self.reinterpreted_batch_ndims)


class _simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _one_hot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class multinomial(Constraint):
    """Counts, which add up to ``upper_bound``."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Bound):
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) == self.upper_bound)


# --- matrices -------------------------------------------------------------------------------------


class _lower_triangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _all(value.tril() == value, 2)


class _lower_cholesky(_lower_triangular):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(0, -2, -1) > 0).all(-1)


class _corr_cholesky(_lower_cholesky):
    def check(self, value: Tensor) -> Tensor:
        tolerance = 10 * value.shape[-1] * K.rounding_error(value.array.dtype)
        lengths = value.detach().square().sum(-1).sqrt()
        return super().check(value) & ((lengths - 1).abs() < tolerance).all(-1)


class _square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        full = zeros(value.shape[:-2]) == 0
        return full if value.shape[-2] == value.shape[-1] else ~full


class _symmetric(_square):
    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return _all((value - value.mT).abs() <= 1e-6 + 1e-5 * value.abs(), 2)


class _positive_semidefinite(_symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return symmetric & (eigvalsh(value) >= 0).all(-1) if symmetric.any() else symmetric


class _positive_definite(_symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return symmetric & (eigvalsh(value) > 0).all(-1) if symmetric.any() else symmetric


# --- of several parts -----------------------------------------------------------------------------


class _parts(Constraint):
    """Several regions, side by side along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max(c.event_dim for c in self.cseq)

    def _wrapped(self, value: Tensor) -> int:
        if not -value.ndim <= self.dim < value.ndim:
            raise IndexError(
                f"constraints: dimension {self.dim} is out of range for shape {tuple(value.shape)}"
            )
        return self.dim % value.ndim


class cat(_parts):
    """Regions of the parts of a tensor along ``dim``, which are ``lengths`` long (1 each)."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value: Tensor) -> Tensor:
        parts = value.split(self.lengths, self._wrapped(value))
        return concatenated([c.check(x) for c, x in zip(self.cseq, parts, strict=True)], self.dim)


class stack(_parts):
    """Regions of the slices of a tensor along ``dim``."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        super().__init__(cseq, dim)
        self.event_dim += self.dim + self.event_dim < 0

    def check(self, value: Tensor) -> Tensor:
        parts = value.unbind(self._wrapped(value))
        return stacked([c.check(x) for c, x in zip(self.cseq, parts, strict=True)], self.dim)


class MixtureSameFamilyConstraint(Constraint):
    """The region of a mixture: that of its components, which have a dimension more."""

    def __init__(self, base_constraint: Constraint):
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        each = value.unsqueeze(-1 - self.event_dim)
        return self.base_constraint.check(each).all(-1)


boolean, one_hot = _boolean(), _one_hot()
nonnegative_integer, positive_integer = _integer_from(0), _integer_from(1)
real, real_vector = _real(), independent(_real(), 1)
positive, nonnegative = greater_than(0.0), greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
simplex = _simplex()
lower_triangular, lower_cholesky = _lower_triangular(), _lower_cholesky()
corr_cholesky = _corr_cholesky()
square, symmetric = _square(), _symmetric()
positive_semidefinite, positive_definite = _positive_semidefinite(), _positive_definite()
