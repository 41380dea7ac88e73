"""Optimizers by their names."""

from __future__ import annotations

from chainrule import optim
from chainrule.optim.minimizer import Minimizer
from chainrule.optim.optimizer import Optimizer

__all__ = ["optimizer_class"]

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
