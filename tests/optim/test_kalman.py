"""The extended Kalman filter: recursive least squares on linear models, few samples on others."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn, optim
from chainrule.nn import functional as F


def normal(*shape: int, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def tensor(array: Any) -> chainrule.Tensor:
    return chainrule.tensor(np.array(array))


def linear(inputs: int = 3, outputs: int = 1, bias: bool = False) -> nn.Linear:
    chainrule.manual_seed(0)
    return nn.Linear(inputs, outputs, bias=bias).double()


def values(model: nn.Module) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])


# --- linear models --------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 4])
def test_on_a_linear_model_it_is_least_squares(batch: int) -> None:
    """(X^T X / R + 1 / P0) w = X^T y / R + w0 / P0, after any number of samples."""
    x, y = normal(20, 3, seed=1), normal(20, 1, seed=2)
    r, p0 = 0.3, 5.0
    model = linear()
    start = values(model)
    optimizer = optim.ExtendedKalmanFilter(
        model.parameters(), measurement_noise=r, initial_covariance=p0
    )
    for i in range(0, 20, batch):
        optimizer.step(lambda i=i: model(tensor(x[i : i + batch])), tensor(y[i : i + batch]))
        seen = slice(0, i + batch)
        information = x[seen].T @ x[seen] / r + np.eye(3) / p0
        expected = np.linalg.solve(information, x[seen].T @ y[seen][:, 0] / r + start / p0)
        assert_close(values(model), expected, rtol=1e-10)
        (state,) = optimizer.state.values()
        assert_close(state["covariance"][0], np.linalg.inv(information), rtol=1e-9)


def test_without_noise_to_speak_of_it_is_the_pseudo_inverse() -> None:
    x, w = normal(8, 3, seed=3), np.array([[1.0, -2.0, 0.5]])
    model = linear()
    optimizer = optim.ExtendedKalmanFilter(model.parameters(), measurement_noise=1e-10)
    for row in x:
        optimizer.step(lambda row=row: model(tensor(row)), tensor(w @ row))
    assert_close(values(model), w[0], rtol=1e-7)


# --- the equations --------------------------------------------------------------------------------


class Tiny(nn.Module):
    """y = v tanh(w x), a matrix w and a matrix v; the Jacobian by hand below."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(tensor([[0.3, -0.2], [0.1, 0.4], [-0.5, 0.2]]))
        self.v = nn.Parameter(tensor([[0.7, -0.1, 0.3], [0.2, 0.5, -0.4]]))

    def forward(self, x: chainrule.Tensor) -> chainrule.Tensor:
        return self.v @ (self.w @ x).tanh()


