"""Optimizers that a user gives, or gives a way to make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.optim.optimizer import Optimizer
from chainrule.typing import Params

__all__ = ["made_by"]


def made_by(
    asked_by: str,
    optimizer: Optimizer | Callable[..., Optimizer],
    params: Params,
    **options: Any,
) -> Optimizer:
    """The optimizer given, or what its class or a function makes of some parameters."""
    if isinstance(optimizer, Optimizer):
        return optimizer
    made = optimizer(params, **options) if callable(optimizer) else optimizer
    if not isinstance(made, Optimizer):
        raise TypeError(f"{asked_by}: expected an Optimizer, got {type(made).__name__}")
    return made
