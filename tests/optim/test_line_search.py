"""Line searches: the conditions they promise, SciPy's search, and losses that are not finite."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import line_search as scipy_line_search

import chainrule
from chainrule.optim.line_search import LINE_SEARCHES, backtracking, exact, strong_wolfe
from chainrule.optim.objective import Objective

Function = Callable[[Any], Any]


def objective(function: Function, start: Any) -> tuple[Objective, Any, float, Any]:
    w = chainrule.tensor(np.array(start, dtype=float), requires_grad=True)
    f = Objective([w], lambda: function(w))
    return f, f.vector(), *f.value_and_gradient()


def random_problem(seed: int) -> tuple[Function, np.ndarray, np.ndarray]:
    """A bumpy function with a minimum, a point, and a direction downhill that is not -g."""
    r = np.random.default_rng(seed)
    n = int(r.integers(1, 6))
    B = r.normal(size=(n, n))
    A = chainrule.tensor(B @ B.T + 0.1 * np.eye(n))
    c = chainrule.tensor(r.normal(size=n))
    bumps = float(r.uniform(0, 2))

    def function(w: Any) -> Any:
        return (w @ A @ w) / 2 - c @ w + bumps * chainrule.sin(2 * w).sum() + 0.01 * (w**4).sum()

    P = r.normal(size=(n, n))
    return function, 3 * r.normal(size=n), P @ P.T + 0.1 * np.eye(n)


def plain(function: Function) -> tuple[Callable[..., float], Callable[..., np.ndarray]]:
    """Value and gradient of arrays; the gradient by central differences."""

    def value(x: np.ndarray) -> float:
        return float(function(chainrule.tensor(x)))

    def gradient(x: np.ndarray) -> np.ndarray:
        h = 1e-6
        units = h * np.eye(len(x))
        return np.array([(value(x + u) - value(x - u)) / (2 * h) for u in units])

    return value, gradient


@pytest.mark.parametrize("name", LINE_SEARCHES)
@pytest.mark.parametrize("seed", range(12))
def test_conditions_hold(name: str, seed: int) -> None:
    function, start, P = random_problem(seed)
    value, gradient = plain(function)
    f, x, loss, g = objective(function, start)
    d = -chainrule.tensor(P) @ g
    before = f.evaluations
    first = 10.0 ** (seed % 5 - 2)
    options = {"c1": 0.1, "max_evals": 60, **({"c2": 0.4} if name == "strong_wolfe" else {})}
    found = LINE_SEARCHES[name](f, x, loss, g, d, first, **options)
    assert found.success, found.reason
    assert found.evaluations == f.evaluations - before
    new, slope = start + found.step * d.numpy(), gradient(start) @ d.numpy()
    assert found.loss == pytest.approx(value(new), abs=1e-12)
    np.testing.assert_allclose(found.x.numpy(), new, atol=1e-12)
    np.testing.assert_allclose(found.gradient.numpy(), gradient(new), rtol=1e-4, atol=1e-4)
    assert value(new) <= value(start) + 0.1 * found.step * slope + 1e-9
    if name == "strong_wolfe":
        assert abs(gradient(new) @ d.numpy()) <= 0.4 * abs(slope) + 1e-4


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize(
    ("function", "start"),
    [
        (rosenbrock, [-1.2, 1.0]),
        (rosenbrock, [0.5, -0.5, 2.0, 1.0]),
        (lambda w: w[0] ** 2 + 5 * w[1] ** 2, [3.0, 1.0]),
        (lambda w: chainrule.log(1 + chainrule.exp(-w)).sum() + 0.1 * (w * w).sum(), [-4.0, 2.0]),
    ],
    ids=["rosenbrock-2", "rosenbrock-4", "bowl", "logistic"],
)
def test_as_good_as_scipy(function: Function, start: list[float]) -> None:
    """SciPy's search satisfies the same conditions; neither is far ahead of the other."""
    value, gradient = plain(function)
    f, x, loss, g = objective(function, start)
    theirs = scipy_line_search(value, gradient, np.array(start), -g.numpy(), c1=1e-4, c2=0.1)
    found = strong_wolfe(f, x, loss, g, -g, c1=1e-4, c2=0.1)
    assert theirs[0] is not None
    assert found.success
    assert loss - found.loss >= 0.5 * (loss - theirs[3])
    assert found.evaluations <= 2 * theirs[1] + 5


