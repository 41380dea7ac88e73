"""Logistic and softmax regression."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.special

import chainrule
from chainrule import optim, problems, tensor


F64 = chainrule.float64


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def seeded(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


def close(got: Any, expected: Any, rtol: float = 1e-9, atol: float = 1e-12) -> None:
    np.testing.assert_allclose(got.numpy(), expected, rtol=rtol, atol=atol)


def logistic_data(n: int = 150, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of very different sizes and overlapping classes."""
    r = np.random.default_rng(seed)
    x = r.normal(size=(n, 4)) * [1, 100, 0.01, 5] + [0, 1000, 0, -3]
    score = x @ [1, 0.01, 40, -0.2] - 10.4
    return x, (r.random(n) < scipy.special.expit(score)).astype(float)


# --- logistic regression --------------------------------------------------------------------------


def logistic_solution(x: np.ndarray, y: np.ndarray, l2: float = 0.0) -> np.ndarray:
    """By SciPy, in standardized inputs: the weights, then the bias."""
    mean, std = x.mean(0), x.std(0)
    z = np.c_[(x - mean) / std, np.ones(len(x))]

    def parts(v: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        s, w = z @ v, v[:-1] / std
        a = scipy.special.expit(s)
        value = (np.logaddexp(0, s) - y * s).sum() + l2 / 2 * w @ w
        penalty = np.append(l2 / std**2, 0)
        return value, z.T @ (a - y) + penalty * v, (z.T * (a * (1 - a))) @ z + np.diag(penalty)

    v = scipy.optimize.minimize(
        lambda v: parts(v)[0], np.zeros(z.shape[1]), jac=lambda v: parts(v)[1], method="BFGS"
    ).x
    v = scipy.optimize.root(lambda v: parts(v)[1], v, jac=lambda v: parts(v)[2], tol=1e-14).x
    w = v[:-1] / std
    return np.append(w, v[-1] - w @ mean)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_irls_is_exact_in_eight_steps(seed: int, l2: float) -> None:
    x, y = logistic_data(seed=seed)
    fit = optim.logistic_regression(tensor(x), tensor(y), l2=l2)
    expected = logistic_solution(x, y, l2)
    close(fit.weight, expected[:-1], rtol=1e-8)
    assert fit.bias.item() == pytest.approx(expected[-1], rel=1e-8)
    assert fit.report.converged
    assert fit.report.iterations <= 8


@pytest.mark.parametrize("l2", [0.0, 2.0])
def test_logistic_regression_is_sklearns(l2: float) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    x, y = logistic_data()
    other = linear_model.LogisticRegression(
        C=1 / l2 if l2 else np.inf, solver="newton-cholesky", tol=1e-12, max_iter=1000
    ).fit(x, y)
    fit = optim.logistic_regression(tensor(x), tensor(y), l2=l2)
    close(fit.weight, other.coef_[0], rtol=1e-8)
    assert fit.bias.item() == pytest.approx(other.intercept_[0], rel=1e-8)


def test_irls_steps_are_reweighted_least_squares() -> None:
    """w - (X^T R X)^{-1} X^T (a - y): H^{-1}, not H, times the gradient."""
    x, y = normal(30, 3), (normal(30, seed=1) > 0).astype(float)
    w = np.zeros(3)
    for steps in (1, 2, 3):
        a = scipy.special.expit(x @ w)
        r = np.diag(a * (1 - a))
        w = w - np.linalg.solve(x.T @ r @ x, x.T @ (a - y))
        with pytest.warns(UserWarning, match=f"reached max_iter = {steps} with a gradient of"):
            fit = optim.logistic_regression(
                tensor(x), tensor(y), bias=False, max_iter=steps, tolerance=1e-15
            )
        close(fit.weight, w, rtol=1e-9)


def test_logistic_loss_is_the_negative_log_likelihood() -> None:
    x, y = logistic_data(60)
    fit = optim.logistic_regression(tensor(x), tensor(y))
    p = scipy.special.expit(x @ fit.weight.numpy() + fit.bias.item())
    likelihood = np.prod(p**y * (1 - p) ** (1 - y))
    assert fit.report.loss == pytest.approx(-math.log(likelihood) / 60, rel=1e-9)


def test_logistic_regression_by_gradient() -> None:
    x, y = normal(80, 3), (normal(80, seed=1) > 0).astype(float)
    with pytest.warns(UserWarning, match="reached max_iter = 2"):
        two = optim.logistic_regression(
            tensor(x), tensor(y), "gradient", bias=False, lr=0.3, max_iter=2
        )
    w = np.zeros(3)
    for _ in range(2):
        w = w - 0.3 * x.T @ (scipy.special.expit(x @ w) - y) / 80
    close(two.weight, w)
    for l2 in (0.0, 3.0):
        fit = optim.logistic_regression(
            tensor(x), tensor(y), "gradient", lr=1.0, tolerance=1e-9, l2=l2
        )
        expected = logistic_solution(x, y, l2)
        close(fit.weight, expected[:-1], rtol=1e-6)
        assert fit.report.converged


def test_logistic_gradient_with_a_rate_too_large_is_told() -> None:
    x, y = normal(80, 2) * 50, (normal(80, seed=1) > 0).astype(float)
    with pytest.warns(UserWarning, match=r"lr = 10.0 is above 0\.0"):
        fit = optim.logistic_regression(tensor(x), tensor(y), "gradient", lr=10.0, max_iter=200)
    assert fit.report.loss <= math.log(2) + 1e-12


@pytest.mark.parametrize("method", ["irls", "gradient"])
def test_separable_classes_are_told(method: str) -> None:
    p = problems.boolean("or", dtype=F64)
    with pytest.warns(UserWarning, match="classes are separable.*weights grow without bound.*l2"):
        fit = optim.logistic_regression(p.inputs, p.targets[:, 0], method, max_iter=100)
    assert not fit.report.converged
    assert fit.weight.isfinite().all()
    mended = optim.logistic_regression(p.inputs, p.targets[:, 0], method, l2=1.0)
    assert mended.report.converged


def test_quasi_separable_classes_are_told() -> None:
    x, y = tensor([[0.0], [1.0], [1.0], [2.0]]), tensor([0, 0, 1, 1])
    with pytest.warns(UserWarning, match="classes are separable"):
        assert not optim.logistic_regression(x, y).report.converged
    with pytest.warns(UserWarning, match="classes are separable"):  # one class alone
        assert not optim.logistic_regression(x, tensor([1, 1, 1, 1])).report.converged


def test_confident_but_overlapping_classes_are_not_called_separable() -> None:
    x = np.r_[np.linspace(-30, -1, 30), np.linspace(1, 30, 30), 0.5, -0.5][:, None]
    y = np.r_[np.zeros(30), np.ones(30), 0, 1]
    fit = optim.logistic_regression(tensor(x), tensor(y))
    assert fit.report.converged
    p = scipy.special.expit(x[:, 0] * fit.weight.item() + fit.bias.item())
    assert np.abs(p - y).min() < 1e-6


def test_xor_leaves_logistic_regression_undecided() -> None:
    p = problems.boolean("xor", dtype=F64)
    fit = optim.logistic_regression(p.inputs, p.targets[:, 0])
    assert fit.report.converged
    assert [*fit.weight.tolist(), fit.bias.item()] == pytest.approx([0, 0, 0], abs=1e-9)


def test_dependent_columns_of_logistic_regression() -> None:
    """The Hessian is only semidefinite; the probabilities are unique all the same."""
    x, y = normal(60, 2), (normal(60, seed=1) > 0).astype(float)
    doubled = np.c_[x, x.sum(1)]
    exact = optim.logistic_regression(tensor(x), tensor(y))
    with pytest.warns(UserWarning, match="rank 2 of 3: the weights are not unique"):
        fit = optim.logistic_regression(tensor(doubled), tensor(y))
    assert fit.report.converged
    logits = x @ exact.weight.numpy() + exact.bias.item()
    np.testing.assert_allclose(doubled @ fit.weight.numpy() + fit.bias.item(), logits, rtol=1e-8)
    smallest = np.linalg.lstsq(doubled, logits - exact.bias.item(), rcond=None)[0]
    close(fit.weight, smallest, rtol=1e-8)


# --- softmax regression ---------------------------------------------------------------------------


def softmax_data() -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(0)
    x = r.normal(size=(120, 2)) + 0.5
    return x, (x @ r.normal(size=(2, 3)) + r.gumbel(size=(120, 3))).argmax(1)


def softmax_solution(x: np.ndarray, y: np.ndarray, l2: float) -> np.ndarray:
    """By SciPy: (K, D + 1), the rows adding up to zero."""
    z, target = np.c_[x, np.ones(len(x))], np.eye(3)[y]

    def value_and_gradient(v: np.ndarray) -> tuple[float, np.ndarray]:
        w = v.reshape(3, -1)
        s = z @ w.T
        a = scipy.special.softmax(s, 1)
        free = np.c_[w[:, :-1], np.zeros(3)]
        value = (scipy.special.logsumexp(s, 1) - (target * s).sum(1)).sum() + l2 / 2 * (
            free**2
        ).sum()
        return value, ((a - target).T @ z + l2 * free).ravel()

    v = scipy.optimize.minimize(
        value_and_gradient, np.zeros(3 * z.shape[1]), jac=True, options={"gtol": 1e-9}
    ).x
    return v.reshape(3, -1) - v.reshape(3, -1).mean(0)


@pytest.mark.parametrize("method", ["newton", "gradient"])
@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_softmax_regression_is_scipys(method: str, l2: float) -> None:
    x, y = softmax_data()
    options = {} if method == "newton" else {"lr": 1.0, "tolerance": 1e-9}
    fit = optim.softmax_regression(tensor(x), tensor(y), method=method, l2=l2, **options)
    expected = softmax_solution(x, y, l2)
    close(fit.weight, expected[:, :-1], rtol=1e-6, atol=1e-7)
    close(fit.bias, expected[:, -1], rtol=1e-6, atol=1e-7)
    assert fit.report.converged
    assert fit.report.iterations <= (8 if method == "newton" else 10000)
    assert fit.weight.sum(0).abs().max().item() < 1e-12


def test_two_classes_of_softmax_are_logistic_regression() -> None:
    x, y = logistic_data()
    two = optim.softmax_regression(tensor(x), tensor(y))
    one = optim.logistic_regression(tensor(x), tensor(y))
    close(two.weight[1] - two.weight[0], one.weight.numpy(), rtol=1e-7)
    assert two.report.loss == pytest.approx(one.report.loss, rel=1e-12)


def test_one_step_of_softmax_gradient() -> None:
    """W - lr (a - y)^T X / N."""
    x, y = softmax_data()
    with pytest.warns(UserWarning, match="reached max_iter = 1"):
        fit = optim.softmax_regression(
            tensor(x), tensor(y), method="gradient", bias=False, lr=0.3, max_iter=1
        )
    close(fit.weight, -0.3 * (1 / 3 - np.eye(3)[y]).T @ x / 120)


def test_separable_classes_of_softmax_are_told() -> None:
    p = problems.blobs(60, noise=0.05, generator=seeded(), dtype=F64)
    with pytest.warns(UserWarning, match="softmax_regression: the classes are separable"):
        assert not optim.softmax_regression(p.inputs, p.targets).report.converged
    assert optim.softmax_regression(p.inputs, p.targets, l2=0.1).report.converged


def test_a_class_without_examples_is_told() -> None:
    x, y = softmax_data()
    with pytest.warns(UserWarning, match="classes are separable"):
        fit = optim.softmax_regression(tensor(x), tensor(y), classes=4)
    assert fit.weight.shape == (4, 2)
