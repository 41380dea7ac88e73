"""Least squares, ridge, the delta rule, and Hessians in closed form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import optim, tensor
from chainrule.curvature import hessian_matrix


F64 = chainrule.float64


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def close(got: Any, expected: Any, rtol: float = 1e-9, atol: float = 1e-12) -> None:
    np.testing.assert_allclose(got.numpy(), expected, rtol=rtol, atol=atol)


# --- least squares and ridge ----------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("outputs", [(), (3,)], ids=["one", "three"])
def test_least_squares_is_numpys(bias: bool, outputs: tuple[int, ...]) -> None:
    x, y = normal(40, 5) + 1, normal(40, *outputs, seed=1)
    fit = optim.least_squares(tensor(x), tensor(y), bias=bias)
    z = np.c_[x, np.ones(40)] if bias else x
    expected = np.linalg.lstsq(z, y, rcond=None)[0]
    close(fit.weight, expected[:5].T)
    if bias:
        close(fit.bias, expected[5])
    else:
        assert fit.bias is None
    assert fit.report.converged
    assert fit.report.unique
    assert fit.report.loss == pytest.approx(((z @ expected - y) ** 2).mean(), rel=1e-12)


def test_least_squares_is_stable() -> None:
    """Columns of sizes 1e-6 to 1e6 and a large offset: X^T X would lose everything."""
    x = normal(50, 4) * [1e-6, 1, 1e3, 1e6] + [0, 1e5, 0, 0]
    w = np.array([1e6, 2.0, -3e-3, 4e-6])
    fit = optim.least_squares(tensor(x), tensor(x @ w + 7))
    close(fit.weight, w, rtol=1e-7)
    assert fit.report.unique
    single = optim.least_squares(tensor(normal(50, 2) * [1e-6, 1e6]).float(), tensor(normal(50)))
    assert single.weight.dtype == chainrule.float32
    assert single.report.unique


def test_normal_equations_hold() -> None:
    """X^T (X w - y) = 0: the gradient is the prediction minus the label, times the input."""
    x, y = normal(30, 4), normal(30, seed=1)
    w = optim.least_squares(tensor(x), tensor(y), bias=False).weight.numpy()
    assert np.abs(x.T @ (x @ w - y)).max() < 1e-12
    pseudo = np.linalg.inv(x.T @ x) @ x.T
    np.testing.assert_allclose(w, pseudo @ y, rtol=1e-10)
    np.testing.assert_allclose(pseudo @ x, np.eye(4), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dependent_columns_are_told(dtype: str) -> None:
    x = normal(30, 4).astype(dtype)
    x[:, 3] = x[:, 0] - 2 * x[:, 1]
    y = normal(30, seed=1).astype(dtype)
    with pytest.warns(UserWarning, match="least_squares: .* rank 3 of 4: the weights are not uniq"):
        fit = optim.least_squares(tensor(x), tensor(y), bias=False)
    expected = np.linalg.pinv(x.astype(float), rcond=1e-5) @ y
    close(fit.weight, expected, rtol=1e-4 if dtype == "float32" else 1e-9, atol=1e-6)
    assert not fit.report.unique


def test_more_columns_than_rows_give_the_smallest_weights() -> None:
    x, y = normal(4, 7) * np.logspace(-2, 2, 7), normal(4, seed=1)
    with pytest.warns(UserWarning, match="rank 4 of 7"):
        fit = optim.least_squares(tensor(x), tensor(y), bias=False)
    close(fit.weight, np.linalg.lstsq(x, y, rcond=None)[0], rtol=1e-8)
    with pytest.warns(UserWarning, match="rank 3 of 7"):
        fit = optim.least_squares(tensor(x), tensor(y))
    centered = np.linalg.lstsq(x - x.mean(0), y - y.mean(), rcond=None)[0]
    close(fit.weight, centered, rtol=1e-7)
    assert fit.report.loss < 1e-20


def test_a_constant_column_beside_the_bias_is_told() -> None:
    x = np.c_[normal(10), np.full(10, 0.3)]
    with pytest.warns(UserWarning, match="rank 1 of 2"):
        fit = optim.least_squares(tensor(x), tensor(3 * x[:, 0] + 2))
    close(fit.weight, [3, 0], atol=1e-9)


@pytest.mark.parametrize("bias", [True, False])
def test_ridge_solves_its_equations(bias: bool) -> None:
    x, y = normal(8, 12) + 2, normal(8, 2, seed=1) + 5
    fit = optim.ridge(tensor(x), tensor(y), 0.7, bias)
    z = np.c_[x, np.ones(8)] if bias else x
    penalty = 0.7 * np.eye(z.shape[1])
    if bias:
        penalty[-1, -1] = 0
    expected = np.linalg.solve(z.T @ z + penalty, z.T @ y)
    close(fit.weight, expected[:12].T, rtol=1e-8)
    if bias:
        close(fit.bias, expected[12], rtol=1e-8)
    assert fit.report.unique


def test_ridge_tends_to_least_squares_and_to_zero() -> None:
    x, y = tensor(normal(20, 3)), tensor(normal(20, seed=1))
    exact = optim.least_squares(x, y)
    close(optim.ridge(x, y, 1e-9).weight, exact.weight.numpy(), rtol=1e-8)
    close(optim.ridge(x, y, 0.0).weight, exact.weight.numpy(), rtol=1e-14)
    assert optim.ridge(x, y, 1e9).weight.abs().max().item() < 1e-7


# --- the delta rule -------------------------------------------------------------------------------


def test_one_step_of_the_delta_rule() -> None:
    """w - lr X^T (X w - y), as columns; with the mean, divided by N."""
    x, y = normal(6, 3), normal(6, seed=1)
    for reduction, by in (("sum", 1.0), ("mean", 1 / 6)):
        with pytest.warns(UserWarning, match="reached max_iter = 2"):
            fit = optim.delta_rule(
                tensor(x), tensor(y), 0.02, max_iter=2, bias=False, reduction=reduction
            )
        w = np.zeros(3)
        for _ in range(2):
            w = w - 0.02 * by * x.T @ (x @ w - y)
        close(fit.weight, w)


@pytest.mark.parametrize("outputs", [(), (2,)], ids=["one", "two"])
def test_delta_rule_reaches_least_squares(outputs: tuple[int, ...]) -> None:
    x, y = normal(40, 3), normal(40, *outputs, seed=1)
    fit = optim.delta_rule(tensor(x), tensor(y), lr=0.5, max_iter=2000, tolerance=1e-11)
    exact = optim.least_squares(tensor(x), tensor(y))
    close(fit.weight, exact.weight.numpy(), rtol=1e-8)
    close(fit.bias, exact.bias.numpy(), rtol=1e-8)
    assert fit.report.converged
    assert "gradient is zero" in fit.report.reason


def test_example_17_of_the_course() -> None:
    """NumPy's seed 42, four fifths of the points: w = 17.1042, b = 23.7502 (23.7503 in float32)."""
    r = np.random.RandomState(42)
    x = r.rand(200, 1)
    y = 14.7351129 + 10.1842550 * np.exp(x) + 0.1 * r.randn(200, 1)
    order = np.arange(200)
    r.shuffle(order)
    x, y = tensor(x[order[:160]]), tensor(y[order[:160], 0])
    fits = [
        optim.least_squares(x, y),
        optim.delta_rule(x, y, 0.2, max_iter=1000, tolerance=1e-6),  # the loss is half the course's
    ]
    for fit in fits:
        assert fit.weight.item() == pytest.approx(17.1042, abs=5e-5)
        assert fit.bias.item() == pytest.approx(23.7502, abs=5e-5)


