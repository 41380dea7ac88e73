"""Newton's method and its relatives: closed forms, SciPy, and what they do when they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from helpers import assert_close

import chainrule
from chainrule import Tensor, nn, optim
from chainrule.optim.second_derivatives import SecondOrderObjective

METHODS = [optim.Newton, optim.DampedNewton, optim.SaddleFreeNewton]


def parameter(*values: float) -> Tensor:
    return chainrule.tensor(values, dtype=chainrule.float64, requires_grad=True)


def rosenbrock(w: Tensor) -> Tensor:
    return (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2


def positive_matrix(n: int) -> np.ndarray:
    a = np.random.default_rng(1).normal(size=(n, n))
    return a @ a.T + np.eye(n)


# --- the derivatives ------------------------------------------------------------------------------


def test_hessian_and_products_of_a_closure() -> None:
    """f = sum(w)^3 / 6 + sum_i b_i w_i^2 has the Hessian sum(w) 1 1^T + 2 diag(b)."""
    w, v = parameter(*np.linspace(-1, 2, 70)), parameter(0.5, 1.5)
    b = np.linspace(1, 3, 72)

    def closure() -> Tensor:
        both = chainrule.cat([w, v])
        return both.sum() ** 3 / 6 + (chainrule.tensor(b) * both**2).sum()

    f = SecondOrderObjective([w, v], closure, "test")
    total = np.linspace(-1, 2, 70).sum() + 2
    expected = total + 2 * np.diag(b)
    assert_close(f.hessian(), expected)
    direction = np.sin(np.arange(72))
    assert_close(f.hessian_product(chainrule.tensor(direction)), expected @ direction)
    assert (f.evaluations, f.products) == (1, 73)


def test_the_hessian_of_a_linear_loss_is_zero() -> None:
    w = parameter(1.0, 2.0)
    f = SecondOrderObjective([w], lambda: (3 * w).sum(), "test")
    assert_close(f.hessian(), np.zeros((2, 2)))


# --- where they arrive ----------------------------------------------------------------------------


def test_newton_solves_a_quadratic_in_one_step() -> None:
    a, b = positive_matrix(6), np.arange(6.0)
    w = parameter(*np.ones(6))
    optimizer = optim.Newton([w])
    half = lambda: 0.5 * w @ chainrule.tensor(a) @ w - chainrule.tensor(b) @ w  # noqa: E731
    before = optimizer.step(half)
    assert_close(before, np.float64(0.5 * a.sum() - b.sum()))
    assert_close(w, np.linalg.solve(a, b))
    assert optimizer.report.iterations == 1
    assert optimizer.report.products == 6  # one for each column of the Hessian


@pytest.mark.parametrize("method", METHODS)
def test_rosenbrock(method: Callable[..., Any]) -> None:
    w = parameter(-1.2, 1.0)
    report = method([w]).run(lambda: rosenbrock(w), max_iter=100)
    assert_close(w, np.ones(2), rtol=1e-7)
    assert report.converged
    assert report.iterations < 60
    assert report.loss < 1e-15


@pytest.mark.parametrize("method", METHODS)
def test_minimum_of_scipy(method: Callable[..., Any]) -> None:
    """A smooth convex function without a formula for its minimum, several parameters."""
    a = np.random.default_rng(0).normal(size=(30, 5))

    def f(w: np.ndarray) -> float:
        return float(np.logaddexp(0, a @ w).sum() + 0.5 * (w**2).sum() + np.cosh(w).sum())

    expected = scipy.optimize.minimize(f, np.zeros(5), method="BFGS", options={"gtol": 1e-7})
    u, v = parameter(0.0, 0.0), parameter(0.0, 0.0, 0.0)

    def closure() -> Tensor:
        w = chainrule.cat([u, v])
        softplus = nn.functional.softplus(chainrule.tensor(a) @ w).sum()
        return softplus + 0.5 * (w**2).sum() + w.cosh().sum()

    report = method([u, v]).run(closure, max_iter=50)
    assert_close(chainrule.cat([u, v]), expected.x, rtol=1e-4, atol=1e-5)
    assert report.loss <= expected.fun + 1e-12
    assert report.converged


def test_newton_on_logistic_regression_is_irls() -> None:
    """w <- w - (X^T R X)^-1 X^T (a - y) with R = diag a (1 - a), step for step."""
    r = np.random.default_rng(3)
    x = np.column_stack([np.ones(80), r.normal(size=(80, 3))])
    y = (r.random(80) < 1 / (1 + np.exp(-x @ np.array([0.3, 1.0, -2.0, 0.5])))).astype(float)
    w, expected = parameter(*np.zeros(4)), np.zeros(4)
    optimizer = optim.Newton([w], line_search_fn=None)
    loss = nn.BCEWithLogitsLoss(reduction="sum")
    closure = lambda: loss(chainrule.tensor(x) @ w, chainrule.tensor(y))  # noqa: E731
    for _ in range(6):
        optimizer.step(closure)
        a = 1 / (1 + np.exp(-x @ expected))
        expected -= np.linalg.solve(x.T @ ((a * (1 - a))[:, None] * x), x.T @ (a - y))
        assert_close(w, expected, rtol=1e-9)
    assert np.abs(x.T @ (1 / (1 + np.exp(-x @ expected)) - y)).max() < 1e-9


def test_a_saddle_attracts_newton_and_not_the_others() -> None:
    """x^2 - y^2 + y^4 / 2 has a saddle at (0, 0) and minima at (0, +-1).

    Newton's second step would lead still closer to the saddle, and uphill: it is not taken.
    """
    ends = {}
    for method in METHODS:
        w = parameter(1.0, 0.1)
        method([w]).run(lambda w=w: w[0] ** 2 - w[1] ** 2 + w[1] ** 4 / 2)
        ends[method.__name__] = w.detach().numpy()
    assert_close(ends["Newton"], np.zeros(2), atol=0.01)
    assert_close(ends["DampedNewton"], np.array([0.0, 1.0]), atol=1e-7)
    assert_close(ends["SaddleFreeNewton"], np.array([0.0, 1.0]), atol=1e-7)


def test_saddle_free_newton_doubles_the_distance_from_a_quadratic_saddle() -> None:
    """On x^2 - y^2 the step is d = -(|H| + mu)^-1 g: x is done at once, y doubles."""
    w = parameter(1.0, 0.01)
    optimizer = optim.SaddleFreeNewton([w], mu=1e-14)
    optimizer.step(lambda: w[0] ** 2 - w[1] ** 2)
    assert_close(w, np.array([0.0, 0.02]), atol=1e-12)


# --- what they do when a step fails ---------------------------------------------------------------


def test_newton_is_shortened_or_taken_back_where_it_diverges() -> None:
    """On sqrt(1 + w^2) Newton's step leads from w to -w^3."""
    f = lambda w: (1 + w**2).sqrt().sum()  # noqa: E731
    w = parameter(2.0)
    optimizer = optim.Newton([w], line_search_fn=None)
    optimizer.step(lambda: f(w))
    assert w.item() == 2.0
    assert optimizer.report.reason == "no lower loss was found"
    assert not optimizer.report.converged
    report = optim.Newton([w]).run(lambda: f(w))
    assert report.converged
    assert abs(w.item()) < 1e-7


