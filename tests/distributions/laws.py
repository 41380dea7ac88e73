"""Laws that SciPy has under other names, or as functions of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import integrate, special, stats

__all__ = [
    "Mapped",
    "categorical",
    "continuous_bernoulli",
    "kumaraswamy",
    "relaxed_bernoulli",
    "von_mises",
]

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Mapped:
    """y = forward(x) for x from a law of SciPy's, an increasing function unless ``falls``."""

    base: Any
    forward: Function
    inverse: Function
    log_slope: Function  # log |dx/dy| at y
    falls: bool = False

    def logpdf(self, y: Any) -> Any:
        return self.base.logpdf(self.inverse(y)) + self.log_slope(y)

    def cdf(self, y: Any) -> Any:
        x = self.inverse(y)
        return self.base.sf(x) if self.falls else self.base.cdf(x)

    def ppf(self, p: Any) -> Any:
        return self.forward(self.base.ppf(1 - p if self.falls else p))

    def _mean(self, f: Function) -> float:
        return integrate.quad(lambda p: f(self.ppf(p)), 0, 1, epsabs=1e-12, epsrel=1e-12)[0]

    def mean(self) -> float:
        return self._mean(lambda y: y)

    def var(self) -> float:
        mean = self.mean()
        return self._mean(lambda y: (y - mean) ** 2)

    def entropy(self) -> float:
        return self._mean(lambda y: -self.logpdf(y))


def kumaraswamy(concentration1: float, concentration0: float) -> Mapped:
    """x^a is beta distributed."""
    a = concentration1
    return Mapped(
        stats.beta(1, concentration0),
        lambda x: x ** (1 / a),
        lambda y: y**a,
        lambda y: np.log(a) + (a - 1) * np.log(y),
    )


def relaxed_bernoulli(temperature: float, probs: float) -> Mapped:
    """The sigmoid of a logistic number."""
    loc = special.logit(probs) / temperature
    base = stats.logistic(loc, 1 / temperature)
    return Mapped(base, special.expit, special.logit, lambda y: -np.log(y) - np.log1p(-y))


def continuous_bernoulli(h: float) -> Any:
    """An exponential number cut off at 1, from one end or the other."""
    base = stats.truncexpon(b=abs(h), scale=1 / abs(h))
    return base if h < 0 else Mapped(base, lambda x: 1 - x, lambda y: 1 - y, lambda y: 0.0, True)


@dataclass(frozen=True)
class von_mises:
    """SciPy's law of an angle, on [-pi, pi) wherever its mean is, with the circular variance."""

    loc: float
    concentration: float

    def logpdf(self, x: Any) -> Any:
        return stats.vonmises(self.concentration, self.loc).logpdf(x)

    def cdf(self, x: Any) -> Any:
        law = stats.vonmises(self.concentration, self.loc)
        return law.cdf(x) - law.cdf(-np.pi)

    def mean(self) -> float:
        return self.loc

    def var(self) -> float:
        return 1 - stats.vonmises(self.concentration).expect(np.cos)

    def entropy(self) -> float:
        return stats.vonmises(self.concentration).entropy()


def categorical(probs: np.ndarray) -> Any:
    return stats.rv_discrete(values=(np.arange(len(probs)), probs / probs.sum()))
