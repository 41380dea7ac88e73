"""Exponential families: densities whose logarithm is linear in functions of the value."""

from __future__ import annotations

from chainrule.autograd.func import grad
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import sum_rightmost
from chainrule.tensor import Tensor

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """p(x) = exp(theta . t(x) - A(theta) + k(x))

    A family of one's own gives ``_natural_params`` (theta), ``_log_normalizer(*theta)`` (A) and
    ``_mean_carrier_measure`` (E[k(x)]); entropy and divergences follow from the derivatives of A.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import ExponentialFamily
    >>> class Waiting(ExponentialFamily):  # p(x) = r exp(-r x): theta = -r, A = -log(-theta)
    ...     def __init__(self, rate):
    ...         self.rate = rate
    ...         super().__init__(rate.shape)
    ...
    ...     @property
    ...     def _natural_params(self):
    ...         return (-self.rate,)
    ...
    ...     def _log_normalizer(self, theta):
    ...         return -(-theta).log()
    ...
    ...     _mean_carrier_measure = 0.0
    >>> Waiting(tensor(2.0)).entropy()  # 1 - log(2)
    tensor(0.3069)
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__}: the natural parameters are not known")

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError(f"{type(self).__name__}: the carrier measure is not known")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: the normalizer is not known")

    def entropy(self) -> Tensor:
        """A(theta) - theta . A'(theta) - E[k(x)]"""
        carrier = self._mean_carrier_measure
        theta = self._natural_params
        normalizer, means = self._with_means(theta)
        total = normalizer - carrier
        for p, mean in zip(theta, means, strict=True):
            total = total - sum_rightmost(p * mean, p.ndim - len(self.batch_shape))
        return total

    def _with_means(self, theta: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """A(theta) and A'(theta), the means of the t(x)."""

        def total(*theta: Tensor) -> tuple[Tensor, Tensor]:
            value = self._log_normalizer(*theta)
            return value.sum(), value

        places = tuple(range(len(theta)))
        means, value = grad(total, argnums=places, has_aux=True)(*theta)
        return value, means