def test_newton_does_not_climb() -> None:
    """Beyond the inflection of -cos the step leads uphill, to the maximum at pi."""
    w = parameter(2.8)
    optimizer = optim.Newton([w])
    optimizer.step(lambda: -w.cos().sum())
    assert w.item() == 2.8
    assert optimizer.report.reason == "no lower loss was found"


def test_damping_grows_until_the_loss_falls_and_shrinks_after() -> None:
    """The Hessian of -cos at 2.8 is -0.94: mu = 1 is the first of 0.001, 0.01, ... above it."""
    w = parameter(2.8)
    optimizer = optim.DampedNewton([w])
    optimizer.step(lambda: -w.cos().sum())
    step = -np.sin(2.8) / (np.cos(2.8) + 1)
    trial = 2.8 + step
    mu = 1.0
    while -np.cos(trial) > -np.cos(2.8):
        mu *= 10
        trial = 2.8 - np.sin(2.8) / (np.cos(2.8) + mu)
    assert_close(w, np.array([trial]))
    assert optimizer.state_dict()["state"][0]["mu"] == pytest.approx(mu * 0.1)
    assert optimizer.run(lambda: -w.cos().sum()).converged
    assert np.cos(w.item()) == pytest.approx(1)


@pytest.mark.parametrize("method", [optim.DampedNewton, optim.SaddleFreeNewton])
def test_a_singular_hessian_is_no_obstacle_to_the_damped(method: Callable[..., Any]) -> None:
    w = parameter(1.0, 3.0)
    report = method([w]).run(lambda: (w.sum() - 1) ** 2)
    assert report.converged
    assert_close(w.sum(), np.float64(1.0), rtol=1e-7)


