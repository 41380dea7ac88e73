"""Scores and Fisher matrices against enumerated outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from small_network import flat_jacobian, network, normal, params, softmax, tensor

import chainrule
from chainrule import Tensor
from chainrule.curvature.hessian import gauss_newton, hessian_matrix
from chainrule.curvature.information import empirical_fisher, fisher, inverse_hessian, score
from chainrule.curvature.parameters import ravel
from chainrule.func import grad, hessian


def log_categorical(p: Any, x: Tensor, label: Tensor) -> Tensor:
    return -chainrule.cross_entropy(network(p, x), label)


def log_bernoulli(p: Any, x: Tensor, y: Tensor) -> Tensor:
    z = network(p, x)
    return (y * z - z.exp().log1p()).sum()


def log_gaussian(p: Any, x: Tensor, y: Tensor) -> Tensor:
    return -((y - network(p, x)) ** 2).sum() / (2 * 0.5)


def outcomes(likelihood: str, z: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Every outcome for a batch of outputs z, with its probability for each sample.

    For the normal distribution, points with its mean and its variance: the score is linear in y.
    """
    if likelihood == "categorical":
        return [(np.full(len(z), k), softmax(z)[:, k]) for k in range(3)]
    if likelihood == "bernoulli":
        a = 1 / (1 + np.exp(-z))
        bits = np.array(np.meshgrid([0.0, 1], [0.0, 1])).reshape(2, -1).T
        return [(np.tile(y, (len(z), 1)), np.prod(np.where(y, a, 1 - a), 1)) for y in bits]
    signs = np.array(np.meshgrid([-1.0, 1], [-1.0, 1])).reshape(2, -1).T
    return [(z + np.sqrt(0.5) * s, np.full(len(z), 0.25)) for s in signs]


LIKELIHOODS = [
    ("categorical", log_categorical, 3),
    ("bernoulli", log_bernoulli, 2),
    ("gaussian", log_gaussian, 2),
]


@pytest.mark.parametrize(("likelihood", "log_prob", "outputs"), LIKELIHOODS)
def test_fisher_is_the_covariance_of_the_score(
    likelihood: str, log_prob: Any, outputs: int
) -> None:
    """E[score] = 0 and F = E[score score^T] = -E[Hessian], summed over all outcomes."""
    p, x = params(outputs), tensor(normal(5, 2, seed=3))
    mean, covariance, curvature = np.zeros((5, 1)), 0.0, 0.0
    for y, probability in outcomes(likelihood, network(p, x).numpy()):
        s = score(log_prob, p, x, tensor(y)).numpy()
        mean = mean + probability[:, None] * s
        covariance = covariance + np.einsum("n,ni,nj->ij", probability, s, s)
        for n in range(5):
            one = lambda q, n=n, y=y: log_prob(q, x[n], tensor(y[n]))  # noqa: E731
            curvature = curvature - probability[n] * hessian_matrix(one, p).numpy()
    got = fisher(network, x, likelihood, p, variance=0.5, reduction="sum")
    assert_close(mean, np.zeros_like(mean), atol=1e-13)
    assert_close(got, covariance, atol=1e-12)
    assert_close(got, curvature, atol=1e-12)
    assert_close(fisher(network, x, likelihood, p, variance=0.5), covariance / 5, atol=1e-12)


def test_fisher_is_the_gauss_newton_matrix_of_the_negative_log_likelihood() -> None:
    p, x, labels = params(), tensor(normal(5, 2, seed=3)), tensor([0, 1, 2, 0, 0])
    expected = gauss_newton(network, x, lambda z: chainrule.cross_entropy(z, labels), p)
    assert_close(fisher(network, x, "categorical", p, chunk_size=10), expected.numpy(), atol=1e-14)


def test_fisher_of_a_gaussian_with_a_variance_for_each_output() -> None:
    p, x, variance = params(), tensor(normal(5, 2, seed=3)), np.array([0.5, 1.0, 2.0])
    j = flat_jacobian(p, x).reshape(5, 3, -1)
    expected = np.einsum("nki,k,nkj->ij", j, 1 / variance, j) / 5
    assert_close(fisher(network, x, "gaussian", p, variance=tensor(variance)), expected)


def test_fisher_of_logistic_regression_far_out() -> None:
    """X^T R X with R = diag a (1 - a), also where the exponential overflows."""
    x, w = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([5.0, 1000.0])
    a = 1 / (1 + np.exp(-5.0))
    got = fisher(lambda v, x: x @ v, tensor(x), "bernoulli", tensor(w), reduction="sum")
    assert_close(got, np.diag([a * (1 - a), 0.0]))


