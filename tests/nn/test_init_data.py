"""Starting points from data, and what breaks symmetry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.nn import init


@pytest.fixture(autouse=True)
def _seed() -> None:
    chainrule.manual_seed(0)


# --- symmetry -------------------------------------------------------------------------------------


def train(model: Any, x: Any, y: Any, steps: int, lr: float) -> float:
    """Plain gradient descent on the mean squared error, which is returned."""
    parameters = list(model.parameters())
    for _ in range(steps):
        gradients = chainrule.autograd.grad(((model(x) - y) ** 2).mean(), parameters)
        with chainrule.no_grad():
            for p, g in zip(parameters, gradients, strict=True):
                p -= lr * g
    return ((model(x) - y) ** 2).mean().item()


def small_problem() -> tuple[Any, Any]:
    x = chainrule.randn(64, 3)
    return x, (x[:, :1] * x[:, 1:2]).tanh()


def test_units_that_start_alike_stay_alike() -> None:
    x, y = small_problem()
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
    assert init.symmetric_units(model) == {}
    for p in model.parameters():
        init.constant_(p, 0.2)
    assert init.symmetric_units(model) == {"0": [[0, 1, 2, 3, 4]]}
    gradients = chainrule.autograd.grad(((model(x) - y) ** 2).mean(), list(model.parameters()))
    assert_close(gradients[0], gradients[0][:1].expand(5, 3), rtol=0, atol=0)
    train(model, x, y, 50, 0.1)
    hidden = model[0].weight.detach()
    assert_close(hidden, hidden[:1].expand(5, 3), rtol=1e-5)


def test_zero_weights_with_random_biases_learn_but_poorly() -> None:
    x, y = small_problem()
    errors = []
    for zero in (True, False):
        chainrule.manual_seed(1)
        model = nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 1))
        for layer in (model[0], model[2]):
            (init.zeros_ if zero else init.lecun_normal_)(layer.weight)
            init.uniform_(layer.bias, -0.5, 0.5)
        before = ((model(x) - y) ** 2).mean().item()
        errors.append((before, train(model, x, y, 400, 0.1)))
    (zero_before, zero_after), (_, lecun_after) = errors
    assert zero_after < zero_before
    assert lecun_after < 0.9 * zero_after
    assert init.symmetric_units(model) == {}


def xor_failures(start: Any, starts: int = 200, epochs: int = 1000) -> float:
    """The fraction of 2-4-1 sigmoid networks that do not learn XOR (SGD 0.1, momentum 0.99).

    All networks are trained at once, as a batch of matrices.
    """
    x = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]).expand(starts, 4, 2)
    y = chainrule.tensor([[0.0], [1.0], [1.0], [0.0]]).expand(starts, 4, 1)
    w1, w2 = start(chainrule.empty(starts, 2, 4), 2), start(chainrule.empty(starts, 4, 1), 4)
    parameters = [w1, chainrule.zeros(starts, 1, 4), w2, chainrule.zeros(starts, 1, 1)]
    velocities = [chainrule.zeros_like(p.requires_grad_()) for p in parameters]

    def logits() -> Any:
        a, b, c, d = parameters
        return (x @ a + b).sigmoid() @ c + d

    for _ in range(epochs):
        loss = chainrule.binary_cross_entropy_with_logits(logits(), y, reduction="sum") / 4
        gradients = chainrule.autograd.grad(loss, parameters)
        with chainrule.no_grad():
            for p, v, g in zip(parameters, velocities, gradients, strict=True):
                v *= 0.99
                v += g
                p -= 0.1 * v
    right = ((logits() > 0) == (y > 0.5)).reshape(starts, 4).all(1)
    return 1 - right.float().mean().item()


def test_the_starting_point_matters_on_xor() -> None:
    """Measured over 400 starts: 9.8 of 20 fail from U(-10, 10), 0.4 of 20 from LeCun's."""
    wide = xor_failures(lambda w, fan_in: init.uniform_(w, -10.0, 10.0))
    lecun = xor_failures(lambda w, fan_in: init.normal_(w, 0.0, fan_in**-0.5))
    assert 0.38 < wide < 0.62
    assert lecun < 0.06


# --- from data ------------------------------------------------------------------------------------


def test_bias_to_the_mean_of_the_targets() -> None:
    targets = chainrule.tensor([[1.0, 10.0], [3.0, 20.0]])
    layer = nn.Linear(4, 2)
    assert init.bias_to_mean_(layer, targets) is layer.bias
    assert_close(layer.bias.detach(), np.array([2.0, 15.0], np.float32))
    init.zeros_(layer.weight)
    assert_close(layer(chainrule.randn(3, 4)).detach().mean(0), targets.mean(0))
    one = nn.Linear(4, 1)
    init.bias_to_mean_(one.bias, chainrule.tensor([0, 1, 1, 1]), chainrule.logit)
    assert one.bias.sigmoid().item() == pytest.approx(0.75)


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh])
def test_unit_variance_from_data(activation: Any) -> None:
    model = nn.Sequential(
        nn.Linear(30, 60), activation(), nn.Linear(60, 60), activation(), nn.Linear(60, 5)
    )
    batch = 7.0 * chainrule.randn(200, 30) + 1.0
    assert init.unit_variance_(model, batch) is model
    x = batch
    for module in model:
        x = module(x)
        if isinstance(module, nn.Linear):
            assert x.detach().var(correction=0).item() == pytest.approx(1.0, abs=0.011)


def test_unit_variance_of_a_convolution() -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 9, 3))
    batch = chainrule.randn(50, 2, 5, 5)
    init.unit_variance_(model, batch, orthogonal=False)
    assert model(batch).detach().var(correction=0).item() == pytest.approx(1.0, abs=0.011)


def test_pretraining_reconstructs_layer_by_layer() -> None:
    basis = chainrule.randn(4, 12)
    batch = (chainrule.randn(200, 4) @ basis) / 2
    model = nn.Sequential(nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 2))
    last = model[4].weight.detach().clone()
    errors = init.pretrain_layerwise(model, batch, steps=300, lr=0.3)
    assert len(errors) == 2
    for before, after in errors:
        assert after < 0.5 * before
    assert_close(model[4].weight.detach(), last, rtol=0, atol=0)
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
