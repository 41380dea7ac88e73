"""Jacobians of layers against closed forms: singular values of W, and of diag(f') W."""

from __future__ import annotations

import math
from typing import Any

import chainrule
import numpy as np
import pytest
from chainrule import inspect, nn
from chainrule.inspect.health import jacobians


def test_a_linear_layer_has_the_singular_values_of_its_weight() -> None:
    chainrule.manual_seed(0)
    layer = nn.Linear(5, 7)
    (found,) = inspect.layer_jacobians(layer, chainrule.randn(3, 5)).layers
    values = np.linalg.svd(layer.weight.detach().numpy(), compute_uv=False)
    assert found.norm == pytest.approx(values[0], rel=1e-6)
    assert found.gain == pytest.approx(math.sqrt((values**2).sum() / 7), rel=1e-6)
    assert found.exact


@pytest.mark.parametrize("functional", [False, True])
def test_an_activation_scales_the_rows(functional: bool) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.f = nn.Linear(4, 6), nn.Linear(6, 2), nn.Sigmoid()

        def forward(self, x: Any) -> Any:
            h = self.a(x)
            return self.b(chainrule.sigmoid(h) if functional else self.f(h))

    chainrule.manual_seed(0)
    net, x = Net(), chainrule.randn(5, 4)
    found = inspect.layer_jacobians(net, x).layers[0]
    s = chainrule.sigmoid(net.a(x)).detach().numpy()
    slopes, weight = s * (1 - s), net.a.weight.detach().numpy()
    norms = [np.linalg.norm(row[:, None] * weight, 2) for row in slopes]
    assert found.norm == pytest.approx(np.mean(norms), rel=1e-5)
    assert found.slope == pytest.approx(slopes.max(), rel=1e-6)
    assert found.slope <= 0.25


def test_verdicts_stand_on_both_sides_of_one() -> None:
    def verdict(scale: float) -> str:
        net = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 2))
        nn.init.orthogonal_(net[0].weight, gain=scale)
        return inspect.layer_jacobians(net, chainrule.randn(3, 4)).verdicts[0]

    assert [verdict(s) for s in (0.5, 1.0, 2.0)] == ["vanishing", "stable", "exploding"]


def test_ten_sigmoids_vanish_and_say_so() -> None:
    chainrule.manual_seed(0)
    layers = [m for _ in range(10) for m in (nn.Linear(8, 8), nn.Sigmoid())]
    found = inspect.layer_jacobians(nn.Sequential(*layers), chainrule.randn(4, 8))
    assert set(found.verdicts) == {"vanishing"}
    assert found.product < 1e-7
    assert "gradients vanish" in str(found)
    assert all(x.slope <= 0.25 for x in found.layers)


def test_large_layers_by_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    chainrule.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 20), nn.Tanh(), nn.Conv1d(1, 1, 3))
    exact = inspect.layer_jacobians(net[:2], chainrule.randn(2, 12))
    monkeypatch.setattr(jacobians, "EXACT", 4)
    monkeypatch.setattr(jacobians, "ITERATIONS", 100)
    monkeypatch.setattr(jacobians, "PROBES", 2000)
    chainrule.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 20), nn.Tanh(), nn.Conv1d(1, 1, 3))
    estimated = inspect.layer_jacobians(net[:2], chainrule.randn(2, 12))
    assert not estimated.layers[0].exact
    assert estimated.layers[0].norm == pytest.approx(exact.layers[0].norm, rel=1e-2)
    assert estimated.layers[0].gain == pytest.approx(exact.layers[0].gain, rel=5e-2)


def test_what_is_drawn_are_the_numbers() -> None:
    pytest.importorskip("matplotlib").use("agg")
    import matplotlib.pyplot as plt

    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    found = inspect.layer_jacobians(net, chainrule.randn(3, 4))
    ax = found.plot()
    assert ax.lines[0].get_ydata().tolist() == [x.norm for x in found.layers]
    assert ax.lines[1].get_ydata().tolist() == [x.gain for x in found.layers]
    plt.close(ax.figure)


def test_what_has_no_jacobian_is_refused() -> None:
    with pytest.raises(ValueError, match="no layer with weights"):
        inspect.layer_jacobians(nn.ReLU(), chainrule.ones(2, 2))
    with pytest.raises(ValueError, match="NaN or infinite"):
        inspect.layer_jacobians(nn.Linear(2, 2), chainrule.tensor([[1.0, math.inf]]))
    with pytest.raises(ValueError, match="samples must be positive"):
        inspect.layer_jacobians(nn.Linear(2, 2), chainrule.ones(2, 2), samples=0)
