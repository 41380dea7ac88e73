"""``optim.minimize``: SciPy's minima, ways of calling it, and what happens when things go wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import chainrule
from chainrule import nn, optim
from chainrule.optim.minimize import METHODS

LEAST_SQUARES = ["gauss-newton", "levenberg-marquardt"]
ALL = [name for name in METHODS if name not in LEAST_SQUARES]
FIRST_ORDER = [
    "steepest-descent",
    "cg",
    "fletcher-reeves",
    "polak-ribiere",
    "hestenes-stiefel",
    "bfgs",
    "lbfgs",
]


def bowl(w: Any) -> Any:
    return w[0] ** 2 + 5 * w[1] ** 2


def rosenbrock(w: Any) -> Any:
    return (100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2).sum()


SCALES = np.logspace(0, 3, 10)


def narrow(w: Any) -> Any:
    """A quadratic of condition number 1e3; the lowest value is -sum(1 / scales) / 2."""
    return (chainrule.tensor(SCALES) * w * w).sum() / 2 - w.sum()


def logistic(w: Any) -> Any:
    """Penalized logistic regression."""
    r = np.random.default_rng(2)
    x = chainrule.tensor(r.normal(size=(50, 4)))
    sign = chainrule.tensor(np.sign(r.normal(size=50)))
    return chainrule.log(1 + chainrule.exp(-sign * (x @ w))).sum() + (w * w).sum() / 2


PROBLEMS: dict[str, tuple[Callable[[Any], Any], np.ndarray, float]] = {
    "bowl": (bowl, np.array([3.0, 1.0]), 1e-10),
    "rosenbrock": (rosenbrock, np.array([-1.2, 1.0]), 1e-10),
    "narrow": (narrow, np.linspace(-1, 1, 10), 1e-7),
    "logistic": (logistic, np.zeros(4), 1e-8),
}


def scipy_minimum(function: Callable[[Any], Any], start: np.ndarray) -> float:
    """The lowest loss SciPy finds, with gradients by differences that know nothing of ours."""
    result = scipy.optimize.minimize(
        lambda x: float(function(chainrule.tensor(x))), start, method="BFGS", tol=1e-9
    )
    return float(result.fun)


# Steepest descent needs thousands of steps in Rosenbrock's valley.
PAIRS = [(m, p) for m in ALL for p in PROBLEMS if (m, p) != ("steepest-descent", "rosenbrock")]


@pytest.mark.parametrize(("method", "problem"), PAIRS)
def test_reaches_the_minimum_of_scipy(method: str, problem: str) -> None:
    function, start, tolerance = PROBLEMS[problem]
    w = chainrule.tensor(start)
    report = optim.minimize(function, w, method, max_iter=10_000)
    assert report.converged, report
    assert report.loss <= scipy_minimum(function, start) + tolerance
    assert report.loss == float(function(w))
    assert not w.requires_grad


@pytest.mark.parametrize("method", ["cg", "bfgs", "lbfgs"])
def test_evaluations_are_of_the_order_of_scipys(method: str) -> None:
    start = np.array([-1.2, 1.0])
    name = {"cg": "CG", "bfgs": "BFGS", "lbfgs": "L-BFGS-B"}[method]
    theirs = scipy.optimize.minimize(
        scipy.optimize.rosen, start, jac=scipy.optimize.rosen_der, method=name
    )
    report = optim.minimize(rosenbrock, chainrule.tensor(start), method, tolerance_grad=1e-5)
    assert report.loss < 1e-9
    assert report.evaluations <= 1.5 * theirs.nfev + 10


@pytest.mark.parametrize("method", ["cg", "bfgs", "lbfgs", "hessian-free"])
def test_regression_network(method: str) -> None:
    """As low as SciPy's BFGS from the same start, on the same function."""
    r = np.random.default_rng(0)
    x = chainrule.tensor(np.linspace(-2, 2, 25).reshape(-1, 1))
    y = chainrule.tensor(np.sin(2 * x.numpy()) + 0.05 * r.normal(size=(25, 1)))
    chainrule.manual_seed(1)
    model = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    start = nn.utils.parameters_to_vector(model.parameters()).detach().numpy().copy()

    def plain(v: np.ndarray) -> float:
        w1, b1, w2, b2 = v[:4], v[4:8], v[8:12], v[12]
        out = np.tanh(x.numpy() * w1 + b1) @ w2 + b2
        return float(((out - y.numpy()[:, 0]) ** 2).mean())

    theirs = scipy.optimize.minimize(plain, start, method="BFGS")
    report = optim.minimize(
        lambda: ((model(x) - y) ** 2).mean(), model.parameters(), method, max_iter=400
    )
    assert plain(start) > 0.3
    assert report.loss <= max(1.05 * theirs.fun, theirs.fun + 1e-3)
    assert report.loss == float(((model(x) - y) ** 2).mean().detach())


