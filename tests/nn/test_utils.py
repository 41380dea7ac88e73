"""Clipping of gradients, and parameters as one vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn, tensor, zeros
from chainrule.nn import utils
from chainrule.tensor import of_array


def with_gradients(*gradients: np.ndarray) -> list[nn.Parameter]:
    parameters = [nn.Parameter(of_array(np.zeros_like(g))) for g in gradients]
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = of_array(g.copy())
    return parameters


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


# --- clipping -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1.0, 2.0, 3.5, float("inf")])
def test_norm_is_that_of_all_gradients_together(order: float) -> None:
    a, b = normal(3, 4), normal(5, seed=1)
    parameters = with_gradients(a, b)
    norm = np.linalg.norm(np.concatenate([a.ravel(), b]), order)
    assert_close(utils.get_total_norm([p.grad for p in parameters], order), norm)
    assert_close(utils.clip_grad_norm_(parameters, 0.5, order), norm)
    clipped = utils.get_total_norm([p.grad for p in parameters], order)
    assert_close(clipped, np.float64(0.5), rtol=1e-5)
    # The direction stays.
    assert_close(parameters[0].grad, a * 0.5 / (norm + 1e-6))


def test_norms_inside_a_transformation() -> None:
    a = normal(3, 4)
    each = chainrule.func.vmap(lambda row: utils.get_total_norm([row, row]))(of_array(a))
    assert_close(each, np.sqrt(2 * (a * a).sum(1)))


def test_norms_of_half_precision_and_of_huge_numbers() -> None:
    half = with_gradients(np.full(100, 50, np.float16))
    assert_close(utils.clip_grad_norm_(half, 1.0), np.float16(500), rtol=1e-3)
    huge = with_gradients(np.array([1e200]), np.array([1e200]))
    assert float(utils.get_total_norm([p.grad for p in huge])) == np.inf


def test_small_gradients_stay() -> None:
    (p,) = with_gradients(normal(4))
    before, gradient = p.grad.clone(), p.grad
    utils.clip_grad_norm_(p, 100.0)
    assert p.grad is gradient
    assert_close(p.grad, before, rtol=0, atol=0)


def test_clipping_is_in_place_and_skips_what_has_no_gradient() -> None:
    (p,) = with_gradients(normal(4))
    gradient = p.grad
    assert float(utils.clip_grad_norm_([p, nn.Parameter(zeros(3))], 0.1)) > 0.1
    assert p.grad is gradient
    assert_close(utils.clip_grad_norm_([nn.Parameter(zeros(3))], 0.1), np.float32(0))


def test_types_are_kept() -> None:
    a, b = with_gradients(normal(4).astype(np.float32), normal(3))
    assert utils.clip_grad_norm_([a, b], 0.1).dtype == chainrule.float64
    assert (a.grad.dtype, b.grad.dtype) == (chainrule.float32, chainrule.float64)
    assert utils.clip_grad_norm_(a, 0.1).dtype == chainrule.float32


def test_norms_that_are_not_finite() -> None:
    gradient = np.array([1.0, np.inf, 2.0])
    (p,) = with_gradients(gradient)
    with pytest.raises(RuntimeError, match=r"order 2.0 .*non-finite \(inf\).*error_if_nonfinite"):
        utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    assert_close(p.grad, gradient)
    utils.clip_grad_norm_(p, 1.0)
    assert_close(p.grad, np.array([0, np.nan, 0]))


def test_an_exhausted_generator_is_noticed() -> None:
    parameters = nn.Linear(2, 2).parameters()
    list(parameters)
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_(parameters, 1.0)


def test_clip_by_value_and_by_a_given_norm() -> None:
    gradient = np.array([-3.0, 0.2, 5.0])
    (p,) = with_gradients(gradient)
    utils.clip_grad_value_(p, 1)
    assert_close(p.grad, np.array([-1, 0.2, 1]))
    (q,) = with_gradients(gradient)
    utils.clip_grads_with_norm_(q, 1.0, tensor(10.0))
    assert_close(q.grad, gradient / (10 + 1e-6))


# --- one vector -----------------------------------------------------------------------------------


def test_there_and_back() -> None:
    a, b = nn.Linear(3, 2), nn.Linear(3, 2)
    vector = utils.parameters_to_vector(a.parameters())
    expected = np.concatenate([a.weight.numpy(force=True).ravel(), a.bias.numpy(force=True)])
    assert_close(vector, expected)
    held = list(b.parameters())
    utils.vector_to_parameters(vector, b.parameters())
    assert_close(b(chainrule.ones(1, 3)), a(chainrule.ones(1, 3)))
    assert all(p is q for p, q in zip(held, b.parameters(), strict=True))
    assert b.weight.is_leaf


def test_the_vector_has_a_gradient() -> None:
    layer = nn.Linear(3, 2)
    (utils.parameters_to_vector(layer.parameters()) ** 2).sum().backward()
    assert_close(layer.weight.grad, 2 * layer.weight.detach())


def test_vectors_that_do_not_fit() -> None:
    layer = nn.Linear(3, 2)
    for wrong in (zeros(7), zeros(9), zeros(8, 1)):
        with pytest.raises(RuntimeError, match="8 elements together, the vector has shape"):
            utils.vector_to_parameters(wrong, layer.parameters())
    with pytest.raises(TypeError, match="expected a Tensor, got list"):
        utils.vector_to_parameters([1.0], layer.parameters())


# --- normalization folded into the layer before it ------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "norm", "shape", "transpose"),
    [
        (lambda: nn.Conv2d(2, 3, 3), lambda: nn.BatchNorm2d(3), (2, 2, 5, 5), False),
        (
            lambda: nn.Conv1d(4, 6, 2, groups=2, bias=False),
            lambda: nn.BatchNorm1d(6, affine=False),
            (2, 4, 5),
            False,
        ),
        (lambda: nn.ConvTranspose2d(2, 3, 3), lambda: nn.BatchNorm2d(3), (2, 2, 5, 5), True),
        (lambda: nn.Linear(4, 3), lambda: nn.BatchNorm1d(3), (5, 4), False),
    ],
)
def test_fused_normalization(
    layer: Any, norm: Any, shape: tuple[int, ...], transpose: bool
) -> None:
    first, second = layer().double(), norm().double()
    for p in second.parameters():
        nn.init.normal_(p)
    x = of_array(normal(*shape))
    second(first(x))
    with pytest.raises(RuntimeError, match=r"evaluation mode; call eval\(\)"):
        utils.fuse_conv_bn_eval(first, second, transpose)
    first.eval()
    second.eval()
    fused = utils.fuse_conv_bn_eval(first, second, transpose)
    assert type(fused) is type(first)
    assert_close(fused(x), second(first(x)), rtol=1e-9, atol=1e-10)
    if isinstance(first, nn.Linear):
        assert_close(utils.fuse_linear_bn_eval(first, second)(x), fused(x))


def test_what_cannot_be_fused() -> None:
    layer = nn.Linear(4, 3).eval()
    with pytest.raises(RuntimeError, match="is of 5 features"):
        utils.fuse_linear_bn_eval(layer, nn.BatchNorm1d(5).eval())
    with pytest.raises(RuntimeError, match="keeps no running mean"):
        utils.fuse_linear_bn_eval(layer, nn.BatchNorm1d(3, track_running_stats=False).eval())
