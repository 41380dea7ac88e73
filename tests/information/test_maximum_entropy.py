"""Distributions of the largest entropy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import chainrule
from chainrule import information
from chainrule.func import grad, hessian, jacfwd, jacrev


F64 = chainrule.float64


def tensor(x: Any) -> chainrule.Tensor:
    return chainrule.tensor(np.asarray(x, dtype=np.float64))


def law(*shape: int, seed: int = 0) -> np.ndarray:
    """Random probabilities over the last dimension."""
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), size=shape[:-1])


def test_maximum_entropy_meets_its_moments() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(30, 3))
    mu = law(30, seed=2) @ y
    found = information.maximum_entropy(tensor(y), tensor(mu))
    p = found.probabilities.numpy()
    np.testing.assert_allclose(p @ y, mu, atol=1e-9)
    np.testing.assert_allclose(np.log(p), -y @ found.theta.numpy() - float(found.log_partition))
    h = float(found.entropy())
    assert h == pytest.approx(scipy.stats.entropy(p))
    # Any other distribution with these moments has less entropy.
    null = scipy.linalg.null_space(np.vstack([y.T, np.ones(30)]))
    for k in range(5):
        q = p + 0.3 * p.min() * null[:, k]
        np.testing.assert_allclose(q @ y, mu, atol=1e-9)
        assert scipy.stats.entropy(q) < h


def test_maximum_entropy_of_mean_and_variance_is_normal() -> None:
    x, w = tensor(np.linspace(-10, 10, 4001)), tensor(np.full(4001, 20 / 4000))
    found = information.maximum_entropy(chainrule.stack([x, x * x], 1), [0.0, 1.0], measure=w)
    np.testing.assert_allclose(found.theta.numpy(), [0, 0.5], atol=1e-8)
    assert float(found.log_partition) == pytest.approx(0.5 * math.log(2 * math.pi))
    assert float(found.entropy()) == pytest.approx(1.418938533204673, abs=1e-8)


def test_maximum_entropy_without_moments_that_bind_is_uniform() -> None:
    found = information.maximum_entropy(chainrule.arange(6.0), [2.5])
    np.testing.assert_allclose(found.probabilities.numpy(), 1 / 6, rtol=1e-6)
    assert found.iterations == 0
    die = information.maximum_entropy(tensor([1.0, 2, 3, 4, 5, 6]), [4.5])
    assert float(die.entropy()) == pytest.approx(1.61358, abs=1e-5)


def exponential_family() -> tuple[Any, Any]:
    y = tensor(np.random.default_rng(1).normal(size=(8, 2)))
    theta = tensor([0.7, -0.4])
    return y, information.MaximumEntropy(theta, y, chainrule.zeros(8, dtype=F64))


def test_score_hessian_and_fisher_information_of_the_exponential_family() -> None:
    """score = mu - y, Hessian = -Cov(y), Fisher information = Cov(y) = E[s s^T]."""
    y, family = exponential_family()

    def log_prob(theta: Any, features: Any) -> Any:
        return information.MaximumEntropy(theta, y, family.log_measure).log_prob(features)

    theta, p = family.theta, family.probabilities.numpy()
    scores = np.stack([grad(log_prob)(theta, y[i]).numpy() for i in range(8)])
    np.testing.assert_allclose(family.score(y).numpy(), scores, atol=1e-12)
    np.testing.assert_allclose(p @ scores, 0, atol=1e-15)  # the mean of grad ln p is zero
    np.testing.assert_allclose(
        family.hessian.numpy(), hessian(log_prob)(theta, y[3]).numpy(), atol=1e-12
    )
    cov = np.cov(y.numpy().T, aweights=p, bias=True)
    np.testing.assert_allclose(family.covariance.numpy(), cov, atol=1e-12)
    np.testing.assert_allclose(family.fisher.numpy(), scores.T @ (scores * p[:, None]), atol=1e-12)
    whole = information.fisher_information(log_prob, theta, y)
    np.testing.assert_allclose(whole.numpy(), cov, atol=1e-12)


def test_maximum_entropy_can_be_differentiated() -> None:
    """d theta / d mu = -Cov^-1."""
    y, family = exponential_family()
    mu = family.mean.detach()

    def theta(mu: Any) -> Any:
        return information.maximum_entropy(y, mu).theta

    h, expected = 1e-5, np.zeros((2, 2))
    for k in range(2):
        step = tensor(h * np.eye(2)[k])
        expected[:, k] = (theta(mu + step) - theta(mu - step)).numpy() / (2 * h)
    for transform in (jacrev, jacfwd):
        got = transform(theta)(mu).numpy()
        np.testing.assert_allclose(got, expected, rtol=1e-6)
        np.testing.assert_allclose(got, -np.linalg.inv(family.covariance.numpy()), rtol=1e-8)
    step = tensor([h, 0.0])
    change = (jacrev(theta)(mu + step) - jacrev(theta)(mu - step)).numpy() / (2 * h)
    second = jacfwd(jacrev(theta))(mu).numpy()[..., 0]
    np.testing.assert_allclose(second, change, rtol=1e-6, atol=1e-7)


def test_dependent_features_and_impossible_moments() -> None:
    x = tensor([0.0, 1.0, 2.0, 3.0])
    twice = chainrule.stack([x, 2 * x, 0 * x + 1], 1)
    found = information.maximum_entropy(twice, [1.0, 2.0, 1.0])
    np.testing.assert_allclose(found.mean.numpy(), [1, 2, 1], atol=1e-9)
    single = information.maximum_entropy(x, [1.0])
    np.testing.assert_allclose(found.probabilities.numpy(), single.probabilities.numpy(), rtol=1e-7)
    assert information.unidentifiable(found.fisher).shape == (3, 2)
    for moments in ([1.0, 3.0, 1.0], [1.0, 2.0, 2.0], [4.0, 8.0, 1.0]):
        with pytest.raises(
            ValueError, match="found no distribution over these states with the mom"
        ):
            information.maximum_entropy(twice, moments)


def test_identifiability_means_that_equal_laws_have_equal_parameters() -> None:
    """p1 = p2 implies theta1 = theta2: not so for softmax, whose logits may all be shifted."""
    z = tensor([0.3, -1.0, 2.0])
    shifted = (z + 5).softmax(0)
    np.testing.assert_allclose(z.softmax(0).numpy(), shifted.numpy())  # theta differs, p does not
    i = information.fisher_information(
        lambda z, e: (z.log_softmax(0) * e).sum(), z, chainrule.eye(3, dtype=F64)
    )
    direction = information.unidentifiable(i)
    assert direction.shape == (3, 1)
    np.testing.assert_allclose(np.abs(direction.numpy()), 3**-0.5, rtol=1e-6)
    two = lambda z, e: (chainrule.cat([z, 0 * z[:1]]).log_softmax(0) * e).sum()  # noqa: E731
    fixed = information.fisher_information(two, z[:2], chainrule.eye(3, dtype=F64))
    assert information.unidentifiable(fixed).shape == (2, 0)
