"""Normalization: the formulas of the book, running moments, edges and errors."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.func import jvp, vmap
from chainrule.nn import functional as F
from chainrule.tensor import of_array

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


# --- batch normalization (N01-N03) ----------------------------------------------------------------


def test_backward_is_the_six_formulas() -> None:
    """004 eq 10.12, written out: the gradients of x^, var, mean, input, weight and bias."""
    a, gamma, beta, g, eps = normal(6, 3), normal(3), normal(3), normal(6, 3), 1e-5
    n = len(a)
    mu, var = a.mean(axis=0), a.var(axis=0)
    hat = (a - mu) / np.sqrt(var + eps)
    g_hat = g * gamma
    g_var = (g_hat * (a - mu)).sum(axis=0) * -0.5 * (var + eps) ** -1.5
    g_mu = (g_hat * -1 / np.sqrt(var + eps)).sum(axis=0) + g_var * (-2 * (a - mu)).mean(axis=0)
    g_a = g_hat / np.sqrt(var + eps) + g_var * 2 * (a - mu) / n + g_mu / n
    g_gamma, g_beta = (g * hat).sum(axis=0), g.sum(axis=0)

    x, w, b = (chainrule.tensor(v, requires_grad=True) for v in (a, gamma, beta))
    out = F.batch_norm(x, None, None, w, b, training=True, eps=eps)
    assert_close(out, gamma * hat + beta, rtol=1e-12)
    found = chainrule.autograd.grad(out, [x, w, b], of_array(g))
    assert_close(found, [g_a, g_gamma, g_beta], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("activation", [lambda x: x, chainrule.clamp_min], ids=["linear", "relu"])
def test_scaling_the_weights_changes_nothing(activation: Any) -> None:
    """BN(c W x) = BN(W x) for c > 0, up to eps; also behind a ReLU."""
    f = activation if activation is not chainrule.clamp_min else (lambda x: chainrule.clamp(x, 0))
    x, w = of_array(normal(50, 4)), of_array(normal(3, 4))
    norm = nn.BatchNorm1d(3, eps=1e-12).double()
    assert_close(norm(f(x @ (7.5 * w).mT)), norm(f(x @ w.mT)), rtol=1e-8, atol=1e-8)


def test_running_moments_are_exponential_averages() -> None:
    layer = nn.BatchNorm1d(2, momentum=0.3).double()
    mean, var = np.zeros(2), np.ones(2)
    for _ in range(4):
        x = normal(5, 2) * 3 + 1
        layer(of_array(x))
        mean = 0.7 * mean + 0.3 * x.mean(axis=0)
        var = 0.7 * var + 0.3 * x.var(axis=0, ddof=1)
    assert_close(layer.running_mean, mean)
    assert_close(layer.running_var, var)
    assert layer.num_batches_tracked.item() == 4
    x = normal(1, 2)
    assert_close(layer.eval()(of_array(x)), (x - mean) / np.sqrt(var + 1e-5), rtol=1e-9)
    assert layer.num_batches_tracked.item() == 4


def test_momentum_none_averages_all_batches() -> None:
    layer = nn.BatchNorm1d(2, momentum=None).double()
    batches = [normal(5, 2) for _ in range(4)]
    for x in batches:
        layer(of_array(x))
    assert_close(layer.running_mean, np.mean([x.mean(axis=0) for x in batches], axis=0))
    assert_close(layer.running_var, np.mean([x.var(axis=0, ddof=1) for x in batches], axis=0))


def test_without_running_moments_evaluation_uses_the_batch() -> None:
    layer = nn.BatchNorm1d(2, track_running_stats=False).double().eval()
    x = normal(5, 2)
    assert layer.state_dict().keys() == {"weight", "bias"}
    assert_close(
        layer(of_array(x)), (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5), rtol=1e-9
    )


def test_reset_forgets_what_was_seen() -> None:
    layer = nn.BatchNorm2d(3)
    layer(chainrule.randn(4, 3, 2, 2))
    layer.reset_running_stats()
    assert layer.running_mean.tolist() == [0, 0, 0]
    assert layer.running_var.tolist() == [1, 1, 1]
    assert layer.num_batches_tracked.item() == 0


def test_running_moments_have_no_history() -> None:
    layer = nn.BatchNorm1d(2)
    layer(chainrule.randn(4, 2, requires_grad=True)).sum().backward()
    assert not layer.running_mean.requires_grad
    layer(chainrule.randn(4, 2, requires_grad=True)).sum().backward()


def test_training_inside_jvp_keeps_moments_without_tangents() -> None:
    layer, x = nn.BatchNorm1d(2).double(), of_array(normal(5, 2))
    plain = copy.deepcopy(layer)
    jvp(layer, (x,), (chainrule.ones_like(x),))
    plain(x)
    assert_close(layer.running_mean, plain.running_mean, rtol=0, atol=0)
    assert_close(layer.running_var, plain.running_var, rtol=0, atol=0)


def test_training_inside_vmap_is_refused() -> None:
    """A batch of batches has no one running mean."""
    with pytest.raises(RuntimeError, match="outside vmap"):
        vmap(nn.BatchNorm1d(2))(chainrule.randn(3, 5, 2))
    vmap(nn.BatchNorm1d(2, track_running_stats=False))(chainrule.randn(3, 5, 2))


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.LayerNorm(50),
        lambda: nn.GroupNorm(5, 50),
        lambda: nn.InstanceNorm1d(2),
        lambda: nn.BatchNorm1d(2, affine=False),
    ],
)
def test_a_large_mean_costs_no_digits(make: Any) -> None:
    x = normal(2, 2, 50) if "1d" in str(make()) else normal(4, 50)
    layer = make()
    near, far = layer(of_array(x.astype("float32"))), layer(of_array((x + 4096).astype("float32")))
    # The input itself is rounded to 4096 / 2^24.
    assert_close(far.detach(), near.detach(), rtol=0, atol=2e-3)


def test_constant_input_gives_the_bias_and_a_finite_gradient() -> None:
    x = chainrule.full((3, 4), 2.5, requires_grad=True)
    out = F.layer_norm(x, (4,))
    assert out.tolist() == [[0.0] * 4] * 3
    (out * chainrule.arange(4.0)).sum().backward()
    assert x.grad is not None
    assert bool(chainrule.isfinite(x.grad).all())


def test_half_precision_is_computed_in_single() -> None:
    x = (normal(4, 300) * 30).astype("float16")
    out = F.layer_norm(of_array(x), (300,))
    assert out.dtype == chainrule.float16
    wide = x.astype(float)
    expected = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    assert_close(out.double(), expected, rtol=2e-3, atol=2e-3)


def test_layer_norm_of_preactivations() -> None:
    """004 eq 10.13-10.15: f(gamma (s - mu) / sigma + beta)."""
    s, gamma, beta = normal(3, 5), normal(5), normal(5)
    out = chainrule.tanh(F.layer_norm(of_array(s), (5,), of_array(gamma), of_array(beta), eps=0.0))
    mu, sigma = s.mean(1, keepdims=True), s.std(1, keepdims=True)
    assert_close(out, np.tanh(gamma * (s - mu) / sigma + beta), rtol=1e-11)


def test_group_norm_lies_between_layer_and_instance_norm() -> None:
    x = of_array(normal(2, 4, 3, 3))
    assert_close(F.group_norm(x, 1), F.layer_norm(x, (4, 3, 3)), rtol=1e-11)
    assert_close(F.group_norm(x, 4), F.instance_norm(x), rtol=1e-11)


def test_gradient_flows_across_only_what_normalizing_keeps() -> None:
    """Adding a constant and scaling change nothing: the gradient is orthogonal to both."""
    x = chainrule.tensor(normal(3, 6), requires_grad=True)
    (F.layer_norm(x, (6,), eps=0.0) * of_array(normal(3, 6))).sum().backward()
    assert x.grad is not None
    assert_close(x.grad.sum(1), np.zeros(3), atol=1e-12)
    assert_close((x.grad * x.detach()).sum(1), np.zeros(3), atol=1e-12)


# --- errors ---------------------------------------------------------------------------------------

CASES: list[Any] = [
    (
        lambda: nn.BatchNorm1d(3)(chainrule.ones(1, 3)),
        ValueError,
        r"Expected more than 1 value per channel when training, got input size \(1, 3\)",
    ),
    (lambda: nn.BatchNorm2d(3)(chainrule.ones(1, 3, 1, 1)), ValueError, r"\(1, 3, 1, 1\)"),
    (
        lambda: nn.BatchNorm1d(3)(chainrule.ones(2, 4)),
        RuntimeError,
        "running_mean should contain 4 elements not 3",
    ),
    (lambda: nn.BatchNorm2d(3)(chainrule.ones(2, 3)), ValueError, "expected 4D input"),
    (
        lambda: nn.BatchNorm1d(3)(chainrule.ones(2, 3, 2, 2)),
        ValueError,
        "BatchNorm1d: expected 2D or 3D input",
    ),
    (lambda: nn.BatchNorm1d(3)(chainrule.ones(2, 3).double()), RuntimeError, "mixed dtype"),
    (lambda: nn.BatchNorm1d(3)(chainrule.ones(2, 3).long()), NotImplementedError, "int64"),
    (lambda: nn.BatchNorm1d(3, eps=0)(chainrule.ones(2, 3)), ValueError, "eps must be positive"),
    (lambda: nn.BatchNorm1d(3, eps=-1).eval()(chainrule.ones(2, 3)), ValueError, "non-negative"),
    (
        lambda: F.batch_norm(chainrule.ones(2, 3), None, None),
        RuntimeError,
        "running_mean must be defined in evaluation mode",
    ),
    (lambda: F.batch_norm(chainrule.ones(3), None, None, training=True), IndexError, "channels"),
    (
        lambda: nn.LayerNorm(3)(chainrule.ones(2, 4)),
        RuntimeError,
        r"Given normalized_shape=\[3\], expected input with shape \[\*, 3\].*\[2, 4\]",
    ),
    (lambda: nn.LayerNorm([])(chainrule.ones(2)), RuntimeError, "at least 1-dimensional"),
    (
        lambda: F.layer_norm(chainrule.ones(2, 3), (3,), chainrule.ones(2)),
        RuntimeError,
        "same shape as normalized_shape",
    ),
    (lambda: nn.RMSNorm(3)(chainrule.ones(2, 4)), RuntimeError, "normalized_shape"),
    (
        lambda: nn.GroupNorm(2, 3),
        ValueError,
        r"num_channels \(3\) must be divisible by num_groups \(2\)",
    ),
    (lambda: F.group_norm(chainrule.ones(2, 5, 3), 2), RuntimeError, "divisible by num_groups"),
    (lambda: nn.GroupNorm(2, 4)(chainrule.ones(2, 6, 5)), RuntimeError, "vector of size equal"),
    (lambda: nn.GroupNorm(2, 4)(chainrule.ones(4)), RuntimeError, "at least 2 dimensions"),
    (lambda: nn.GroupNorm(4, 4)(chainrule.ones(1, 4)), ValueError, "more than 1 value"),
    (
        lambda: nn.InstanceNorm1d(3)(chainrule.ones(2, 3, 1)),
        ValueError,
        "more than 1 spatial element",
    ),
    (lambda: nn.InstanceNorm1d(3)(chainrule.ones(2, 3, 4, 4)), ValueError, "2D or 3D"),
    (
        lambda: nn.InstanceNorm1d(3, affine=True)(chainrule.ones(2, 4, 5)),
        ValueError,
        r"dim=1 to match num_features \(3\), but got: 4",
    ),
    (
        lambda: F.instance_norm(chainrule.ones(2, 3, 4), use_input_stats=False),
        RuntimeError,
        "running_mean must be defined",
    ),
    (lambda: nn.LocalResponseNorm(2)(chainrule.ones(2, 4)), ValueError, "3D or higher"),
    (lambda: nn.LocalResponseNorm(0)(chainrule.ones(2, 4, 3)), ValueError, "size"),
]


@pytest.mark.parametrize(("call", "error", "match"), CASES)
def test_errors(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


def test_instance_norm_warns_of_a_number_it_does_not_use() -> None:
    with pytest.warns(UserWarning, match="num_features"):
        nn.InstanceNorm1d(3)(chainrule.ones(2, 4, 5))
