"""Steepest descent, conjugate gradients, BFGS: their equations, on problems with known answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import nn, optim
from chainrule.optim import BFGS, LBFGS, ConjugateGradient, SteepestDescent

FORMULAS = ["fletcher-reeves", "polak-ribiere", "hestenes-stiefel"]
METHODS: dict[str, Callable[..., Any]] = {
    "steepest-descent": SteepestDescent,
    **{name: lambda p, name=name, **o: ConjugateGradient(p, name, **o) for name in FORMULAS},
    "bfgs": BFGS,
    "lbfgs": lambda p, **o: LBFGS(p, line_search_fn="strong_wolfe", **o),
}


def quadratic(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(r.normal(size=(n, n)))
    return Q @ np.diag(np.linspace(1, 10, n)) @ Q.T, r.normal(size=n)


def problem(n: int, seed: int = 0) -> tuple[Any, Callable[[], Any], np.ndarray, np.ndarray]:
    """Parameters, closure, and the matrix and the minimum of a quadratic."""
    A, b = quadratic(n, seed)
    tA, tb = chainrule.tensor(A), chainrule.tensor(b)
    w = chainrule.tensor(np.random.default_rng(seed + 1).normal(size=n), requires_grad=True)
    return w, lambda: (w @ tA @ w) / 2 - tb @ w, A, np.linalg.solve(A, b)


# --- the equations --------------------------------------------------------------------------------


def steepest_trace(A: np.ndarray, b: np.ndarray, x: np.ndarray, steps: int) -> list[np.ndarray]:
    points = []
    for _ in range(steps):
        g = A @ x - b
        x = x - (g @ g) / (g @ A @ g) * g
        points.append(x)
    return points


def conjugate_trace(
    formula: str, A: np.ndarray, b: np.ndarray, x: np.ndarray, steps: int
) -> list[np.ndarray]:
    """Nonlinear conjugate gradients with exact steps, by hand."""
    points, g = [], A @ x - b
    d = -g
    for _ in range(steps):
        x = x - (g @ d) / (d @ A @ d) * d
        new = A @ x - b
        beta = {
            "fletcher-reeves": (new @ new) / (g @ g),
            "polak-ribiere": max(0.0, new @ (new - g) / (g @ g)),
            "hestenes-stiefel": new @ (new - g) / (d @ (new - g)),
        }[formula]
        g, d = new, beta * d - new
        points.append(x)
    return points


def test_steepest_descent_is_its_equation() -> None:
    w, closure, A, best = problem(4)
    expected = steepest_trace(A, A @ best, w.detach().numpy().copy(), 8)
    optimizer = SteepestDescent([w], "exact")
    for point in expected:
        optimizer.step(closure)
        np.testing.assert_allclose(w.detach().numpy(), point, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("formula", FORMULAS)
def test_conjugate_gradient_is_its_equation(formula: str) -> None:
    w, closure, A, best = problem(6, seed=3)
    expected = conjugate_trace(formula, A, A @ best, w.detach().numpy().copy(), 5)
    optimizer = ConjugateGradient([w], formula, "exact")
    for point in expected:
        optimizer.step(closure)
        np.testing.assert_allclose(w.detach().numpy(), point, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("formula", "beta"),
    [("fletcher-reeves", 0.25), ("polak-ribiere", 0.0), ("hestenes-stiefel", 0.5)],
)
def test_beta_by_hand(formula: str, beta: float) -> None:
    """g_old = (2, 0), g = (1, 0), d = (2, 3): y = (-1, 0), g'y = -1, d'y = -2; -1/4 becomes 0."""
    w = chainrule.zeros(2, dtype=chainrule.float64, requires_grad=True)
    optimizer = ConjugateGradient([w], formula)
    g_old, g, d = (chainrule.tensor(v).double() for v in ([2.0, 0.0], [1.0, 0.0], [2.0, 3.0]))
    optimizer.memory.update(d=d, prev_flat_grad=g_old, directions=1)
    assert optimizer.direction(g).tolist() == [2 * beta - 1, 3 * beta]


def test_bfgs_is_its_equation() -> None:
    """The product form of the update, written out, with the steps that were taken."""
    w, closure, A, _ = problem(4, seed=5)
    optimizer = BFGS([w])
    H, identity = None, np.eye(4)
    for _ in range(4):
        before = w.detach().numpy().copy()
        optimizer.step(closure)
        s = w.detach().numpy() - before
        y = A @ s
        H = identity * (y @ s) / (y @ y) if H is None else H
        left = identity - np.outer(s, y) / (y @ s)
        H = left @ H @ left.T + np.outer(s, s) / (y @ s)
        np.testing.assert_allclose(optimizer.memory["inverse_hessian"].numpy(), H, rtol=1e-7)


# --- what theory promises on a quadratic ----------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 12])
@pytest.mark.parametrize("formula", FORMULAS)
def test_conjugate_gradient_ends_in_n_steps(formula: str, n: int) -> None:
    w, closure, _, best = problem(n)
    optimizer = ConjugateGradient([w], formula, "exact", tolerance_grad=1e-8)
    report = optimizer.run(closure, max_iter=n)
    assert report.converged, report
    assert report.iterations <= n
    np.testing.assert_allclose(w.detach().numpy(), best, atol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_bfgs_finds_the_inverse_hessian(n: int) -> None:
    w, closure, A, best = problem(n)
    optimizer = BFGS([w], "exact", tolerance_grad=0.0, tolerance_change=0.0)
    for _ in range(n):
        optimizer.step(closure)
    np.testing.assert_allclose(w.detach().numpy(), best, atol=1e-7)
    H = optimizer.memory["inverse_hessian"].numpy()
    np.testing.assert_allclose(H, np.linalg.inv(A), rtol=1e-5, atol=1e-7)


def test_steepest_descent_zigzags_at_the_rate_of_the_condition_number() -> None:
    """From the worst start the loss falls by ((k - 1) / (k + 1))^2 at every exact step; k = 5."""
    w = chainrule.tensor([5.0, 1.0], dtype=chainrule.float64, requires_grad=True)
    optimizer = SteepestDescent([w], "exact")
    losses = [float(optimizer.step(lambda: w[0] ** 2 + 5 * w[1] ** 2)) for _ in range(10)]
    ratios = np.array(losses[1:]) / np.array(losses[:-1])
    np.testing.assert_allclose(ratios, (4 / 6) ** 2, rtol=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_loss_never_rises(name: str) -> None:
    w = chainrule.tensor([-1.2, 1.0, 0.5, 2.0], dtype=chainrule.float64, requires_grad=True)

    def closure() -> Any:
        return (100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2).sum()

    start, losses = float(closure().detach()), []
    METHODS[name]([w]).run(closure, 40, lambda i, loss: losses.append(loss))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < start / 50
    assert float(closure()) == losses[-1]


def test_bfgs_leaves_its_matrix_where_the_loss_is_not_convex() -> None:
    """On the way from the top of a cosine the gradient grows: y's < 0 for an Armijo step."""
    w = chainrule.tensor([0.3], dtype=chainrule.float64, requires_grad=True)
    optimizer = BFGS([w], "backtracking")
    optimizer.step(lambda: chainrule.cos(w).sum())
    assert "inverse_hessian" not in optimizer.memory
    report = optimizer.run(lambda: chainrule.cos(w).sum())
    assert report.converged
    assert float(optimizer.memory["inverse_hessian"]) > 0
    assert report.loss == pytest.approx(-1.0)


