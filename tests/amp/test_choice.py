"""The choice of precision: sums of large batches, training in each type, gradients too small."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import data, nn, optim
from chainrule.nn import functional as F

pytest.importorskip("ml_dtypes")
UNIT = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def digits(n: int, dtype: Any) -> tuple[chainrule.Tensor, chainrule.Tensor]:
    x, y = data.embedded("digits").tensors()
    return (x[:n] / 16).to(dtype), y[:n]


@pytest.mark.parametrize("n", [1000, 100_000])
@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_means_of_large_batches_are_within_the_bound_of_sums_in_pairs(name: str, n: int) -> None:
    dtype = getattr(chainrule, name)
    losses = chainrule.tensor(np.random.default_rng(0).random(n)).to(dtype)
    exact = math.fsum(losses.double().tolist()) / n
    error = abs(losses.mean().double().item() - exact) / exact
    # summed in float32 or in pairs, and rounded once
    assert error <= UNIT[name] + math.log2(n) * UNIT["float32"]
    in_order = np.add.accumulate(losses.float().numpy().astype(np.float16))[-1]
    if n > 1000:  # one by one, float16 stands still
        assert in_order < 0.1 * exact * n
    else:
        assert abs(float(in_order) / n - exact) / exact < (n - 1) * UNIT["float16"]


def test_a_batch_in_parts_has_the_gradient_of_the_whole() -> None:
    x, y = digits(512, chainrule.float32)
    found = []
    for parts in (1, 8):
        chainrule.manual_seed(0)
        net = nn.Linear(64, 10)
        for rows, labels in zip(x.chunk(parts), y.chunk(parts), strict=True):
            (F.cross_entropy(net(rows), labels) / parts).backward()
        found.append(net.weight.grad.numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", UNIT)
def test_training_in_a_type(name: str) -> None:
    """Its gradient is wrong by some units of rounding, its parameters stay of the type, and the
    loss falls as it does in float64."""
    dtype = getattr(chainrule, name)
    x, y = digits(256, dtype)
    losses, gradients = [], []
    for t in (dtype, chainrule.float64):
        chainrule.manual_seed(0)
        net = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10)).to(dtype).to(t)
        optimizer = optim.SGD(net.parameters(), lr=0.5)
        for i in range(30):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x.to(t)), y)
            loss.backward()
            if i == 0:
                gradients.append(net[0].weight.grad.double().numpy())
            optimizer.step()
        assert {p.dtype for p in net.parameters()} == {t}
        losses.append(loss.double().item())
    error = np.linalg.norm(gradients[0] - gradients[1]) / np.linalg.norm(gradients[1])
    assert error < 8 * UNIT[name]
    if name != "float64":
        assert error > 0.1 * UNIT[name]
    assert losses[0] == pytest.approx(losses[1], rel=max(16 * UNIT[name], 1e-9))
    assert losses[0] < 1


def test_gradients_too_small_for_float16_are_saved_by_a_factor() -> None:
    x, y = digits(64, chainrule.float32)
    errors = {}
    for name, factor in (("float16", 1.0), ("float16", 2.0**10), ("bfloat16", 1.0)):
        dtype = getattr(chainrule, name)
        found = []
        for t in (dtype, chainrule.float64):
            chainrule.manual_seed(0)
            layers = [m for _ in range(6) for m in (nn.Linear(64, 64), nn.Sigmoid())]
            net = nn.Sequential(*layers, nn.Linear(64, 10)).to(dtype).to(t)
            (F.cross_entropy(net(x.to(t)), y).to(chainrule.float32) * factor).backward()
            found.append(net[0].weight.grad.double().numpy() / factor)
        errors[name, factor] = np.linalg.norm(found[0] - found[1]) / np.linalg.norm(found[1])
    assert errors["float16", 1.0] > 0.5
    assert errors["float16", 2.0**10] < 0.01
    assert errors["bfloat16", 1.0] < 0.05