def test_information_of_one_bernoulli_observation() -> None:
    """sqrt(N) (p_hat - p) has the variance 1/I = p (1 - p) = .21 with I of one observation."""
    log_prob = lambda p, x: x * p.log() + (1 - x) * (1 - p).log()  # noqa: E731
    s = score(log_prob, tensor(0.3), tensor([0.0, 1.0])).numpy()[:, 0]
    assert 0.7 * s[0] + 0.3 * s[1] == pytest.approx(0)
    information = 0.7 * s[0] ** 2 + 0.3 * s[1] ** 2
    assert 1 / information == pytest.approx(0.21)
    draws = np.random.default_rng(0).binomial(400, 0.3, size=20_000) / 400
    assert 400 * draws.var() == pytest.approx(1 / information, rel=0.03)
    logit = tensor(np.log(0.3 / 0.7))
    per_logit = fisher(
        lambda z, x: x * z, chainrule.ones(4, dtype=chainrule.float64), "bernoulli", logit
    )
    assert_close(per_logit, np.array([[0.21]]))


def test_scores_of_the_samples() -> None:
    p, x, labels = params(), tensor(normal(5, 2, seed=3)), tensor([0, 1, 2, 0, 0])
    rows = score(log_categorical, p, x, labels)
    assert rows.shape == (5, 24)
    for n in range(5):
        assert_close(rows[n], ravel(grad(log_categorical)(p, x[n], labels[n]))[0].numpy())
    assert_close(score(log_categorical, p, x, labels, chunk_size=2), rows.numpy())


def test_empirical_fisher_is_the_mean_of_outer_products() -> None:
    p, x, labels = params(), tensor(normal(5, 2, seed=3)), tensor([0, 1, 2, 0, 0])
    rows = [ravel(grad(log_categorical)(p, x[n], labels[n]))[0].numpy() for n in range(5)]
    expected = sum(np.outer(r, r) for r in rows) / 5
    got = empirical_fisher(log_categorical, p, x, labels)
    assert_close(got, expected)
    loss = lambda p, x, y: -log_categorical(p, x, y)  # noqa: E731
    assert_close(empirical_fisher(loss, p, x, labels), expected)
    assert np.abs(got.numpy() - fisher(network, x, "categorical", p).numpy()).max() > 0.01


def test_empirical_fisher_of_data_that_follow_the_model_is_the_fisher_matrix() -> None:
    """At w = 0 both labels of every sample are equally likely, and the data have both."""
    x, w = normal(4, 3), chainrule.zeros(3, dtype=chainrule.float64)
    log_prob = lambda v, x, y: y * (x @ v) - (x @ v).exp().log1p()  # noqa: E731
    twice, y = tensor(np.tile(x, (2, 1))), tensor(np.repeat([0.0, 1.0], 4))
    got = empirical_fisher(log_prob, w, twice, y)
    assert_close(got, fisher(lambda v, x: x @ v, tensor(x), "bernoulli", w).numpy())
    assert_close(got, 0.25 * x.T @ x / 4)


def test_inverse_hessian_by_updates_of_rank_one() -> None:
    g = normal(7, 4)
    expected = np.linalg.inv(0.1 * np.eye(4) + g.T @ g / 7)
    assert_close(inverse_hessian(tensor(g), damping=0.1), expected)
    x = normal(20, 3, seed=1)
    linear = hessian(lambda w: ((tensor(x) @ w) ** 2).mean() / 2)(tensor(normal(3)))
    got = inverse_hessian(tensor(x), damping=1e-9)
    assert_close(got.numpy() @ linear.numpy(), np.eye(3), atol=1e-6)


def test_types_are_kept() -> None:
    w, x = chainrule.tensor([1.0, 2.0]), chainrule.ones(3, 2)
    linear = lambda v, x: x @ v  # noqa: E731
    for result in (
        fisher(linear, x, "gaussian", w, variance=2.0),
        empirical_fisher(linear, w, x),
        inverse_hessian(x),
    ):
        assert result.dtype is chainrule.float32


def test_wrong_arguments_are_refused() -> None:
    w = tensor(normal(3))
    linear = lambda v, x: x @ v  # noqa: E731
    with pytest.raises(ValueError, match="likelihood must be one of.*got 'poisson'"):
        fisher(linear, w, "poisson", w)
    with pytest.raises(ValueError, match="reduction must be.*got 'none'"):
        fisher(linear, w, "bernoulli", w, reduction="none")
    with pytest.raises(ValueError, match="variance.*got -1"):
        fisher(linear, w, "gaussian", w, variance=-1)
    with pytest.raises(RuntimeError, match=r"categorical.*2 dimensions, got shape \(3,\)"):
        fisher(lambda v, x: v * x, w, "categorical", w)
    with pytest.raises(TypeError, match="at least one tensor of samples"):
        score(linear, w)
    with pytest.raises(RuntimeError, match=r"\(N, W\), got \(3,\)"):
        inverse_hessian(tensor(normal(3)))
    with pytest.raises(ValueError, match="damping.*got 0"):
        inverse_hessian(tensor(normal(3, 3)), damping=0)