# --- known answers --------------------------------------------------------------------------------


def test_backtracking_by_hand() -> None:
    """phi(t) = (1 - 2t)^2 with slope -4: 4 -> 49, 2 -> 9, 1 -> 1 (too high), 0.5 -> 0."""
    f, x, loss, g = objective(lambda w: (w * w).sum(), [1.0])
    found = backtracking(f, x, loss, g, -g, 4.0)
    assert (found.step, found.loss, found.evaluations) == (0.5, 0.0, 5)


def test_backtracking_needs_the_fall_it_asks_for() -> None:
    """c1 = 0.6 is never satisfied by the minimum of a parabola, where c1 = 1/2 exactly."""
    f, x, loss, g = objective(lambda w: (w * w).sum(), [1.0])
    found = backtracking(f, x, loss, g, -g, 0.5, c1=0.6, shrink=0.5)
    assert found.step == 0.25
    assert found.loss == 0.25


def test_exact_ends_at_the_minimum_of_a_quadratic() -> None:
    r = np.random.default_rng(3)
    B = r.normal(size=(5, 5))
    A, b = B @ B.T + np.eye(5), r.normal(size=5)
    f, x, loss, g = objective(
        lambda w: (w @ chainrule.tensor(A) @ w) / 2 - chainrule.tensor(b) @ w, r.normal(size=5)
    )
    d = -g.numpy()
    found = exact(f, x, loss, g, -g, 0.01)
    assert found.step == pytest.approx(d @ d / (d @ A @ d), rel=1e-9)
    assert found.evaluations == 2


def test_strong_wolfe_extrapolates_on_a_straight_line() -> None:
    """The slope never becomes flat: the step grows tenfold until the evaluations are spent."""
    f, x, loss, g = objective(lambda w: -w.sum(), [0.0])
    found = strong_wolfe(f, x, loss, g, -g, 1.0, max_evals=4)
    assert found.step == 1000.0
    assert not found.success
    assert found.reason == "the Wolfe conditions failed in 4 evaluations"


# --- where things go wrong ------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINE_SEARCHES)
@pytest.mark.parametrize(
    ("function", "start"),
    [
        (lambda w: (w - chainrule.log(w)).sum(), 3.0),  # NaN beyond 0
        (lambda w: (w + 1 / chainrule.sqrt(w)).sum(), 2.0),
        (lambda w: chainrule.exp(w * w).sum(), 2.0),  # inf far away
        (lambda w: chainrule.where(w > 1, w * w, math.inf).sum(), 2.0),
        (lambda w: chainrule.where(w > 1, w * w, -math.inf).sum(), 2.0),
        # finite, but its gradient is NaN (0 times infinity) below 1
        (lambda w: (w * w + 0 * chainrule.sqrt(chainrule.where(w > 1, w, 0 * w))).sum(), 2.0),
    ],
    ids=["log", "sqrt", "exp", "wall", "hole", "kink"],
)
def test_shrinks_where_the_loss_is_not_finite(name: str, function: Function, start: float) -> None:
    f, x, loss, g = objective(function, [start])
    found = LINE_SEARCHES[name](f, x, loss, g, -g, 100.0, max_evals=60)
    assert found.step > 0
    assert math.isfinite(found.loss)
    assert found.loss < loss
    assert bool(found.gradient.isfinite().all())


@pytest.mark.parametrize("name", LINE_SEARCHES)
def test_not_downhill(name: str) -> None:
    f, x, loss, g = objective(lambda w: (w * w).sum(), [1.0, 2.0])
    found = LINE_SEARCHES[name](f, x, loss, g, g)
    assert not found.success
    assert found.reason == "the direction does not lead downhill"
    assert (found.step, found.loss, found.evaluations) == (0.0, loss, 0)
    assert found.x is x


@pytest.mark.parametrize("name", LINE_SEARCHES)
def test_gives_up(name: str) -> None:
    """A wrong gradient: the loss rises in every direction."""
    f, x, loss, g = objective(lambda w: w.abs().sum(), [0.0])
    found = LINE_SEARCHES[name](f, x, loss, g + 1, -(g + 1), max_evals=8)
    assert not found.success
    assert found.reason
    assert (found.step, found.loss) == (0.0, loss)
    assert found.evaluations <= 8
