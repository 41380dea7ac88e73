"""What a constraint is, and those that depend on other parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from chainrule.tensor import Tensor

__all__ = [
    "Constraint",
    "all_of_last",
    "checked",
    "dependent",
    "dependent_property",
    "is_dependent",
]

T = TypeVar("T")


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
        derived = ("event_dim", "is_discrete", "_slice_dim")
        settings = ", ".join(f"{k}={_shown(v)}" for k, v in vars(self).items() if k not in derived)
        name = type(self).__name__.lstrip("_")
        return f"{name}({settings})" if settings else name


def _shown(setting: object) -> object:
    """A bound as it is printed: a number, not a tensor without dimensions."""
    return setting.item() if isinstance(setting, Tensor) and setting.ndim == 0 else setting


def all_of_last(valid: Tensor, dims: int) -> Tensor:
    """Whether the last dimensions hold nothing but True."""
    return valid.reshape(*valid.shape[: valid.ndim - dims], -1).all(-1) if dims else valid


def checked(name: str, cseq: Sequence[Constraint]) -> list[Constraint]:
    """The regions that another one is made of."""
    for c in cseq:
        if not isinstance(c, Constraint):
            raise ValueError(f"constraints.{name}: expected constraints, got {type(c).__name__}")
    return list(cseq)


class _dependent(Constraint):
    """A region that depends on other parameters, so that it cannot be checked alone."""

    def __init__(self, *, is_discrete: bool | None = None, event_dim: int | None = None):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(
        self, *, is_discrete: bool | None = None, event_dim: int | None = None
    ) -> _dependent:
        return _dependent(
            is_discrete=self._is_discrete if is_discrete is None else is_discrete,
            event_dim=self._event_dim if event_dim is None else event_dim,
        )

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return _known("is_discrete", self._is_discrete)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return _known("event_dim", self._event_dim)

    def __repr__(self) -> str:
        return "dependent"

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("constraints: a region that depends on other parameters has no check")


def _known(name: str, value: T | None) -> T:
    if value is None:
        raise NotImplementedError(
            f"constraints: {name} of a region that depends on other parameters is known of the "
            "region of an object only, such as Uniform(0.0, 1.0).support"
        )
    return value


dependent = _dependent()


def is_dependent(constraint: object) -> bool:
    """Whether a region depends on other parameters.

    >>> from chainrule import distributions
    >>> constraints = distributions.constraints
    >>> constraints.is_dependent(distributions.Uniform.support)
    True
    """
    return isinstance(constraint, _dependent)


class dependent_property(property, _dependent):
    """A property that gives a distribution's region, which depends on its parameters.

    Of the class it is known whether the region is discrete and what dimensions its values have, if
    that was said here.

    >>> from chainrule.distributions import Uniform
    >>> Uniform.support.is_discrete, Uniform(1.0, 3.0).support
    (False, interval(lower_bound=1.0, upper_bound=3.0))
    """

    def __init__(
        self,
        fget: Callable[[Any], Constraint] | None = None,
        *,
        is_discrete: bool | None = None,
        event_dim: int | None = None,
    ):
        super().__init__(fget)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(  # type: ignore[override]
        self, fget: Callable[[Any], Constraint]
    ) -> dependent_property:
        return dependent_property(fget, is_discrete=self._is_discrete, event_dim=self._event_dim)
