"""Estimation, limit theorems, risk and description lengths."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import chainrule
from chainrule import information, nn, regularize
from chainrule.func import grad


F64 = chainrule.float64


def tensor(x: Any) -> chainrule.Tensor:
    return chainrule.tensor(np.asarray(x, dtype=np.float64))


# --- estimation -----------------------------------------------------------------------------------


def bernoulli(p: float, seed: int = 0) -> Callable[..., Any]:
    g = chainrule.Generator().manual_seed(seed)
    return lambda *shape: (chainrule.rand(*shape, generator=g) < p).double()


def test_fisher_information_by_quadrature() -> None:
    """Of a normal law about its mean and deviation: diag(1 / s^2, 2 / s^2)."""
    x, w = tensor(np.linspace(-30, 30, 6001)), tensor(np.full(6001, 0.01))
    log_prob = lambda p, x: -(((x - p[0]) / p[1]) ** 2) / 2 - (p[1] * math.sqrt(2 * math.pi)).log()  # noqa: E731
    got = information.fisher_information(log_prob, tensor([0.5, 2.0]), x, w)
    np.testing.assert_allclose(got.numpy(), np.diag([0.25, 0.5]), atol=1e-9)


def test_cramer_rao_bound() -> None:
    i = np.array([[2.0, 0.5], [0.5, 1.0]])
    bound = information.cramer_rao_bound(tensor(i), n=10)
    np.testing.assert_allclose(bound.numpy(), np.linalg.inv(i) / 10)
    j = np.array([[1.0, 3.0]])
    moved = information.cramer_rao_bound(tensor(i), n=10, slope=tensor(j))
    np.testing.assert_allclose(moved.numpy(), j @ np.linalg.inv(i) @ j.T / 10)
    assert float(information.cramer_rao_bound(tensor(4.0), 5, slope=3.0)) == pytest.approx(9 / 20)


def test_no_estimator_is_better_than_the_bound() -> None:
    """The mean of normal samples reaches it, the median does not, a biased one has its own."""
    g = chainrule.Generator().manual_seed(0)
    draw = lambda *s: 1.0 + chainrule.randn(*s, generator=g, dtype=F64)  # noqa: E731
    settings: dict[str, Any] = {"truth": 1.0, "n": 25, "trials": 20_000, "information": 1.0}
    mean = information.simulate_estimator(draw, lambda x: x.mean(1), **settings)
    median = information.simulate_estimator(draw, lambda x: x.median(1)[0], **settings)
    half = information.simulate_estimator(draw, lambda x: 0.5 * x.mean(1), **settings)
    assert mean.bound == pytest.approx(1 / 25)
    assert mean.efficiency == pytest.approx(1.0, abs=0.03)
    assert abs(mean.bias) < 4 * math.sqrt(1 / 25 / 20_000)
    assert median.efficiency is not None
    assert median.efficiency == pytest.approx(2 / math.pi, abs=0.05)
    assert half.variance == pytest.approx(
        float(information.cramer_rao_bound(1.0, 25, slope=0.5)), rel=0.05
    )
    for study in (mean, median, half):  # E[(A - theta*)^2] = bias^2 + variance
        assert study.error == pytest.approx(study.bias**2 + study.variance, rel=1e-3)


def test_the_estimate_of_largest_likelihood_is_asymptotically_normal() -> None:
    """Its variance is that of one sample's information: 0.21 for Bernoulli 0.3, not 0.21 / N."""
    log_prob = lambda p, x: x * p.log() + (1 - x) * (1 - p).log()  # noqa: E731
    i = information.fisher_information(log_prob, tensor(0.3), tensor([0.0, 1.0]))
    assert float(i) == pytest.approx(1 / 0.21)
    found = information.asymptotic_normality(
        bernoulli(0.3), lambda x: x.mean(1), 0.3, float(i), n=400, trials=20_000
    )
    assert found.expected == pytest.approx(0.21)
    assert found.variance == pytest.approx(0.21, abs=0.005)
    assert found.distance < 0.03
    printed = float(information.cramer_rao_bound(float(i), 400))
    assert printed == pytest.approx(0.000525)  # what the information of the whole sample would give


