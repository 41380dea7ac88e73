"""Moments of activations under normal inputs: how mean and variance pass through a layer.

Numbers are plain floats or float64 tensors; expectations are computed by quadrature.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from chainrule.autograd.engine import grad
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.backend import dtypes
from chainrule.func import jacrev
from chainrule.nn.activations import functions
from chainrule.nn.activations.functions import SELU_ALPHA, SELU_SCALE
from chainrule.ops.creation.patterns import arange, zeros_like
from chainrule.ops.linalg.decompositions import eigh
from chainrule.ops.shape.diagonal import diag_embed
from chainrule.ops.elementwise.functions import erf, erfc, exp, sqrt
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor

__all__ = [
    "FixedPoint",
    "as_function",
    "gaussian_expectation",
    "legendre",
    "selu_fixed_point",
    "selu_jacobian",
    "selu_moments",
    "slope",
]

_REACH = 12.0  # standard deviations: what lies beyond weighs less than 1e-32
_NEAR = 32  # up to there activations bend


@functools.cache
def legendre(n: int) -> tuple[Tensor, Tensor]:
    """Nodes and weights of Gauss-Legendre quadrature on [-1, 1], by Golub and Welsch."""
    k = arange(1, n, dtype=dtypes.float64)
    off = k / sqrt(4 * k * k - 1)
    nodes, vectors = eigh(diag_embed(off, 1) + diag_embed(off, -1))
    return nodes, 2 * vectors[0] ** 2


def _panel_edges(mean: float, deviation: float) -> Tensor:
    """Where panels end: powers of two of about an eighth of the standard deviation apart.

    Around 0, where activations have their kinks and bends, every multiple of a half is an end, and
    from there on panels double until they are as wide as the others: their number does not grow
    with the deviation.
    """
    width = 2.0 ** math.floor(math.log2(deviation / 8))
    low, high = mean - _REACH * deviation, mean + _REACH * deviation
    first, last = math.floor(low / width), math.ceil(high / width)
    even = [i * width for i in range(first, last + 1)]
    if width <= 0.5:
        return tensor(even, dtype=dtypes.float64)
    near = [0.5 * i for i in range(1, 2 * _NEAR + 1)]
    while near[-1] < width:
        near.append(2 * near[-1])
    around = [x for x in (*(-x for x in near), 0.0, *near) if even[0] < x < even[-1]]
    far = [x for x in even if abs(x) > near[-1]]
    return tensor(sorted({even[0], *around, *far, even[-1]}), dtype=dtypes.float64)


def gaussian_expectation(
    function: Callable[[Tensor], Tensor], mean: float = 0.0, variance: float = 1.0
) -> float:
    """E[function(S)] for a normal S, by Gauss-Legendre quadrature on panels of equal width.

    >>> gaussian_expectation(lambda s: s**4)
    3.0000...
    """
    if not variance > 0 or not math.isfinite(variance + mean):
        raise ValueError(
            f"gaussian_expectation: expected a finite mean and a variance > 0, got {mean} and "
            f"{variance}"
        )
    deviation = math.sqrt(variance)
    nodes, weights = legendre(8)
    with no_grad():
        edges = _panel_edges(mean, deviation).unsqueeze(1)
        centers, halves = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
        s = centers + nodes * halves
        density = exp(-0.5 * ((s - mean) / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi))
        return sum(function(s) * density * weights * halves).item()


def as_function(activation: str | Callable[..., Tensor]) -> Callable[..., Tensor]:
    """An activation by its name in ``nn.functional``, as a module, or as any function."""
    if isinstance(activation, str):
        name = {"linear": "identity", "swish": "silu"}.get(activation, activation)
        if name == "identity":
            return lambda x: x
        if name not in functions.__all__:
            known = [n for n in functions.__all__ if not n.endswith("_")]
            raise ValueError(
                f"no activation is named {activation!r}; select from "
                f"{sorted([*known, 'identity', 'linear', 'swish'])}, or pass a function"
            )
        return getattr(functions, name)
    if not callable(activation):
        raise TypeError(
            f"expected an activation (a name, a function or a module), got "
            f"{type(activation).__name__}"
        )
    return activation


def slope(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The derivative of an elementwise function, as a function of tensors."""

    def derivative(x: Tensor) -> Tensor:
        with enable_grad():
            point = x.detach().clone().requires_grad_()
            out = function(point)
            if not out.requires_grad:  # a step, or a constant
                return zeros_like(x)
            return grad(sum(out), point, materialize_grads=True)[0].detach()

    return derivative


