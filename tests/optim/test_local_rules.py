"""Hebbian learning against principal components, feedback alignment against backpropagation."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn, optim
from chainrule.nn import functional as F

RNG = np.random.default_rng(3)
X, Y, W = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2)), RNG.normal(size=(2, 3))


def tensor(array: Any) -> chainrule.Tensor:
    return chainrule.tensor(np.array(array))


def layer_of(weight: np.ndarray, bias: bool = False) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias).double()
    with chainrule.no_grad():
        layer.weight.copy_(tensor(weight))
    return layer


# --- Hebbian rules --------------------------------------------------------------------------------


def by_hand(w: np.ndarray, x: np.ndarray, y: np.ndarray, kind: str | None) -> np.ndarray:
    """Sample by sample, unit by unit, weight by weight."""
    change = np.zeros_like(w)
    for n in range(len(x)):
        for i in range(w.shape[0]):
            for j in range(w.shape[1]):
                forgotten = {
                    None: 0.0,
                    "oja": y[n, i] * w[i, j],
                    "sanger": sum(y[n, k] * w[k, j] for k in range(i + 1)),
                }[kind]
                change[i, j] += y[n, i] * (x[n, j] - forgotten) / len(x)
    return change


@pytest.mark.parametrize("kind", [None, "oja", "sanger"])
def test_the_change_by_hand(kind: str | None) -> None:
    own = optim.hebbian_change(tensor(W), tensor(X), normalization=kind)
    assert_close(own, by_hand(W, X, X @ W.T, kind))
    given = optim.hebbian_change(tensor(W), tensor(X), tensor(Y), kind)
    assert_close(given, by_hand(W, X, Y, kind))
    folded = optim.hebbian_change(
        tensor(W), tensor(X).reshape(2, 3, 3), tensor(Y).reshape(2, 3, 2), kind
    )
    assert_close(folded, given)


@pytest.mark.parametrize("kind", [None, "oja", "sanger"])
def test_golden_trace(kind: str | None) -> None:
    layer = layer_of(W)
    optimizer = optim.Hebbian(layer, lr=0.05, normalization=kind)
    w = W.copy()
    for _ in range(4):
        optimizer.step(tensor(X))
        w = w + 0.05 * by_hand(w, X, X @ w.T, kind)
    assert_close(layer.weight, w)
    assert layer.weight.grad is None


def test_a_bias_takes_part_and_stays() -> None:
    layer = layer_of(W, bias=True)
    before = layer.bias.detach().numpy().copy()
    optim.Hebbian(layer, lr=0.1).step(tensor(X))
    assert_close(layer.weight, W + 0.1 * by_hand(W, X, X @ W.T + before, None))
    assert_close(layer.bias, before, 0, 0)


def test_plain_hebb_grows_by_the_eigenvalues_of_the_correlations() -> None:
    """w <- w (1 + lr C) with C = x^T x / n: along an eigenvector by 1 + lr lambda per step."""
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    layer = layer_of(vectors[:, 1:2].T)
    optimizer = optim.Hebbian(layer, lr=0.3)
    for _ in range(10):
        optimizer.step(tensor(X))
    assert_close(layer.weight, (1 + 0.3 * values[1]) ** 10 * vectors[:, 1:2].T, rtol=1e-8)


def components() -> tuple[np.ndarray, np.ndarray]:
    """Points with principal components that are well apart, and these, by SVD."""
    rng = np.random.default_rng(5)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    points = rng.normal(size=(200, 4)) * [3.0, 2.0, 1.0, 0.3] @ turn
    return points, np.linalg.svd(points)[2]


def test_oja_finds_the_first_principal_component() -> None:
    points, directions = components()
    layer = layer_of(np.array([[0.4, -0.7, 0.2, 1.5]]))
    optimizer = optim.Hebbian(layer, lr=0.05, normalization="oja")
    for _ in range(300):
        optimizer.step(tensor(points))
    found = layer.weight.detach().numpy()[0]
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-9)
    assert abs(found @ directions[0]) == pytest.approx(1, abs=1e-9)


def test_oja_sample_by_sample() -> None:
    """With single samples the weight trembles about the component, less with a smaller rate."""
    points, directions = components()
    missing = []
    for lr in (4e-3, 1e-3):
        layer = layer_of(0.3 * np.ones((1, 4)))
        optimizer = optim.Hebbian(layer, lr=lr, normalization="oja")
        for _ in range(10):
            for x in points:
                optimizer.step(tensor(x))
        found = layer.weight.detach().numpy()[0]
        missing.append(1 - abs(found @ directions[0]) / np.linalg.norm(found))
    assert missing[1] < 1e-3
    assert missing[1] < missing[0]


def test_sanger_finds_the_first_components_in_their_order() -> None:
    points, directions = components()
    layer = layer_of(0.1 * W[[0, 1, 1]][:, [0, 1, 2, 0]] + 0.05 * np.eye(3, 4))
    optimizer = optim.Hebbian(layer, lr=0.05, normalization="sanger")
    for _ in range(1500):
        optimizer.step(tensor(points))
    found = layer.weight.detach().numpy()
    assert_close(np.abs(found @ directions[:3].T), np.eye(3), rtol=1e-6, atol=1e-6)


def test_a_schedule_moves_the_rate_and_files_keep_it() -> None:
    layer = layer_of(W)
    optimizer = optim.Hebbian(layer, lr=0.1, normalization="oja")
    optimizer.param_groups[0]["lr"] = 0.02
    other = optim.Hebbian(layer_of(W))
    other.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
    optimizer.step(tensor(X))
    other.step(tensor(X))
    assert_close(layer.weight, W + 0.02 * by_hand(W, X, X @ W.T, "oja"))
    assert_close(other.layer.weight, layer.weight, 0, 0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: optim.Hebbian(nn.Tanh()), TypeError, "Hebbian: expected an nn.Linear, got Tanh"),
        (
            lambda: optim.Hebbian(layer_of(W), normalization="ojas"),
            ValueError,
            "normalization must be None, 'oja' or 'sanger', got 'ojas'",
        ),
        (lambda: optim.Hebbian(layer_of(W), lr=-1), ValueError, "invalid lr: -1"),
        (lambda: optim.Hebbian(layer_of(W)).step(lambda: 0), TypeError, "not a closure"),
        (lambda: optim.Hebbian(layer_of(W)).step(), TypeError, "needs the input of the layer"),
        (
            lambda: optim.Hebbian(layer_of(W)).step(tensor(X[:, :2])),
            RuntimeError,
            r"input of shape \(\*, in\), got \(2, 3\) and \(6, 2\)",
        ),
        (
            lambda: optim.Hebbian(layer_of(W)).step(tensor(X), tensor(Y[:3])),
            RuntimeError,
            r"expected an output of shape \(6, 2\), got \(3, 2\)",
        ),
        (lambda: optim.Hebbian(layer_of(W)).step(tensor(X[:0])), RuntimeError, "batch is empty"),
        (
            lambda: optim.Hebbian(layer_of(W)).step(tensor(X * np.inf)),
            RuntimeError,
            "the weight was not changed",
        ),
    ],
)
def test_hebbian_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# --- feedback alignment ---------------------------------------------------------------------------


def network(sizes: tuple[int, ...] = (10, 20, 20, 4), seed: int = 1) -> nn.Sequential:
    chainrule.manual_seed(seed)
    layers: list[nn.Module] = []
    for n, m in itertools.pairwise(sizes):
        layers += [nn.Linear(n, m), nn.Tanh()]
    return nn.Sequential(*layers[:-1]).double()


def gradients(model: nn.Module, loss: Any, training: bool) -> list[np.ndarray]:
    model.train(training).zero_grad()
    loss().backward()
    model.train()
    return [p.grad.numpy().copy() for p in model.parameters()]


def test_the_gradient_by_hand() -> None:
    """delta(l) = (delta(l+1) B(l+1)) f'(s(l)), where backpropagation has A(l+1)."""
    model = nn.feedback_alignment(network((3, 4, 2)))
    (a1, b1, a2, b2), b = (p.detach().numpy() for p in model.parameters()), model[2].feedback
    h = np.tanh(X @ a1.T + b1)
    delta2 = 2 * (h @ a2.T + b2 - Y) / Y.size
    for feedback, training in ((b.numpy(), True), (a2, False)):
        delta1 = delta2 @ feedback * (1 - h * h)
        expected = [delta1.T @ X, delta1.sum(0), delta2.T @ h, delta2.sum(0)]
        found = gradients(model, lambda: F.mse_loss(model(tensor(X)), tensor(Y)), training)
        assert_close(found, expected)