def test_conjugate_gradient_restarts() -> None:
    """With restart=1 every direction is the gradient: steepest descent."""
    w, closure, _, _ = problem(4)
    v = w.detach().clone().requires_grad_()
    A, b = (chainrule.tensor(a) for a in quadratic(4))
    one = ConjugateGradient([w], line_search_fn="exact", restart=1)
    other = SteepestDescent([v], "exact")
    for _ in range(5):
        one.step(closure)
        other.step(lambda: (v @ A @ v) / 2 - b @ v)
    np.testing.assert_allclose(w.detach().numpy(), v.detach().numpy(), rtol=1e-9)


# --- as optimizers --------------------------------------------------------------------------------


def data() -> tuple[Any, Any]:
    r = np.random.default_rng(1)
    x = r.normal(size=(40, 2))
    return chainrule.tensor(x), chainrule.tensor(np.sin(x[:, :1]) * x[:, 1:])


def network() -> Any:
    chainrule.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 1)).double()


@pytest.mark.parametrize("name", METHODS)
def test_closures_with_and_without_backward_agree(name: str) -> None:
    x, y = data()
    results = []
    for calls_backward in (False, True):
        model = network()
        optimizer = METHODS[name](model.parameters())

        def closure(model: Any = model, back: bool = calls_backward, o: Any = optimizer) -> Any:
            o.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            if back:
                loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        results.append([p.tolist() for p in model.parameters()])
        assert all((p.grad is not None) == calls_backward for p in model.parameters())
    assert results[0] == results[1]


