"""The distribution that knows some moments and nothing else: Gibbs and Boltzmann's."""

from __future__ import annotations

import math
from dataclasses import dataclass

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.graph import Box
from chainrule.information.discrete import log_base
from chainrule.ops.creation.patterns import ones, zeros
from chainrule.ops.elementwise.functions import exp, log
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import logsumexp
from chainrule.ops.linalg.solving import pinv
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = ["MaximumEntropy", "maximum_entropy"]


@dataclass(frozen=True, eq=False)
class MaximumEntropy:
    """p(x) = m(x) e^{-theta . y(x)} / Z over S states, with features y and a measure m.

    ``theta`` (M,), ``features`` (S, M), ``log_measure`` (S,), ``iterations`` of Newton's method.
    """

    theta: Tensor
    features: Tensor
    log_measure: Tensor
    iterations: int = 0

    def _exponents(self) -> Tensor:
        return self.log_measure - matmul(self.features, self.theta)

    @property
    def log_partition(self) -> Tensor:
        """ln Z."""
        return logsumexp(self._exponents(), 0)

    @property
    def probabilities(self) -> Tensor:
        """The probability of each state (S,)."""
        return exp(self._exponents() - self.log_partition)

    @property
    def mean(self) -> Tensor:
        """mu = E[y], the moments (M,)."""
        return matmul(self.probabilities, self.features)

    @property
    def covariance(self) -> Tensor:
        """Cov(y) (M, M): the Fisher information about theta of one observation."""
        centered = self.features - self.mean
        return matmul((centered * self.probabilities.unsqueeze(1)).mT, centered)

    fisher = covariance

    @property
    def hessian(self) -> Tensor:
        """The Hessian of ln p(x) by theta: -Cov(y), whatever x is."""
        return -self.covariance

    def log_prob(self, y: Tensor) -> Tensor:
        """ln (p / m) = -theta . y - ln Z of observations with features y (*, M)."""
        return -matmul(y, self.theta) - self.log_partition

    def score(self, y: Tensor) -> Tensor:
        """The gradient of ln p by theta for observations with features y (*, M): mu - y."""
        return self.mean - y

    def entropy(self, base: float = math.e) -> Tensor:
        """-E ln(p / m) = ln Z + theta . mu, the largest that any distribution with mu has."""
        scale = log_base("entropy", base)
        return (self.log_partition + matmul(self.theta, self.mean)) / scale


def maximum_entropy(
    features: ArrayLike,
    moments: ArrayLike,
    measure: ArrayLike | None = None,
    tolerance: float = 1e-10,
    max_iter: int = 200,
) -> MaximumEntropy:
    """The distribution over states of the largest entropy among those with E[y(x)] = moments.

    It is p = m e^{-theta . y} / Z; theta is found by Newton's method on the convex function
    ln Z(theta) + theta . moments, whose gradient is moments - E[y] and whose Hessian is Cov(y). If
    features depend on each other, theta is not unique, and the shortest is taken. Derivatives by
    the moments, features and measure are exact up to the third order.

    Args:
        features: y of each state (S, M), or (S,) for one feature.
        moments: what their means shall be (M,).
        measure: m of each state (S,), by default 1; for a continuous variable its states are
            the points of a quadrature and the measure their weights.
        tolerance: how far the moments may be missed, relative to the range of the features.
        max_iter: how many steps at most.

    >>> from chainrule import information, tensor
    >>> die = tensor([1.0, 2, 3, 4, 5, 6])
    >>> information.maximum_entropy(die, [4.5]).probabilities  # Jaynes' loaded die
    tensor([0.0544, 0.0788, 0.1142, 0.1654, 0.2398, 0.3475])
    """
    y, mu, log_m = _arguments(features, moments, measure)
    with no_grad():
        double = [cast(t.detach(), dtypes.float64) for t in (y, mu, log_m)]
        found, steps = _newton(double[0], double[1], double[2], tolerance, max_iter)
    theta = cast(found.theta, y.dtype)
    if any(t.requires_grad or isinstance(t.array, Box) for t in (y, mu, log_m)):
        # Two more steps, of no length. Each step of Newton's method squares the error, in the
        # changes of the arguments, too: so these carry the derivatives of orders 1 to 3.
        for _ in range(2):
            here = MaximumEntropy(theta, y, log_m)
            theta = theta - matmul(_inverse(here.covariance), mu - here.mean)
    return MaximumEntropy(theta, y, log_m, steps)


def _arguments(
    features: ArrayLike, moments: ArrayLike, measure: ArrayLike | None
) -> tuple[Tensor, Tensor, Tensor]:
    y = features if isinstance(features, Tensor) else as_tensor(features)
    y = y if y.dtype.is_floating_point else cast(y, dtypes.get_default_dtype())
    y = y.unsqueeze(1) if y.ndim == 1 else y
    mu = moments if isinstance(moments, Tensor) else as_tensor(moments)
    mu = cast(mu.unsqueeze(0) if mu.ndim == 0 else mu, y.dtype)
    m = (
        ones(y.shape[0], dtype=y.dtype, device=y.device)
        if measure is None
        else cast(_tensor(measure), y.dtype)
    )
    if y.ndim != 2 or tuple(mu.shape) != (y.shape[1],) or tuple(m.shape) != (y.shape[0],):
        raise RuntimeError(
            "maximum_entropy: expected features (S, M), moments (M,) and a measure (S,), got "
            f"{tuple(y.shape)}, {tuple(mu.shape)} and {tuple(m.shape)}"
        )
    if not bool((m.detach() >= 0).all()) or not float(m.detach().sum()) > 0:
        raise ValueError("maximum_entropy: the measure must not be negative, nor zero everywhere")
    return y, mu, log(m)


def _tensor(x: ArrayLike) -> Tensor:
    return x if isinstance(x, Tensor) else as_tensor(x)


def _inverse(covariance: Tensor) -> Tensor:
    rtol = 1e-12 if covariance.dtype == dtypes.float64 else 1e-6
    return pinv(covariance, rtol=rtol, hermitian=True)


def _newton(
    y: Tensor, mu: Tensor, log_m: Tensor, tolerance: float, max_iter: int
) -> tuple[MaximumEntropy, int]:
    """Newton's method with steps that are halved until the dual function falls enough."""
    law = MaximumEntropy(zeros(y.shape[1], dtype=y.dtype, device=y.device), y, log_m)
    reach = y.amax(0) - y.amin(0)
    reach = reach + (reach == 0) * (1 + mu.abs())
    for step in range(max_iter):
        gradient = mu - law.mean
        if float((gradient.abs() / reach).max()) <= tolerance:
            return law, step
        direction = -matmul(_inverse(law.covariance), gradient)
        new = _search(law, mu, direction, float(matmul(gradient, direction)))
        if new is None:
            break
        law = new
    raise ValueError(
        "maximum_entropy: found no distribution over these states with the moments "
        f"{mu.tolist()}; the nearest found are {law.mean.tolist()}. Moments must lie inside the "
        f"range of the features, from {y.amin(0).tolist()} to {y.amax(0).tolist()} each, and fit "
        "together"
    )


def _search(
    law: MaximumEntropy, mu: Tensor, direction: Tensor, slope: float
) -> MaximumEntropy | None:
    before = float(law.log_partition + matmul(law.theta, mu))
    size = 1.0
    for _ in range(60):
        new = MaximumEntropy(law.theta + size * direction, law.features, law.log_measure)
        after = float(new.log_partition + matmul(new.theta, mu))
        if after <= before + 1e-4 * size * slope + 1e-15 * abs(before):
            return new if slope < 0 else None
        size /= 2
    return None