def test_the_output_is_that_of_the_linear_layer() -> None:
    model = network((3, 4, 2))
    expected = model(tensor(X))
    for training in (True, False):
        converted = nn.feedback_alignment(pickle.loads(pickle.dumps(model))).train(training)
        assert_close(converted(tensor(X)), expected, 0, 0)


def test_forward_mode_goes_the_same_way() -> None:
    layer, x = nn.FeedbackLinear(3, 2).double(), tensor(X)
    t = tensor(np.cos(X))
    _, pushed = chainrule.func.jvp(layer, (x,), (t,))
    assert_close(pushed, t.numpy() @ layer.feedback.numpy().T)
    _, pushed = chainrule.func.jvp(layer.eval(), (x,), (t,))
    assert_close(pushed, t.numpy() @ layer.weight.detach().numpy().T)


def test_it_learns_and_its_gradient_comes_to_agree_with_the_true_one() -> None:
    """The angle between both, for the first of three layers, falls from 99 to below 75 degrees."""
    chainrule.manual_seed(0)
    x = chainrule.randn(256, 10).double()
    y = (x @ chainrule.randn(10, 4).double()).tanh()
    model = nn.feedback_alignment(network(), generator=chainrule.Generator().manual_seed(3))
    optimizer = optim.SGD(model.parameters(), lr=0.2)
    fixed = [m.feedback.numpy().copy() for m in model.modules() if hasattr(m, "feedback")]
    loss = lambda: F.mse_loss(model(x), y)  # noqa: E731

    def angle() -> float:
        a, b = (
            np.concatenate([g.ravel() for g in gradients(model, loss, mode)[:2]])
            for mode in (True, False)
        )
        return float(np.degrees(np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b))))

    first, first_angle = loss().item(), angle()
    for _ in range(300):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    assert first_angle > 85
    assert angle() < 75
    assert loss().item() < first / 5
    now = [m.feedback.numpy() for m in model.modules() if hasattr(m, "feedback")]
    assert_close(now, fixed, 0, 0)


