"""Optimal Brain Damage and Optimal Brain Surgeon against closed forms."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from regularize.networks import F64, Recurrent

import chainrule
from chainrule import curvature, models, nn
from chainrule.regularize import prune
from chainrule.regularize.prune.inverses import Blocks, Dense, LowRank, inverse_of
from chainrule.regularize.prune.problem import Problem

MSE, CE = nn.MSELoss(), nn.CrossEntropyLoss()


def randn(*shape: int, seed: int = 0) -> Any:
    return chainrule.randn(shape, dtype=F64, generator=chainrule.Generator().manual_seed(seed))


def small() -> tuple[Any, Any]:
    """A network of 18 weights with data on which it is not at a minimum."""
    chainrule.manual_seed(3)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    return net, (randn(30, 3), randn(30, 2, seed=1))


def at_minimum() -> tuple[Any, Any]:
    """The same with the network's own outputs as targets."""
    net, (x, _) = small()
    return net, (x, net(x).detach())


def weights(net: Any) -> np.ndarray:
    return np.concatenate(
        [net[0].weight.detach().numpy().ravel(), net[2].weight.detach().numpy().ravel()]
    )


def loss_at(net: Any, data: Any, w: np.ndarray, loss: Any = MSE) -> float:
    """The loss with other weights."""
    other = prune.remove(copy.deepcopy(net))
    first = net[0].weight.numel()
    other[0].weight.data = chainrule.tensor(w[:first].reshape(net[0].weight.shape))
    other[2].weight.data = chainrule.tensor(w[first:].reshape(net[2].weight.shape))
    with chainrule.no_grad():
        return float(loss(other(data[0]), data[1]))