def test_the_likelihood_is_a_product() -> None:
    """argmax of prod p(x_i), not of sum p(x_i), which one far sample does not trouble."""
    x = np.array([-1.0, 0.0, 1.0, 12.0])
    means = np.linspace(-5, 15, 2001)
    density = scipy.stats.norm.pdf(x[:, None], means)
    assert means[np.argmax(np.log(density).sum(0))] == pytest.approx(x.mean())
    assert abs(means[np.argmax(density.sum(0))]) < 0.1


def test_gaussian_likelihood_is_the_squared_error_of_the_targets() -> None:
    """With the model h as the mean: -ln p = mean (y - h)^2 / 2 and a constant; y stays in it."""
    y, h = tensor([1.0, 2.0, 4.0]), tensor([0.5, 2.5, 3.0])
    nll = nn.functional.gaussian_nll_loss(h, y, chainrule.ones(3, dtype=F64))
    assert float(nll) == pytest.approx(float(((y - h) ** 2).mean()) / 2)


def test_the_score_is_the_gradient_of_the_logarithm() -> None:
    """s = grad ln p has mean zero under p; grad p has not."""
    p, theta = np.array([0.7, 0.3]), tensor(0.3)
    law_of = lambda t, x: x * t + (1 - x) * (1 - t)  # noqa: E731
    scores = [float(grad(lambda t, x=x: law_of(t, x).log())(theta)) for x in (0.0, 1.0)]
    slopes = [float(grad(lambda t, x=x: law_of(t, x))(theta)) for x in (0.0, 1.0)]
    assert p @ scores == pytest.approx(0)
    assert abs(p @ slopes) > 0.1


# --- limits ---------------------------------------------------------------------------------------


def test_laws_of_large_numbers() -> None:
    """Weak and strong: P(lim (mean_n - mu) = 0) = 1."""
    found = information.law_of_large_numbers(
        bernoulli(0.3), 0.3, (10, 100, 1000, 5000), trials=300, tolerance=0.05, variance=0.21
    )
    assert found.means.shape == (300, 4)
    outside, later = found.outside.numpy(), found.ever_outside.numpy()
    assert (np.diff(outside) <= 0).all()
    assert (np.diff(later) <= 0).all()
    assert (later >= outside).all()
    assert outside[-1] == later[-1] == 0
    assert found.chebyshev is not None
    assert (outside <= found.chebyshev.numpy()).all()


def test_the_mean_of_cauchy_samples_does_not_settle() -> None:
    g = chainrule.Generator().manual_seed(0)
    cauchy = lambda *s: (math.pi * (chainrule.rand(*s, generator=g, dtype=F64) - 0.5)).tan()  # noqa: E731
    found = information.law_of_large_numbers(cauchy, 0.0, (10, 1000), trials=400, tolerance=1.0)
    assert float(found.outside[1]) == pytest.approx(0.5, abs=0.1)


def test_central_limit() -> None:
    g = chainrule.Generator().manual_seed(0)
    draw = lambda *s: -chainrule.rand(*s, generator=g, dtype=F64).log()  # noqa: E731
    third = 12 / math.e - 2  # E|x - 1|^3
    found = information.central_limit(draw, 1.0, 1.0, (1, 4, 64), 20_000, third_moment=third)
    distance = found.distance.numpy()
    assert found.scaled.shape == (20_000, 3)
    assert distance[0] == pytest.approx(scipy.stats.norm.cdf(-1), abs=0.01)
    assert distance[0] / distance[1] == pytest.approx(2, rel=0.25)
    assert distance[2] < 0.03
    assert found.bound is not None
    assert (distance <= found.bound.numpy()).all()
    sample = found.scaled[:, 1].numpy()
    expected = scipy.stats.kstest(sample, "norm").statistic
    assert information.kolmogorov_distance(found.scaled[:, 1]) == pytest.approx(expected)


