"""Entropies of densities: closed forms for the normal law, quadrature for any other."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.backend import dtypes
from chainrule.information.discrete import log_base
from chainrule.nn.activations.moments import legendre
from chainrule.ops.creation.patterns import arange, zeros_like
from chainrule.ops.elementwise.functions import exp
from chainrule.ops.elementwise.logic import where
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.linalg.matrices import logdet
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.core.promotion import cast
from chainrule.ops.linalg.products import trace
from chainrule.ops.shape.rearrange import meshgrid
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import stack
from chainrule.ops.linalg.solving import solve
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = ["differential_entropy", "gaussian_entropy", "gaussian_kl", "integrate"]

Density = Callable[[Tensor], Tensor]


def _covariance(op: str, covariance: ArrayLike) -> Tensor:
    """A covariance (d, d); a number is the variance of one variable."""
    t = covariance if isinstance(covariance, Tensor) else as_tensor(covariance)
    t = t if t.dtype.is_floating_point else cast(t, dtypes.get_default_dtype())
    if t.ndim == 0:
        t = reshape(t, (1, 1))
    if t.ndim != 2 or t.shape[0] != t.shape[1]:
        raise RuntimeError(
            f"{op}: expected a variance or a covariance matrix (d, d), got {tuple(t.shape)}"
        )
    return t


def _log_determinant(op: str, covariance: Tensor) -> Tensor:
    found = logdet(covariance)
    if not math.isfinite(float(found.detach())):
        raise ValueError(f"{op}: the covariance must be positive definite")
    return found


def gaussian_entropy(covariance: ArrayLike, base: float = math.e) -> Tensor:
    """H = d/2 (1 + ln 2 pi) + 1/2 ln det Sigma, the differential entropy of N(mu, Sigma).

    >>> from chainrule import information
    >>> information.gaussian_entropy(1.0), information.gaussian_entropy(0.01)
    (tensor(1.4189), tensor(-0.8836))
    """
    scale = log_base("gaussian_entropy", base)
    sigma = _covariance("gaussian_entropy", covariance)
    constant = 0.5 * sigma.shape[0] * (1 + math.log(2 * math.pi))
    return (constant + 0.5 * _log_determinant("gaussian_entropy", sigma)) / scale


def gaussian_kl(
    mean: Tensor,
    covariance: ArrayLike,
    mean_q: Tensor,
    covariance_q: ArrayLike,
    base: float = math.e,
) -> Tensor:
    """D(N(m, S) || N(m', S')) = 1/2 (tr(S'^-1 S) + d.S'^-1 d - dim + ln det S' - ln det S).

    Here d = m' - m.
    """
    op = "gaussian_kl"
    scale = log_base(op, base)
    s, t = _covariance(op, covariance), _covariance(op, covariance_q)
    step = reshape(mean_q - mean, (-1,))
    if s.shape != t.shape or step.shape[0] != s.shape[0]:
        raise RuntimeError(
            f"{op}: the means and covariances differ in size: {step.shape[0]}, {tuple(s.shape)}, "
            f"{tuple(t.shape)}"
        )
    spread = trace(solve(t, s)) + matmul(step, solve(t, step)) - s.shape[0]
    return 0.5 * (spread + _log_determinant(op, t) - _log_determinant(op, s)) / scale


@functools.cache
def _line(low: float, high: float, panels: int) -> tuple[Tensor, Tensor]:
    """Nodes and weights of Gauss-Legendre quadrature of order 8 on panels of an interval."""
    nodes, weights = legendre(8)
    width = (high - low) / panels
    centers = low + (arange(panels, dtype=dtypes.float64) + 0.5) * width
    x = reshape(centers.unsqueeze(1) + nodes * (width / 2), (-1,))
    return x, reshape((weights * (width / 2)).expand(panels, 8), (-1,))


def _grid(op: str, low: Any, high: Any, panels: int) -> tuple[Tensor, Tensor]:
    """Points (n,), or (n, d) for a box, and their weights."""
    lows = [low] if isinstance(low, (int, float)) else list(low)
    highs = [high] if isinstance(high, (int, float)) else list(high)
    if len(lows) != len(highs) or not lows:
        raise ValueError(f"{op}: low and high must be numbers, or one for each variable in both")
    for a, b in zip(lows, highs, strict=True):
        if not (math.isfinite(a) and math.isfinite(b) and a < b):
            raise ValueError(
                f"{op}: expected finite limits low < high, got {a} and {b}; choose them so that "
                "next to nothing lies beyond"
            )
    if panels < 1:
        raise ValueError(f"{op}: panels must be at least 1, got {panels}")
    lines = [_line(float(a), float(b), panels) for a, b in zip(lows, highs, strict=True)]
    if isinstance(low, (int, float)):
        return lines[0]
    points = meshgrid(*[x for x, _ in lines], indexing="ij")
    weights = [w for _, w in lines]
    weight = functools.reduce(lambda a, b: reshape(a.unsqueeze(1) * b, (-1,)), weights)
    return stack([reshape(p, (-1,)) for p in points], 1), weight


def integrate(
    function: Density,
    low: float | Sequence[float],
    high: float | Sequence[float],
    panels: int = 100,
) -> Tensor:
    """The integral of a function from ``low`` to ``high``, by Gauss-Legendre quadrature, float64.

    The function takes points (n,) and returns n values. With a limit for each of d variables it
    takes points (n, d) in the box; there are (8 panels)^d of them. Differentiable by whatever the
    function depends on.

    >>> from chainrule import information
    >>> information.integrate(lambda x: x**2, 0.0, 3.0)
    tensor(9.0000, dtype=chainrule.float64)
    """
    points, weights = _grid("integrate", low, high, panels)
    return sum(function(points) * weights)


def differential_entropy(
    log_density: Density,
    low: float | Sequence[float],
    high: float | Sequence[float],
    base: float = math.e,
    reference: Density | None = None,
    panels: int = 100,
) -> Tensor:
    """h = -int p ln(p / m) dx for a density p, by quadrature between the limits.

    Without a ``reference`` m = 1, and the entropy depends on the units of x and may be negative.
    With one (the logarithm of a density m, Jaynes) it does not change with the variable, is
    minus the divergence of m from p, and never above 0.

    Args:
        log_density: ln p of points (n,), or (n, d) for d variables; -inf where p is 0.
        low: limits of the integral, one or one for each variable.
        high: likewise.
        base: of the logarithm.
        reference: ln m, likewise.
        panels: of the quadrature, for each variable.

    >>> import math
    >>> from chainrule import information
    >>> normal = lambda x: -x * x / 2 - math.log(math.sqrt(2 * math.pi))
    >>> round(float(information.differential_entropy(normal, -12.0, 12.0)), 12)
    1.418938533205
    """
    scale = log_base("differential_entropy", base)
    points, weights = _grid("differential_entropy", low, high, panels)
    log_p = log_density(points)
    p = exp(log_p)
    mass = float(sum(p.detach() * weights))
    if not abs(mass - 1) < 1e-4:
        raise ValueError(
            f"differential_entropy: the density has the integral {mass:.6g} between the limits "
            "instead of 1; normalize it, move the limits apart, or use more panels"
        )
    surprise = log_p if reference is None else log_p - reference(points)
    possible = p > 0
    terms = where(possible, p * where(possible, surprise, zeros_like(p)), zeros_like(p))
    return -sum(terms * weights) / scale
