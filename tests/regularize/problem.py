"""A small problem to learn."""

from __future__ import annotations

from typing import Any
from regularize.networks import F64

import chainrule


def problem() -> tuple[Any, Any]:
    g = chainrule.Generator().manual_seed(1)
    x = chainrule.randn(40, 3, generator=g, dtype=F64)
    return x, chainrule.tanh(x[:, :2])
