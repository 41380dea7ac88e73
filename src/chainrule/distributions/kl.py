"""Kullback-Leibler divergences, chosen by the classes of the two distributions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

from chainrule.distributions.distribution import Distribution
from chainrule.tensor import Tensor

__all__ = ["kl_divergence", "register_kl"]

Divergence: TypeAlias = Callable[[Any, Any], Tensor]
_REGISTRY: dict[tuple[type, type], Divergence] = {}
_chosen: dict[tuple[type, type], Divergence] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Names the divergence of distributions of one class from those of another; a decorator.

    For subclasses the registration of the nearest base classes counts.

    >>> from chainrule.distributions import Normal, kl_divergence, register_kl
    >>> class Standard(Normal):
    ...     def __init__(self):
    ...         super().__init__(0.0, 1.0)
    >>> @register_kl(Standard, Standard)
    ... def _nothing(p, q):
    ...     return 0 * p.loc
    >>> kl_divergence(Standard(), Standard())
    tensor(0.)
    """
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"register_kl: expected a subclass of Distribution, got {kind!r}")

    def register(function: Divergence) -> Divergence:
        _REGISTRY[type_p, type_q] = function
        _chosen.clear()
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q) = E_p[log p(x) - log q(x)], in nats; one number for each of the batch.

    >>> from chainrule.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5000)
    """
    key = type(p), type(q)
    if key not in _chosen:
        _chosen[key] = _choose(*key)
    return _chosen[key](p, q)


def _choose(p: type, q: type) -> Divergence:
    """The registration of the nearest base classes, those of p first."""
    matches = [(a, b) for a, b in _REGISTRY if issubclass(p, a) and issubclass(q, b)]
    if not matches:
        raise NotImplementedError(
            f"kl_divergence: no divergence of {p.__name__} from {q.__name__} is registered; "
            "see register_kl"
        )
    left = min(matches, key=lambda m: (p.__mro__.index(m[0]), q.__mro__.index(m[1])))
    right = min(matches, key=lambda m: (q.__mro__.index(m[1]), p.__mro__.index(m[0])))
    if _REGISTRY[left] is not _REGISTRY[right]:
        names = [f"({a.__name__}, {b.__name__})" for a, b in (left, right)]
        warnings.warn(
            f"kl_divergence({p.__name__}, {q.__name__}) is ambiguous: {names[0]} is taken, not "
            f"{names[1]}; register the pair itself",
            RuntimeWarning,
            stacklevel=3,
        )
    return _REGISTRY[left]