# --- SELU -----------------------------------------------------------------------------------------


def selu_moments(
    mean: float | Tensor,
    variance: float | Tensor,
    weight_sum: float = 0.0,
    weight_square_sum: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Mean and variance after a layer of SELU units, from those before it, in closed form.

    The sum of a unit's inputs is taken to be normal with mean m = mean * weight_sum and variance
    v = variance * weight_square_sum (Klambauer et al., 2017, equations 4 and 5).

    >>> [round(t.item(), 12) + 0.0 for t in selu_moments(0.0, 1.0)]
    [0.0, 1.0]
    """
    m, v = _float64(mean) * weight_sum, _float64(variance) * weight_square_sum
    if not (v.detach() > 0).all():
        raise ValueError(
            f"selu_moments: expected variance * weight_square_sum > 0, got {v.detach()}"
        )
    root = sqrt(2 * v)
    tail = erfc(m / root)
    bell = exp(-(m * m) / (2 * v)) * sqrt(2 * v / math.pi)
    once = exp(m + v / 2) * erfc((m + v) / root)
    twice = exp(2 * (m + v)) * erfc((m + 2 * v) / root)
    mu = 0.5 * SELU_SCALE * (m * erf(m / root) + SELU_ALPHA * (once - tail) + bell + m)
    positive = (m * m + v) * (2 - tail) + m * bell
    second = 0.5 * SELU_SCALE**2 * (positive + SELU_ALPHA**2 * (twice - 2 * once + tail))
    return mu, second - mu * mu


def selu_jacobian(
    mean: float = 0.0,
    variance: float = 1.0,
    weight_sum: float = 0.0,
    weight_square_sum: float = 1.0,
) -> Tensor:
    """The derivatives of :func:`selu_moments` by (mean, variance), a 2 x 2 matrix.

    At the fixed point (0, 1) its spectral norm is 0.7877 < 1: the map contracts.
    """

    def both(point: Tensor) -> Tensor:
        return stack(selu_moments(point[0], point[1], weight_sum, weight_square_sum))

    return jacrev(both)(tensor([mean, variance], dtype=dtypes.float64))


class FixedPoint(NamedTuple):
    """Mean and variance that a layer passes on unchanged, and the Jacobian there."""

    mean: float
    variance: float
    jacobian: Tensor


def selu_fixed_point(
    weight_sum: float = 0.0,
    weight_square_sum: float = 1.0,
    start: tuple[float, float] = (0.0, 1.0),
) -> FixedPoint:
    """The fixed point of :func:`selu_moments`, by iterating the map, which contracts.

    >>> point = selu_fixed_point(start=(0.1, 1.5))
    >>> abs(point.mean) < 1e-12, abs(point.variance - 1) < 1e-12
    (True, True)
    """
    mean, variance = start
    for _ in range(2000):
        new_mean, new_variance = (
            t.item() for t in selu_moments(mean, variance, weight_sum, weight_square_sum)
        )
        change = max(abs(new_mean - mean), abs(new_variance - variance))
        mean, variance = new_mean, new_variance
        if change < 1e-15:
            break
        if not math.isfinite(mean + variance):
            raise ValueError(
                f"selu_fixed_point: the moments diverge for weight_sum={weight_sum} and "
                f"weight_square_sum={weight_square_sum}"
            )
    return FixedPoint(mean, variance, selu_jacobian(mean, variance, weight_sum, weight_square_sum))


def _float64(value: float | Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else tensor(value, dtype=dtypes.float64)
