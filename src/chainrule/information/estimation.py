"""How well a parameter can be known: Fisher information, the bound of Cramer and Rao, simulation.

``draw(trials, n)`` returns independent samples; ``estimator`` makes of samples (trials, n) an
estimate for each trial (trials,).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from chainrule.autograd.modes import no_grad
from chainrule.autograd.vmap import vmap
from chainrule.backend import dtypes
from chainrule.curvature.information import score
from chainrule.information.limits import check_sizes, kolmogorov_distance, sample
from chainrule.ops.creation.patterns import eye
from chainrule.ops.linalg.decompositions import eigh
from chainrule.ops.elementwise.functions import exp
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.shape.views import reshape
from chainrule.ops.linalg.solving import solve
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike, Nested

__all__ = [
    "EstimatorStudy",
    "Normality",
    "asymptotic_normality",
    "cramer_rao_bound",
    "fisher_information",
    "simulate_estimator",
    "unidentifiable",
]

Estimator = Callable[[Tensor], Tensor]


def fisher_information(
    log_prob: Callable[[Any, Tensor], Tensor],
    params: Nested,
    outcomes: Tensor,
    measure: Tensor | None = None,
) -> Tensor:
    """I = E[s s^T] of one observation (W, W), s = grad ln p the score, over all its outcomes.

    ``log_prob(params, outcome)`` is ln p of one outcome. The outcomes (S, *) are all there are, or
    the points of a quadrature with weights ``measure`` (S,). For a fitted network see
    ``curvature.fisher``.

    >>> from chainrule import information, tensor
    >>> bernoulli = lambda p, x: x * p.log() + (1 - x) * (1 - p).log()
    >>> information.fisher_information(bernoulli, tensor(0.5), tensor([0.0, 1.0]))
    tensor([[4.]])
    """
    rows = score(log_prob, params, outcomes)
    p = exp(vmap(log_prob, (None, 0))(params, outcomes))
    if measure is not None:
        p = p * measure
    total = float(sum(p).detach())
    if not abs(total - 1) < 1e-3:
        raise ValueError(
            f"fisher_information: the probabilities of the outcomes add up to {total:.6g} instead "
            "of 1; give all outcomes, or the points and weights of a quadrature"
        )
    return matmul((rows * reshape(p, (-1, 1))).mT, rows)


def unidentifiable(information: Tensor, rtol: float = 1e-8) -> Tensor:
    """The directions in which the parameters can move and no observation would tell: (W, R).

    A model is identifiable if different parameters give different distributions (p1 = p2 implies
    theta1 = theta2). Near a point it is, unless the information is singular; the columns span
    the directions of which it knows nothing.

    >>> from chainrule import information, tensor
    >>> information.unidentifiable(tensor([[1.0, -1.0], [-1.0, 1.0]])).abs()
    tensor([[0.7071],
            [0.7071]])
    """
    values, vectors = eigh(information)
    largest = float(values.detach().abs().max())
    known = int((values.detach() <= rtol * largest).sum())
    return vectors[:, :known]


def cramer_rao_bound(information: ArrayLike, n: int = 1, slope: ArrayLike | None = None) -> Tensor:
    """The least variance of an estimate from n observations: slope I^-1 slope^T / n.

    ``information`` is that of one observation, a number or a matrix (W, W); ``slope`` the
    derivative of the estimator's expectation by the parameters, 1 (the identity) for one without
    bias, or (M, W). The result is a variance, or a matrix that no covariance is below.

    >>> from chainrule import information
    >>> information.cramer_rao_bound(1 / (0.3 * 0.7), n=100)
    tensor(0.0021)
    """
    if n < 1:
        raise ValueError(f"cramer_rao_bound: n must be at least 1, got {n}")
    i = information if isinstance(information, Tensor) else as_tensor(information)
    i = i if i.dtype.is_floating_point else cast(i, dtypes.get_default_dtype())
    scalar = i.ndim == 0
    matrix = reshape(i, (1, 1)) if scalar else i
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise RuntimeError(
            f"cramer_rao_bound: expected a number or a matrix (W, W), got {tuple(i.shape)}"
        )
    size = matrix.shape[0]
    if float(eigh(matrix.detach())[0][0]) <= 0:
        raise ValueError(
            "cramer_rao_bound: the information is singular: some parameters cannot be known at "
            "all (see unidentifiable)"
        )
    jacobian = (
        eye(size, dtype=matrix.dtype, device=matrix.device)
        if slope is None
        else _slope(slope, matrix)
    )
    bound = matmul(jacobian, solve(matrix, jacobian.mT)) / n
    return bound[0, 0] if scalar else bound


def _slope(slope: Any, matrix: Tensor) -> Tensor:
    t = cast(slope if isinstance(slope, Tensor) else as_tensor(slope), matrix.dtype)
    t = reshape(t, (1, -1)) if t.ndim < 2 else t
    if t.shape[1] != matrix.shape[0]:
        raise RuntimeError(
            f"cramer_rao_bound: expected a slope (M, {matrix.shape[0]}), got {tuple(t.shape)}"
        )
    return t


class EstimatorStudy(NamedTuple):
    """What an estimator does in many trials."""

    values: Tensor  # one estimate for each trial
    bias: float
    variance: float
    error: float  # E[(estimate - truth)^2] = bias^2 + variance
    bound: float | None  # of Cramer and Rao, for no bias
    efficiency: float | None  # bound / variance


def simulate_estimator(
    draw: Callable[..., Tensor],
    estimator: Estimator,
    truth: float,
    n: int,
    trials: int = 2000,
    information: float | None = None,
) -> EstimatorStudy:
    """Bias and variance of an estimator from samples of size n, against the bound of Cramer-Rao.

    ``information`` is that of one observation; without it there is no bound.

    >>> import chainrule
    >>> from chainrule import information
    >>> _ = chainrule.manual_seed(0)
    >>> study = information.simulate_estimator(
    ...     chainrule.randn, lambda x: x.mean(1), truth=0.0, n=20, information=1.0)
    >>> bool(0.9 < study.efficiency < 1.1)
    True
    """
    check_sizes("simulate_estimator", [n], trials)
    if trials < 2:
        raise ValueError(f"simulate_estimator: a variance needs two trials or more, got {trials}")
    with no_grad():
        values = estimator(sample("simulate_estimator", draw, trials, n))
        if tuple(values.shape) != (trials,):
            raise RuntimeError(
                f"simulate_estimator: the estimator must return one number for each of {trials} "
                f"trials, got shape {tuple(values.shape)}"
            )
        center = float(mean(values))
        variance = float(sum((values - center) ** 2)) / (trials - 1)
        error = float(mean((values - truth) ** 2))
    bound = None if information is None else float(cramer_rao_bound(float(information), n))
    efficiency = None if bound is None else bound / variance
    return EstimatorStudy(values, center - truth, variance, error, bound, efficiency)


class Normality(NamedTuple):
    """How sqrt(n) (estimate - truth) is distributed."""

    scaled: Tensor  # one for each trial
    variance: float
    expected: float  # 1 / information of one observation
    distance: float  # of Kolmogorov, from the normal law with the expected variance


def asymptotic_normality(
    draw: Callable[..., Tensor],
    estimator: Estimator,
    truth: float,
    information: float,
    n: int = 400,
    trials: int = 2000,
) -> Normality:
    """sqrt(n) (theta^ - theta*) -> N(0, I_1^-1) for the estimate of largest likelihood.

    I_1 is the information of one observation, not of the whole sample of n.
    """
    if not information > 0:
        raise ValueError(f"asymptotic_normality: information must be positive, got {information}")
    study = simulate_estimator(draw, estimator, truth, n, trials)
    scaled = math.sqrt(n) * (study.values - truth)
    distance = kolmogorov_distance(scaled, 0.0, math.sqrt(1 / information))
    return Normality(scaled, n * study.variance, 1 / information, distance)
