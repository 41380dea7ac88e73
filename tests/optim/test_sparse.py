"""Least squares with an L1 penalty: against closed forms, its conditions and scikit-learn."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.linear_model import Lasso

import chainrule
from chainrule import optim, tensor


def problem(seed: int, n: int = 60, d: int = 12) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    x = r.normal(size=(n, d)) @ (np.eye(d) + 0.3 * r.normal(size=(d, d))) + r.normal(size=d)
    w = np.where(r.random(d) < 0.3, r.normal(size=d), 0.0)
    return x, x @ w + 0.1 * r.normal(size=n) + 2.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_against_scikit_learn(seed: int, bias: bool, share: float) -> None:
    x, y = problem(seed)
    l1 = share * optim.lasso_limit(tensor(x), tensor(y), bias)
    fit = optim.lasso(tensor(x), tensor(y), l1, bias)
    theirs = Lasso(alpha=l1, fit_intercept=bias, tol=1e-14, max_iter=100_000).fit(x, y)
    np.testing.assert_allclose(fit.weight.numpy(), theirs.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(fit.weight.numpy() == 0, theirs.coef_ == 0)
    if bias:
        assert fit.bias.item() == pytest.approx(theirs.intercept_, rel=1e-6)
    assert (fit.report.converged, fit.report.unique) == (True, True)
    residual = theirs.predict(x) - y
    assert fit.report.loss == pytest.approx((residual**2).mean() / 2, rel=1e-6)


def test_orthogonal_columns_have_the_closed_form() -> None:
    """w = S(X^T y / N, l1) where X^T X = N I."""
    r = np.random.default_rng(0)
    x = np.linalg.qr(r.normal(size=(40, 8)))[0] * math.sqrt(40)
    y = r.normal(size=40)
    c = x.T @ y / 40
    for l1 in (0.01, 0.1, 0.2):
        expected = np.sign(c) * np.maximum(np.abs(c) - l1, 0)
        fit = optim.lasso(tensor(x), tensor(y), l1, bias=False)
        np.testing.assert_allclose(fit.weight.numpy(), expected, atol=1e-12)


def test_all_weights_are_zero_from_the_limit_on() -> None:
    x, y = (tensor(a) for a in problem(0))
    limit = optim.lasso_limit(x, y)
    fit = optim.lasso(x, y, limit * 1.000001)
    assert not fit.weight.any()
    assert fit.bias.item() == pytest.approx(float(y.mean()))
    assert optim.lasso(x, y, limit * 0.999).weight.count_nonzero() == 1


def test_without_penalty_it_is_least_squares() -> None:
    x, y = (tensor(a) for a in problem(0))
    expected = optim.least_squares(x, y)
    assert optim.lasso(x, y, 0.0).weight.tolist() == expected.weight.tolist()
    near = optim.lasso(x, y, 1e-10).weight
    np.testing.assert_allclose(near.numpy(), expected.weight.numpy(), rtol=1e-6)


def test_more_columns_than_rows_and_columns_that_repeat() -> None:
    x, y = problem(1, n=20, d=50)
    l1 = 0.05 * optim.lasso_limit(tensor(x), tensor(y))
    fit = optim.lasso(tensor(x), tensor(y), l1)
    theirs = Lasso(alpha=l1, tol=1e-14, max_iter=1_000_000).fit(x, y)
    np.testing.assert_allclose(fit.weight.numpy(), theirs.coef_, rtol=1e-5, atol=1e-8)
    twice = np.concatenate([x[:, :3], x[:, :3]], 1)
    with pytest.warns(UserWarning, match="columns of the inputs depend on each other"):
        assert not optim.lasso(tensor(twice), tensor(y), l1).report.unique
    constant = np.concatenate([x[:, :3], np.ones((20, 1))], 1)
    assert optim.lasso(tensor(constant), tensor(y), l1).weight[3].item() == 0


def test_types_and_wrong_calls() -> None:
    x, y = (tensor(a).float() for a in problem(0))
    assert optim.lasso(x, y, 0.1).weight.dtype == chainrule.float32
    with pytest.warns(UserWarning, match="reached max_iter = 1 with a derivative of"):
        optim.lasso(x, y, 0.001, max_iter=1)
    with pytest.raises(ValueError, match="l1"):
        optim.lasso(x, y, -1.0)
    with pytest.raises(ValueError, match=r"expected x \(N, D\) and y \(N,\)"):
        optim.lasso(x, y[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert optim.lasso(x, y, 1.0).report.converged