def test_the_step_bound_is_exact() -> None:
    x, y = normal(20, 2), normal(20, seed=1)
    bound = 2 / np.linalg.eigvalsh(x.T @ x / 20).max()
    fit = optim.delta_rule(tensor(x), tensor(y), 0.99 * bound, max_iter=5000, bias=False)
    assert fit.report.converged
    with pytest.warns(UserWarning, match=f"it diverged.* is above {bound:.4g}"):
        worse = optim.delta_rule(tensor(x), tensor(y), 1.5 * bound, bias=False)
    assert worse.report.loss <= (y**2).mean() * (1 + 1e-12)
    assert worse.weight.isfinite().all()


def test_online_delta_rule() -> None:
    """One example after the other; consistent equations are solved exactly."""
    x = normal(10, 3)
    w = np.zeros(3)
    for xn, yn in zip(x, x[:, 0] - 1, strict=True):
        w = w - 0.1 * (w @ xn - yn) * xn
    with pytest.warns(UserWarning, match="reached max_iter = 1"):
        one = optim.delta_rule(tensor(x), tensor(x[:, 0] - 1), online=True, bias=False, max_iter=1)
    close(one.weight, w)
    fit = optim.delta_rule(tensor(x), tensor(x @ [1.0, -2, 3] + 0.5), online=True)
    close(fit.weight, [1, -2, 3], atol=1e-6)
    assert fit.bias.item() == pytest.approx(0.5, abs=1e-6)
    assert fit.report.reason == "a pass over the data no longer changes the weights"
    many = optim.delta_rule(tensor(x), tensor(x @ normal(3, 2, seed=2)), online=True)
    close(many.weight, normal(3, 2, seed=2).T, atol=1e-5)


