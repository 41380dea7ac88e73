"""Weight normalization, spectral normalization, orthogonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn, ones, zeros
from chainrule.func import functional_call, jvp
from chainrule.nn.utils import parametrizations
from chainrule.tensor import of_array


float64 = chainrule.float64


# --- weight normalization -------------------------------------------------------------------------


def test_gradient_of_weight_normalization() -> None:
    """w = g v / |v|: dL/dg = grad_w . v / |v|; dL/dv = (g/|v|) grad_w - (g dL/dg / |v|^2) v.

    A form with the factor g/|v| (1 - v_i^2/|v|^2) on each entry, as it is sometimes printed,
    forgets that every entry of v changes the length of all.
    """
    rng = np.random.default_rng(0)
    v, g, by_w = rng.normal(size=4), 1.7, rng.normal(size=4)
    layer = nn.Linear(4, 1, bias=False).double()
    parametrizations.weight_norm(layer)
    functions = layer.parametrizations.weight
    functions.original0.data = of_array(np.array([[g]]))
    functions.original1.data = of_array(v[None])
    length = np.linalg.norm(v)
    assert_close(layer.weight, g * v[None] / length)
    layer(of_array(by_w)).sum().backward()
    by_g = by_w @ v / length
    by_v = g / length * by_w - g * by_g / length**2 * v
    assert_close(functions.original0.grad, np.array([[by_g]]))
    assert_close(functions.original1.grad, by_v[None])
    printed = g / length * (1 - v**2 / length**2) * by_w
    assert np.abs(printed - by_v).max() > 0.1
    # The gradient of the direction is orthogonal to it, so its length can only grow.
    assert abs(by_v @ v) < 1e-12


@pytest.mark.parametrize(
    ("dim", "shape"), [(0, (5, 1, 1)), (1, (1, 3, 1)), (2, (1, 1, 2)), (None, ())]
)
def test_norms_of_weight_normalization(dim: int | None, shape: tuple[int, ...]) -> None:
    layer = nn.Conv1d(3, 5, 2)
    before = layer.weight.detach().clone()
    parametrizations.weight_norm(layer, dim=dim)
    assert layer.parametrizations.weight.original0.shape == shape
    assert_close(layer.weight, before, rtol=1e-6)


def test_states_with_the_names_of_old() -> None:
    layer, other = nn.Linear(3, 2), parametrizations.weight_norm(nn.Linear(3, 2))
    parametrizations.weight_norm(layer)
    state = layer.state_dict()
    old = {
        "bias": state["bias"],
        "weight_g": state["parametrizations.weight.original0"],
        "weight_v": state["parametrizations.weight.original1"],
    }
    assert repr(other.load_state_dict(old)) == "<All keys matched successfully>"
    assert_close(other.weight, layer.weight)
    spectral = parametrizations.spectral_norm(nn.Linear(3, 2)).eval()
    state = spectral.state_dict()
    old = {"bias": state["bias"], "weight_orig": state["parametrizations.weight.original"]}
    old |= {f"weight{k}": state[f"parametrizations.weight.0.{k}"] for k in ("_u", "_v")}
    other = parametrizations.spectral_norm(nn.Linear(3, 2)).eval()
    other.load_state_dict(old)
    assert_close(other.weight, spectral.weight)


# --- spectral normalization -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [lambda: nn.Linear(4, 3), lambda: nn.Conv2d(2, 3, 2), lambda: nn.ConvTranspose1d(2, 3, 2)],
)
def test_the_largest_singular_value_becomes_one(make: Any) -> None:
    chainrule.manual_seed(0)
    layer = make().double()
    dim = 1 if isinstance(layer, nn.ConvTranspose1d) else 0
    parametrizations.spectral_norm(layer, n_power_iterations=100)
    matrix = np.moveaxis(layer.weight.numpy(force=True), dim, 0).reshape(3, -1)
    assert_close(np.linalg.svd(matrix, compute_uv=False)[0], np.float64(1), rtol=1e-6)


def test_gradient_takes_the_singular_vectors_as_constants() -> None:
    """dL/dW = (grad - <grad, W_sn> u v^T) / sigma."""
    layer = parametrizations.spectral_norm(nn.Linear(4, 3).double()).eval()
    functions = layer.parametrizations.weight
    u, v = functions[0]._u.numpy(), functions[0]._v.numpy()
    w = functions.original.numpy(force=True)
    sigma = u @ w @ v
    by_w = np.random.default_rng(0).normal(size=(3, 4))
    (layer.weight * of_array(by_w)).sum().backward()
    expected = (by_w - (by_w * w / sigma).sum() * np.outer(u, v)) / sigma
    assert_close(functions.original.grad, expected)


def test_iterations_happen_in_training_alone() -> None:
    layer = parametrizations.spectral_norm(nn.Linear(6, 5))
    function = layer.parametrizations.weight[0]
    with chainrule.no_grad():
        layer.parametrizations.weight.original.normal_()
    layer.eval()
    before = function._u.clone()
    _ = layer.weight
    assert_close(function._u, before, rtol=0, atol=0)
    layer.train()
    _ = layer.weight
    assert float((function._u - before).abs().max()) > 1e-4


def test_two_passes_before_backward() -> None:
    layer, x = parametrizations.spectral_norm(nn.Linear(3, 2)), ones(1, 3)
    (layer(x).sum() - layer(2 * x).sum()).backward()
    assert layer.parametrizations.weight.original.grad is not None


def test_forward_mode_leaves_the_buffers_plain() -> None:
    layer = parametrizations.spectral_norm(nn.Linear(3, 2).double())
    x = ones(1, 3, dtype=float64)
    weight = {"parametrizations.weight.original": layer.parametrizations.weight.original.detach()}
    jvp(lambda p: functional_call(layer, p, x), (weight,), (weight,))
    assert layer.parametrizations.weight[0]._u.numpy().shape == (2,)


def test_what_spectral_norm_refuses() -> None:
    with pytest.raises(ValueError, match="has no parameter or buffer with name 'none'"):
        parametrizations.spectral_norm(nn.Linear(2, 2), "none")
    with pytest.raises(ValueError, match="n_power_iterations=0"):
        parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(IndexError, match=r"range of \[-2, 1\] but got 2"):
        parametrizations.spectral_norm(nn.Linear(2, 2), dim=2)


# --- orthogonal matrices --------------------------------------------------------------------------


each_map = pytest.mark.parametrize("way", ["matrix_exp", "cayley", "householder"])


each_base = pytest.mark.parametrize("trivial", [True, False], ids=["from base", "alone"])


def assert_orthogonal(w: Any) -> None:
    w = w.numpy(force=True)
    w = w if w.shape[-2] >= w.shape[-1] else np.swapaxes(w, -1, -2)
    product = np.swapaxes(w, -1, -2) @ w
    assert_close(product, np.broadcast_to(np.eye(w.shape[-1]), product.shape), atol=1e-12)


@each_map
@each_base
@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (5, 3), (4, 1), (2, 4, 3)], ids=str)
def test_stays_orthogonal(way: str, trivial: bool, shape: tuple[int, ...]) -> None:
    module = nn.Module()
    module.weight = nn.Parameter(of_array(np.random.default_rng(0).normal(size=shape)))
    parametrizations.orthogonal(module, "weight", way, use_trivialization=trivial)
    original = module.parametrizations.weight.original
    assert_orthogonal(module.weight)
    for _ in range(3):
        original.grad = None
        (module.weight * of_array(np.arange(float(np.prod(shape))).reshape(shape))).sum().backward()
        with chainrule.no_grad():
            original -= 0.01 * original.grad
        assert_orthogonal(module.weight)


@each_map
def test_any_orthogonal_matrix_can_be_assigned(way: str) -> None:
    for shape in ((4, 4), (5, 3), (3, 5)):
        module = nn.Linear(shape[1], shape[0]).double()
        parametrizations.orthogonal(module, "weight", way)
        q = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
        q = np.linalg.qr(q[: max(shape), : min(shape)])[0]
        q = q if shape[0] >= shape[1] else q.T
        module.weight = of_array(q.copy())
        assert_close(module.weight, q, atol=1e-12)


def test_reflections_alone_reach_every_orthogonal_matrix() -> None:
    for shape in ((4, 4), (5, 3), (3, 5), (2, 2)):
        module = nn.Linear(shape[1], shape[0]).double()
        parametrizations.orthogonal(module, "weight", "householder", use_trivialization=False)
        for q in (np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0], np.eye(5)):
            rows = np.linalg.qr(q[: max(shape), : min(shape)])[0]
            rows = rows if shape[0] >= shape[1] else rows.T
            module.weight = of_array(rows.copy())
            assert_close(module.weight, rows, atol=1e-12)


def test_what_orthogonal_refuses() -> None:
    with pytest.raises(ValueError, match="Expected a matrix.*1 dimensions"):
        parametrizations.orthogonal(nn.Linear(2, 2), "bias")
    with pytest.raises(ValueError, match='"matrix_exp", "cayley", "householder".*Got: qr'):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="qr")
    layer = parametrizations.orthogonal(nn.Linear(2, 2), use_trivialization=False)
    with pytest.raises(NotImplementedError, match="not possible to assign"):
        layer.weight = chainrule.eye(2)
    layer = parametrizations.orthogonal(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="Expected a matrix or batch of matrices of shape"):
        layer.weight = chainrule.eye(3)
    module = nn.Module()
    module.weight = nn.Parameter(zeros(2, 2, dtype=chainrule.complex64))
    with pytest.raises(ValueError, match="does not support complex"):
        parametrizations.orthogonal(module, orthogonal_map="householder")