def by_hand(w: np.ndarray, v: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The outputs, and dy/d(w, v) as a matrix of shape (2, 12)."""
    h = np.tanh(w @ x)
    by_w = np.einsum("oi,i,j->oij", v, 1 - h * h, x).reshape(2, 6)
    by_v = np.einsum("op,i->opi", np.eye(2), h).reshape(2, 6)
    return v @ h, np.concatenate([by_w, by_v], axis=1)


BLOCKS = {
    "global": [range(12)],
    "parameter": [range(6), range(6, 12)],
    "node": [range(2), range(2, 4), range(4, 6), range(6, 9), range(9, 12)],
}
NOISE = np.array([[0.2, 0.05], [0.05, 0.1]])


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("noise", [0.1, np.array([0.2, 0.1]), NOISE], ids=["one", "each", "matrix"])
def test_golden_trace(kind: str, noise: Any) -> None:
    """The decoupled filter in NumPy: blocks of P, one matrix H P H^T + R for all."""
    q, r = 0.01, noise if np.ndim(noise) == 2 else np.diag(np.broadcast_to(noise, 2))
    p = np.zeros((12, 12))
    inside = np.zeros((12, 12), bool)
    for block in BLOCKS[kind]:
        inside[np.ix_(block, block)] = True
    p[np.diag_indices(12)] = 2.0
    model = Tiny()
    optimizer = optim.ExtendedKalmanFilter(
        model.parameters(), q, tensor(noise) if np.ndim(noise) else noise, 2.0, kind
    )
    theta = values(model)
    for x, y in zip(normal(6, 2, seed=4), normal(6, 2, seed=5), strict=True):
        out, h = by_hand(theta[:6].reshape(3, 2), theta[6:].reshape(2, 3), x)
        gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + r)
        theta = theta + gain @ (y - out)
        p = np.where(inside, p - gain @ h @ p + q * np.eye(12), 0)
        error = optimizer.step(lambda x=x: model(tensor(x)), tensor(y))
        assert error == pytest.approx(((y - out) ** 2).mean(), rel=1e-9)
        assert_close(values(model), theta, rtol=1e-9)
    kept = [s["covariance"].numpy() for s in optimizer.state.values()]
    found = [c for blocks in kept for c in blocks]
    assert_close(found, [p[np.ix_(b, b)] for b in BLOCKS[kind]], rtol=1e-8, atol=1e-10)


def test_covariances_stay_symmetric_and_positive() -> None:
    model = Tiny()
    optimizer = optim.ExtendedKalmanFilter(model.parameters(), measurement_noise=1e-4)
    for x, y in zip(normal(200, 2, seed=6), normal(200, 2, seed=7), strict=True):
        optimizer.step(lambda x=x: model(tensor(x)), tensor(y))
    p = optimizer.state[model.w]["covariance"][0].numpy()
    assert_close(p, p.T, 0, 0)
    assert np.linalg.eigvalsh(p).min() > 0


# --- recurrent networks ---------------------------------------------------------------------------


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.out = nn.RNN(1, 4), nn.Linear(4, 1)

    def forward(self, x: chainrule.Tensor) -> chainrule.Tensor:
        return self.out(self.rnn(x)[0][-1])


def sequences(n: int, seed: int) -> tuple[chainrule.Tensor, chainrule.Tensor]:
    """Five numbers; the target is a function of the last three."""
    x = np.random.default_rng(seed).uniform(-1, 1, size=(5, n, 1))
    return tensor(x), tensor(x[-1] * x[-2] + 0.3 * x[-3])


def samples_needed(make: Any, limit: int) -> int:
    """How many samples, one at a time, until the error on others is below 0.03."""
    x, y = sequences(limit, 0)
    others, targets = sequences(200, 1)
    chainrule.manual_seed(0)
    model = Recurrent().double()
    optimizer = make(model.parameters())
    for i in range(limit):
        sample, target = x[:, i : i + 1], y[i : i + 1]
        if i % 50 == 0 and F.mse_loss(model(others), targets).item() < 0.03:
            return i
        if isinstance(optimizer, optim.ExtendedKalmanFilter):
            optimizer.step(lambda: model(sample), target)  # noqa: B023
        else:
            optimizer.zero_grad()
            F.mse_loss(model(sample), target).backward()
            optimizer.step()
    return limit


def test_a_recurrent_network_needs_far_fewer_samples_than_gradient_descent() -> None:
    kalman = samples_needed(
        lambda p: optim.ExtendedKalmanFilter(p, process_noise=1e-4, measurement_noise=0.1), 400
    )
    assert kalman < 300
    for lr in (0.03, 0.1):
        assert samples_needed(lambda p, lr=lr: optim.SGD(p, lr=lr), 4 * kalman) == 4 * kalman


# --- state, errors --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BLOCKS)
def test_resume(kind: str) -> None:
    x, y = normal(8, 2, seed=8), normal(8, 2, seed=9)
    model = Tiny()
    optimizer = optim.ExtendedKalmanFilter(model.parameters(), covariance=kind)
    for i in range(4):
        optimizer.step(lambda i=i: model(tensor(x[i])), tensor(y[i]))
    other = pickle.loads(pickle.dumps(model))
    second = optim.ExtendedKalmanFilter(other.parameters(), measurement_noise=7.0)
    second.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
    for i in range(4, 8):
        optimizer.step(lambda i=i: model(tensor(x[i])), tensor(y[i]))
        second.step(lambda i=i: other(tensor(x[i])), tensor(y[i]))
    assert_close(values(other), values(model), 0, 0)


def test_frozen_and_unused_parameters_are_left_alone() -> None:
    model = nn.Sequential(linear(3, 2, bias=True), linear(2, 1, bias=True))
    model[0].bias.requires_grad_(False)
    unused = nn.Parameter(tensor([1.0, 2.0]))
    before = model[0].bias.detach().numpy().copy()
    optimizer = optim.ExtendedKalmanFilter([*model.parameters(), unused])
    weight = model[0].weight.detach().numpy().copy()
    for x in normal(3, 3, seed=10):
        optimizer.step(lambda x=x: model(tensor(x)), tensor([1.0]))
    assert_close(model[0].bias, before, 0, 0)
    assert_close(unused, np.array([1.0, 2.0]), 0, 0)
    assert np.abs(model[0].weight.detach().numpy() - weight).max() > 1e-3
    assert all(p.grad is None for p in model.parameters())


def test_float32_stays_float32() -> None:
    model = nn.Linear(2, 1)
    optimizer = optim.ExtendedKalmanFilter(model.parameters(), process_noise=1e-3)
    optimizer.step(lambda: model(chainrule.ones(2)), chainrule.ones(1))
    assert model.weight.dtype == chainrule.float32
    assert {s["covariance"].dtype for s in optimizer.state.values()} == {chainrule.float32}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"process_noise": -1}, "invalid process_noise: -1"),
        ({"measurement_noise": 0}, r"invalid measurement_noise: 0; it must lie in \(0, infinity"),
        ({"initial_covariance": 0}, "invalid initial_covariance: 0"),
        ({"covariance": "full"}, "covariance must be 'global', 'parameter' or 'node', got 'full'"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"ExtendedKalmanFilter: {message}"):
        optim.ExtendedKalmanFilter(linear().parameters(), **settings)


def test_one_group_of_one_dtype() -> None:
    groups = [{"params": linear().parameters()}, {"params": linear().parameters()}]
    with pytest.raises(ValueError, match="takes one parameter group, got 2"):
        optim.ExtendedKalmanFilter(groups)
    mixed = [*linear().parameters(), *nn.Linear(2, 1).parameters()]
    with pytest.raises(ValueError, match="must have one real dtype, got .*float64.*float32"):
        optim.ExtendedKalmanFilter(mixed)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda f, m: f.step(), ValueError, "needs a closure that returns the outputs"),
        (lambda f, m: f.step(lambda: m(tensor(np.ones(3)))), ValueError, "and their targets"),
        (
            lambda f, m: f.step(lambda: m(tensor(np.ones(3))), tensor([1.0, 2.0])),
            ValueError,
            r"outputs of shape \(1,\) and targets of shape \(2,\)",
        ),
        (
            lambda f, m: f.step(lambda: m(tensor(np.ones((0, 3)))), tensor(np.ones((0, 1)))),
            ValueError,
            "one or more outputs",
        ),
        (
            lambda f, m: f.step(lambda: tensor([1.0]), tensor([1.0])),
            RuntimeError,
            "computed from the parameters",
        ),
        (
            lambda f, m: f.step(lambda: m(tensor([np.inf, 1, 1])), tensor([1.0])),
            RuntimeError,
            "NaN or infinite values; no parameter was changed",
        ),
    ],
    ids=["nothing", "no target", "shape", "empty", "constant", "infinite"],
)
def test_wrong_calls_change_nothing(call: Any, error: Any, message: str) -> None:
    model = linear()
    before = values(model)
    with pytest.raises(error, match=f"ExtendedKalmanFilter.step: .*{message}"):
        call(optim.ExtendedKalmanFilter(model.parameters()), model)
    assert_close(values(model), before, 0, 0)


def test_noise_that_does_not_fit() -> None:
    model, x = linear(3, 2), tensor(np.ones(3))
    f = optim.ExtendedKalmanFilter(model.parameters(), measurement_noise=tensor(np.ones(3)))
    with pytest.raises(ValueError, match=r"measurement_noise of shape \(3,\) does not fit 2 outp"):
        f.step(lambda: model(x), tensor([1.0, 1.0]))
    singular = tensor(np.zeros((2, 2)))
    f = optim.ExtendedKalmanFilter(model.parameters(), measurement_noise=singular)
    with pytest.raises(RuntimeError, match="covariance of the outputs is singular; no parameter"):
        f.step(lambda: model(x) * tensor([0.0, 0.0]), tensor([1.0, 1.0]))


def test_freezing_after_the_first_step_is_told() -> None:
    model = linear(3, 1, bias=True)
    f = optim.ExtendedKalmanFilter(model.parameters())
    f.step(lambda: model(tensor(np.ones(3))), tensor([1.0]))
    model.bias.requires_grad_(False)
    with pytest.raises(
        RuntimeError, match=r"covariances of shape \(1, 4, 4\), .* need \(1, 3, 3\)"
    ):
        f.step(lambda: model(tensor(np.ones(3))), tensor([1.0]))