def test_berry_esseen_rate_of_preactivations() -> None:
    """Inputs of random signs: the exact distance falls as J^(-1/2), below the bound."""
    exact, bounds = [], []
    for j in (16, 64, 256):
        k = np.arange(j + 1)
        s, cdf = (2 * k - j) / math.sqrt(j), scipy.stats.binom(j, 0.5).cdf(k)
        phi = scipy.stats.norm.cdf(s)
        exact.append(max(np.abs(cdf - phi).max(), np.abs(phi[1:] - cdf[:-1]).max(), phi[0]))
        weights = chainrule.full((j,), 1 / math.sqrt(j), dtype=F64)
        bounds.append(float(information.berry_esseen_bound(weights, 1.0)))
    assert exact[0] / exact[1] == pytest.approx(2, rel=0.02)
    assert exact[1] / exact[2] == pytest.approx(2, rel=0.02)
    np.testing.assert_allclose(bounds, [0.56 / 4, 0.56 / 8, 0.56 / 16])
    assert all(e <= b for e, b in zip(exact, bounds, strict=True))
    # One weight that dominates keeps the pre-activation from becoming normal.
    uneven = tensor([10.0, *[0.1] * 255])
    assert float(information.berry_esseen_bound(uneven, 1.0)) > 0.5


# --- risk and description -------------------------------------------------------------------------


def test_noise_adds_its_variance_to_every_risk() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=200_000)
    f, g = np.sin(3 * x), 0.8 * x
    y = f + 0.5 * rng.normal(size=x.size)
    parts = information.noisy_target_risk(tensor(g), tensor(f), 0.25)
    assert float(parts.total) == pytest.approx(((y - g) ** 2).mean(), rel=0.01)
    assert float(parts.variance) == 0
    assert float(parts.bias) == pytest.approx(((f - g) ** 2).mean())
    perfect = information.noisy_target_risk(tensor(f), tensor(f), 0.25)
    assert float(perfect.total) == pytest.approx(0.25)


def test_bias_and_variance_of_polynomials() -> None:
    """Fits to 40 noisy samples: degree 1 is biased, degree 9 varies; the parts make the risk."""
    rng = np.random.default_rng(0)
    x = np.linspace(-1, 1, 12)
    f, found = np.sin(4 * x), []
    for degree in (1, 3, 9):
        fits = [
            np.polyval(np.polyfit(x, f + 0.3 * rng.normal(size=12), degree), x) for _ in range(40)
        ]
        found.append(information.bias_variance(tensor(fits), tensor(f), 0.09))
    bias, variance = ([float(getattr(p, k)) for p in found] for k in ("bias", "variance"))
    assert bias[0] > 10 * bias[2]
    assert variance[2] > 3 * variance[0]
    for parts in found:
        assert float(parts.total) == pytest.approx(float(parts.bias + parts.variance) + 0.09)
    with pytest.raises(RuntimeError, match=r"got \(2, 3\) and \(2,\)"):
        information.bias_variance(chainrule.zeros(2, 3), chainrule.zeros(2))


def test_description_length_of_weights() -> None:
    w, step = tensor([0.3, -1.0, 2.0]), 0.01
    density = scipy.stats.norm(scale=2.0).pdf(w.numpy())
    got = information.description_length(w, step, prior=2.0)
    assert float(got) == pytest.approx(-np.log2(density * step).sum())
    nats = information.description_length(w, step, prior=2.0, base=math.e)
    assert float(nats) == pytest.approx(float(got) * math.log(2))
    assert float(information.description_length(w, 1e6)) == 0  # no digit matters
    slope = grad(lambda w: information.description_length(w, step, 2.0, math.e))(w)
    np.testing.assert_allclose(slope.numpy(), w.numpy() / 4)  # of weight decay


def test_bits_of_a_flat_minimum() -> None:
    """With a uniform prior on [-1, 1], the bits are B / ln 2 of flat minimum search, plus W."""
    j = tensor(np.random.default_rng(0).normal(size=(2, 5)))
    box = regularize.flat_box(j, 0.01)
    uniform = lambda w: 0 * w - math.log(2)  # noqa: E731
    bits = float(information.description_length(tensor(np.zeros(5)), box, prior=uniform))
    assert bits == pytest.approx(-np.log2(box.numpy()).sum() + 5)