def test_online_delta_rule_that_diverges_is_told() -> None:
    with pytest.warns(UserWarning, match="delta_rule: it diverged; lr = 5.0 may be too large"):
        fit = optim.delta_rule(tensor(normal(10, 2)), tensor(normal(10)), lr=5.0, online=True)
    assert fit.weight.abs().max().item() == 0


# --- closed-form Hessians -------------------------------------------------------------------------


def test_hessians_are_those_of_autodiff() -> None:
    x, y = tensor(normal(7, 3)), tensor(normal(7, seed=1))
    assert np.allclose(
        optim.least_squares_hessian(x),
        hessian_matrix(lambda w: ((x @ w - y) ** 2).sum() / 2, chainrule.zeros(3, dtype=F64)),
    )
    labels, classes = (y > 0).double(), tensor([0, 1, 2, 3, 0, 1, 2])

    def logistic(v: Any) -> Any:
        s = x @ v[:3] + v[3]
        return chainrule.binary_cross_entropy_with_logits(s, labels, reduction="sum")

    def softmax(v: Any) -> Any:
        w = v.reshape(4, 4)
        return chainrule.cross_entropy(x @ w[:, :3].mT + w[:, 3], classes, reduction="sum")

    v = tensor(normal(4, seed=2))
    close(optim.logistic_hessian(x, v[:3], v[3]), hessian_matrix(logistic, v).numpy(), atol=1e-12)
    v = tensor(normal(16, seed=3))
    w = v.reshape(4, 4)
    h = optim.softmax_hessian(x, w[:, :3], w[:, 3])
    close(h, hessian_matrix(softmax, v).numpy(), atol=1e-12)
    assert optim.softmax_hessian(x, w[:, :3]).shape == (12, 12)
    assert optim.least_squares_hessian(x, bias=True).shape == (4, 4)


def test_hessians_are_semidefinite_and_definite_with_a_penalty() -> None:
    """Positive definite only if x has full column rank: here it has rank 2 of 3."""
    data = normal(6, 3)
    data[:, 2] = data[:, 0] + data[:, 1]
    x = tensor(data)
    for h in (
        optim.least_squares_hessian(x),
        optim.logistic_hessian(x, tensor(normal(3, seed=1))),
        optim.softmax_hessian(x, tensor(normal(2, 3, seed=1))),
    ):
        values = np.linalg.eigvalsh(h.numpy())
        assert values.min() == pytest.approx(0, abs=1e-12)
        assert values.max() > 0.1
        assert np.linalg.eigvalsh(h.numpy() + np.eye(len(values))).min() > 1 - 1e-12


# --- types and errors -----------------------------------------------------------------------------


RULES: dict[str, Callable[..., Any]] = {
    "least_squares": optim.least_squares,
    "ridge": optim.ridge,
    "delta_rule": optim.delta_rule,
    "perceptron": optim.perceptron,
    "logistic_regression": optim.logistic_regression,
    "softmax_regression": optim.softmax_regression,
    "separability": optim.separability,
}


