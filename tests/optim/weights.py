"""Weights with a gradient."""

from __future__ import annotations

import chainrule
from chainrule import Tensor


def weight(*values: float) -> Tensor:
    return chainrule.tensor(values, dtype=chainrule.float64, requires_grad=True)


def with_gradient(*values: float) -> Tensor:
    """A weight whose gradient is itself: that of half its square."""
    w = weight(*values)
    w.grad = w.detach().clone()
    return w
