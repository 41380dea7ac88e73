"""The learning rules of linear models against NumPy, SciPy, closed forms and, if there, sklearn."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.special

import chainrule
from chainrule import optim, problems, tensor
from chainrule.curvature import hessian_matrix

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


# --- separability ---------------------------------------------------------------------------------


def divided(x: np.ndarray, y: np.ndarray) -> str:
    """By linear programs: the largest margin, and the largest sum of margins that are all >= 0."""
    b = np.c_[x, np.ones(len(x))] * y[:, None]
    bounds = [(-1, 1)] * b.shape[1]
    zero, one = np.zeros(len(b)), np.ones(len(b))
    program = scipy.optimize.linprog(
        [0] * b.shape[1] + [-1], np.c_[-b, one], zero, bounds=[*bounds, (None, 1)]
    )
    if -program.fun > 1e-9:
        return "complete"
    program = scipy.optimize.linprog(-b.sum(0), -b, zero, bounds=bounds)
    return "quasi" if -program.fun > 1e-9 else "none"


def test_separability_is_that_of_linear_programs() -> None:
    """Points on a small lattice, where all three cases are common."""
    found = []
    for seed in range(120):
        r = np.random.default_rng(seed)
        x = r.integers(0, 3, size=(r.integers(3, 9), 2)).astype(float)
        y = r.choice([-1.0, 1.0], size=len(x))
        found.append(divided(x, y))
        assert optim.separability(tensor(x), tensor(y)) == found[-1], (x, y)
    assert min(found.count(kind) for kind in ("complete", "quasi", "none")) >= 10


def test_separability_of_many_points() -> None:
    x = normal(2000, 8)
    y = np.sign(x @ normal(8, seed=1) + 0.2)
    assert optim.separability(tensor(x), tensor(y)) == "complete"
    assert optim.separability(tensor(x * np.logspace(-5, 5, 8)), tensor(y)) == "complete"
    assert optim.separability(tensor(x + 5), tensor(y), bias=False) != "complete"
    y[np.abs(x @ normal(8, seed=1)).argmax()] *= -1
    assert optim.separability(tensor(x), tensor(y)) == "none"


# --- the perceptron -------------------------------------------------------------------------------


def rosenblatt(x: np.ndarray, y: np.ndarray, lr: float, passes: int) -> tuple[np.ndarray, int]:
    """The rule, one example after the other, as in the course (a border point is a mistake)."""
    w, updates = np.zeros(x.shape[1]), 0
    for _ in range(passes):
        before = updates
        for xn, yn in zip(x, y, strict=True):
            if yn * (w @ xn) <= 0:
                w = w + lr * yn * xn
                updates += 1
        if updates == before:
            break
    return w, updates


@pytest.mark.parametrize("bias", [True, False])
def test_online_perceptron_is_the_rule(bias: bool) -> None:
    x = normal(40, 3)
    y = np.sign(x @ [1.0, -2, 0.5])
    fit = optim.perceptron(tensor(x), tensor(y), 0.5, bias=bias)
    w, updates = rosenblatt(np.c_[x, np.ones(40)] if bias else x, y, 0.5, 1000)
    close(fit.weight, w[:3], atol=1e-10)
    assert fit.report.updates == updates > 1
    assert fit.report.converged
    assert (np.sign(x @ fit.weight.numpy() + (fit.bias.item() if bias else 0)) == y).all()


def test_batch_perceptron_adds_all_mistakes() -> None:
    x = normal(30, 2)
    y = np.sign(x @ [1.0, 1])
    fit = optim.perceptron(tensor(x), tensor(y), online=False, bias=False)
    w, steps = np.zeros(2), 0
    while (wrong := y * (x @ w) <= 0).any():
        w, steps = w + (y[wrong, None] * x[wrong]).sum(0), steps + 1
    close(fit.weight, w)
    assert fit.report.updates == steps


def test_separable_data_need_finitely_many_updates() -> None:
    """At most (R / margin)^2 (Novikoff)."""
    for seed in range(5):
        x = normal(60, 2, seed=seed)
        direction = np.array([0.6, 0.8])
        x = x[np.abs(x @ direction) > 0.1]
        y = np.sign(x @ direction)
        report = optim.perceptron(tensor(x), tensor(y), bias=False).report
        margin = np.abs(x @ direction).min()
        assert report.converged
        assert report.updates <= (np.linalg.norm(x, axis=1).max() / margin) ** 2


def test_the_perceptron_leaves_zero() -> None:
    """With sign(0) = 0 taken for 'no mistake' it never would."""
    fit = optim.perceptron(tensor([[1.0], [2.0]]), tensor([1, 1]), bias=False)
    assert fit.weight.item() == 1
    assert fit.report.updates == 1


def test_without_offset_the_perceptron_is_not_translation_invariant() -> None:
    x, y = tensor([[1.0], [2.0], [3.0], [4.0]]), tensor([-1, -1, 1, 1])
    assert optim.perceptron(x - 2.5, y, bias=False).report.converged
    assert optim.perceptron(x, y).report.converged
    with pytest.warns(UserWarning, match="not linearly separable"):
        assert not optim.perceptron(x, y, bias=False).report.converged


@pytest.mark.parametrize("name", ["or", "and", "and1", "and2", "nor", "nand", "xor", "xnor"])
@pytest.mark.parametrize("online", [True, False], ids=["online", "batch"])
def test_the_perceptron_learns_all_boolean_functions_but_two(name: str, online: bool) -> None:
    """XOR's last label is 0; with 1, as once printed, it would be OR, which is learned."""
    p = problems.boolean(name, signed=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if p.known["separable"] else "ignore")
        fit = optim.perceptron(p.inputs, p.targets[:, 0], online=online)
    assert fit.report.converged == p.known["separable"]
    assert (fit.report.mistakes == 0) == p.known["separable"]