@pytest.mark.parametrize("method", LEAST_SQUARES)
def test_residuals(method: str) -> None:
    """Rosenbrock's function as half a sum of squares."""
    w = chainrule.tensor([-1.2, 1.0], dtype=chainrule.float64)
    residuals = lambda w: chainrule.stack([10 * (w[1] - w[0] ** 2), 1 - w[0]])  # noqa: E731
    report = optim.minimize(residuals, w, method)
    assert report.converged, report
    np.testing.assert_allclose(w.numpy(), [1, 1], atol=1e-6)


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.BFGS, optim.LBFGS])
def test_method_by_class(kind: Any) -> None:
    w = chainrule.tensor([3.0, 1.0], dtype=chainrule.float64)
    options = {} if issubclass(kind, optim.Minimizer) else {"lr": 0.05}
    report = optim.minimize(bowl, w, kind, max_iter=3000, **options)
    assert report.converged, report
    np.testing.assert_allclose(w.numpy(), [0, 0], atol=1e-6)
    assert w.grad is None


def test_class_of_an_optimizer_keeps_the_best_point() -> None:
    """Gradient descent with too long a step runs away: the parameters end where it was best."""
    w = chainrule.tensor([3.0, 1.0], dtype=chainrule.float64)
    report = optim.minimize(bowl, w, optim.SGD, lr=0.21, max_iter=30)
    assert not report.converged
    assert report.reason == "reached max_iter = 30"
    assert report.loss == float(bowl(w)) <= 14.0
    v = chainrule.tensor([2.0], dtype=chainrule.float64)
    report = optim.minimize(lambda v: (v - chainrule.log(v)).sum(), v, optim.SGD, lr=10.0)
    assert report.reason == "the loss is not finite after the last step"
    assert v.tolist() == [2.0]


# --- ways of calling it ---------------------------------------------------------------------------


def test_ways_to_give_parameters() -> None:
    """A tensor, several, a generator, named ones, a module."""
    model = nn.Linear(1, 1).double()
    x = chainrule.tensor([[0.0], [1.0], [2.0]], dtype=chainrule.float64)
    loss = lambda: ((model(x) - (3 * x + 2)) ** 2).sum()  # noqa: E731
    for params in (model.parameters(), list(model.parameters()), model.named_parameters(), model):
        nn.init.zeros_(model.weight)
        assert optim.minimize(loss, params).loss < 1e-10
    assert model.weight.requires_grad
    assert model.weight.item() == pytest.approx(3.0, abs=1e-5)
    assert model.bias.item() == pytest.approx(2.0, abs=1e-5)


def test_loss_functions_with_arguments() -> None:
    a, b = (chainrule.tensor(v, dtype=chainrule.float64) for v in ([1.0, 2.0], 5.0))
    optim.minimize(lambda a, b, scale=2.0: scale * ((a - b) ** 2).sum() + (b - 1) ** 2, [a, b])
    np.testing.assert_allclose([*a.tolist(), b.item()], 1.0, atol=1e-5)
    optim.minimize(lambda *args: ((args[0] + args[1]) ** 2).sum(), [a, b])
    np.testing.assert_allclose(a.numpy(), -b.numpy(), atol=1e-5)
    optim.minimize(lambda target=4.0: ((a - target) ** 2).sum(), a)
    np.testing.assert_allclose(a.numpy(), 4.0, atol=1e-5)