@pytest.mark.parametrize("name", RULES)
def test_bad_data(name: str) -> None:
    rule, x, y = RULES[name], chainrule.ones(4, 2), chainrule.ones(4)
    with pytest.raises(
        ValueError, match=rf"{name}: expected x \(N, D\).* shapes \(4,\) and \(4,\)"
    ):
        rule(y, y)
    with pytest.raises(ValueError, match=rf"{name}: expected .* the same N, .*\(4, 2\) and \(3,\)"):
        rule(x, y[:3])
    with pytest.raises(ValueError, match=rf"{name}: the data are empty, of shape \(0, 2\)"):
        rule(x[:0], y[:0])
    with pytest.raises(ValueError, match=rf"{name}: the data are empty, of shape \(4, 0\)"):
        rule(x[:, :0], y)
    with pytest.raises(ValueError, match=rf"{name}: x has values that are NaN or infinite"):
        rule(x * math.nan, y)
    with pytest.raises(ValueError, match=rf"{name}: y has values that are NaN or infinite"):
        rule(x, y * math.inf)
    with pytest.raises(TypeError, match=rf"{name}: x must be a tensor, got list"):
        rule([[1.0]], y)
    with pytest.raises(TypeError, match=rf"{name}: y must be a tensor, got ndarray"):
        rule(x, np.ones(4))


@pytest.mark.parametrize(
    ("name", "labels", "message"),
    [
        ("perceptron", [0, 1], "must be -1 and 1, found 0.0; use 2 \\* y - 1"),
        ("perceptron", [-1, 2], "must be -1 and 1, found 2.0$"),
        ("separability", [1, 0.5], "must be -1 and 1, found 0.5$"),
        ("logistic_regression", [-1, 1], r"must be 0 and 1, found -1.0; use \(y \+ 1\) / 2"),
        ("logistic_regression", [0, 3], "must be 0 and 1, found 3.0$"),
        ("softmax_regression", [-1, 1], "class numbers 0, 1, ..., found values from -1.0 to 1.0"),
        ("softmax_regression", [0.5, 1], "class numbers 0, 1, ..., found values from 0.5 to 1.0"),
    ],
)
def test_bad_labels(name: str, labels: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: .*{message}"):
        RULES[name](tensor([[0.0], [1.0]]), tensor(labels))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: optim.ridge(x, y, -1.0), "ridge: invalid l2: -1.0"),
        (lambda x, y: optim.delta_rule(x, y, -0.1), "delta_rule: invalid lr: -0.1"),
        (lambda x, y: optim.delta_rule(x, y, max_iter=0), "delta_rule: invalid max_iter: 0"),
        (lambda x, y: optim.delta_rule(x, y, reduction="none"), "'mean' or 'sum', got 'none'"),
        (lambda x, y: optim.perceptron(x, y, 0.0), "perceptron: invalid lr: 0.0"),
        (lambda x, y: optim.logistic_regression(x, y, "newton"), "'irls' or 'gradient', got 'newt"),
        (lambda x, y: optim.logistic_regression(x, y, l2=-1.0), "invalid l2: -1.0"),
        (lambda x, y: optim.softmax_regression(x, y, method="irls"), "'newton' or 'gradient', got"),
        (lambda x, y: optim.softmax_regression(x, y, 1), "must lie below classes = 1, found 1"),
        (lambda x, y: optim.softmax_regression(x, y[:, None]), r"y \(N,\) with the same N"),
    ],
)
def test_bad_settings(call: Callable[..., Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(tensor([[0.0], [1.0]]), tensor([0, 1]))


def test_types_of_weights() -> None:
    x, y = tensor([[0.0], [1.0], [2.0], [3.0]]), tensor([0, 1, 0, 1])
    for dtype, rule in itertools.product(
        (chainrule.float32, F64), (optim.least_squares, optim.logistic_regression)
    ):
        fit = rule(x.to(dtype).requires_grad_(), y)
        assert fit.weight.dtype == fit.bias.dtype == dtype
        assert not fit.weight.requires_grad
    assert optim.least_squares(x.long(), y).weight.dtype == chainrule.get_default_dtype()
    assert optim.perceptron(x, tensor([-1, -1, 1, 1])).weight.shape == (1,)
