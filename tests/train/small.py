"""A small problem and a network for it."""

from __future__ import annotations

from typing import Any

import chainrule


def problem(n: int = 96, classes: int = 3) -> tuple[Any, Any]:
    g = chainrule.Generator().manual_seed(1)
    x = chainrule.randn(n, 4, generator=g)
    w = chainrule.randn(4, classes, generator=g)
    return x, (x @ w).argmax(1)
