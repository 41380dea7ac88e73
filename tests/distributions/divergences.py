"""Pairs of distributions for divergences: (family, parameters) for p and for q."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

__all__ = ["LINE", "PAIRS", "build"]

A = np.array
Spec = tuple[Any, ...]

# Two of each family, apart from each other; the intervals lie so that some contain others.
LINE: list[tuple[Spec, Spec]] = [
    (("Beta", A([2.0, 0.5]), A([3.0, 0.8])), ("Beta", A([1.0, 4.0]), A([2.0, 0.5]))),
    (("ContinuousBernoulli", A([0.2, 0.9])), ("ContinuousBernoulli", A([0.6, 0.3]))),
    (("Exponential", A([0.5, 2.0])), ("Exponential", A([1.5, 3.0]))),
    (("Gamma", A([2.0, 0.5]), A([1.0, 3.0])), ("Gamma", A([1.0, 4.0]), A([2.0, 0.5]))),
    (("Gumbel", A([0.0, 1.0]), A([1.0, 2.0])), ("Gumbel", A([0.5, -1.0]), A([2.0, 1.5]))),
    (("Laplace", A([0.0, 1.0]), A([1.0, 0.5])), ("Laplace", A([0.5, -1.0]), A([2.0, 1.0]))),
    (("Normal", A([0.0, 1.0]), A([1.0, 0.5])), ("Normal", A([0.5, -1.0]), A([2.0, 1.0]))),
    (("Pareto", A([1.0, 0.5]), A([3.0, 4.0])), ("Pareto", A([0.5, 0.7]), A([2.0, 1.0]))),
    (("Uniform", A([0.2, 0.1]), A([0.7, 0.9])), ("Uniform", A([0.0, 0.3]), A([1.0, 2.0]))),
    (("Uniform", A([-0.5, 1.0]), A([0.5, 2.0])), ("Uniform", A([-1.0, 0.3]), A([1.0, 2.5]))),
]
# The pairs of different families that PyTorch knows.
KNOWN = {
    "Beta": "ContinuousBernoulli Pareto Exponential Gamma Normal Uniform",
    "ContinuousBernoulli": "Pareto Exponential Normal Uniform",
    "Exponential": "Uniform Pareto ContinuousBernoulli Beta Gamma Gumbel Normal",
    "Gamma": "Uniform Pareto ContinuousBernoulli Beta Exponential Gumbel Normal",
    "Gumbel": "Uniform Pareto Gamma Exponential ContinuousBernoulli Beta Normal",
    "Laplace": "Uniform Pareto Gamma Exponential ContinuousBernoulli Beta Normal",
    "Normal": "Uniform Pareto Gamma Exponential ContinuousBernoulli Beta Gumbel Laplace",
    "Pareto": "Uniform ContinuousBernoulli Beta Exponential Gamma Normal",
    "Uniform": "Beta ContinuousBernoulli Exponential Gamma Gumbel Normal Pareto",
}
OTHERS: list[tuple[Spec, Spec]] = [
    (("Bernoulli", A([0.2, 0.9, 0.0])), ("Bernoulli", A([0.6, 0.3, 0.5]))),
    (("Bernoulli", A([0.2, 0.9])), ("Poisson", A([0.6, 3.0]))),
    (("Binomial", 5, A([0.2, 0.9])), ("Binomial", 5, A([0.6, 0.3]))),
    (("Binomial", 6, A([0.2, 0.9])), ("Binomial", 5, A([0.6, 0.3]))),
    (("Categorical", A([0.2, 0.8, 0.0])), ("Categorical", A([0.3, 0.3, 0.4]))),
    (("Categorical", A([0.2, 0.4, 0.4])), ("Categorical", A([0.3, 0.7, 0.0]))),
    (("Cauchy", A([0.0, 1.0]), A([1.0, 0.5])), ("Cauchy", A([0.5, -1.0]), A([2.0, 1.0]))),
    (("Chi2", A([2.0, 0.5])), ("Chi2", A([1.0, 4.0]))),
    (("Dirichlet", A([[2.0, 0.5, 1.0]])), ("Dirichlet", A([[1.0, 4.0, 0.7]]))),
    (("Geometric", A([0.2, 0.9])), ("Geometric", A([0.6, 0.3]))),
    (("HalfNormal", A([0.2, 0.9])), ("HalfNormal", A([0.6, 0.3]))),
    (("InverseGamma", A([2.0]), A([1.0])), ("InverseGamma", A([1.0]), A([2.0]))),
    (("LogNormal", A([0.0]), A([1.0])), ("LogNormal", A([0.5]), A([2.0]))),
    (("OneHotCategorical", A([0.2, 0.8, 0.0])), ("OneHotCategorical", A([0.3, 0.3, 0.4]))),
    (("Poisson", A([0.5, 4.0])), ("Poisson", A([0.6, 3.0]))),
    (("Poisson", A([0.5, 4.0])), ("Bernoulli", A([0.6, 0.3]))),
    (("Poisson", A([0.5, 4.0])), ("Binomial", 3, A([0.6, 0.3]))),
]
TRIL = A([[1.0, 0.0], [0.5, 0.8]])
GAUSSIANS: list[Spec] = [
    ("MultivariateNormal", A([0.0, 1.0]), TRIL @ TRIL.T),
    ("LowRankMultivariateNormal", A([0.5, -1.0]), A([[1.0], [0.3]]), A([0.5, 2.0])),
    ("MultivariateNormal", A([[0.5, -1.0], [1.0, 0.0]]), np.eye(2) * 2),
]

PAIRS: list[tuple[Spec, Spec]] = [
    *LINE,
    *[(p, q) for (p, _), (_, q) in itertools.product(LINE, LINE) if q[0] in KNOWN[p[0]].split()],
    *OTHERS,
    *itertools.product(GAUSSIANS, GAUSSIANS),
]


def build(library: Any, spec: Spec) -> tuple[Any, list[Any]]:
    """The distribution in a library, and its parameters, which require a gradient."""
    name, *params = spec
    leaves = []
    for i, value in enumerate(params):
        if isinstance(value, np.ndarray):
            params[i] = library.tensor(value.tolist(), dtype=library.float64, requires_grad=True)
            leaves.append(params[i])
    return getattr(library.distributions, name)(*params), leaves
