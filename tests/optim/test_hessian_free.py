"""Hessian-free optimization: its products, its damping, and networks that it learns."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor, curvature, nn, optim
from chainrule.optim.hessian_free import conjugate_gradients
from chainrule.optim.second_derivatives import WithOutputs


def parameter(*values: float) -> Tensor:
    return chainrule.tensor(values, dtype=chainrule.float64, requires_grad=True)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return chainrule.tensor(np.random.default_rng(seed).normal(size=shape))


# --- products -------------------------------------------------------------------------------------


def test_gauss_newton_product_of_softmax_regression() -> None:
    """sum_n (diag p_n - p_n p_n^T) (x) x_n x_n^T: the Hessian too, since the model is linear."""
    r = np.random.default_rng(0)
    x, w0, v = r.normal(size=(7, 4)), r.normal(size=(3, 4)), r.normal(size=12)
    labels = chainrule.tensor(r.integers(0, 3, 7))
    w = chainrule.tensor(w0, requires_grad=True)
    loss = nn.CrossEntropyLoss(reduction="sum")
    f = WithOutputs(
        [w], lambda: (chainrule.tensor(x) @ w.mT, lambda out: loss(out, labels)), "test"
    )
    p = np.exp(x @ w0.T) / np.exp(x @ w0.T).sum(1, keepdims=True)
    matrix = sum(
        np.kron(np.diag(q) - np.outer(q, q), np.outer(a, a)) for q, a in zip(p, x, strict=True)
    )
    assert_close(f.curvature_product(chainrule.tensor(v)), matrix @ v)
    assert_close(f.hessian_product(chainrule.tensor(v)), matrix @ v)
    assert (f.evaluations, f.products) == (1, 2)


def test_gauss_newton_product_through_an_lstm() -> None:
    """Against the matrix that forward mode makes of the module itself."""
    chainrule.manual_seed(0)
    model = nn.LSTM(2, 3, batch_first=True).double()
    x, params = normal(2, 4, 2), list(model.parameters())
    outer = lambda out: (out**4).sum()  # noqa: E731
    f = WithOutputs(params, lambda: (model(x)[0], outer), "test")

    class Outputs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x)[0]

    matrix = curvature.gauss_newton(Outputs(), x, outer).numpy()
    v = np.random.default_rng(1).normal(size=matrix.shape[0])
    assert_close(f.curvature_product(chainrule.tensor(v)), matrix @ v, rtol=1e-9, atol=1e-12)


def test_a_loss_linear_in_the_outputs_has_no_curvature() -> None:
    w = parameter(1.0, 2.0)
    f = WithOutputs([w], lambda: (w**2, lambda out: out.sum()), "test")
    assert_close(f.curvature_product(chainrule.ones(2, dtype=chainrule.float64)), np.zeros(2))


def test_conjugate_gradients_solve_a_system() -> None:
    """In as many iterations as there are different eigenvalues: three."""
    q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 20)))
    a = chainrule.tensor((q * np.array([1.0, 5.0, 20.0]).repeat([8, 8, 4])) @ q.T)
    g, products = normal(20, seed=1), []

    def product(v: Tensor) -> Tensor:
        products.append(v)
        return a @ v

    found = conjugate_gradients(product, g, chainrule.zeros_like(g), 3, 0.0)
    expected = -np.linalg.solve(a.numpy(), g.numpy())
    last = found.kept[-1]
    assert found.bounded
    assert len(products) == 3
    assert_close(last.d, expected, rtol=1e-9, atol=1e-12)
    assert last.model == pytest.approx(0.5 * expected @ g.numpy())
    assert last.curvature == pytest.approx(expected @ a.numpy() @ expected)
    exact = conjugate_gradients(lambda v: a @ v, g, chainrule.tensor(expected), 1, 0.0)
    assert_close(exact.kept[-1].d, expected, rtol=1e-9, atol=1e-12)  # a start that is the solution


# --- where it arrives -----------------------------------------------------------------------------


def test_ill_conditioned_quadratic() -> None:
    """Curvatures from 1 to 1e6, seen as a loss: gradient descent needs some 1e6 steps to begin."""
    scales = chainrule.tensor(np.logspace(0, 6, 20))
    w = chainrule.ones(20, dtype=chainrule.float64).requires_grad_()
    loss = lambda: 0.5 * (scales * (w - 2) ** 2).sum()  # noqa: E731
    report = optim.HessianFree([w]).run(loss, max_iter=60)
    assert_close(w, np.full(20, 2.0), rtol=1e-6)
    assert report.products < 2000
    v = chainrule.ones(20, dtype=chainrule.float64).requires_grad_()
    descent = optim.SGD([v], lr=1.9e-6)
    for _ in range(2000):
        descent.zero_grad()
        (0.5 * (scales * (v - 2) ** 2).sum()).backward()
        descent.step()
    assert abs(v[0].item() - 2) > 0.99


def test_the_damping_follows_the_reduction_ratio() -> None:
    """On a quadratic the model is exact, the ratio 1: the damping shrinks by 2/3 at each step."""
    w = parameter(1.0, 2.0)
    optimizer = optim.HessianFree([w], damping=0.9)
    optimizer.step(lambda: (w**2).sum())
    assert optimizer.memory["damping"] == pytest.approx(0.6)
    optimizer.step(lambda: (w**2).sum())
    assert optimizer.memory["damping"] == pytest.approx(0.4)


def test_the_damping_grows_where_the_model_is_wrong() -> None:
    """Far out sqrt(1 + w^2) is almost straight: the model expects much more than there is."""
    w = parameter(10.0)
    optimizer = optim.HessianFree([w], damping=1e-8)
    optimizer.step(lambda: (1 + w**2).sqrt().sum())
    assert optimizer.memory["damping"] == pytest.approx(1.5e-8)
    assert abs(w.item()) < 10
    assert optimizer.run(lambda: (1 + w**2).sqrt().sum()).converged
    assert abs(w.item()) < 1e-6


def test_negative_curvature_leads_away_from_a_saddle() -> None:
    w = parameter(1.0, 0.1)
    report = optim.HessianFree([w], damping=1e-3).run(lambda: w[0] ** 2 - w[1] ** 2 + w[1] ** 4 / 2)
    assert report.converged
    assert_close(w.abs(), np.array([0.0, 1.0]), atol=1e-5)


CLOSURES: dict[str, Callable[[nn.Module, Tensor], Any]] = {
    "outputs": lambda model, x: (model(x), lambda out: 0.5 * ((out - x) ** 2).sum()),
    "residuals": lambda model, x: model(x) - x,
    "loss": lambda model, x: 0.5 * ((model(x) - x) ** 2).sum(),
}


def autoencoder() -> nn.Module:
    chainrule.manual_seed(0)
    layers = [nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 2), nn.Linear(2, 5), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(5, 8)).double()


def curve() -> Tensor:
    """Points on a curve in eight dimensions."""
    t = np.linspace(0, np.pi, 60)[:, None]
    return chainrule.tensor(np.sin(t * np.arange(1, 5)) @ normal(4, 8).numpy())


def loss_of_descent(x: Tensor, lr: float, steps: int) -> float:
    model = autoencoder()
    optimizer = optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = CLOSURES["loss"](model, x)
        loss.backward()
        optimizer.step()
    return loss.item()


@pytest.fixture(scope="module")
def lowest_of_descent() -> float:
    """After 5000 steps with the better of two rates (with 0.01 it diverges)."""
    return min(loss_of_descent(curve(), lr, 5000) for lr in (1e-3, 3e-3))


@pytest.mark.parametrize("kind", ["outputs", "loss"])
def test_autoencoder_beats_gradient_descent(kind: str, lowest_of_descent: float) -> None:
    """With the same work: each product counts like two gradients.

    Where a run ends, and after how much work, depends on rounding, so the medians of five that
    start close together count.
    """
    ends, works, x = [], [], curve()
    for step in range(5):
        model = autoencoder()
        with chainrule.no_grad():
            model[0].weight.mul_(1 + 1e-8 * step)
        optimizer = optim.HessianFree(model.parameters())
        report = optimizer.run(lambda model=model: CLOSURES[kind](model, x), max_iter=40)
        works.append(report.evaluations + report.gradients + 2 * report.products)
        ends.append(report.loss)
    assert sorted(works)[2] < 5000
    assert sorted(ends)[2] < 0.5 * lowest_of_descent


def test_residuals_and_outputs_with_their_squares_are_the_same() -> None:
    x, ends = curve(), []
    for kind in ("outputs", "residuals"):
        model = autoencoder()
        optim.HessianFree(model.parameters()).run(
            lambda model=model, kind=kind: CLOSURES[kind](model, x), max_iter=3
        )
        ends.append(model[0].weight.detach().numpy())
    assert_close(ends[0], ends[1], rtol=1e-6)


def test_it_learns_through_an_lstm() -> None:
    """The sum of the first and the last of six numbers: it has to be carried over the steps."""
    chainrule.manual_seed(0)
    lstm, head = nn.LSTM(1, 6, batch_first=True).double(), nn.Linear(6, 1).double()
    x = normal(40, 6, 1)
    target = x[:, 0] + x[:, -1]
    optimizer = optim.HessianFree([*lstm.parameters(), *head.parameters()], damping=0.1)
    report = optimizer.run(lambda: head(lstm(x)[0][:, -1]) - target, max_iter=40)
    start = float((target**2).sum() / 2)
    assert report.loss < 0.01 * start


# --- large problems, files, errors ----------------------------------------------------------------


def test_no_matrix_is_formed() -> None:
    """300,000 parameters: a matrix of them would take 360 GB."""
    n = 300_000
    scales = chainrule.linspace(1, 100, n)
    w = chainrule.ones(n, requires_grad=True)
    optimizer = optim.HessianFree([w], max_cg=20)
    tracemalloc.start()
    try:
        optimizer.step(lambda: (scales * w**2).mean())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * 4 * n
    assert optimizer.report.loss < 50.5


def test_the_warm_start_and_the_damping_are_saved() -> None:
    w = parameter(1.0, 2.0)
    first = optim.HessianFree([w])
    first.step(lambda: w.cosh().sum())
    second = optim.HessianFree([w])
    second.load_state_dict(first.state_dict())
    assert second.memory["damping"] == first.memory["damping"]
    assert_close(second.memory["direction"], first.memory["direction"].numpy())
    saved = w.detach().clone()
    first.step(lambda: w.cosh().sum())
    expected = w.detach().numpy().copy()
    with chainrule.no_grad():
        w.copy_(saved)
    second.step(lambda: w.cosh().sum())
    assert_close(w, expected)


def test_a_tuple_must_be_outputs_and_a_function() -> None:
    w = parameter(1.0)
    with pytest.raises(RuntimeError, match=r"\(outputs, loss_fn\).* got \(Tensor, Tensor\)"):
        optim.HessianFree([w]).step(lambda: (w, w))
    with pytest.raises(RuntimeError, match="return one number, the loss"):
        optim.HessianFree([w]).step(lambda: (w, lambda out: chainrule.cat([out, out])))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"damping": -1.0}, "invalid damping"),
        ({"max_cg": 0}, "invalid max_cg"),
        ({"decay": 1.0}, "invalid decay"),
        ({"cg_tolerance": -1.0}, "invalid cg_tolerance"),
    ],
)
def test_settings_are_checked(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"HessianFree: {message}"):
        optim.HessianFree([parameter(1.0)], **settings)
