"""Penalties as priors, and what weight decay does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from regularize.networks import F64, network, weights

import chainrule
from chainrule import nn, optim, regularize, train


# --- priors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("penalty", "law"),
    [
        (regularize.gaussian_prior(0.5, n=20), scipy.stats.norm(scale=0.5)),
        (regularize.laplace_prior(0.5, n=20), scipy.stats.laplace(scale=0.5)),
        (regularize.cauchy_prior(0.5, n=20), scipy.stats.cauchy(scale=0.5)),
    ],
    ids=["gaussian", "laplace", "cauchy"],
)
def test_penalties_are_priors(penalty: Any, law: Any) -> None:
    """-ln p(w) / n up to a constant: the same differences between any two sets of weights."""
    first, second = network(0), network(1)
    prior = [-law.logpdf(weights(m)).sum() / 20 for m in (first, second)]
    difference = float(penalty(first)) - float(penalty(second))
    assert difference == pytest.approx(prior[0] - prior[1], rel=1e-12)


def test_a_prior_makes_ridge_regression() -> None:
    """The most probable weights of a linear model are those of ridge regression."""
    rng = np.random.default_rng(0)
    x, noise, std = rng.normal(size=(30, 3)), 0.7, 0.5
    y = x @ np.array([1.0, -2.0, 0.5]) + noise * rng.normal(size=30)
    model = nn.Linear(3, 1, bias=False, dtype=F64)
    penalty = regularize.gaussian_prior(std, n=30)
    inputs, targets = chainrule.tensor(x), chainrule.tensor(y[:, None])

    def closure() -> Any:
        misfit = ((model(inputs) - targets) ** 2).mean() / (2 * noise**2)
        return misfit + penalty(model)

    optim.minimize(closure, model.parameters(), method="newton")
    expected = np.linalg.solve(x.T @ x + noise**2 / std**2 * np.eye(3), x.T @ y)
    np.testing.assert_allclose(model.weight.detach().numpy()[0], expected, rtol=1e-8)
    with pytest.raises(ValueError, match="std must be positive, got 0"):
        regularize.gaussian_prior(0.0)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        regularize.laplace_prior(1.0, n=0)


# --- what weight decay does -----------------------------------------------------------------------


def test_l2_optimum_in_the_eigenbasis() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(20, 4)) * [3.0, 1.0, 0.3, 0.01]
    h, w0, strength = a.T @ a, rng.normal(size=4), 0.5
    found = regularize.l2_optimum(chainrule.tensor(h), chainrule.tensor(w0), strength)
    expected = np.linalg.solve(h + strength * np.eye(4), h @ w0)
    np.testing.assert_allclose(found.weights.numpy(), expected, rtol=1e-10)
    values = np.linalg.eigvalsh(h)
    np.testing.assert_allclose(found.kept.numpy(), values / (values + strength), rtol=1e-9)
    rotated = found.eigenvectors.numpy().T @ np.stack([found.weights.numpy(), w0], 1)
    np.testing.assert_allclose(rotated[:, 0], found.kept.numpy() * rotated[:, 1], rtol=1e-9)
    full = regularize.l2_optimum(chainrule.tensor(h), chainrule.tensor(w0), 0.0)
    np.testing.assert_allclose(full.weights.numpy(), w0, rtol=1e-9)
    with pytest.raises(ValueError, match="there is no minimum: the Hessian has the eigenvalue -2"):
        regularize.l2_optimum(chainrule.tensor([[-2.0]]), chainrule.tensor([1.0]), 1.0)
    with pytest.raises(RuntimeError, match=r"got \(4, 4\) and \(3,\)"):
        regularize.l2_optimum(chainrule.tensor(h), chainrule.zeros(3), 1.0)


def test_l2_optimum_is_where_training_ends() -> None:
    """Of a linear model, whose loss is a quadratic: the Trainer's penalty against the formula."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 1))
    h, w0 = x.T @ x * (2 / 40), np.linalg.lstsq(x, y, rcond=None)[0][:, 0]
    expected = regularize.l2_optimum(chainrule.tensor(h), chainrule.tensor(w0), 0.3).weights
    model = nn.Linear(3, 1, bias=False, dtype=F64)
    trainer = train.Trainer(
        model, "mse", optim.SGD(model.parameters(), lr=0.3), penalties=[regularize.L2(0.3)]
    )
    history = trainer.fit((x, y), epochs=200, batch_size=40)
    np.testing.assert_allclose(model.weight.detach().numpy()[0], expected.numpy(), rtol=1e-9)
    assert history["l2"][-1] == pytest.approx(0.15 * float((expected**2).sum()), rel=1e-6)


def test_choice_by_complexity() -> None:
    assert regularize.simplest_adequate([3, 1, 2], [0.1, 0.5, 0.1]) == 2
    assert regularize.simplest_adequate([3, 1, 2], [0.1, 0.5, 0.12], errors=[0.05, 0, 0]) == 2
    assert regularize.simplest_adequate([3, 1, 2], [0.1, 0.5, float("nan")]) == 0
    with pytest.raises(ValueError, match="as many complexities as risks"):
        regularize.simplest_adequate([1], [])
    with pytest.raises(ValueError, match="expected 1 errors >= 0"):
        regularize.simplest_adequate([1], [1], [-1.0])


def test_the_bound_of_the_risk_holds_and_grows_with_complexity() -> None:
    bounds = [regularize.risk_bound(0.1, h, 1000) for h in (1, 5, 50)]
    assert bounds == sorted(bounds)
    assert regularize.risk_bound(0.1, 5, 10**7) == pytest.approx(0.1, abs=5e-3)
    # Thresholds on a line have VC dimension 1: their true risk stays below the bound.
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = rng.uniform(size=50)
        y = (x > 0.5) ^ (rng.uniform(size=50) < 0.1)
        cuts = np.linspace(0, 1, 101)
        errors = [((x > c) != y).mean() for c in cuts]
        best = cuts[np.argmin(errors)]
        risk = 0.1 + 0.8 * abs(best - 0.5)
        assert risk <= regularize.risk_bound(min(errors), 1, 50)
    with pytest.raises(ValueError, match="dimension=60, n=50"):
        regularize.risk_bound(0.1, 60, 50)
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        regularize.risk_bound(2.0, 1, 50)