def hessian(net: Any, data: Any, loss: Any = MSE) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian by the two weight matrices, by the curvature room."""
    params = {n: p.detach() for n, p in net.named_parameters() if p.ndim == 2}
    f, params = curvature.as_function(net, params)
    value = lambda p: loss(f(p, data[0]), data[1])  # noqa: E731
    g = chainrule.func.grad(value)(params)
    flat = np.concatenate([t.detach().numpy().ravel() for t in g.values()])
    return flat, curvature.hessian_matrix(value, params).detach().numpy()


# --- Optimal Brain Damage -------------------------------------------------------------------------


def test_obd_saliency_is_half_the_curvature_by_differences() -> None:
    net, data = small()
    w, h = weights(net), 1e-4
    found = prune.obd_saliency(net, MSE, data)
    expected = []
    for i in range(w.size):
        e = h * np.eye(w.size)[i]
        curve = (
            loss_at(net, data, w + e) - 2 * loss_at(net, data, w) + loss_at(net, data, w - e)
        ) / h**2
        expected.append(0.5 * curve * w[i] ** 2)
    got = np.concatenate([found["0.weight"].numpy().ravel(), found["2.weight"].numpy().ravel()])
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_saliency_of_a_quadratic_is_the_change_of_the_loss_with_the_half() -> None:
    """Errata 125: 1/2 H_ii w_i^2, and H is semidefinite at a minimum."""
    net = nn.Linear(4, 1, bias=False).double()
    x = randn(20, 4)
    data = (x, net(x).detach())
    saliency = prune.obd_saliency(net, MSE, data)["weight"].numpy()[0]
    for i in range(4):
        other = copy.deepcopy(net)
        other.weight.detach()[0, i] = 0
        change = float(MSE(other(x), data[1]))
        assert change == pytest.approx(saliency[i], rel=1e-10)
    assert (saliency > 0).all()
    x[:, 2] = 0  # a weight that does nothing: semidefinite, not definite
    assert prune.obd_saliency(net, MSE, (x, net(x).detach()))["weight"][0, 2] == 0


@pytest.mark.parametrize("loss", [MSE, CE], ids=["mse", "cross_entropy"])
def test_gauss_newton_diagonal_is_that_of_the_matrix(loss: Any) -> None:
    net, (x, y) = small()
    target = y if loss is MSE else y.argmax(1)
    found = prune.obd_saliency(net, loss, (x, target), diagonal="gauss-newton")
    params = {n: p.detach() for n, p in net.named_parameters() if p.ndim == 2}
    matrix = curvature.gauss_newton(net, x, lambda out: loss(out, target), params)
    expected = 0.5 * np.diag(matrix.detach().numpy()) * weights(net) ** 2
    got = np.concatenate([t.numpy().ravel() for t in found.values()])
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-14)


def test_hutchinson_tends_to_the_diagonal() -> None:
    net, data = small()
    exact = np.concatenate([t.numpy().ravel() for t in prune.obd_saliency(net, MSE, data).values()])
    few, many = [
        np.concatenate(
            [
                t.numpy().ravel()
                for t in prune.obd_saliency(
                    net, MSE, data, diagonal="hutchinson", samples=n, seed=0
                ).values()
            ]
        )
        for n in (20, 1500)
    ]
    assert np.abs(many - exact).max() < 0.15 * np.abs(exact).max()
    assert np.abs(many - exact).max() < np.abs(few - exact).max()


def test_obd_prunes_the_lowest_and_tells_what_it_cost() -> None:
    net, data = at_minimum()
    saliency = np.concatenate(
        [t.numpy().ravel() for t in prune.obd_saliency(net, MSE, data).values()]
    )
    w = weights(net)
    step = prune.obd(net, MSE, data, count=3)
    gone = np.argsort(saliency)[:3]
    assert set(np.flatnonzero(weights(net) == 0)) == set(gone)
    assert step.predicted == pytest.approx(saliency[gone].sum())
    w[gone] = 0
    assert step.before == pytest.approx(0, abs=1e-20)
    assert step.measured == pytest.approx(loss_at(net, data, w))
    again = prune.obd(net, MSE, data, 0.5)
    assert (again.pruned, again.remaining) == (7, 10)


class SkipNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.block = nn.ResidualBlock(2, 2)
        self.head = nn.Linear(2, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.block(self.conv(x)).mean((2, 3)))


@pytest.mark.parametrize(
    ("make", "shape"), [(SkipNet, (4, 1, 5, 5)), (Recurrent, (4, 5, 3))], ids=["residual", "lstm"]
)
@pytest.mark.parametrize("diagonal", ["exact", "hutchinson", "gauss-newton"])
def test_obd_of_other_networks(make: Callable[[], Any], shape: Any, diagonal: str) -> None:
    chainrule.manual_seed(0)
    net = make().double().train()
    x = randn(*shape)
    y = net.eval()(x).detach() + 0.1
    net.train()
    step = prune.obd(net, MSE, (x, y), 0.3, diagonal=diagonal, samples=4, seed=0)
    assert prune.sparsity(net) == pytest.approx(0.3, abs=0.01)
    assert np.isfinite([step.predicted, step.measured]).all()
    assert net.training


def test_float32_and_cross_entropy() -> None:
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))
    x = chainrule.randn(16, 3)
    step = prune.obd(net, CE, (x, chainrule.randint(0, 4, (16,))), 0.5)
    assert net[0].weight.dtype == chainrule.float32
    assert prune.sparsity(net) == 0.5
    assert step.measured is not None


# --- Optimal Brain Surgeon ------------------------------------------------------------------------


def constrained(
    h: np.ndarray, g: np.ndarray, w: np.ndarray, gone: list[int]
) -> tuple[np.ndarray, float]:
    """The least g.dw + 1/2 dw^T H dw with w + dw zero at some places, by the Lagrange equations."""
    e = np.eye(w.size)[:, gone]
    matrix = np.block([[h, e], [e.T, np.zeros((len(gone), len(gone)))]])
    dw = np.linalg.solve(matrix, np.concatenate([-g, -w[gone]]))[: w.size]
    return dw, float(g @ dw + 0.5 * dw @ h @ dw)


def convex() -> tuple[Any, Any]:
    """The small network after some Newton steps: a minimum with a positive definite Hessian."""
    chainrule.manual_seed(5)
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    x = randn(40, 2)
    return net, (x, net(x).detach())


@pytest.mark.parametrize("gradient", [True, False])
def test_obs_is_the_constrained_minimum_of_a_quadratic(gradient: bool) -> None:
    net = nn.Linear(5, 1, bias=False).double()
    x, y = randn(30, 5), randn(30, 1, seed=1)  # not at a minimum
    h = 2 / 30 * (x.T @ x).numpy()
    w = net.weight.detach().numpy()[0].copy()
    g = 2 / 30 * ((x @ net.weight.detach().T - y).T @ x).numpy()[0]
    used = g if gradient else np.zeros(5)
    costs = [constrained(h, used, w, [i])[1] for i in range(5)]
    step = prune.obs(net, MSE, (x, y), count=1, gradient=gradient, gamma=None)
    i = int(np.flatnonzero(net.weight.detach().numpy()[0] == 0)[0])
    assert i == int(np.argmin(costs))
    dw, _ = constrained(h, used, w, [i])
    np.testing.assert_allclose(net.weight.detach().numpy()[0], w + dw, atol=1e-12)
    assert step.measured == pytest.approx(g @ dw + 0.5 * dw @ h @ dw, abs=1e-12)
    assert step.predicted == pytest.approx(step.measured, abs=1e-12)


def test_obs_formulas_one_weight_at_a_time() -> None:
    """dw = -w_i / [H^-1]_ii H^-1 e_i costs w_i^2 / (2 [H^-1]_ii)."""
    net, data = convex()
    g, h = hessian(net, data)
    w = weights(net)
    inverse = np.linalg.inv(h)
    costs = prune.obs_cost(net, MSE, data)
    got = np.concatenate([t.numpy().ravel() for t in costs.values()])
    np.testing.assert_allclose(got, w**2 / (2 * np.diag(inverse)), rtol=1e-6)
    for i in range(w.size):
        dw, cost = constrained(h, np.zeros_like(w), w, [i])
        np.testing.assert_allclose(dw, -w[i] / inverse[i, i] * inverse[:, i], atol=1e-9)
        assert got[i] == pytest.approx(cost, rel=1e-6)
    np.testing.assert_allclose(g, 0, atol=1e-14)


def test_several_weights_are_the_joint_constrained_minimum() -> None:
    net, data = convex()
    _, h = hessian(net, data)
    w = weights(net)
    step = prune.obs(net, MSE, data, count=3, gamma=None)
    gone = [int(i) for i in np.flatnonzero(weights(net) == 0)]
    assert len(gone) == 3
    dw, cost = constrained(h, np.zeros_like(w), w, gone)
    np.testing.assert_allclose(weights(net), w + dw, atol=1e-8)
    assert step.predicted == pytest.approx(cost, rel=1e-6)
    assert step.measured == pytest.approx(loss_at(net, data, w + dw), rel=1e-6)


def test_obs_finds_the_redundant_pair_that_obd_misses() -> None:
    chainrule.manual_seed(1)
    net = nn.Sequential(
        nn.Linear(3, 4, bias=False), nn.Tanh(), nn.Linear(4, 1, bias=False)
    ).double()
    net[0].weight.data[1] = net[0].weight.data[0]  # two units that do the same
    net[2].weight.data = chainrule.tensor([[1.0, 1.5, 0.3, 0.4]], dtype=F64)
    x = randn(50, 3)
    data = (x, net(x).detach())
    damage, surgery = copy.deepcopy(net), copy.deepcopy(net)
    by_damage = prune.obd(damage, MSE, data, count=1, where="2.weight")
    assert damage[2].weight[0, 0] != 0
    assert damage[2].weight[0, 1] != 0
    assert by_damage.measured > 1e-3
    with pytest.warns(UserWarning, match="singular or not positive definite"):
        by_surgery = prune.obs(surgery, MSE, data, count=1, gamma=None, where="2.weight")
    gone = np.flatnonzero(surgery[2].weight.detach().numpy()[0] == 0)
    assert gone.tolist() in ([0], [1])
    assert surgery[2].weight.detach().numpy()[0].sum() == pytest.approx(3.2, abs=1e-6)
    assert abs(by_surgery.measured) < 1e-12
    assert "damping" in by_surgery.note


def test_the_gradient_term_matters_away_from_a_minimum() -> None:
    net, data = convex()
    data = (data[0], data[1] + 0.02 * randn(40, 1, seed=7))
    with_it, without = copy.deepcopy(net), copy.deepcopy(net)
    a = prune.obs(with_it, MSE, data, count=1, damping=5e-3)
    b = prune.obs(without, MSE, data, count=1, damping=5e-3, gradient=False)
    assert a.measured < b.measured


def test_an_inaccurate_inverse_is_damped_more() -> None:
    h = chainrule.tensor(np.ones((6, 6)))
    assert Dense(h).error() < 1e-2
    assert Dense(h).damping == pytest.approx(6e-8, rel=1e-3)
    assert Dense(h, damping=0.5).damping == 0.5
    assert Dense(h, beta=1e-10).damping > 6e-7
    indefinite = chainrule.tensor(np.diag([1.0, -0.5]))
    assert Dense(indefinite).damping == pytest.approx(0.5, rel=1e-6)
    assert (Dense(indefinite).diagonal() > 0).all()
    assert Dense(chainrule.zeros(3, 3)).damping == 1.0
    with pytest.raises(RuntimeError, match="stays inaccurate.*> beta = 0"):
        Dense(chainrule.tensor(np.vander(np.arange(1.0, 7))), beta=0.0)
    with pytest.raises(ValueError, match="not finite"):
        Dense(chainrule.tensor([[np.nan]]))


def test_large_changes_are_scaled() -> None:
    net, data = convex()
    free, bounded = copy.deepcopy(net), copy.deepcopy(net)
    w = weights(net)
    prune.obs(free, MSE, data, count=2, gamma=None)
    change = weights(free) - w
    step = prune.obs(bounded, MSE, data, count=2, gamma=0.01)
    smaller = weights(bounded) - w
    gone = weights(bounded) == 0
    assert np.abs(change[~gone]).max() > 0.01
    assert np.abs(smaller[~gone]).max() == pytest.approx(0.01)
    factor = smaller[~gone] / change[~gone]
    np.testing.assert_allclose(factor, factor[0])
    assert "scaled by" in step.note
    g, h = hessian(net, data)
    assert step.predicted == pytest.approx(g @ smaller + 0.5 * smaller @ h @ smaller, rel=1e-8)


def test_pruned_weights_stay_zero_when_the_others_move() -> None:
    net, data = convex()
    prune.obs(net, MSE, data, count=2, damping=1e-2)
    first = weights(net) == 0
    prune.obs(net, MSE, data, count=2, damping=1e-2)
    assert (weights(net)[first] == 0).all()
    assert (weights(net) == 0).sum() == 4


# --- approximate inverses -------------------------------------------------------------------------


def test_blocks_are_those_of_the_hessian() -> None:
    net, data = convex()
    _, h = hessian(net, data)
    problem = Problem("obs", net, MSE, data)
    inverse = inverse_of(problem, "layerwise", None, 1e-2, 2.0)
    assert isinstance(inverse, Blocks)
    expected = np.zeros_like(h)
    for part in (slice(0, 6), slice(6, 9)):
        expected[part, part] = np.linalg.inv(h[part, part])
    columns = np.stack([inverse.column(i).numpy() for i in range(9)], 1)
    np.testing.assert_allclose(columns, expected, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(inverse.diagonal().numpy(), np.diag(expected), rtol=1e-5)
    v = randn(9)
    np.testing.assert_allclose(inverse.times(v).numpy(), expected @ v.numpy(), rtol=1e-5)
    assert inverse.error() < 1e-8


def test_the_low_rank_inverse_is_that_of_the_empirical_fisher() -> None:
    net, (x, y) = small()
    target = y.argmax(1)
    problem = Problem("obs", net, CE, (x, target))
    damping = 0.02
    inverse = inverse_of(problem, "fisher", damping, 1e-2, 2.0)
    assert isinstance(inverse, LowRank)
    gradients = problem.sample_gradients()
    dense = curvature.inverse_hessian(gradients, damping).numpy()
    matrix = damping * np.eye(problem.count) + (gradients.T @ gradients).numpy() / len(x)
    np.testing.assert_allclose(dense @ matrix, np.eye(problem.count), atol=1e-8)
    for i in range(problem.count):
        np.testing.assert_allclose(inverse.column(i).numpy(), dense[:, i], rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(inverse.diagonal().numpy(), np.diag(dense), rtol=1e-8)
    assert inverse.error() < 1e-8


@pytest.mark.parametrize("kind", ["dense", "low rank"])
def test_taking_weights_out_inverts_the_rest_of_the_matrix(kind: str) -> None:
    g = randn(7, 6)
    matrix = (g.T @ g).numpy() / 7 + 0.1 * np.eye(6)
    inverse: Any = Dense(chainrule.tensor(matrix)) if kind == "dense" else LowRank(g, 0.1)
    for i in (4, 1):
        inverse.take_out(i)
    left = [0, 2, 3, 5]
    expected = np.linalg.inv(matrix[np.ix_(left, left)])
    columns = np.stack([inverse.column(i).numpy() for i in left], 1)
    np.testing.assert_allclose(columns[left], expected, rtol=1e-9)
    np.testing.assert_allclose(inverse.diagonal().numpy()[left], np.diag(expected), rtol=1e-9)
    assert np.abs(columns[[1, 4]]).max() < 1e-12


@pytest.mark.parametrize("method", ["layerwise", "fisher"])
def test_approximate_surgery(method: str) -> None:
    net, (x, y) = small()
    target = y.argmax(1)
    step = prune.obs(net, CE, (x, target), 0.3, method=method, damping=0.05)
    assert step.pruned == 6
    assert (weights(net) == 0).sum() == 6
    assert step.measured < 0.3


def test_the_method_is_chosen_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    net, data = convex()
    problem = Problem("obs", net, MSE, data)
    assert isinstance(inverse_of(problem, "auto", None, 1e-2, 2.0), Dense)
    byte = 1 / (1 << 30)
    assert isinstance(inverse_of(problem, "auto", None, 1e-2, 40 * 32 * byte), Blocks)
    # 40 samples by 9 weights fit where a block of 6 x 6 does not, if there are few samples
    few = Problem("obs", net, MSE, (data[0][:2], data[1][:2]))
    assert isinstance(inverse_of(few, "auto", None, 1e-2, 30 * 32 * byte), LowRank)


# --- what is refused ------------------------------------------------------------------------------


def test_a_hessian_too_large_for_memory() -> None:
    data = (chainrule.zeros(2, 1, 32, 32), chainrule.zeros(2, dtype=chainrule.int64))
    message = (
        "the Hessian of 61470 weights, a matrix of 61470 x 61470 numbers, would take 113 GiB.*"
        "method='layerwise'.*method='fisher'"
    )
    with pytest.raises(MemoryError, match=message):
        prune.obs(models.LeNet(), CE, data, count=1, method="exact")
    with pytest.raises(MemoryError, match="the block of 'c5.weight' in the Hessian, for 48000"):
        prune.obs(models.LeNet(), CE, data, count=1, method="layerwise", where="c5.weight")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "guess"}, "method must be one of"),
        ({"damping": 0.0}, "damping must be None or greater than 0"),
        ({"gamma": 0.0}, "gamma must be None or greater than 0"),
        ({"where": "9.weight"}, "'9.weight' matches no parameter"),
    ],
)
def test_bad_arguments_of_obs(arguments: Any, message: str) -> None:
    net, data = convex()
    with pytest.raises(ValueError, match=message):
        prune.obs(net, MSE, data, count=1, **arguments)


def test_bad_arguments_of_obd() -> None:
    net, data = small()
    with pytest.raises(ValueError, match="diagonal must be one of.*'exactly'"):
        prune.obd(net, MSE, data, 0.5, diagonal="exactly")
    with pytest.raises(TypeError, match="data must be a pair \\(inputs, target\\), got Tensor"):
        prune.obd(net, MSE, data[0], 0.5)
    with pytest.raises(ValueError, match="cannot prune 21 of 20"):
        prune.obd(net, MSE, data, count=21)


def test_shared_weights_count_once() -> None:
    shared = nn.Linear(3, 3).double()
    net = nn.Sequential(shared, nn.Tanh(), shared)
    x = randn(10, 3)
    data = (x, net(x).detach())
    saliency = prune.obd_saliency(net, MSE, data)
    assert list(saliency) == ["0.weight"]
    step = prune.obd(net, MSE, data, count=2)
    assert (step.total, step.remaining) == (9, 7)
    assert (net[2].weight.detach().numpy() == 0).sum() == 2
