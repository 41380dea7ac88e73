"""Bessel functions without their singular factor: entire functions of the square of the argument.

J_v(z) = (z / 2)^v / Gamma(v + 1) * 0F1(v + 1; -z^2 / 4)
"""

from __future__ import annotations

from chainrule.ops.core.primitive import Elementwise
from chainrule.ops.core.promotion import to_floating
from chainrule.typing import V

__all__ = ["hyp0f1"]

_hyp0f1 = Elementwise("hyp0f1", [lambda d, x, b: d * (hyp0f1(b + 1, x) / b)])


def hyp0f1(b: float, input: V) -> V:
    """0F1(b; x) = sum_k x^k / (b (b + 1) ... (b + k - 1) k!).

    >>> import math
    >>> from chainrule import tensor
    >>> hyp0f1(0.5, tensor([-(math.pi**2) / 4]))  # cos(2 sqrt(-x))
    tensor([-1.])
    """
    if not b > 0:
        raise RuntimeError(f"hyp0f1: b must be positive, got {b}")
    return _hyp0f1(to_floating(input), b=b)
