"""What the rules of optimizers share: penalties, roots, and the kernel that computes a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from chainrule.ops.elementwise.functions import sqrt
from chainrule.typing import Value

__all__ = ["decayed", "fused", "root"]

_Rule = TypeVar("_Rule", bound=Callable[..., Sequence[Any]])


def decayed(p: Value, g: Value, weight_decay: float, maximize: bool = False) -> Value:
    """The gradient to descend: of the loss (its negative to climb) and of the penalty of p."""
    g = -g if maximize else g
    return g + weight_decay * p if weight_decay else g


def root(v: Value, eps: float, eps_in_root: bool = False) -> Value:
    """What a gradient is divided by: sqrt(v) + eps, or sqrt(v + eps)."""
    return sqrt(v + eps) if eps_in_root else sqrt(v) + eps


def fused(kernel: str) -> Callable[[_Rule], _Rule]:
    """Names the compiled kernel that computes a rule in one pass over all parameters.

    The name belongs to the function: a subclass with a rule of its own is computed by that rule,
    unless it names a kernel too. ``native/update.hpp`` lists the kernels; where there are none,
    NumPy computes the rule itself.

    >>> from chainrule import optim
    >>> optim.AdamW.rule.kernel
    'adam'
    """

    def name(rule: _Rule) -> _Rule:
        vars(rule)["kernel"] = kernel
        return rule

    return name
