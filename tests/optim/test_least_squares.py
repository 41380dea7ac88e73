"""Gauss-Newton and Levenberg-Marquardt: closed forms, SciPy, and evaluations against Adam's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from helpers import assert_close

import chainrule
from chainrule import Tensor, nn, optim
from chainrule.optim.second_derivatives import Residuals

METHODS = [optim.GaussNewton, optim.LevenbergMarquardt]
T = np.linspace(0, 2, 40)


def parameter(*values: float) -> Tensor:
    return chainrule.tensor(values, dtype=chainrule.float64, requires_grad=True)


def decay_data() -> np.ndarray:
    noise = np.random.default_rng(0).normal(size=40)
    return 2.5 * np.exp(-1.3 * T) + 0.5 + 0.05 * noise


def decay(w: Any, t: Any, exp: Callable[[Any], Any]) -> Any:
    return w[0] * exp(-w[1] * t) + w[2]


# --- Jacobians ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [2, 5, 90])
def test_jacobian_and_products_in_both_modes(rows: int) -> None:
    """r = tanh(A w) has J = diag(1 - r^2) A; two rows are fewer than parameters, 90 are more."""
    a = np.random.default_rng(0).normal(size=(rows, 5))
    w0 = np.linspace(-1, 1, 5)
    u, v = parameter(*w0[:2]), parameter(*w0[2:])
    f = Residuals(
        [u, v], lambda: (chainrule.tensor(a) @ chainrule.cat([u, v])).tanh().reshape(1, -1), "test"
    )
    expected = (1 - np.tanh(a @ w0) ** 2)[:, None] * a
    d = np.array([1.0, -2.0, 0.5, 3.0, 1.0])
    assert_close(f.jacobian(), expected)
    assert f.products == min(rows, 5)
    assert_close(f.residuals(), np.tanh(a @ w0))
    assert_close(f.jacobian_product(chainrule.tensor(d)), (expected @ d)[None])
    assert_close(f.gauss_newton_product(chainrule.tensor(d)), expected.T @ (expected @ d))
    assert_close(f.value_and_gradient()[1], expected.T @ np.tanh(a @ w0))
    assert f.evaluations == 1


# --- where they arrive ----------------------------------------------------------------------------


def test_gauss_newton_fits_a_line_in_one_step() -> None:
    r = np.random.default_rng(0)
    x = r.normal(size=50)
    y = 3 * x + 2 + 0.1 * r.normal(size=50)
    model = nn.Linear(1, 1, dtype=chainrule.float64)
    inputs, targets = chainrule.tensor(x[:, None]), chainrule.tensor(y[:, None])
    optimizer = optim.GaussNewton(model.parameters())
    optimizer.step(lambda: model(inputs) - targets)
    slope, offset = np.polyfit(x, y, 1)
    assert_close(model.weight, np.array([[slope]]), rtol=1e-10)
    assert_close(model.bias, np.array([offset]), rtol=1e-10)
    assert optimizer.report.loss == pytest.approx(((slope * x + offset - y) ** 2).sum() / 2)
    assert (optimizer.report.evaluations, optimizer.report.products) == (2, 2)


@pytest.mark.parametrize("method", METHODS)
def test_minimum_of_scipy(method: Callable[..., Any]) -> None:
    y = decay_data()
    start = np.array([1.0, 0.5, 0.0])
    expected = scipy.optimize.least_squares(
        lambda w: decay(w, T, np.exp) - y, start, xtol=1e-14, ftol=1e-14, gtol=1e-14
    )
    w = parameter(*start)
    residuals = lambda: decay(w, chainrule.tensor(T), chainrule.exp) - chainrule.tensor(y)  # noqa: E731
    report = method([w]).run(residuals)
    assert_close(w, expected.x, rtol=1e-6)
    assert report.loss == pytest.approx(expected.cost, rel=1e-12)
    assert report.converged
    assert report.iterations < 30


def test_the_step_of_levenberg_and_marquardt() -> None:
    """d = -(J^T J + mu D^2)^-1 J^T r, with D = 1 or the lengths of the columns of J."""
    y, w0, mu = decay_data(), np.array([2.0, 1.0, 0.3]), 0.05
    e = np.exp(-w0[1] * T)
    j = np.column_stack([e, -w0[0] * T * e, np.ones(40)])
    r = decay(w0, T, np.exp) - y
    for scaling in (False, True):
        w = parameter(*w0)
        optimizer = optim.LevenbergMarquardt([w], mu=mu, scaling=scaling)
        optimizer.step(
            lambda w=w: decay(w, chainrule.tensor(T), chainrule.exp) - chainrule.tensor(y)
        )
        d2 = np.diag((j * j).sum(0)) if scaling else np.eye(3)
        assert_close(w, w0 - np.linalg.solve(j.T @ j + mu * d2, j.T @ r), rtol=1e-9)
        assert optimizer.state_dict()["state"][0]["mu"] == pytest.approx(mu * 0.1)


def test_scaling_makes_the_steps_independent_of_units() -> None:
    """Measuring the time in thousandths changes the rate by 1000 and nothing else."""
    y = decay_data()
    found = []
    for unit in (1.0, 1000.0):
        w = parameter(1.0, 0.5 / unit, 0.1)
        t = chainrule.tensor(T * unit)
        report = optim.LevenbergMarquardt([w], scaling=True).run(
            lambda w=w, t=t: decay(w, t, chainrule.exp) - chainrule.tensor(y), max_iter=4
        )
        found.append((report.loss, w.detach().numpy() * [1, unit, 1]))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-9)
    assert_close(found[0][1], found[1][1], rtol=1e-9)


def test_damping_grows_until_the_loss_falls() -> None:
    """The whole Gauss-Newton step on arctan from 2 leads to -3.5: the damping grows by tens."""
    w = parameter(2.0)
    optimizer = optim.LevenbergMarquardt([w])
    optimizer.step(lambda: w.arctan())
    j, r, mu = 1 / 5, np.arctan(2), 1e-3
    while abs(np.arctan(2 - j * r / (j * j + mu))) > r:
        mu *= 10
    assert mu > 1e-3
    assert_close(w, np.array([2 - j * r / (j * j + mu)]))
    assert optimizer.memory["mu"] == pytest.approx(mu / 10)
    report = optimizer.run(lambda: w.arctan())
    assert report.converged
    assert abs(w.item()) < 1e-6


def test_gauss_newton_is_shortened_or_taken_back() -> None:
    w = parameter(2.0)
    optimizer = optim.GaussNewton([w], line_search_fn=None)
    optimizer.step(lambda: w.arctan())
    assert w.item() == 2.0
    assert optimizer.report.reason == "no lower loss was found"
    assert optim.GaussNewton([w]).run(lambda: w.arctan()).converged
    assert abs(w.item()) < 1e-6


def test_more_parameters_than_residuals() -> None:
    """The smallest step that fits: that of the pseudoinverse."""
    a, b = np.array([[1.0, 2.0, 2.0]]), np.array([9.0])
    for method in METHODS:
        w = parameter(0.0, 0.0, 0.0)
        report = method([w]).run(
            lambda w=w: chainrule.tensor(a) @ w - chainrule.tensor(b), max_iter=20
        )
        assert report.converged
        assert_close(w, np.linalg.pinv(a) @ b, rtol=1e-7)


def test_parameters_that_the_residuals_ignore_stay() -> None:
    w, other = parameter(3.0), parameter(7.0)
    for scaling in (False, True):
        optimizer = optim.LevenbergMarquardt([w, other], scaling=scaling)
        assert optimizer.run(lambda: w.exp() - 2).converged
        assert (w.item(), other.item()) == (pytest.approx(np.log(2)), 7.0)


# --- against Adam ---------------------------------------------------------------------------------


X = chainrule.linspace(-1, 1, 40, dtype=chainrule.float64).reshape(-1, 1)
ENOUGH = 1e-5


def sine_network() -> nn.Module:
    chainrule.manual_seed(0)
    return nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1)).double()


def test_levenberg_marquardt_beats_adam_by_orders_of_magnitude() -> None:
    """A net of 31 weights learns a sine to a loss of 1e-5; counted are calls of the closure.

    Levenberg-Marquardt needs fewer than 30, Adam with the best of three rates more than 4000. Even
    if each product with the Jacobian counts like an evaluation it is a tenth.
    """
    model, target, calls = sine_network(), (3 * X).sin(), []

    def residuals() -> Tensor:
        calls.append(1)
        return model(X) - target

    optimizer = optim.LevenbergMarquardt(model.parameters())
    report = optimizer.run(residuals, callback=lambda _, loss: loss < ENOUGH)
    assert report.loss < ENOUGH
    assert report.evaluations == len(calls) < 30
    assert report.products == 31 * report.iterations
    assert report.evaluations + report.products < 400
    for lr in (3e-3, 1e-2, 3e-2):
        assert lowest_of_adam(lr, target, 4000) > ENOUGH


def lowest_of_adam(lr: float, target: Tensor, steps: int) -> float:
    model = sine_network()
    optimizer = optim.Adam(model.parameters(), lr=lr)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((model(X) - target) ** 2).sum() / 2
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return min(losses)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_closure_must_return_residuals(method: Callable[..., Any]) -> None:
    w = parameter(1.0, 2.0)

    def with_backward() -> Tensor:
        (w**2).sum().backward()
        return w

    with pytest.raises(RuntimeError, match="return the residuals.* and not the loss; got one numb"):
        method([w]).step(lambda: (w**2).sum())
    with pytest.raises(
        RuntimeError, match=r"called backward\(\).*let it only return the residuals"
    ):
        method([w]).step(with_backward)
    with pytest.raises(RuntimeError, match="the residuals as a Tensor with its graph, got list"):
        method([w]).step(lambda: w.tolist())
    with pytest.raises(RuntimeError, match="the residuals must depend on the parameters"):
        method([w]).step(lambda: w.detach())
    with pytest.raises(RuntimeError, match=r"returned no residuals, a tensor of shape \(0,\)"):
        method([w]).step(lambda: w[:0])
    with pytest.raises(RuntimeError, match="the loss at the starting point is not finite"):
        method([w]).step(lambda: (-w).log())
    assert w.tolist() == [1.0, 2.0]


def test_a_derivative_that_is_not_finite_is_an_error() -> None:
    """The residual sqrt(|w|) is 0 at 0, its derivative is not finite there."""
    w = parameter(0.0, 1.0)
    with pytest.raises(RuntimeError, match="the gradient at the starting point is not finite"):
        optim.LevenbergMarquardt([w]).step(lambda: w.abs().sqrt())
    assert w.tolist() == [0.0, 1.0]


def test_an_error_in_the_closure_leaves_the_parameters() -> None:
    w = parameter(2.0)
    count = []

    def residuals() -> Tensor:
        count.append(1)
        if len(count) == 3:
            raise KeyError("the third call")
        return w.arctan()

    with pytest.raises(KeyError, match="the third call"):
        optim.LevenbergMarquardt([w]).step(residuals)
    assert w.item() == 2.0


def test_the_damping_is_saved_with_the_optimizer() -> None:
    w = parameter(2.0)
    first = optim.LevenbergMarquardt([w])
    first.step(lambda: w.arctan())
    second = optim.LevenbergMarquardt([w], mu=123.0)
    second.load_state_dict(first.state_dict())
    assert second.memory["mu"] == first.memory["mu"]
    assert second.param_groups[0]["mu"] == 1e-3
