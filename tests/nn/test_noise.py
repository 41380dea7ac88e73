"""Noise on activations and weights, and prediction by many passes (R08, R09, R15)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.nn import functional as F


@pytest.fixture(autouse=True)
def _seeded() -> None:
    chainrule.manual_seed(0)


def test_gaussian_noise_has_the_standard_deviation() -> None:
    noise = nn.GaussianNoise(0.3)(chainrule.zeros(100_000)).numpy()
    assert abs(noise.mean()) < 0.005
    assert abs(noise.std() - 0.3) < 0.005
    x = chainrule.ones(3, requires_grad=True)
    nn.GaussianNoise(0.3)(x).sum().backward()
    assert_close(x.grad, np.ones(3, "float32"))


def test_weight_noise_moves_the_weights_and_puts_them_back() -> None:
    layer = nn.Linear(3, 2)
    before, parameters = layer.weight.clone(), list(layer.parameters())
    x = chainrule.randn(4, 3)
    with F.weight_noise(layer, 0.5):
        noisy = layer.weight.detach()
        out = layer(x)
    assert list(map(id, layer.parameters())) == list(map(id, parameters))
    assert_close(layer.weight, before, rtol=0, atol=0)
    assert not bool((noisy == before).any())
    # The graph outlives the noise: d(out)/dW is the input, whatever the noise.
    out.sum().backward()
    assert_close(layer.weight.grad, np.tile(x.numpy().sum(0), (2, 1)), rtol=1e-5)


def test_gradient_is_taken_where_the_noise_put_the_weights() -> None:
    class Square(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(chainrule.tensor([2.0]))

        def forward(self) -> chainrule.Tensor:
            return self.w * self.w

    model = Square()
    with F.weight_noise(model, 1.0):
        moved = float(model.w)
        model().backward()
    assert_close(model.w.grad, np.array([2 * moved], "float32"))


def test_tied_weights_get_one_noise() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    with F.weight_noise(model, 1.0):
        assert model[0].weight is model[1].weight


def test_weights_come_back_after_an_error() -> None:
    layer = nn.Linear(3, 2)
    own = layer.weight
    with pytest.raises(RuntimeError), F.weight_noise(layer, 0.5):
        layer(chainrule.ones(4))
    assert layer.weight is own


def test_weight_noise_layer_is_silent_in_evaluation() -> None:
    layer = nn.WeightNoise(nn.Linear(3, 2), 0.5)
    x = chainrule.ones(1, 3)
    assert_close(layer.eval()(x), layer.module(x), rtol=0, atol=0)
    assert not bool((layer.train()(x) == layer.module(x)).any())


def test_monte_carlo_prediction_has_the_moments_of_the_masks() -> None:
    """A linear model: mean w.x, variance p / (1 - p) sum (w x)^2, both in closed form."""
    p, model = 0.4, nn.Sequential(nn.Dropout(0.4), nn.Linear(6, 1)).double()
    x = chainrule.randn(5, 6).double()
    mean, std = F.monte_carlo_predict(model, x, samples=4000)
    w, b = model[1].weight.numpy(force=True), model[1].bias.numpy(force=True)
    terms = x.numpy() * w
    spread = np.sqrt(p / (1 - p) * (terms**2).sum(1, keepdims=True))
    assert (np.abs(mean.numpy() - terms.sum(1, keepdims=True) - b) < 5 * spread / 4000**0.5).all()
    assert_close(std.numpy() / spread, np.ones((5, 1)), rtol=0.08)


def test_monte_carlo_prediction_leaves_the_rest_in_evaluation() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    model.train()
    model[0].eval()
    before = [m.training for m in model.modules()]
    one = chainrule.ones(1, 3)  # a batch of one, which training would refuse
    mean, std = F.monte_carlo_predict(model, one, samples=50)
    assert [m.training for m in model.modules()] == before
    assert model[1].num_batches_tracked.item() == 0
    assert float(std) > 0
    assert not mean.requires_grad


def test_attention_s_dropout_takes_part() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    layer.self_attn.dropout = 0.5
    _, std = F.monte_carlo_predict(layer, chainrule.randn(5, 1, 4), samples=10)
    assert float(std.max()) > 0


def test_without_anything_random_the_spread_is_zero() -> None:
    model = nn.Linear(2, 2)
    x = chainrule.ones(3, 2)
    mean, std = F.monte_carlo_predict(model, x, samples=3)
    assert_close(mean, model(x), rtol=1e-6)
    assert std.tolist() == [[0.0, 0.0]] * 3


def test_errors() -> None:
    for call in (nn.GaussianNoise, lambda std: nn.WeightNoise(nn.Linear(1, 1), std)):
        with pytest.raises(ValueError, match="std must be non-negative, but got -1"):
            call(-1)
        with pytest.raises(ValueError, match="nan"):
            call(math.nan)
    with pytest.raises(ValueError, match="samples must be at least 1, got 0"):
        F.monte_carlo_predict(nn.Linear(1, 1), chainrule.ones(1), samples=0)
