"""Radial basis functions: centers, learning in two and three steps (M15)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from scipy.cluster import vq

import chainrule
from chainrule import nn
from chainrule.nn import functional as F
from chainrule.tensor import Tensor, of_array


@pytest.fixture(autouse=True)
def _seeded() -> None:
    chainrule.manual_seed(0)


def blobs(k: int = 3, n: int = 40, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Points around the corners of a polygon, and the number of their corner."""
    r = np.random.default_rng(seed)
    angles = 2 * np.pi * np.arange(k) / k
    corners = 5 * np.stack([np.cos(angles), np.sin(angles)], 1)
    labels = np.repeat(np.arange(k), n)
    return of_array(corners[labels] + 0.5 * r.normal(size=(k * n, 2))), of_array(labels)


def corners(k: int = 3) -> np.ndarray:
    angles = 2 * np.pi * np.arange(k) / k
    return 5 * np.stack([np.cos(angles), np.sin(angles)], 1)


# --- the layer ------------------------------------------------------------------------------------


def test_gradients_in_closed_form() -> None:
    """d phi / d mu = phi (x - mu) / sigma^2, d phi / d sigma = phi |x - mu|^2 / sigma^3."""
    x, mu, sigma = np.array([0.3, -0.8]), np.array([1.0, 0.5]), 0.7
    layer = nn.RBF(2, 1).double()
    with chainrule.no_grad():
        layer.centers.copy_(of_array(mu[None]))
        layer.widths.fill_(sigma)
    layer(of_array(x[None])).sum().backward()
    phi = np.exp(-((x - mu) ** 2).sum() / (2 * sigma**2))
    assert_close(layer.centers.grad, np.array([phi * (x - mu) / sigma**2]), rtol=1e-10)
    expected = phi * ((x - mu) ** 2).sum() / sigma**3
    assert_close(layer.widths.grad, np.array([expected]), rtol=1e-10)


def test_phi_zero_is_one() -> None:
    out = nn.RBF(2, 3, bias=True)(chainrule.randn(4, 2))
    assert out[:, 0].tolist() == [1, 1, 1, 1]
    assert float(out.max()) <= 1
    assert float(out.min()) >= 0


def test_far_away_everything_is_zero_and_flat() -> None:
    x = chainrule.full((1, 2), 1e6, requires_grad=True)
    out = nn.RBF(2, 3)(x)
    out.sum().backward()
    assert out.tolist() == [[0, 0, 0]]
    assert x.grad is not None
    assert x.grad.tolist() == [[0, 0]]


# --- centers --------------------------------------------------------------------------------------


def test_kmeans_against_scipy() -> None:
    x, _ = blobs(4)
    start = x[[0, 41, 81, 121]]
    found = F.kmeans(x, 4, init=start)
    expected, _ = vq.kmeans2(x.numpy(), start.numpy(), iter=50, minit="matrix")
    assert_close(found.centers, expected, rtol=1e-8)
    labels, distances = vq.vq(x.numpy(), expected)
    assert found.labels.tolist() == labels.tolist()
    assert_close(found.inertia, np.array((distances**2).sum()), rtol=1e-8)


def test_kmeans_plus_plus_takes_points_that_lie_apart() -> None:
    x, labels = blobs(5)
    hits = 0
    for _ in range(20):
        centers = F.kmeans_plus_plus(x, 5)
        d = F.squared_distances(centers, x)
        assert d.min(1).values.max().item() == 0  # points of x
        hits += len(set(labels[d.argmin(1)].tolist())) == 5
    assert hits > 12  # five uniform draws would do it in 3.8 % of the cases


def test_kmeans_refills_an_empty_cluster() -> None:
    x, _ = blobs(3)
    far = of_array(np.array([[0.0, 0.0], [1.0, 1.0], [1e3, 1e3]]))
    found = F.kmeans(x, 3, init=far)
    assert set(found.labels.tolist()) == {0, 1, 2}


def test_kmeans_with_repeated_points() -> None:
    x = of_array(np.repeat(np.array([[0.0], [1.0]]), 5, axis=0))
    found = F.kmeans(x, 4)
    assert found.centers.shape == (4, 1)
    assert float(found.inertia) == 0


@pytest.mark.parametrize("k", [1, 2, 6])
def test_growing_neural_gas_spreads_over_the_points(k: int) -> None:
    x, _ = blobs(3)
    centers = F.growing_neural_gas(x, k)
    assert centers.shape == (k, 2)
    spread = float(F.squared_distances(x, centers).min(1).values.mean())
    one = float(F.squared_distances(x, x.mean(0)[None]).mean())
    if k == 1:
        assert_close(centers[0], x.mean(0), rtol=1e-12)
    if k == 6:
        assert spread < 0.05 * one
        near = F.squared_distances(of_array(corners()), centers).min(1).values
        assert float(near.max()) < 1