def test_conversion_keeps_parameters_and_shared_layers() -> None:
    shared = nn.Linear(3, 3)
    model = nn.Sequential(shared, nn.Sequential(nn.ReLU(), shared), nn.Linear(3, 2)).eval()
    before = list(model.parameters())
    assert nn.feedback_alignment(model) is model
    assert all(a is b for a, b in zip(model.parameters(), before, strict=True))
    assert model[0] is model[1][1]
    assert isinstance(model[2], nn.FeedbackLinear)
    assert not model[2].training
    assert isinstance(nn.feedback_alignment(nn.Linear(2, 1)), nn.FeedbackLinear)


def test_feedback_is_seeded_and_saved() -> None:
    made = [
        nn.FeedbackLinear(5, 4, generator=chainrule.Generator().manual_seed(s)) for s in (0, 0, 1)
    ]
    assert_close(made[0].feedback, made[1].feedback, 0, 0)
    assert np.abs(made[0].feedback.numpy() - made[2].feedback.numpy()).max() > 0.01
    assert set(made[0].state_dict()) == {"weight", "bias", "feedback"}
    made[2].load_state_dict(made[0].state_dict())
    assert_close(made[2].feedback, made[0].feedback, 0, 0)


def test_feedback_errors() -> None:
    with pytest.raises(ValueError, match="Sequential has no nn.Linear whose feedback could be"):
        nn.feedback_alignment(nn.Sequential(nn.ReLU()))
    with pytest.raises(TypeError, match="expected an nn.Linear, got LazyLinear"):
        nn.feedback_alignment(nn.Sequential(nn.LazyLinear(3)))
    hooked = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    hooked[1].register_forward_hook(lambda *a: None)
    with pytest.raises(ValueError, match="has hooks, which would be lost"):
        nn.feedback_alignment(hooked)
    assert type(hooked[0]) is nn.Linear  # nothing was replaced