def test_a_step_into_nowhere_is_not_taken() -> None:
    """The logarithm of a negative number is NaN; w - ln w has its minimum at 1."""
    for method in METHODS:
        w = parameter(5.0)
        report = method([w]).run(lambda w=w: (w - w.log()).sum())
        assert_close(w, np.ones(1), rtol=1e-7)
        assert report.converged


def test_the_last_digits_count_as_convergence() -> None:
    """In single precision the gradient does not reach tolerance_grad."""
    for method in METHODS:
        w = chainrule.tensor([0.5, 2.0], requires_grad=True)
        report = method([w], tolerance_grad=0.0).run(lambda w=w: (w.exp() - 3 * w).sum())
        assert report.converged, report
        assert_close(w, np.log(np.full(2, 3.0, np.float32)), rtol=2e-4)


# --- errors ---------------------------------------------------------------------------------------


def test_a_singular_hessian_is_an_error_that_names_the_remedy() -> None:
    w = parameter(1.0, 3.0)
    with pytest.raises(RuntimeError, match=r"singular, its smallest eigenvalue is .*DampedNewton"):
        optim.Newton([w]).step(lambda: (w.sum() - 1) ** 2)
    assert w.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("method", [*METHODS, optim.HessianFree])
def test_a_closure_must_leave_its_graph(method: Callable[..., Any]) -> None:
    w = parameter(1.0)

    def with_backward() -> Tensor:
        loss = (w**2).sum()
        loss.backward()
        return loss

    def without_graph() -> Tensor:
        with chainrule.no_grad():
            return (w**2).sum()

    with pytest.raises(RuntimeError, match=r"called backward\(\), which frees the graph"):
        method([w]).step(with_backward)
    with pytest.raises(RuntimeError, match="must depend on the parameters"):
        method([w]).step(without_graph)
    with pytest.raises(RuntimeError, match=r"as a Tensor with its graph, got float"):
        method([w]).step(lambda: (w**2).sum().item())
    with pytest.raises(RuntimeError, match="the closure returned None"):
        method([w]).step(lambda: None)
    with pytest.raises(ValueError, match="needs a closure"):
        method([w]).step()
    assert w.item() == 1.0


def test_a_loss_of_several_numbers_is_an_error() -> None:
    w = parameter(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"return one number, the loss, got a tensor of shape"):
        optim.Newton([w]).step(lambda: w**2)


def test_a_hessian_that_is_not_finite_is_an_error() -> None:
    """|w|^1.5 has the gradient 0 and an infinite second derivative at 0."""
    w = parameter(0.0, 1.0)
    with pytest.raises(RuntimeError, match="the Hessian has entries that are NaN or infinite"):
        optim.DampedNewton([w]).step(lambda: (w**1.5).sum())
    assert w.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mu": 0.0}, "invalid mu"),
        ({"increase": 1.0}, "invalid increase"),
        ({"decrease": 1.0}, "invalid decrease"),
        ({"tolerance_grad": -1.0}, "invalid tolerance_grad"),
    ],
)
def test_settings_are_checked(settings: dict[str, float], message: str) -> None:
    for method in (optim.DampedNewton, optim.SaddleFreeNewton, optim.LevenbergMarquardt):
        with pytest.raises(ValueError, match=f"{method.__name__}: {message}"):
            method([parameter(1.0)], **settings)


def test_line_search_is_checked() -> None:
    with pytest.raises(ValueError, match="line_search_fn must be None or one of 'backtracking'"):
        optim.Newton([parameter(1.0)], line_search_fn="golden")


def test_frozen_parameters_stay() -> None:
    w, frozen = parameter(3.0), parameter(2.0).detach()
    optim.Newton([frozen, w]).step(lambda: ((w - frozen) ** 2).sum())
    assert (w.item(), frozen.item()) == (2.0, 2.0)
