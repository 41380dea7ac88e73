"""Dropout: what is left out, what is kept on average, and weights scaled instead (R13-R16)."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.nn import functional as F


@pytest.fixture(autouse=True)
def _seeded() -> None:
    chainrule.manual_seed(0)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_p_is_the_probability_to_drop(p: float) -> None:
    out = F.dropout(chainrule.ones(100_000), p).numpy()
    assert set(np.unique(out)) == {np.float32(0), np.float32(1 / (1 - p))}
    assert abs((out == 0).mean() - p) < 5 * math.sqrt(p * (1 - p) / 1e5)


def test_gradient_passes_where_the_value_did() -> None:
    x = chainrule.randn(1000, requires_grad=True)
    out = F.dropout(x, 0.3)
    out.sum().backward()
    assert_close(x.grad, np.where(out.numpy(force=True) == 0, 0, np.float32(1 / 0.7)), rtol=1e-6)


def test_evaluation_and_p_zero_pass_the_input_itself() -> None:
    x = chainrule.ones(3)
    for layer in (nn.Dropout(), nn.AlphaDropout(), nn.Dropout1d()):
        y = x if not isinstance(layer, nn.Dropout1d) else chainrule.ones(2, 3)
        assert layer.eval()(y) is y
    assert F.dropout(x, 0.0) is x
    assert F.dropout(x, 1.0).tolist() == [0, 0, 0]
    assert F.alpha_dropout(x, 1.0, training=True).tolist() == [0, 0, 0]


def test_inplace_writes_into_the_input() -> None:
    for layer in (nn.Dropout(0.5, inplace=True), nn.AlphaDropout(0.5, inplace=True)):
        x = chainrule.ones(100)
        assert layer(x) is x
        assert len(set(x.tolist())) == 2


@pytest.mark.parametrize(
    ("layer", "shape", "channels"),
    [
        (nn.Dropout1d, (50, 4, 3), 2),
        (nn.Dropout1d, (200, 3), 1),
        (nn.Dropout2d, (50, 4, 3, 3), 2),
        (nn.Dropout3d, (50, 4, 3, 2, 2), 2),
        (nn.Dropout3d, (200, 3, 2, 2), 1),
        (nn.FeatureAlphaDropout, (50, 4, 3), 2),
    ],
)
def test_channels_are_dropped_as_a_whole(layer: Any, shape: Any, channels: int) -> None:
    out = layer(0.5)(chainrule.ones(*shape)).numpy().reshape(*shape[:channels], -1)
    assert (out == out[..., :1]).all()
    rate = (out[..., 0] == out.min()).mean()
    assert 0.3 < rate < 0.7


@pytest.mark.parametrize("p", [0.05, 0.10, 0.5])
def test_alpha_dropout_keeps_mean_and_variance(p: float) -> None:
    """R16: a and b as the book gives them, and both moments exactly, over the two outcomes."""
    q, alpha = 1 - p, -1.0507009873554805 * 1.6732632423543772
    a = (q + alpha**2 * q * (1 - q)) ** -0.5
    b = -a * (1 - q) * alpha
    x = chainrule.tensor(np.random.default_rng(1).normal(size=200_000))
    out, x = F.alpha_dropout(x, p, training=True).numpy(), x.numpy()
    kept = ~np.isclose(out, a * alpha + b, rtol=0, atol=1e-9)
    assert_close(out[kept], a * x[kept] + b, rtol=1e-9, atol=1e-12)
    assert abs(kept.mean() - q) < 0.01
    mean = q * b + p * (a * alpha + b)
    second = q * (a**2 + b**2) + p * (a * alpha + b) ** 2
    assert abs(mean) < 1e-14
    assert abs(second - 1) < 1e-13
    assert abs(out.mean()) < 0.02
    assert abs(out.var() - 1) < 0.03


def test_weight_scaling_is_the_evaluation_of_inverted_dropout() -> None:
    """R14. Two forms of one network: with the same masks they agree in training, and with the
    weights times 1 - p they agree in evaluation."""
    p = 0.3
    inverted = nn.Sequential(
        nn.Dropout(0.1), nn.Linear(5, 8), nn.Tanh(), nn.Dropout(p), nn.Linear(8, 2)
    )
    plain = nn.Sequential(
        nn.UnscaledDropout(0.1), nn.Linear(5, 8), nn.Tanh(), nn.UnscaledDropout(p), nn.Linear(8, 2)
    )
    plain.load_state_dict(inverted.state_dict())
    with chainrule.no_grad():
        plain[1].weight.div_(0.9)
        plain[4].weight.div_(1 - p)
    x = chainrule.randn(6, 5)
    chainrule.manual_seed(3)
    trained = inverted(x)
    chainrule.manual_seed(3)
    assert_close(plain(x), trained, rtol=1e-5, atol=1e-6)
    assert_close(F.weight_scaled(plain)(x), inverted.eval()(x), rtol=1e-5, atol=1e-6)


def test_weight_scaling_needs_a_weight() -> None:
    with pytest.raises(ValueError, match="no module with a weight"):
        F.weight_scaled(nn.Sequential(nn.Linear(2, 2), nn.UnscaledDropout()))


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
@pytest.mark.parametrize(
    "make",
    [
        nn.Dropout,
        nn.Dropout1d,
        nn.Dropout2d,
        nn.Dropout3d,
        nn.AlphaDropout,
        nn.FeatureAlphaDropout,
        nn.UnscaledDropout,
    ],
)
def test_a_probability_outside_0_and_1_is_refused(make: Any, p: float) -> None:
    with pytest.raises(ValueError, match=f"between 0 and 1, but got {p}"):
        make(p)


def test_errors() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.dropout(chainrule.ones(2), -1)
    with pytest.raises(RuntimeError, match="Expected 2D or 3D input"):
        F.dropout1d(chainrule.ones(2))
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        F.feature_alpha_dropout(chainrule.ones(2), training=True)
    with pytest.raises(RuntimeError, match="can't be cast"):
        F.dropout(chainrule.ones(2).long())
    with pytest.warns(UserWarning, match=r"\(N, C, L\)"):
        F.dropout2d(chainrule.ones(2, 3, 4))
    with pytest.warns(UserWarning, match="use dropout to drop"):
        F.dropout3d(chainrule.ones(2, 3))


def with_unscaled(before: nn.Module, *behind: nn.Module) -> nn.Module:
    return nn.Sequential(before, nn.UnscaledDropout(0.4), *behind)


@pytest.mark.parametrize(
    "between",
    [
        [nn.PReLU(init=0.3)],
        [nn.PReLU(6), nn.Identity(), nn.ReLU()],
        [nn.Tanh()],
        [nn.ParametricActivation(lambda x, beta: x * (beta * x).sigmoid(), beta=1.5)],
    ],
)
def test_weights_are_scaled_behind_activations(between: list[nn.Module]) -> None:
    """The mean over all masks of what the units behind got in training."""
    chainrule.manual_seed(0)
    net = with_unscaled(nn.Linear(5, 6), *between, nn.Linear(6, 2)).double()
    x = chainrule.randn(3, 5, dtype=chainrule.float64)
    masks = chainrule.tensor(list(itertools.product([0.0, 1.0], repeat=6)), dtype=x.dtype)
    chances = 0.6 ** masks.sum(1) * 0.4 ** (6 - masks.sum(1))
    behind = net[2:].eval()
    outputs = behind((net[0](x) * masks.unsqueeze(1)).reshape(-1, 6)).reshape(64, 3, 2)
    expected = (chances.reshape(-1, 1, 1) * outputs).sum(0)
    assert_close(F.weight_scaled(net)(x), expected, rtol=1e-10)


@pytest.mark.parametrize(
    "norm",
    [
        nn.BatchNorm1d(6),
        nn.BatchNorm1d(6, affine=False),
        nn.BatchNorm1d(6, track_running_stats=False),
        nn.LayerNorm(6),
        nn.GroupNorm(2, 6),
        nn.RMSNorm(6, eps=1e-2),
    ],
)
def test_a_normalization_takes_the_factor_of_its_input(norm: nn.Module) -> None:
    chainrule.manual_seed(0)
    norm = copy.deepcopy(norm)
    net = with_unscaled(nn.Linear(5, 6), norm, nn.PReLU(), nn.Linear(6, 2)).double()
    x = chainrule.randn(8, 5, dtype=chainrule.float64)
    for _ in range(3):
        net(x)
    net.eval()
    expected = net[2:](0.6 * net[0](x))
    assert_close(F.weight_scaled(net)(x), expected, rtol=1e-10)
    assert_close(net[4].weight, F.weight_scaled(net)[4].weight)


@pytest.mark.parametrize(
    "layer",
    [
        nn.RNN(6, 4, 2, bidirectional=True),
        nn.LSTM(6, 4, 2, batch_first=True),
        nn.GRU(6, 4),
        nn.LSTMCell(6, 4),
        nn.Sequential(nn.Unflatten(1, (2, 3)), nn.MaxPool1d(2), nn.Conv1d(2, 3, 1)),
        nn.Sequential(nn.Unflatten(1, (2, 3)), nn.ConvTranspose1d(2, 3, 2)),
    ],
)
def test_the_weights_of_the_inputs_are_scaled(layer: nn.Module) -> None:
    chainrule.manual_seed(0)
    net = with_unscaled(nn.Linear(5, 6), layer).double().eval()
    x = chainrule.randn(7, 5, dtype=chainrule.float64)
    first, second = F.weight_scaled(net)(x), net[2](0.6 * net[0](x))
    first, second = (y[0] if isinstance(y, tuple) else y for y in (first, second))
    assert_close(first, second, rtol=1e-10)


@pytest.mark.parametrize(
    ("behind", "message"),
    [
        ([nn.Sigmoid(), nn.Linear(6, 2)], "'2' .*Sigmoid, does not pass a factor on"),
        ([nn.LogSoftmax(1), nn.Linear(6, 2)], "LogSoftmax, does not pass"),
        ([nn.Residual(nn.Linear(6, 6)), nn.Linear(6, 2)], "Residual, is more than one path"),
        ([nn.Bilinear(6, 6, 2)], "Bilinear, does not pass"),
        ([nn.utils.parametrizations.weight_norm(nn.Linear(6, 2))], "computed from others"),
        ([nn.RMSNorm(6)], "RMSNorm without eps"),
    ],
)
def test_weight_scaling_refuses_what_it_cannot_do(behind: list[nn.Module], message: str) -> None:
    with pytest.raises(ValueError, match=f"weight_scaled: .*{message}"):
        F.weight_scaled(with_unscaled(nn.Linear(5, 6), *behind))
    ends = nn.Residual(nn.Sequential(nn.Linear(6, 6), nn.UnscaledDropout()))
    with pytest.raises(ValueError, match="ends a path"):
        F.weight_scaled(nn.Sequential(ends, nn.Linear(6, 2)))