def test_loss_function_that_calls_backward() -> None:
    w = chainrule.tensor([3.0, 1.0], dtype=chainrule.float64)

    def loss() -> Any:
        value = bowl(w)
        value.backward()
        return value

    assert optim.minimize(loss, w).loss < 1e-10


def test_frozen_parameters_of_a_module_stay_frozen() -> None:
    model = nn.Linear(1, 1)
    model.bias.requires_grad_(False)
    bias, x = model.bias.item(), chainrule.tensor([[0.0], [1.0]])
    report = optim.minimize(lambda: ((model(x) - 3 * x) ** 2).sum(), model)
    assert report.iterations > 0
    assert model.bias.item() == bias
    assert not model.bias.requires_grad


def test_callback() -> None:
    w = chainrule.tensor([-1.2, 1.0], dtype=chainrule.float64)
    seen: list[tuple[int, float]] = []

    def callback(iteration: int, loss: float) -> bool:
        assert loss == float(rosenbrock(w).detach())  # the parameters are at the point it tells of
        seen.append((iteration, loss))
        return iteration == 5

    report = optim.minimize(rosenbrock, w, callback=callback)
    assert [i for i, _ in seen] == [1, 2, 3, 4, 5]
    assert report.reason == "stopped by the callback"
    assert (report.iterations, report.loss, report.converged) == (5, seen[-1][1], False)


@pytest.mark.parametrize("method", FIRST_ORDER)
def test_report_counts(method: str) -> None:
    w = chainrule.tensor([-1.2, 1.0], dtype=chainrule.float64)
    calls: list[bool] = []

    def loss() -> Any:
        value = rosenbrock(w)
        calls.append(value.requires_grad)
        return value

    report = optim.minimize(loss, w, method, max_iter=7)
    assert report.iterations == 7
    assert report.evaluations == len(calls)
    assert report.gradients == sum(calls)
    assert report.products == 0
    assert report.reason == "reached max_iter = 7"
    assert not report.converged


def test_nothing_to_do() -> None:
    w = chainrule.tensor([0.0, 0.0])
    report = optim.minimize(bowl, w)
    assert (report.iterations, report.evaluations, report.converged) == (0, 1, True)
    assert report.reason == "the gradient is zero to tolerance_grad"
    w = chainrule.tensor([1.0, 0.0])
    report = optim.minimize(bowl, w, max_iter=0)
    assert (report.iterations, report.reason, w.tolist()) == (0, "reached max_iter = 0", [1, 0])


@pytest.mark.parametrize("method", FIRST_ORDER)
def test_single_precision_ends_by_itself(method: str) -> None:
    """The gradient cannot fall below tolerance_grad, but that is seen."""
    w = chainrule.tensor([3.0, -2.0, 5.0])
    report = optim.minimize(lambda w: 100 + (w * w).sum() + chainrule.cos(w).sum(), w, method)
    assert report.converged, report
    assert report.loss == pytest.approx(103.0)
    assert report.evaluations < 200


# --- when things go wrong -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL)
def test_regions_without_loss(method: str) -> None:
    """x - log(x) has its minimum at 1 and is NaN below 0, where the first trials may fall."""
    x = chainrule.tensor([6.0, 0.05], dtype=chainrule.float64)
    report = optim.minimize(lambda x: (x - chainrule.log(x)).sum(), x, method)
    assert report.converged, report
    np.testing.assert_allclose(x.numpy(), 1.0, atol=1e-5)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("calls", [1, 2, 3, 8, 13])