def test_the_same_generator_gives_the_same_centers() -> None:
    x, _ = blobs()
    for method in (F.kmeans_plus_plus, F.growing_neural_gas, F.uniform_centers):
        a, b = (method(x, 3, generator=chainrule.Generator().manual_seed(5)) for _ in range(2))
        assert_close(a, b, rtol=0, atol=0)


# --- learning -------------------------------------------------------------------------------------


def test_two_steps_are_least_squares() -> None:
    x = chainrule.linspace(-3, 3, 60).double()[:, None]
    y = chainrule.sin(2 * x) + 0.3 * x
    model = F.fit_rbf(x, y, 7)
    phi = model.rbf(x).numpy(force=True)
    expected = np.linalg.lstsq(phi, y.numpy(), rcond=None)[0]
    assert_close(model(x), phi @ expected, rtol=1e-6, atol=1e-7)


def test_error_falls_with_the_number_of_centers() -> None:
    """What a universal approximator promises."""
    x = chainrule.linspace(-3, 3, 200).double()[:, None]
    y = chainrule.sin(3 * x) * chainrule.exp(-x * x / 8)
    errors = [float((F.fit_rbf(x, y, k).predict(x) - y).abs().max()) for k in (3, 10, 25)]
    assert errors[0] > 4 * errors[1] > 16 * errors[2]
    assert errors[2] < 0.02


@pytest.mark.parametrize("centers", ["kmeans", "gng", "uniform"])
@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_third_step_lowers_the_loss(task: str, centers: str) -> None:
    x, labels = blobs(4, n=15)
    y: Any = {
        "regression": chainrule.sin(x[:, 0]) + x[:, 1],
        "binary": labels % 2,
        "multiclass": labels,
    }[task]

    def loss(model: Any) -> float:
        scores = model(x)
        if task == "regression":
            return float(((scores[:, 0] - y) ** 2).mean())
        if task == "multiclass":
            return float(chainrule.cross_entropy(scores, y))
        return float(chainrule.binary_cross_entropy_with_logits(scores[:, 0], y.double()))

    two, three = (
        F.fit_rbf(
            x,
            y,
            5,
            task,
            centers,
            steps,
            max_iter=30,
            generator=chainrule.Generator().manual_seed(1),
        )
        for steps in (2, 3)
    )
    assert loss(three) < loss(two)
    if task != "regression" and centers != "uniform":
        p = three.predict(x)
        guess = p.argmax(1) if task == "multiclass" else (p[:, 0] > 0.5).long()
        assert (guess == y).double().mean().item() > 0.9


def test_xor_is_separable_with_radial_functions() -> None:
    x = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = chainrule.tensor([0, 1, 1, 0])
    model = F.fit_rbf(x, y, 4, task="binary")
    assert ((model.predict(x)[:, 0] > 0.5).long() == y).all().item()


def test_probabilities_sum_to_one() -> None:
    x, y = blobs()
    model = F.fit_rbf(x, y, 3, task="multiclass")
    assert_close(model.predict(x).sum(1), np.ones(120), rtol=1e-12)
    assert (model.predict(x).argmax(1) == y).all().item()


def test_several_outputs() -> None:
    x = chainrule.linspace(-2, 2, 40).double()[:, None]
    y = chainrule.cat([x.sin(), x.cos()], 1)
    assert float((F.fit_rbf(x, y, 10).predict(x) - y).abs().max()) < 1e-2


# --- errors ---------------------------------------------------------------------------------------

P = chainrule.ones(4, 2)
CASES: list[Any] = [
    (lambda: nn.RBF(3, 2)(chainrule.ones(4, 2)), RuntimeError, r"\(4, 2\), must be the 3 features"),
    (lambda: nn.RBFNetwork(2, 3, task="ranking"), ValueError, "'ranking'"),
    (lambda: F.fit_rbf(P, P[:, 0], 2, task="ranking"), ValueError, "'ranking'"),
    (lambda: F.fit_rbf(P, P[:3, 0], 2), ValueError, "same N"),
    (lambda: F.fit_rbf(P, P[:, 0], 2, steps=4), ValueError, "2 or 3, got 4"),
    (lambda: F.fit_rbf(P, P[:, 0], 2, centers="grid"), ValueError, "'grid'"),
    (lambda: F.fit_rbf(P, 2 * P[:, 0], 2, task="binary"), ValueError, "labels 0 and 1"),
    (lambda: F.fit_rbf(P, P[:, 0], 2, task="multiclass"), ValueError, "class numbers"),
    (lambda: F.kmeans(P, 5), ValueError, "5 centers of 4 points"),
    (lambda: F.kmeans(P, 0), ValueError, "0 centers"),
    (lambda: F.kmeans(P[0], 1), ValueError, r"\(N, D\)"),
    (lambda: F.kmeans(P, 2, init=P), ValueError, "init must be of shape"),
]


@pytest.mark.parametrize(("call", "error", "match"), CASES)
def test_errors(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