@pytest.mark.parametrize("name", METHODS)
def test_state_dict_goes_on_where_it_was(name: str) -> None:
    x, y = data()
    first, second = network(), network()
    a, b = (METHODS[name](m.parameters()) for m in (first, second))
    for _ in range(3):
        a.step(lambda: ((first(x) - y) ** 2).mean())
    second.load_state_dict(first.state_dict())
    b.load_state_dict(a.state_dict())
    for _ in range(3):
        a.step(lambda: ((first(x) - y) ** 2).mean())
        b.step(lambda: ((second(x) - y) ** 2).mean())
    for p, q in zip(first.parameters(), second.parameters(), strict=True):
        assert p.tolist() == q.tolist()


@pytest.mark.parametrize("name", METHODS)
def test_frozen_parameters_stay(name: str) -> None:
    x, y = data()
    model = network()
    model[0].weight.requires_grad_(False)
    before = model[0].weight.tolist()
    optimizer = METHODS[name](model.parameters())
    loss = float(optimizer.step(lambda: ((model(x) - y) ** 2).mean()).detach())
    assert model[0].weight.tolist() == before
    assert optimizer.report.loss < loss


def test_old_gradients_are_left_alone() -> None:
    w = chainrule.tensor([1.0], requires_grad=True)
    w.grad = chainrule.tensor([7.0])
    BFGS([w]).step(lambda: (w * w).sum())
    assert w.grad.tolist() == [7.0]


def test_step_returns_the_loss_before_and_reports() -> None:
    w = chainrule.tensor([3.0, 1.0], dtype=chainrule.float64, requires_grad=True)
    optimizer = BFGS([w])
    loss = optimizer.step(lambda: w[0] ** 2 + 5 * w[1] ** 2)
    assert loss.item() == 14.0
    report = optimizer.report
    assert report.loss == float((w[0] ** 2 + 5 * w[1] ** 2).detach())
    assert report.iterations == 1
    assert report.reason == "reached max_iter = 1"
    assert str(report).startswith(f"loss {report.loss:.6g} after 1 iterations, ")


def test_hooks_run() -> None:
    w = chainrule.tensor([1.0], requires_grad=True)
    optimizer, seen = SteepestDescent([w]), []
    optimizer.register_step_pre_hook(lambda *a: seen.append("pre"))
    optimizer.register_step_post_hook(lambda *a: seen.append("post"))
    optimizer.step(lambda: (w * w).sum())
    assert seen == ["pre", "post"]


def test_no_graph_is_built_where_only_the_loss_is_needed() -> None:
    w = chainrule.tensor([1.0], requires_grad=True)
    recorded: list[bool] = []

    def closure() -> Any:
        loss = (w * w).sum()
        recorded.append(loss.requires_grad)
        return loss

    SteepestDescent([w], "backtracking").step(closure)
    assert recorded[0]
    assert not all(recorded)


def test_a_closure_that_differentiates_inside() -> None:
    """Its trial evaluations cannot run without a graph: they are made with one."""
    w = chainrule.tensor([2.0], dtype=chainrule.float64, requires_grad=True)

    def closure() -> Any:
        (slope,) = chainrule.autograd.grad((w**4).sum(), w, create_graph=True)
        return (slope**2).sum() + (w**2).sum()

    report = SteepestDescent([w], "backtracking").run(closure, 2000)
    assert report.loss < 1e-10


class Careless(optim.Minimizer):
    """Takes steps without looking, and leaves the parameters anywhere."""

    def __init__(self, params: Any, *steps: float):
        super().__init__(params, {})
        self.steps = list(steps)

    def iterate(self, f: Any, x: Any, loss: float, g: Any) -> Any:
        new = x + self.steps.pop(0)
        found = new, *f.value_and_gradient(new)
        f.move_to(x + 100)
        return found


