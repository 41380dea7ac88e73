"""Initializers: all of them, numbers of the courses, variance through depth, structure."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.stats
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.nn import init


@pytest.fixture(autouse=True)
def _seed() -> None:
    chainrule.manual_seed(0)


def moments(t: Any) -> tuple[float, float]:
    return t.double().mean().item(), t.double().std().item()


def weight(*shape: int) -> Any:
    return nn.Parameter(chainrule.empty(*shape))


# --- all of them ----------------------------------------------------------------------------------


RANDOM: dict[str, tuple[Any, ...]] = {
    "uniform_": (),
    "normal_": (),
    "trunc_normal_": (),
    "xavier_uniform_": (),
    "xavier_normal_": (),
    "kaiming_uniform_": (),
    "kaiming_normal_": (),
    "orthogonal_": (),
    "sparse_": (0.5,),
    "lecun_normal_": (),
    "lecun_uniform_": (),
    "variance_scaling_": (),
    "self_normalizing_": (),
}


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("dtype", [chainrule.float32, chainrule.float64])
def test_fills_in_place_without_gradient_from_a_generator(name: str, dtype: Any) -> None:
    p = nn.Parameter(chainrule.zeros(20, 30, dtype=dtype))
    memory, fill = p.array, getattr(init, name)
    out = fill(p, *RANDOM[name], generator=chainrule.Generator().manual_seed(3))
    assert out is p
    assert p.array is memory
    assert p.is_leaf
    assert p.requires_grad
    assert p.dtype is dtype
    assert p.std().item() > 0
    again = fill(
        weight(20, 30).to(dtype), *RANDOM[name], generator=chainrule.Generator().manual_seed(3)
    )
    assert_close(again.detach(), p.detach(), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("fill", "distribution"),
    [
        (lambda t: init.uniform_(t, -0.01, 0.01), scipy.stats.uniform(-0.01, 0.02)),
        (lambda t: init.normal_(t, 0.5, 2.0), scipy.stats.norm(0.5, 2.0)),
        (lambda t: init.trunc_normal_(t), scipy.stats.truncnorm(-2, 2)),
        (
            lambda t: init.trunc_normal_(t, 1.0, 0.5, 0.8, 3.0),
            scipy.stats.truncnorm(-0.4, 4.0, 1.0, 0.5),
        ),
        (lambda t: init.xavier_uniform_(t), scipy.stats.uniform(-0.1732051, 0.3464102)),
        (lambda t: init.xavier_normal_(t, 2.0), scipy.stats.norm(0, 0.2)),
        (lambda t: init.kaiming_uniform_(t), scipy.stats.uniform(-0.244949, 0.489898)),
        (lambda t: init.kaiming_normal_(t), scipy.stats.norm(0, 0.1414214)),
        (lambda t: init.lecun_normal_(t), scipy.stats.norm(0, 0.1)),
        (lambda t: init.lecun_uniform_(t), scipy.stats.uniform(-0.1732051, 0.3464102)),
        (
            lambda t: init.variance_scaling_(t, 4.0, "fan_out", "truncated_normal"),
            scipy.stats.truncnorm(-2, 2, 0, 0.2 / 0.8796256610342398),
        ),
    ],
    ids=[
        "uniform",
        "normal",
        "truncated",
        "truncated, shifted",
        "xavier uniform",
        "xavier normal",
        "kaiming uniform",
        "kaiming normal",
        "lecun normal",
        "lecun uniform",
        "scaling",
    ],
)
def test_distribution(fill: Any, distribution: Any) -> None:
    """By the test of Kolmogorov and Smirnov, on a layer with both fans 100."""
    draws = fill(weight(100, 100)).detach().double().numpy().reshape(-1)
    assert scipy.stats.kstest(draws, distribution.cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    "name", ["xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"]
)
@pytest.mark.parametrize("shape", [(30, 40), (12, 6, 5), (8, 4, 3, 3)])
def test_spread_is_that_of_pytorch(name: str, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    spread = []
    for library in (chainrule, torch):
        t = library.empty(*shape)
        draws = [getattr(library.nn.init, name)(t).std().item() for _ in range(60)]
        spread.append(sum(draws) / 60)
    assert spread[0] == pytest.approx(spread[1], rel=0.02)


# --- numbers of the courses -----------------------------------------------------------------------


def test_glorot_and_he_at_fan_100() -> None:
    """Glorot: standard deviation 0.1 (its variance is 0.01), bound 0.1732; He: 0.1414, 0.2449."""
    w = weight(100, 100)
    assert moments(init.xavier_normal_(w))[1] == pytest.approx(0.1, rel=0.03)
    assert 0.172 < init.xavier_uniform_(w).abs().max().item() <= 0.1732051
    assert moments(init.kaiming_normal_(w))[1] == pytest.approx(0.1414, rel=0.03)
    assert 0.244 < init.kaiming_uniform_(w).abs().max().item() <= 0.244949


def test_truncated_normal_has_variance_07737() -> None:
    """The variance is 0.7737 sigma^2; 0.8796 sigma is the standard deviation."""
    std = moments(init.trunc_normal_(weight(400, 500)))[1]
    assert std == pytest.approx(0.8796, abs=0.004)
    assert std**2 == pytest.approx(0.7737, abs=0.007)
    assert scipy.stats.truncnorm(-2, 2).var() == pytest.approx(0.773741, abs=1e-6)


def test_backward_only_variance() -> None:
    w = init.variance_scaling_(weight(400, 100), mode="fan_out")
    assert moments(w)[1] ** 2 == pytest.approx(1 / 400, rel=0.03)


def test_fans() -> None:
    """Of a convolution: channels times the size of the kernel."""
    assert init.fan_in_and_fan_out(nn.Linear(3, 7).weight) == (3, 7)
    assert init.fan_in_and_fan_out(chainrule.empty(16, 6, 5, 5)) == (150, 400)
    with pytest.raises(ValueError, match="fewer than 2 dimensions.*\\(3,\\)"):
        init.fan_in_and_fan_out(chainrule.empty(3))


@pytest.mark.parametrize(
    ("activation", "expected", "digits"),
    [
        ("relu", 2.0, 1e-9),
        ("tanh", 2.536, 5e-4),
        ("sigmoid", 3.409, 5e-4),
        ("selu", 1.0, 1e-9),
        ("identity", 1.0, 1e-9),
    ],
)
def test_gain_on_the_variance(activation: str, expected: float, digits: float) -> None:
    assert init.gain(activation) == pytest.approx(expected, abs=digits)


def test_gain_depends_on_q_and_is_linearized_for_small_q() -> None:
    """g_tanh is 1 only where tanh is linear."""
    assert init.gain("tanh", 1e-6) == pytest.approx(1.0, abs=1e-5)
    assert init.gain("tanh", 4.0) > init.gain("tanh", 1.0)
    assert init.gain(nn.LeakyReLU(0.2)) == pytest.approx(2 / (1 + 0.2**2), rel=1e-12)


def test_calculate_gain_is_on_the_standard_deviation() -> None:
    torch = pytest.importorskip("torch")
    for name, param in [
        ("linear", None),
        ("conv2d", None),
        ("sigmoid", None),
        ("tanh", None),
        ("relu", None),
        ("leaky_relu", None),
        ("leaky_relu", 0.3),
        ("selu", None),
    ]:
        assert init.calculate_gain(name, param) == torch.nn.init.calculate_gain(name, param)
    assert init.calculate_gain("relu") ** 2 == pytest.approx(init.gain("relu"))


# --- variance through depth -----------------------------------------------------------------------


def test_propagation_function_of_relu() -> None:
    """F(q) = J s_w^2 q / 2, forward and backward."""
    p = init.propagation("relu", 3.0, 5, weight_variance=2.0)
    assert p.forward == pytest.approx([3.0] * 6)
    assert p.backward == pytest.approx([1.0] * 6)
    halved = init.propagation("relu", 1.0, 4)
    assert halved.forward == pytest.approx([0.5**i for i in range(5)])
    assert halved.backward == pytest.approx([0.5**i for i in range(4, -1, -1)])


def test_propagation_with_the_exact_gain_keeps_the_variance() -> None:
    p = init.propagation("tanh", 1.0, 50, weight_variance=init.gain("tanh"))
    assert p.forward == pytest.approx([1.0] * 51)
    assert init.propagation("selu", 1.0, 100).forward == pytest.approx([1.0] * 101)


def test_propagation_of_a_model_is_what_is_predicted() -> None:
    """Wide random layers behave as the expectation says."""
    layers: list[Any] = []
    for _ in range(4):
        layers += [nn.Linear(600, 600, bias=False), nn.Tanh()]
    model = nn.Sequential(*layers, nn.Linear(600, 600, bias=False))
    for p in model.parameters():
        init.normal_(p, 0.0, math.sqrt(1.5 / 600))
    measured = init.propagation(model, 2.0 / 1.5)
    predicted = init.propagation(nn.Tanh(), 2.0, 4, weight_variance=1.5)
    assert measured.forward == pytest.approx(predicted.forward, rel=0.05)
    assert measured.backward == pytest.approx(predicted.backward, rel=0.1)
    assert len(init.propagation(model, depth=2).forward) == 2
    assert all(p.grad is None for p in model.parameters())


def test_sums_and_gradients_through_one_linear_layer() -> None:
    """E[(sum W X)^2] = J s_w^2 E[X^2], and I s_w^2 backward."""
    model = nn.Sequential(nn.Linear(300, 200, bias=False), nn.Linear(200, 100, bias=False))
    for p in model.parameters():
        init.normal_(p, 0.0, 0.1)
    p = init.propagation(model, 4.0, samples=2000)
    assert p.forward[0] == pytest.approx(300 * 0.01 * 4.0, rel=0.05)
    assert p.backward[0] == pytest.approx(100 * 0.01, rel=0.05)


def test_first_layer_uses_the_data() -> None:
    """Layer 1 is scaled by E[X^2], the others by E[f(S)^2]: every layer's sums have variance q."""
    sizes = [40, 500, 500, 500]
    layers = [m for a, b in itertools.pairwise(sizes) for m in (nn.Linear(a, b), nn.Tanh())]
    model = nn.Sequential(*layers)
    init.preserve_variance_(model, "tanh", q=1.3, input_second_moment=9.0)
    p = init.propagation(model, 9.0, samples=1000)
    assert p.forward == pytest.approx([1.3] * 3, rel=0.1)
    assert model[0].weight.std().item() ** 2 == pytest.approx(1.3 / (40 * 9.0), rel=0.05)
    assert model[2].weight.std().item() ** 2 == pytest.approx(
        init.gain("tanh", 1.3) / 500, rel=0.05
    )
    assert model[0].bias.abs().max().item() == 0


