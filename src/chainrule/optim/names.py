"""Optimizers by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule import optim
from chainrule.optim.making import made_by
from chainrule.optim.minimizer import Minimizer
from chainrule.optim.optimizer import Optimizer
from chainrule.typing import Params

__all__ = ["OptimizerLike", "make_optimizer", "optimizer_class"]

# An optimizer, or what makes one for parameters: its name, its class, a function.
OptimizerLike = str | Optimizer | Callable[..., Optimizer]

# The bases of others, and what learns one layer without a loss.
_NOT_BY_NAME = (Optimizer, Minimizer, optim.Hebbian)


def optimizer_class(name: str, asked_by: str = "") -> type[Optimizer]:
    """The optimizer of this name; upper and lower case, ``-`` and ``_`` make no difference.

    >>> optimizer_class("conjugate-gradient").__name__
    'ConjugateGradient'
    """
    found = {n.lower(): getattr(optim, n) for n in optim.__all__}
    known = {
        n: cls
        for n, cls in found.items()
        if isinstance(cls, type) and issubclass(cls, Optimizer) and cls not in _NOT_BY_NAME
    }
    key = name.replace("-", "").replace("_", "").lower()
    if key not in known:
        asked = f"{asked_by}: " if asked_by else ""
        raise ValueError(f"{asked}unknown optimizer {name!r}; select from {sorted(known)}")
    return known[key]


def make_optimizer(
    asked_by: str,
    optimizer: OptimizerLike | None,
    params: Params,
    **options: Any,
) -> Optimizer:
    """An optimizer of some parameters: the one given, or by its name, class or function.

    Args:
        asked_by: who asks, for messages.
        optimizer: an optimizer, which is returned as it is; or what makes one, by default Adam.
        params: what it changes, or groups of that.
        options: its settings.

    >>> import chainrule
    >>> make_optimizer("Trainer", "sgd", [chainrule.ones(2)], lr=0.1).defaults["lr"]
    0.1
    """
    if isinstance(optimizer, str):
        optimizer = optimizer_class(optimizer, asked_by)
    return made_by(asked_by, optim.Adam if optimizer is None else optimizer, params, **options)