def test_any_method_ends_at_its_best_point() -> None:
    w = chainrule.tensor([5.0], dtype=chainrule.float64, requires_grad=True)
    seen: list[float] = []
    optimizer = Careless([w], -1.0, -1.0, 2.0)
    report = optimizer.run(lambda: (w * w).sum(), 10, lambda i, loss: seen.append(w.item()))
    assert seen == [4.0, 3.0]
    assert w.item() == 3.0
    assert (report.loss, report.iterations, report.converged) == (9.0, 2, False)
    assert report.reason == "no lower loss was found"


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: SteepestDescent(p, "newton"), "SteepestDescent: line_search_fn must be one of "),
        (lambda p: BFGS(p, c1=0.9, c2=0.1), r"BFGS: c1 must be below c2, got c1=0.9, c2=0.1"),
        (lambda p: BFGS(p, c2=1.5), r"BFGS: invalid c2: 1.5; it must lie in \(0.0, 1.0\)"),
        (lambda p: BFGS(p, max_evals=0), r"BFGS: invalid max_evals: 0"),
        (lambda p: BFGS(p, tolerance_grad=-1.0), "BFGS: invalid tolerance_grad: -1.0"),
        (lambda p: ConjugateGradient(p, "newton"), "formula must be one of fletcher-reeves, "),
        (lambda p: ConjugateGradient(p, restart=0), "ConjugateGradient: invalid restart: 0"),
        (lambda p: LBFGS(p, history_size=0), "LBFGS: invalid history_size: 0"),
        (lambda p: LBFGS([]), "LBFGS: got an empty parameter list"),
    ],
)
def test_invalid_settings(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make([chainrule.ones(2, requires_grad=True)])


@pytest.mark.parametrize("name", METHODS)
def test_two_groups_or_dtypes_are_refused(name: str) -> None:
    p, q = chainrule.ones(2, requires_grad=True), chainrule.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="doesn't support per-parameter options .*got 2 groups"):
        METHODS[name]([{"params": [p]}, {"params": [q]}])
    if METHODS[name]([p]).takes_any_dtype:
        return
    mixed = [p, q.detach().double().requires_grad_()]
    with pytest.raises(ValueError, match=r"one real dtype, got chainrule.float32, chainrule.float"):
        METHODS[name](mixed)
    with pytest.raises(ValueError, match="one real dtype, got chainrule.complex"):
        METHODS[name]([chainrule.tensor([1j], requires_grad=True)])


@pytest.mark.parametrize("name", METHODS)
def test_closures_that_are_no_loss(name: str) -> None:
    w = chainrule.ones(2, requires_grad=True)
    optimizer = METHODS[name]([w])
    with pytest.raises(ValueError, match=r"step: needs a closure that returns the loss"):
        optimizer.step()
    with pytest.raises(RuntimeError, match="the closure returned None"):
        optimizer.step(lambda: None)
    with pytest.raises(RuntimeError, match=r"one number, the loss, got a tensor of shape \(2,\)"):
        optimizer.step(lambda: w * w)
    for loss in (3.0, chainrule.tensor(3.0), chainrule.ones((), requires_grad=True) * 2):
        with pytest.raises(RuntimeError, match="the loss does not depend on the parameters"):
            optimizer.step(lambda loss=loss: loss)
    w.requires_grad_(False)
    with pytest.raises(ValueError, match="no parameter requires grad"):
        optimizer.step(lambda: (w * w).sum())


@pytest.mark.parametrize("name", METHODS)
def test_start_that_is_not_finite(name: str) -> None:
    w = chainrule.tensor([-1.0, 2.0], requires_grad=True)
    optimizer = METHODS[name]([w])
    with pytest.raises(RuntimeError, match="the loss at the starting point is not finite; no para"):
        optimizer.step(lambda: chainrule.log(w).sum())
    v = chainrule.tensor([0.0, 2.0], requires_grad=True)
    optimizer = METHODS[name]([v])
    with pytest.raises(RuntimeError, match="the gradient at the starting point is not finite"):
        optimizer.step(lambda: chainrule.sqrt(v).sum())
    assert (w.tolist(), v.tolist()) == ([-1.0, 2.0], [0.0, 2.0])


def test_fixed_steps_of_lbfgs_are_undone_if_the_loss_is_not_finite() -> None:
    w = chainrule.tensor([0.5], dtype=chainrule.float64, requires_grad=True)
    optimizer = optim.LBFGS([w], lr=50.0)
    optimizer.step(lambda: (w - 3 * chainrule.log(w)).sum())
    assert w.item() > 0
    assert optimizer.report.reason == "the loss is not finite after the last step"
    assert optimizer.memory["n_iter"] == 0


@pytest.mark.parametrize("line_search_fn", [None, "strong_wolfe"])
@pytest.mark.parametrize("calls", [1, 2, 5, 9])
def test_step_of_lbfgs_goes_back_to_the_best_point_on_an_exception(
    calls: int, line_search_fn: str | None
) -> None:
    w = chainrule.tensor([-1.2, 1.0], dtype=chainrule.float64, requires_grad=True)
    optimizer = LBFGS([w], lr=0.2, line_search_fn=line_search_fn)
    losses: list[float] = []

    def rosenbrock() -> Any:
        return (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2

    def closure() -> Any:
        if len(losses) == calls - 1:
            raise KeyboardInterrupt
        losses.append(rosenbrock().item())
        return rosenbrock()

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(closure)
    assert rosenbrock().item() == pytest.approx(min(losses, default=24.2))
    assert optimizer.memory["n_iter"] == 0
    optimizer.step(rosenbrock)
    assert optimizer.report.loss < 24.2