@pytest.mark.parametrize("method", [*ALL, optim.SGD])
def test_exceptions_leave_the_best_point(method: Any, calls: int, error: type) -> None:
    """The first calls have no loss below that; a line search may already have seen a lower one."""
    w = chainrule.tensor([-1.2, 1.0], dtype=chainrule.float64)
    start = float(rosenbrock(w))
    losses: list[float] = []

    def loss() -> Any:
        if len(losses) == calls - 1:
            raise error
        value = rosenbrock(w)
        losses.append(float(value.detach()))
        return value

    options = {"lr": 1e-4} if method is optim.SGD else {}
    with pytest.raises(error):
        optim.minimize(loss, w, method, **options)
    assert float(rosenbrock(w)) in [start, *losses]
    assert float(rosenbrock(w)) <= start
    assert not w.requires_grad


def test_exception_in_the_callback_leaves_the_last_point() -> None:
    w = chainrule.tensor([-1.2, 1.0], dtype=chainrule.float64)
    seen: list[float] = []

    def callback(iteration: int, loss: float) -> None:
        seen.append(loss)
        if iteration == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optim.minimize(rosenbrock, w, callback=callback)
    assert float(rosenbrock(w)) == seen[-1]


@pytest.mark.parametrize("method", FIRST_ORDER)
def test_failed_steps_are_rolled_back(method: str) -> None:
    """A function whose derivative has the wrong sign: no direction leads down."""

    class Wrong(chainrule.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return -g

    w = chainrule.tensor([1.0, 2.0], dtype=chainrule.float64)
    report = optim.minimize(lambda w: (Wrong.apply(w) ** 2).sum(), w, method)
    assert w.tolist() == [1.0, 2.0]
    assert (report.loss, report.iterations, report.converged) == (5.0, 0, False)
    assert report.reason == "no lower loss was found"


@pytest.mark.parametrize("method", FIRST_ORDER)
def test_unbounded_loss(method: str) -> None:
    w = chainrule.tensor([1.0], dtype=chainrule.float64)
    report = optim.minimize(lambda w: -(w**3).sum(), w, method, max_iter=50)
    assert not report.converged
    assert np.isfinite(w.item())
    assert report.loss == -(w.item() ** 3) < -1


def test_start_that_is_not_finite() -> None:
    w = chainrule.tensor([-1.0])
    for method in ("lbfgs", optim.Adam):
        with pytest.raises(RuntimeError, match="loss at the starting point is not finite"):
            optim.minimize(lambda w: chainrule.log(w).sum(), w, method)
    assert w.tolist() == [-1.0]
    assert not w.requires_grad


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda w: optim.minimize(bowl, w, "sgd"),
            ValueError,
            "unknown method 'sgd'; there are steepest-descent, cg, .*hessian-free",
        ),
        (lambda w: optim.minimize(bowl, w, object), ValueError, "unknown method <class 'object'>"),
        (lambda w: optim.minimize(bowl, w, max_iter=-1), ValueError, "invalid max_iter: -1"),
        (lambda w: optim.minimize(bowl, 3.0), TypeError, "must be a tensor, tensors, or .*float"),
        (lambda w: optim.minimize(bowl, [3.0]), TypeError, "only optimize Tensors, got float"),
        (lambda w: optim.minimize(bowl, []), ValueError, "empty parameter list"),
        (lambda w: optim.minimize(bowl, [w, w]), TypeError, "called with the 2 parameters"),
        (lambda w: optim.minimize(lambda *a: bowl(a[0]), [w, w]), ValueError, "more than once"),
        (lambda w: optim.minimize(bowl, w.int()), ValueError, "real floating point, got .*int32"),
        (lambda w: optim.minimize(bowl(w), w), TypeError, "must be a function .* got Tensor"),
        (lambda w: optim.minimize(lambda: None, w), RuntimeError, "the closure returned None"),
        (lambda w: optim.minimize(lambda w: w, w), RuntimeError, r"one number.*shape \(2,\)"),
        (lambda w: optim.minimize(lambda: 1.0, w), RuntimeError, "does not depend on the param"),
        (lambda w: optim.minimize(bowl, w, "bfgs", momentum=1), TypeError, "'momentum'"),
    ],
)
def test_wrong_calls(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    w = chainrule.tensor([3.0, 1.0])
    with pytest.raises(error, match=message):
        call(w)
    assert w.tolist() == [3.0, 1.0]
    assert not w.requires_grad
