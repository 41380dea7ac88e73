"""What every distribution can do, and how its parameters and values are checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from chainrule.autograd.modes import no_grad
from chainrule.distributions.constraints import Constraint, is_dependent
from chainrule.graph import Box
from chainrule.ops.core.promotion import broadcast_shapes
from chainrule.tensor import Size, Tensor
from chainrule.typing import Shape

__all__ = ["Distribution"]


class Distribution:
    """The base of all distributions.

    One draw has the shape ``batch_shape + event_shape``: ``batch_shape`` counts distributions with
    parameters of their own, ``event_shape`` is the shape of one value, over which ``log_prob`` has
    added up.

    A family gives its parameters as attributes with their regions in ``arg_constraints``, its
    ``support``, ``log_prob`` and ``rsample`` (a differentiable function of the parameters and of
    numbers that do not depend on them) or ``sample``.

    >>> import chainrule
    >>> from chainrule.distributions import Normal
    >>> d = Normal(chainrule.zeros(2), 1.0)
    >>> d.batch_shape, d.event_shape, d.sample((3,)).shape
    (chainrule.Size([2]), chainrule.Size([]), chainrule.Size([3, 2]))
    >>> Normal(0.0, -1.0)
    Traceback (most recent call last):
    ...
    ValueError: Normal: the parameter scale must satisfy greater_than(lower_bound=0.0), got -1.0
    """

    arg_constraints: ClassVar[Mapping[str, Constraint]] = {}
    has_rsample: bool = False
    has_enumerate_support: bool = False
    _validate_args: bool = True

    def __init__(
        self,
        batch_shape: Shape = (),
        event_shape: Shape = (),
        validate_args: bool | None = None,
    ):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check parameters and values unless told otherwise."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected True or False, got {value!r}")
        Distribution._validate_args = bool(value)

    # --- shapes -----------------------------------------------------------------------------------

    @property
    def batch_shape(self) -> Size:
        """The shape of the distributions that this object holds."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value of one of them."""
        return self._event_shape

    @classmethod
    def _checked_base(cls, base: Distribution) -> Distribution:
        """What a distribution that is made of another was given."""
        if not isinstance(base, Distribution):
            raise ValueError(
                f"{cls.__name__}: base_distribution must be a Distribution, got "
                f"{type(base).__name__}"
            )
        return base

    def _extended_shape(self, sample_shape: Shape = ()) -> Size:
        """The shape of that many draws."""
        if isinstance(sample_shape, int):
            raise TypeError(
                f"{type(self).__name__}: sample_shape must be a tuple, such as ({sample_shape},), "
                f"got {sample_shape}"
            )
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        """The same distribution with its parameters expanded to another batch shape.

        ``_instance`` is for subclasses in other places: an object that their ``expand`` has made.
        """
        new = self.__new__(type(self)) if _instance is None else _instance
        for name, constraint in self._all_constraints().items():
            value = self.__dict__.get(name)
            if isinstance(value, Tensor):
                event = value.shape[value.ndim - constraint.event_dim :]
                new.__dict__[name] = value.expand((*batch_shape, *event))
        new._batch_shape, new._event_shape = Size(batch_shape), self._event_shape
        new._validate_args = self._validate_args
        return new

    @classmethod
    def _all_constraints(cls) -> dict[str, Constraint]:
        """The regions of its parameters and of those of the family that it belongs to."""
        found: dict[str, Constraint] = {}
        for base in reversed(cls.__mro__):
            found |= base.__dict__.get("arg_constraints", {})
        return found

    # --- values -----------------------------------------------------------------------------------

    @property
    def support(self) -> Constraint:
        """The region of the values."""
        raise NotImplementedError(f"{type(self).__name__}: support is not known")

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Random values, without a derivative; ``sample_shape`` of them for each distribution."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Random values with a derivative by the parameters, where there is one."""
        raise NotImplementedError(
            f"{type(self).__name__}: no differentiable samples (has_rsample is False); use sample, "
            "and log_prob for the score"
        )

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution along a new first dimension.

        With ``expand=False`` the batch dimensions have size 1.
        """
        raise NotImplementedError(f"{type(self).__name__}: the support cannot be enumerated")

    # --- probabilities ----------------------------------------------------------------------------

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at a value."""
        raise NotImplementedError(f"{type(self).__name__}: log_prob is not known")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        raise NotImplementedError(f"{type(self).__name__}: cdf is not known")

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile: the inverse of :meth:`cdf`."""
        raise NotImplementedError(f"{type(self).__name__}: icdf is not known")

    def entropy(self) -> Tensor:
        """-E[log_prob(x)], in nats."""
        raise NotImplementedError(f"{type(self).__name__}: entropy is not known")

    def perplexity(self) -> Tensor:
        """exp(entropy)"""
        return self.entropy().exp()

    # --- moments ----------------------------------------------------------------------------------

    @property
    def mean(self) -> Tensor:
        """E[x]"""
        raise NotImplementedError(f"{type(self).__name__}: mean is not known")

    @property
    def mode(self) -> Tensor:
        """The likeliest value."""
        raise NotImplementedError(f"{type(self).__name__}: mode is not known")

    @property
    def variance(self) -> Tensor:
        """E[(x - mean)^2]"""
        raise NotImplementedError(f"{type(self).__name__}: variance is not known")

    @property
    def stddev(self) -> Tensor:
        """sqrt(variance)"""
        return self.variance.sqrt()

    # --- checks -----------------------------------------------------------------------------------

    def _validate_parameters(self) -> None:
        """Refuses a parameter outside its region."""
        for name, constraint in self.arg_constraints.items():
            value = self._given(name)
            if value is not None and not is_dependent(constraint):
                self._refuse(f"the parameter {name}", value, constraint)

    def _given(self, name: str) -> Tensor | None:
        """A parameter, unless it is computed from others when first asked for."""
        computed = isinstance(getattr(type(self), name, None), property)
        value = getattr(self, name) if computed else self.__dict__.get(name)
        return value if isinstance(value, Tensor) else None

    def _checked(self, value: Tensor) -> Tensor:
        """The value, after its check unless checks are off."""
        if self._validate_args:
            self._validate_sample(value)
        return value

    def _validate_sample(self, value: Tensor) -> None:
        """Refuses a value of a wrong shape, or outside the support."""
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ValueError(f"{name}: the value must be a tensor, got {type(value).__name__}")
        event = self._event_shape
        if len(event) > value.ndim or value.shape[value.ndim - len(event) :] != event:
            raise ValueError(
                f"{name}: a value has the event shape {tuple(event)} in its last dimensions, got "
                f"shape {tuple(value.shape)}"
            )
        batch = value.shape[: value.ndim - len(event)]
        try:
            broadcast_shapes(batch, self._batch_shape)
        except RuntimeError:
            raise ValueError(
                f"{name}: values of shape {tuple(batch)} do not broadcast with the batch shape "
                f"{tuple(self._batch_shape)}"
            ) from None
        try:
            support = self.support
        except NotImplementedError:
            return
        self._refuse("the value", value, support)

    def _refuse(self, what: str, value: Tensor, constraint: Constraint) -> None:
        """Names the first entry that does not lie in a region; inside vmap there are no numbers."""
        valid = constraint.check(value)
        if isinstance(valid.array, Box) or valid.all():
            return
        place = tuple((~valid).nonzero()[0].tolist())
        batch = valid.shape
        shown = value.expand(*batch, *value.shape[value.ndim - constraint.event_dim :])[place]
        where = f" at index {place} of shape {tuple(batch)}" if place else ""
        raise ValueError(
            f"{type(self).__name__}: {what} must satisfy {constraint!r}, got "
            f"{shown.tolist()}{where}"
        )

    def __repr__(self) -> str:
        given = [(name, self._given(name)) for name in self.arg_constraints]
        shown = [
            f"{name}: {_shown(value) if value.numel() == 1 else value.shape}"
            for name, value in given
            if value is not None
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _shown(value: Tensor) -> object:
    """One number as it is printed, or a tensor of one."""
    return value if value.ndim else value.item()