@pytest.mark.parametrize("dropped", [0.0, 0.05])
def test_self_normalizing_network_stays_at_mean_0_and_variance_1(dropped: float) -> None:
    """Also with alpha dropout between the layers."""
    layers: list[Any] = []
    for _ in range(40):
        layers += [nn.Linear(256, 256, bias=False), nn.SELU(), nn.AlphaDropout(dropped)]
        init.self_normalizing_(layers[-3].weight)
    w = layers[0].weight.detach().double()
    assert w.sum(1).abs().max().item() < 1e-5
    assert_close(w.square().sum(1), np.ones(256), rtol=1e-5)
    start = 1.5 * chainrule.randn(500, 256) + 0.2
    mean, std = moments(nn.Sequential(*layers)(start).detach())
    assert mean == pytest.approx(0.0, abs=0.05)
    assert std == pytest.approx(1.0, abs=0.1)


# --- structure ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (4, 3, 2)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    w = init.orthogonal_(weight(*shape), gain=2.0).detach().double()
    flat = w.reshape(shape[0], -1)
    small = flat @ flat.mT if flat.shape[0] <= flat.shape[1] else flat.mT @ flat
    assert_close(small, 4 * np.eye(small.shape[0]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
def test_eye(shape: tuple[int, int]) -> None:
    assert_close(init.eye_(weight(*shape)).detach(), np.eye(*shape, dtype=np.float32))


@pytest.mark.parametrize(
    ("shape", "groups"), [((4, 4, 3), 1), ((4, 2, 3, 3), 2), ((3, 5, 2, 2, 3), 1), ((6, 2, 3), 3)]
)
def test_dirac_is_that_of_pytorch(shape: tuple[int, ...], groups: int) -> None:
    torch = pytest.importorskip("torch")
    expected = torch.nn.init.dirac_(torch.empty(*shape), groups)
    assert_close(init.dirac_(weight(*shape), groups).detach(), expected)


def test_sparse() -> None:
    w = init.sparse_(weight(10, 50), 0.25, std=0.3).detach()
    assert ((w == 0).sum(0) == 3).all()
    assert moments(w[w != 0])[1] == pytest.approx(0.3, rel=0.15)


def test_constants() -> None:
    assert_close(init.constant_(weight(2), 0.3).detach(), np.full(2, 0.3, np.float32))
    assert_close(init.ones_(weight(2)).detach(), np.ones(2, np.float32))
    assert_close(init.zeros_(weight(2)).detach(), np.zeros(2, np.float32))


def test_empty_tensors_are_left() -> None:
    w = weight(0, 3)
    with pytest.warns(UserWarning, match="zero-element"):
        assert init.kaiming_normal_(w) is w
    assert init.orthogonal_(w) is w


def test_truncation_far_from_the_mean_warns() -> None:
    with pytest.warns(UserWarning, match="mean is more than 2 std"):
        init.trunc_normal_(weight(3), 10.0)


# --- errors ---------------------------------------------------------------------------------------


ERRORS = [
    (lambda: init.calculate_gain("mish"), ValueError, "unsupported nonlinearity 'mish'"),
    (lambda: init.calculate_gain("leaky_relu", "x"), ValueError, "not a valid number"),
    (lambda: init.eye_(weight(3)), ValueError, r"eye_: only tensors with 2.*\(3,\)"),
    (lambda: init.dirac_(weight(3, 3)), ValueError, "dirac_: only tensors with 3, 4, or 5"),
    (lambda: init.dirac_(weight(3, 3, 3), 2), ValueError, "divisible by groups"),
    (lambda: init.kaiming_normal_(weight(3, 3), mode="fan"), ValueError, "Mode 'fan' not supp"),
    (lambda: init.kaiming_normal_(weight(3)), ValueError, "fewer than 2 dimensions"),
    (lambda: init.xavier_normal_(weight(3)), ValueError, "fewer than 2 dimensions"),
    (lambda: init.orthogonal_(weight(3)), ValueError, "orthogonal_: only tensors with 2 or more"),
    (lambda: init.sparse_(weight(3), 0.1), ValueError, "sparse_: only tensors with 2"),
    (lambda: init.sparse_(weight(3, 3), 1.5), ValueError, "sparsity between 0 and 1, got 1.5"),
    (lambda: init.trunc_normal_(weight(3), a=2.0, b=1.0), ValueError, "a <= b"),
    (lambda: init.variance_scaling_(weight(3, 3), -1.0), ValueError, "scale >= 0, got -1"),
    (lambda: init.variance_scaling_(weight(3, 3), mode="x"), ValueError, "mode 'x' not supported"),
    (lambda: init.variance_scaling_(weight(3, 3), distribution="x"), ValueError, "'x' is not one"),
    (lambda: init.self_normalizing_(weight(3, 1)), ValueError, "at least 2 weights"),
    (lambda: init.uniform_(weight(3), 1.0, 0.0), RuntimeError, r"from=1.0 > to=0.0"),
    (lambda: init.normal_(weight(3), 0.0, -1.0), RuntimeError, "std"),
    (lambda: init.gain(lambda x: 0 * x), ValueError, "0 everywhere"),
    (lambda: init.gain("tanh", 0.0), ValueError, "variance > 0"),
    (lambda: init.propagation("tanh", 1.0, -1), ValueError, "depth >= 0, got -1"),
    (lambda: init.propagation(nn.Conv2d(1, 1, 1)), ValueError, "pass input="),
    (lambda: init.preserve_variance_(nn.Linear(2, 2), "tanh", 1.0, 0.0), ValueError, "got 0.0"),
    (lambda: init.bias_to_mean_(nn.Linear(2, 2, bias=False), weight(3, 2)), ValueError, "no bias"),
    (lambda: init.bias_to_mean_(nn.Linear(2, 2), weight(3, 4)), ValueError, "4 means.*\\(2,\\)"),
    (lambda: init.pretrain_layerwise(nn.Linear(2, 2), weight(3, 2)), TypeError, "Sequential"),
    (
        lambda: init.unit_variance_(nn.Linear(2, 2, bias=False), chainrule.zeros(3, 2)),
        RuntimeError,
        "layer 0 .Linear. has variance 0",
    ),
]


@pytest.mark.parametrize(("call", "error", "match"), ERRORS, ids=[m for *_, m in ERRORS])
def test_errors(call: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        call()
