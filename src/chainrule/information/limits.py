"""The laws of large numbers and the central limit theorem, as experiments.

``draw(trials, n)`` returns independent samples of a distribution, as ``chainrule.rand`` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.creation.patterns import arange
from chainrule.ops.elementwise.functions import erf, maximum
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.reduce.order import amax
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import mean as mean_of
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.rearrange import flip
from chainrule.ops.reduce.scan import cummax, cumsum
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import stack
from chainrule.ops.reduce.sort import sort
from chainrule.tensor import Tensor

__all__ = [
    "CentralLimit",
    "LargeNumbers",
    "berry_esseen_bound",
    "central_limit",
    "check_sizes",
    "kolmogorov_distance",
    "law_of_large_numbers",
    "sample",
]

Draw = Callable[..., Tensor]


def check_sizes(op: str, sizes: Sequence[int], trials: int) -> list[int]:
    """Numbers of samples, which must be positive, and of trials."""
    listed = [int(n) for n in sizes]
    if not listed or min(listed) < 1 or trials < 1:
        raise ValueError(
            f"{op}: expected sizes of at least 1 and at least one trial, got {list(sizes)} and "
            f"{trials}"
        )
    return listed


def sample(op: str, draw: Draw, trials: int, n: int) -> Tensor:
    """Samples (trials, n) in float64."""
    x = draw(trials, n)
    if not isinstance(x, Tensor) or tuple(x.shape) != (trials, n):
        got = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise RuntimeError(
            f"{op}: draw({trials}, {n}) must return a Tensor of shape ({trials}, {n}), got {got}"
        )
    return cast(x.detach(), dtypes.float64)


class LargeNumbers(NamedTuple):
    """Means of growing samples, one path for each trial."""

    sizes: list[int]
    means: Tensor  # (trials, sizes)
    outside: Tensor  # share of trials whose mean is off by more than the tolerance at this size
    ever_outside: Tensor  # share whose mean is off at this size or at any later one
    chebyshev: Tensor | None  # variance / (n tolerance^2), a bound of ``outside``


def law_of_large_numbers(
    draw: Draw,
    mean: float,
    sizes: Sequence[int] = (10, 100, 1000),
    trials: int = 200,
    tolerance: float = 0.1,
    variance: float | None = None,
) -> LargeNumbers:
    """How the mean of n samples approaches the expectation as n grows.

    The weak law: P(|mean_n - mu| > tolerance) tends to 0 (``outside``). The strong law:
    P(lim (mean_n - mu) = 0) = 1, so even the probability that the mean is outside at some later
    time tends to 0 (``ever_outside``, up to the largest size).

    >>> import chainrule
    >>> from chainrule import information
    >>> _ = chainrule.manual_seed(0)
    >>> law = information.law_of_large_numbers(chainrule.rand, 0.5, (10, 1000), variance=1 / 12)
    >>> bool(law.outside[0] > 0.1), float(law.outside[1])
    (True, 0.0)
    """
    listed = check_sizes("law_of_large_numbers", sizes, trials)
    if not tolerance > 0:
        raise ValueError(f"law_of_large_numbers: tolerance must be positive, got {tolerance}")
    with no_grad():
        x = sample("law_of_large_numbers", draw, trials, max(listed))
        paths = cumsum(x, 1) / arange(1, max(listed) + 1, dtype=x.dtype, device=x.device)
        off = cast(abs(paths - mean) > tolerance, x.dtype)
        later = flip(cummax(flip(off, (1,)), 1)[0], (1,))
        at = tensor([n - 1 for n in listed])
        bound = None
        if variance is not None:
            bound = tensor(
                [variance / (n * tolerance**2) for n in listed], dtype=x.dtype, device=x.device
            )
        return LargeNumbers(listed, paths[:, at], mean_of(off, 0)[at], mean_of(later, 0)[at], bound)


def kolmogorov_distance(samples: Tensor, mean: float = 0.0, std: float = 1.0) -> float:
    """sup_x |F_n(x) - Phi((x - mean) / std)|: how far samples are from a normal law.

    >>> import chainrule
    >>> from chainrule import information
    >>> information.kolmogorov_distance(chainrule.zeros(10))
    0.5
    """
    if not std > 0 or samples.numel() == 0:
        raise ValueError(
            f"kolmogorov_distance: expected samples and std > 0, got {samples.numel()} samples and "
            f"std={std}"
        )
    with no_grad():
        x = sort(reshape(cast(samples.detach(), dtypes.float64), (-1,)))[0]
        phi = 0.5 * (1 + erf((x - mean) / (std * math.sqrt(2))))
        n = x.shape[0]
        i = arange(n, dtype=x.dtype, device=x.device)
        return float(amax(maximum((i + 1) / n - phi, phi - i / n)))


def berry_esseen_bound(
    weights: Tensor, third_moment: float, variance: float = 1.0, constant: float = 0.56
) -> Tensor:
    """How far a pre-activation s = sum_j w_j a_j can be from normal, for any J and any weights.

    sup |F - Phi| <= C rho sum_j |w_j|^3 / (v sum_j w_j^2)^(3/2) for independent inputs a_j of mean
    zero, variance v and third absolute moment rho = E|a|^3 (Shevtsova, 2010: C = 0.56; for equal
    weights 0.4748). For weights of one size this is C rho / v^(3/2) J^(-1/2).

    >>> from chainrule import information, ones
    >>> bound = information.berry_esseen_bound
    >>> bound(ones(100), 1.0), bound(ones(10000), 1.0)
    (tensor(0.0560), tensor(0.0056))
    """
    if not third_moment > 0 or not variance > 0:
        raise ValueError(
            "berry_esseen_bound: the third absolute moment and the variance must be positive, got "
            f"{third_moment} and {variance}"
        )
    cubes, squares = sum(abs(weights) ** 3), sum(weights * weights)
    return constant * third_moment * cubes / (variance * squares) ** 1.5


class CentralLimit(NamedTuple):
    """Sums of n samples, centered and scaled, and how far from normal they are."""

    sizes: list[int]
    scaled: Tensor  # sqrt(n) (mean - mu) / sigma: (trials, sizes)
    distance: Tensor  # of Kolmogorov, for each size
    bound: Tensor | None  # of Berry and Esseen


def central_limit(
    draw: Draw,
    mean: float,
    std: float,
    sizes: Sequence[int] = (1, 10, 100),
    trials: int = 2000,
    third_moment: float | None = None,
) -> CentralLimit:
    """How sqrt(n) (mean_n - mu) / sigma becomes normal as n grows, whatever is drawn.

    So do the pre-activations of a unit with n inputs. The distance falls as n^(-1/2); with
    ``third_moment`` E|x - mu|^3 the bound of Berry and Esseen is given, too. What is measured has
    an error of about 1 / sqrt(trials).
    """
    listed = check_sizes("central_limit", sizes, trials)
    if not std > 0:
        raise ValueError(f"central_limit: std must be positive, got {std}")
    columns, distances = [], []
    with no_grad():
        for n in listed:
            x = sample("central_limit", draw, trials, n)
            columns.append(math.sqrt(n) * (mean_of(x, 1) - mean) / std)
            distances.append(kolmogorov_distance(columns[-1]))
    bound = None
    if third_moment is not None:
        rates = [0.4748 * third_moment / (std**3 * math.sqrt(n)) for n in listed]
        bound = tensor(rates, dtype=dtypes.float64)
    distance = tensor(distances, dtype=dtypes.float64)
    return CentralLimit(listed, stack(columns, 1), distance, bound)
