"""Penalties as priors: the penalized loss is the negative logarithm of the posterior.

With the loss as the mean of -ln p(y_n | x_n, w) over N samples, -ln p(w | data) / N is the loss
plus -ln p(w) / N, up to a constant. So a prior is a penalty whose strength falls as the data grow:
the smallest penalized loss is the most probable set of weights.
"""

from __future__ import annotations

import math

from chainrule.nn.module.names import Where
from chainrule.regularize.penalties import L1, L2, Cauchy

__all__ = ["cauchy_prior", "gaussian_prior", "laplace_prior"]


def gaussian_prior(std: float, n: int = 1, where: Where = None) -> L2:
    """w ~ N(0, std^2): the :class:`L2` penalty of strength 1 / (n std^2), for n samples.

    >>> from chainrule import regularize
    >>> regularize.gaussian_prior(0.5, n=100)
    L2(0.04)
    """
    return L2(_strength("gaussian_prior", n, std=std) / std**2, where)


def laplace_prior(scale: float, n: int = 1, where: Where = None) -> L1:
    """p(w) = exp(-|w| / scale) / (2 scale): the :class:`L1` penalty of strength 1 / (n scale).

    >>> from chainrule import regularize
    >>> regularize.laplace_prior(0.5, n=100)
    L1(0.02)
    """
    return L1(_strength("laplace_prior", n, scale=scale) / scale, where)


def cauchy_prior(scale: float, n: int = 1, where: Where = None) -> Cauchy:
    """p(w) = 1 / (pi scale (1 + w^2 / scale^2)): the :class:`Cauchy` penalty of strength 1 / n.

    >>> from chainrule import regularize
    >>> regularize.cauchy_prior(0.5, n=100)
    Cauchy(0.01, scale=0.5, joint=False)
    """
    return Cauchy(_strength("cauchy_prior", n, scale=scale), where, scale=scale, joint=False)


def _strength(op: str, n: int, **width: float) -> float:
    ((key, value),) = width.items()
    if not 0 < value < math.inf:
        raise ValueError(f"{op}: {key} must be positive, got {value}")
    if n < 1:
        raise ValueError(f"{op}: the number of samples n must be at least 1, got {n}")
    return 1 / n
