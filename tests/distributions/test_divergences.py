"""Divergences: against the mean of log p - log q over samples, and how they are registered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from distributions.divergences import LINE, PAIRS, build
from helpers import assert_close

import chainrule
from chainrule.autograd import gradcheck
from chainrule.distributions import (
    AffineTransform,
    Beta,
    Cauchy,
    Distribution,
    Exponential,
    ExponentialFamily,
    ExpTransform,
    Independent,
    Laplace,
    Normal,
    TransformedDistribution,
    Uniform,
    kl_divergence,
    register_kl,
)

each_pair = pytest.mark.parametrize(
    ("p", "q"), PAIRS, ids=[f"{i}-{p[0]}-{q[0]}" for i, (p, q) in enumerate(PAIRS)]
)


@each_pair
def test_divergence_is_a_mean(p: Any, q: Any) -> None:
    """E_p[log p(x) - log q(x)], or infinite where p has values that q has not."""
    (p, _), (q, _) = build(chainrule, p), build(chainrule, q)
    found = kl_divergence(p, q).detach().numpy()
    chainrule.manual_seed(0)
    p = p.expand(found.shape)
    x = p.sample((20_000,))
    inside = q.support.check(x).numpy().all(0)
    q._validate_args = False
    terms = (p.log_prob(x) - q.log_prob(x)).detach().numpy()
    for place in np.ndindex(found.shape):
        own = terms[(slice(None), *place)]
        if np.isfinite(found[place]):
            assert abs(own.mean() - found[place]) <= 6 * own.std() / math.sqrt(len(own)) + 1e-9
        else:  # outside, or of a probability that is 0 up to rounding
            assert not inside[place] or own.max() > 30


@each_pair
def test_divergence_from_itself_is_zero(p: Any, q: Any) -> None:
    for spec in (p, q):
        (a, _), (b, _) = build(chainrule, spec), build(chainrule, spec)
        got = kl_divergence(a, b).detach()
        assert_close(got, np.zeros(got.shape), atol=1e-12)


@pytest.mark.parametrize(("p", "q"), LINE, ids=[p[0] for p, _ in LINE])
def test_divergences_are_differentiable(p: Any, q: Any) -> None:
    leaves = [build(chainrule, spec)[1] for spec in (p, q)]
    types = [type(build(chainrule, spec)[0]) for spec in (p, q)]

    def f(*inputs: Any) -> Any:
        cut = len(leaves[0])
        out = kl_divergence(types[0](*inputs[:cut]), types[1](*inputs[cut:]))
        return out[out.isfinite()]

    gradcheck(f, [leaf for own in leaves for leaf in own])


def test_shapes_broadcast() -> None:
    p = Normal(chainrule.zeros(3, 1), 1.0)
    for q in (Normal(chainrule.ones(2), 2.0), Uniform(chainrule.zeros(2), 1.0)):
        assert kl_divergence(p, q).shape == (3, 2)


def test_independent_and_transformed() -> None:
    p, q = Normal(chainrule.zeros(2, 3), 1.0), Normal(chainrule.ones(2, 3), 2.0)
    base = kl_divergence(p, q)
    assert_close(kl_divergence(Independent(p, 1), Independent(q, 1)), base.sum(-1), 1e-6)
    with pytest.raises(NotImplementedError, match="Independent over 1 and over 2 dimensions"):
        kl_divergence(Independent(p, 1), Independent(q, 2))
    f = [ExpTransform(), AffineTransform(1.0, 2.0)]
    assert_close(
        kl_divergence(TransformedDistribution(p, f), TransformedDistribution(q, list(f))), base
    )
    with pytest.raises(NotImplementedError, match="different functions of their bases"):
        kl_divergence(TransformedDistribution(p, f), TransformedDistribution(q, f[:1]))


class Waiting(ExponentialFamily):
    """Exponential by its natural parameter alone."""

    def __init__(self, rate: Any):
        self.rate = rate
        super().__init__(rate.shape)

    @property
    def _natural_params(self) -> Any:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return -(-natural_params[0]).log()

    @property
    def _mean_carrier_measure(self) -> float:
        return 0.0


def test_exponential_families_follow_from_their_normalizer() -> None:
    a, b = chainrule.tensor([0.5, 2.0]), chainrule.tensor([1.0, 3.0], requires_grad=True)
    assert_close(Waiting(a).entropy(), Exponential(a).entropy(), 1e-6)
    assert_close(
        kl_divergence(Waiting(a), Waiting(b)), kl_divergence(Exponential(a), Exponential(b)), 1e-6
    )
    with pytest.raises(NotImplementedError, match="no divergence of Waiting from Normal"):
        kl_divergence(Waiting(a), Normal(0.0, 1.0))


def test_the_nearest_classes_count() -> None:
    class Mine(Normal):
        pass

    class Other(Laplace):
        pass

    p, q = Mine(0.0, 1.0), Other(0.0, 1.0)
    assert_close(kl_divergence(p, q), kl_divergence(Normal(0.0, 1.0), Laplace(0.0, 1.0)))
    register_kl(Mine, Laplace)(lambda p, q: p.loc + 1)
    assert float(kl_divergence(p, q)) == 1
    register_kl(Normal, Other)(lambda p, q: p.loc + 2)
    with pytest.warns(RuntimeWarning, match=r"\(Mine, Other\) is ambiguous: \(Mine, Laplace\) is"):
        assert float(kl_divergence(p, q)) == 1
    register_kl(Mine, Other)(lambda p, q: p.loc + 3)
    assert float(kl_divergence(p, q)) == 3


def test_refusals() -> None:
    with pytest.raises(NotImplementedError, match="no divergence of Cauchy from Normal is regist"):
        kl_divergence(Cauchy(0.0, 1.0), Normal(0.0, 1.0))
    with pytest.raises(NotImplementedError, match=r"the mean of exp\(x\) is not known for Beta"):
        kl_divergence(Beta(1.0, 1.0), chainrule.distributions.Gumbel(0.0, 1.0))
    with pytest.raises(TypeError, match="expected a subclass of Distribution, got <class 'int'>"):
        register_kl(int, Distribution)
    with pytest.raises(ValueError, match="vectors of 2 and of 3 numbers"):
        kl_divergence(
            *[
                chainrule.distributions.MultivariateNormal(chainrule.zeros(n), chainrule.eye(n))
                for n in (2, 3)
            ]
        )
