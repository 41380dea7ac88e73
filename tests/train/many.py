"""Networks and data to train at once, and one by one."""

from __future__ import annotations

from typing import Any

import chainrule


F64 = chainrule.float64


def classes(n: int = 50) -> tuple[Any, Any]:
    g = chainrule.Generator().manual_seed(0)
    x = chainrule.randn(n, 4, generator=g, dtype=F64)
    return x, (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
