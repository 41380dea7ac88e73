"""Pruning step by step with retraining, and its table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import data as datasets
from chainrule import models, nn, optim, train
from chainrule.regularize import prune


def test_targets() -> None:
    assert prune.sparsities(0.9, 3, kind="linear") == [0.3, 0.6, 0.9]
    geometric = prune.sparsities(0.9, 4)
    left = 1 - np.array([0.0, *geometric])
    np.testing.assert_allclose(left[1:] / left[:-1], 0.1**0.25)
    cubic = prune.sparsities(0.8, 5, start=0.2, kind="cubic")
    t = np.arange(1, 6) / 5
    np.testing.assert_allclose(cubic, 0.8 - 0.6 * (1 - t) ** 3)
    with pytest.raises(ValueError, match="0 <= start <= end <= 1"):
        prune.sparsities(0.5, 3, start=0.7)
    with pytest.raises(ValueError, match="never reach 1"):
        prune.sparsities(1.0, 3)
    with pytest.raises(ValueError, match="kind must be one of.*'sudden'"):
        prune.sparsities(0.5, 3, kind="sudden")


def iris() -> tuple[Any, Any]:
    x, y = datasets.embedded("iris").tensors()
    return (x.double() - x.mean(0)) / x.std(0), y


def test_iris_pruned_by_each_method_with_retraining() -> None:
    x, y = iris()
    loss = nn.CrossEntropyLoss()
    chainrule.manual_seed(0)
    net = models.MLP(4, [8], 3, activation="tanh").double()
    trainer = train.Trainer(
        net, "cross_entropy", lambda p: optim.Adam(p, lr=0.02, weight_decay=1e-3), progress=False
    )
    trainer.fit((x, y), epochs=30)
    start = {k: v.numpy().copy() for k, v in net.state_dict().items()}
    steps = {
        "magnitude": lambda s: prune.magnitude(net, s),
        "obd": lambda s: prune.obd(net, loss, (x, y), s),
        "obs": lambda s: prune.obs(net, loss, (x, y), s, damping=0.05),
    }
    for name, step in steps.items():
        net = models.MLP(4, [8], 3, activation="tanh").double()
        net.load_state_dict({k: chainrule.tensor(v) for k, v in start.items()})
        trainer = train.Trainer(
            net,
            "cross_entropy",
            lambda p: optim.Adam(p, lr=0.02),
            metrics=["error_rate"],
            progress=False,
        )
        table = prune.iterate(
            net,
            step,
            [0.3, 0.5, 0.7],
            retrain=lambda t=trainer: t.fit((x, y), epochs=t.epoch + 10),
            measure=lambda t=trainer: t.evaluate((x, y))["error_rate"],
        )
        assert len(table) == 3
        assert [row["method"] for row in table] == [name] * 3
        assert table[-1]["remaining"] == round(0.3 * 56)
        assert prune.sparsity(net) == pytest.approx(0.7, abs=0.01)
        assert table[-1]["retrained"] <= 0.06
        shown = str(table)
        assert ("predicted" in shown) == (name != "magnitude")
        assert "retrained" in shown


def test_a_step_too_far_is_taken_back() -> None:
    chainrule.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1)).double()
    x = chainrule.randn(20, 3, dtype=chainrule.float64)
    y = net(x).detach()
    mse = nn.MSELoss()

    def measure() -> float:
        net.eval()
        out = float(mse(net(x), y))
        net.train()
        return out

    worst = measure() + 1e-3
    x_before = chainrule.randn(2, 3, dtype=chainrule.float64)
    outputs = []

    def step(s: float) -> prune.Step:
        outputs.append(net.eval()(x_before).detach().numpy())
        return prune.magnitude(net.train(), s)

    table = prune.iterate(
        net, step, [0.05, 0.9], measure=measure, worst=worst, retrain=lambda: net(3 * x)
    )
    assert len(table) in (1, 2)
    assert "the model is as it was before step" in table.stopped
    assert table.stopped in str(table)
    np.testing.assert_array_equal(net.eval()(x_before).detach(), outputs[-1])
    assert prune.sparsity(net) < 0.1
    assert table.start is not None


def test_what_iterate_refuses() -> None:
    net = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="worst needs a measure"):
        prune.iterate(net, lambda s: prune.magnitude(net, s), [0.5], worst=1.0)
    with pytest.raises(TypeError, match="step must return a Step, got NoneType"):
        prune.iterate(net, lambda s: None, [0.5])  # type: ignore[arg-type,return-value]
