"""How the gamma law changes with its shape.

P(a, x) is the distribution function of the gamma law of shape a. Its quantiles move with a; by how
much is what a differentiable sample needs (implicit reparameterization: Figurnov, Mohamed and Mnih
2018, https://arxiv.org/abs/1805.08498).
"""

from __future__ import annotations

import math
from typing import Any

from chainrule.ops.core.pointwise import binary
from chainrule.ops.core.primitive import Elementwise
from chainrule.ops.elementwise.functions import digamma, exp, lgamma, log, polygamma
from chainrule.typing import V, Value

__all__ = ["gammaincinv", "log_gamma_density", "log_gamma_slope"]


def log_gamma_density(a: V, y: V) -> V:
    """exp(a y - e^y) / Gamma(a), the density of the logarithm y of a gamma number.

    >>> from chainrule import tensor
    >>> log_gamma_density(tensor(1.0), tensor(0.0))
    tensor(0.3679)
    """
    return exp(a * y - exp(y) - lgamma(a))


gammaincinv = binary(
    "gammaincinv",
    lambda d, x, out: d * (out * log_gamma_slope(x, log(out))),
    lambda d, x, out: d * (out / log_gamma_density(x, log(out))),
    "The z with P(x, z) = y: quantiles of the gamma law of shape x.",
    floating=True,
    kinds="biuf",
)

_slope = Elementwise(
    "log_gamma_slope",
    [
        lambda d, x, y, out, n: d * (log_gamma_slope(x, y, n + 1) - out * (y - digamma(x))),
        lambda d, x, y, out, n: -d * (_relative_change(x, y, n) + out * (x - exp(y))),
    ],
)


def log_gamma_slope(a: V, y: V, n: int = 1) -> V:
    """-(d/da)^n P(a, e^y) / q(y), where q is the density of the logarithm y of a gamma number.

    For n = 1 this is dy/da at a fixed P: how the logarithm of a quantile moves with the shape.

    >>> from chainrule import tensor
    >>> log_gamma_slope(tensor(2.0), tensor(0.5))
    tensor(0.5969)
    """
    return _slope(a, y, n=n)


def _relative_change(a: Value, y: Value, n: int) -> Value:
    """(d/da)^n q / q for the density q of y: the complete Bell polynomials of (log q)', ..."""
    rates = [y - digamma(a), *[-polygamma(k, a) for k in range(1, n)]]
    out: list[Any] = [1.0]
    for k in range(n):
        out.append(sum(math.comb(k, i) * out[k - i] * rates[i] for i in range(k + 1)))
    return out[n]
