"""Orthogonal polynomials by their recurrences, and their derivatives by the derivatives of those.

All have p[0] = 1 and p[k+1](x) = (a x + b) p[k](x) - c p[k-1](x), with p[-1] = 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["orthogonal_polynomial"]

Step = Callable[[int], tuple[float, float, float]]

# Of each family a, b and c in step k.
RECURRENCES: dict[str, Step] = {
    "chebyshev_t": lambda k: (2.0 if k else 1.0, 0.0, 1.0),
    "chebyshev_u": lambda k: (2.0, 0.0, 1.0),
    "chebyshev_v": lambda k: (2.0, 0.0 if k else -1.0, 1.0),
    "chebyshev_w": lambda k: (2.0, 0.0 if k else 1.0, 1.0),
    "hermite_h": lambda k: (2.0, 0.0, 2.0 * k),
    "hermite_he": lambda k: (1.0, 0.0, float(k)),
    "laguerre_l": lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)),
    "legendre_p": lambda k: ((2 * k + 1) / (k + 1), 0.0, k / (k + 1)),
}


def orthogonal_polynomial(a: np.ndarray, degree: np.ndarray, family: str, order: int) -> np.ndarray:
    """The derivative of this order of the polynomial of each degree (0 for a negative one) at a.

    The recurrence differentiated m times is p(m)[k+1] = (a x + b) p(m)[k] + m a p(m-1)[k]
    - c p(m)[k-1].
    """
    x, n = np.broadcast_arrays(a, np.trunc(degree))
    step, dtype = RECURRENCES[family], a.dtype
    now = [np.full(x.shape, float(m == 0), dtype) for m in range(order + 1)]
    before = [np.zeros(x.shape, dtype) for _ in now]
    out = np.where(np.isnan(n), dtype.type(np.nan), np.where(n == 0, now[order], dtype.type(0)))
    finite = n[np.isfinite(n)]
    for k in range(int(finite.max(initial=0))):
        slope, constant, back = step(k)
        line = slope * x + constant
        after = [
            line * now[m] + (m * slope * now[m - 1] if m else 0) - back * before[m]
            for m in range(order + 1)
        ]
        before, now = now, after
        out = np.where(n == k + 1, now[order], out)
    return out.astype(dtype, copy=False)