def test_data_that_are_not_separable_are_told_at_once() -> None:
    p = problems.boolean("xor", signed=True)
    with pytest.warns(
        UserWarning, match="perceptron: the classes are not linearly separable.*pock"
    ):
        report = optim.perceptron(p.inputs, p.targets[:, 0], max_iter=10**9).report
    assert report.iterations == 10
    with pytest.warns(UserWarning, match="not linearly separable.* after 3 passes"):
        assert optim.perceptron(p.inputs, p.targets[:, 0], max_iter=3).report.iterations == 3


def test_too_few_passes_are_told_apart_from_hopeless_ones() -> None:
    x = np.array([[1.0, 1.0], [1.0, 1.001], [0.5, 0.5], [0.5, 0.5004]])
    y = tensor([1, -1, 1, -1])
    with pytest.warns(UserWarning, match="max_iter = 20 .*are separable, more passes will succeed"):
        assert not optim.perceptron(tensor(x), y, max_iter=20, bias=False).report.converged


def test_the_pocket_keeps_the_best() -> None:
    x = normal(100, 2)
    y = np.sign(x @ [1.0, -1] + 0.3)
    y[:5] *= -1

    def run(**options: Any) -> optim.LinearFit:
        with pytest.warns(UserWarning, match="not linearly separable"):
            return optim.perceptron(tensor(x), tensor(y), max_iter=30, **options)

    pocket = run(pocket=True, generator=seeded())
    scores = y * (x @ pocket.weight.numpy() + pocket.bias.item())
    assert pocket.report.mistakes == (scores <= 0).sum() <= 6
    assert run().report.mistakes > pocket.report.mistakes
    assert pocket.report.loss == pytest.approx(np.maximum(-scores, 0).mean())
    assert run(pocket=True, generator=seeded()).weight.tolist() == pocket.weight.tolist()
    assert run(pocket=True, online=False).report.mistakes <= 15


def test_shuffled_passes_depend_on_the_seed() -> None:
    x = normal(60, 3)
    y = np.sign(x @ [1.0, 2, 3])
    weights = [
        optim.perceptron(tensor(x), tensor(y), shuffle=True, generator=seeded(s)).weight.tolist()
        for s in (0, 0, 1)
    ]
    assert weights[0] == weights[1] != weights[2]


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
