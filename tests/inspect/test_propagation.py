"""Signals and gradients from layer to layer: measured, predicted, and drawn by initializers."""

from __future__ import annotations

import math

import chainrule
import numpy as np
import pytest

from chainrule import Tensor, func, inspect, nn
from chainrule.nn import functional as F

F64 = chainrule.float64


def deep(width: int, depth: int, f: type[nn.Module], scale: float) -> nn.Sequential:
    """Layers whose weights have the variance scale / width."""
    chainrule.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(depth):
        layer = nn.Linear(width, width)
        nn.init.normal_(layer.weight, 0.0, math.sqrt(scale / width))
        nn.init.zeros_(layer.bias)
        layers += [layer, f()]
    return nn.Sequential(*layers)


# --- gradient flow --------------------------------------------------------------------------------


def test_gradient_flow_is_the_gradient() -> None:
    """At each parameter by func.grad, at each layer by the gradient of what follows it."""
    model = deep(5, 3, nn.Tanh, 1.0).double()
    x, y = chainrule.randn(8, 5, dtype=F64), chainrule.randn(8, 5, dtype=F64)
    seen = inspect.gradient_flow(model, F.mse_loss, (x, y))
    params = {n: p.detach() for n, p in model.named_parameters()}
    expected = func.grad(lambda p: F.mse_loss(func.functional_call(model, p, (x,)), y))(params)
    for one in seen.parameters:
        norm = np.linalg.norm(expected[one.name].detach().numpy())
        assert one.norm == pytest.approx(norm, rel=1e-9)
    h = x
    for i, one in enumerate(seen.layers):
        h = model[i](h).detach()
        rest = model[i + 1 :]
        g = func.grad(lambda z, rest=rest: F.mse_loss(rest(z), y))(h).detach().numpy()
        assert one.name == str(i)
        assert one.norm == pytest.approx(np.linalg.norm(g), rel=1e-9)
        assert one.rms == pytest.approx(np.sqrt((g**2).mean()), rel=1e-9)


@pytest.mark.parametrize(
    ("f", "scale", "verdict", "word"),
    [
        (nn.Sigmoid, 1.0, "vanishing", "residual"),
        (nn.ReLU, 2.0, "stable", ""),
        (nn.ReLU, 30.0, "exploding", "clip_norm"),
    ],
)
def test_verdicts(f: type[nn.Module], scale: float, verdict: str, word: str) -> None:
    x = chainrule.randn(16, 50)
    seen = inspect.gradient_flow(deep(50, 8, f, scale), F.mse_loss, (x, x))
    assert seen.verdict == verdict
    assert word in str(seen)
    per_layer = (
        scale * {nn.Sigmoid: 1 / 16, nn.ReLU: 1 / 2}[f]
    )  # of the second moment, J s^2 E[f'^2]
    assert seen.factor**2 == pytest.approx(math.sqrt(per_layer), rel=0.35)


def test_dead_frozen_and_unused_parts_are_named() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.head, self.spare = nn.Linear(3, 3), nn.Linear(3, 1), nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(F.relu(self.first(x) - 100.0))

    model = Net()
    model.head.bias.requires_grad_(False)
    seen = inspect.gradient_flow(model, F.mse_loss, (chainrule.randn(4, 3), chainrule.ones(4, 1)))
    states = {p.name: p.state for p in seen.parameters}
    assert (states["first.weight"], states["head.bias"]) == ("zero", "frozen")
    assert states["spare.weight"] == "unused"
    assert seen.verdict == "dead"
    assert "spare.weight, spare.bias: the loss does not depend" in str(seen)


def test_what_gradient_flow_refuses() -> None:
    model, x = nn.Linear(2, 1), chainrule.ones(3, 2)
    with pytest.raises(ValueError, match=r"one number, got \(3, 1\)"):
        inspect.gradient_flow(model, lambda y, t: y, (x, x))
    with pytest.raises(ValueError, match="are all parameters frozen"):
        inspect.gradient_flow(model.requires_grad_(False), lambda y, t: y.sum(), (x, x))
    bad = inspect.gradient_flow(nn.Linear(2, 1), lambda y, t: (y * math.nan).sum(), (x, x))
    assert bad.verdict == "not finite"


# --- variance -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "name", "scale"), [(nn.ReLU, "relu", 2.0), (nn.Tanh, "tanh", 1.5), (nn.ReLU, "relu", 1.0)]
)
def test_predictions_are_the_propagation_function_and_measurements_follow(
    f: type[nn.Module], name: str, scale: float
) -> None:
    """F_ReLU(q) = J s^2 q / 2, and F_f(q) by quadrature for the others."""
    width = 600
    model = deep(width, 5, f, scale)
    seen = inspect.variance_propagation(model, chainrule.randn(80, width))
    assert [one.chained for one in seen.layers] == [False, True, True, True, True]
    for below, one in zip(seen.layers, seen.layers[1:], strict=False):
        theory = nn.init.propagation(
            name, below.predicted, 1, weight_variance=one.weight_variance
        ).forward[1]
        assert one.predicted == pytest.approx(theory, rel=1e-6)
        if name == "relu":
            expected = one.weight_variance * below.predicted / 2
            assert one.predicted == pytest.approx(expected, rel=1e-6)
    for one in seen.layers:
        assert one.weight_variance == pytest.approx(scale, rel=0.02)
        assert one.measured == pytest.approx(one.predicted, rel=0.2)
        if one.gradient_predicted == one.gradient_predicted:
            assert one.gradient_measured == pytest.approx(one.gradient_predicted, rel=0.2)
    assert sum(math.isnan(one.gradient_predicted) for one in seen.layers) == 1  # the last


def test_the_measured_moments_are_numpys_and_the_verdict_has_a_remedy() -> None:
    model, x = deep(64, 6, nn.ReLU, 0.5), chainrule.randn(32, 64)
    seen = inspect.variance_propagation(model, x)
    h = x
    for i, one in enumerate(seen.layers):
        s = model[2 * i](h)
        assert one.measured == pytest.approx(float((s**2).mean()), rel=1e-4)
        assert one.input_moment == pytest.approx(float((h**2).mean()), rel=1e-4)
        h = model[2 * i + 1](s)
    assert seen.verdict == "shrinking"
    assert "preserve_variance_" in str(seen)
    kept = nn.init.preserve_variance_(deep(400, 6, nn.ReLU, 0.5), "relu")
    assert inspect.variance_propagation(kept, chainrule.randn(64, 400)).verdict == "kept"
    with pytest.raises(ValueError, match="no layer with a weight matrix"):
        inspect.variance_propagation(nn.ReLU(), x)


# --- normality ------------------------------------------------------------------------------------


def test_distances_fall_as_one_over_the_root_of_the_inputs() -> None:
    """Weights of +1 and -1: the sums are binomial, whose distance from normal is near
    1 / sqrt(2 pi J), below Berry and Esseen's bound 0.56 J^-1/2."""
    found = {}
    for j in (4, 16, 64):
        layer = nn.Linear(j, 4000, bias=False)
        signs = chainrule.randint(0, 2, (4000, j), generator=chainrule.Generator().manual_seed(j))
        with chainrule.no_grad():
            layer.weight.copy_(2.0 * signs - 1)
        one = inspect.normality(layer, chainrule.ones(1, j)).layers[0]
        assert one.rate == pytest.approx(j**-0.5)
        assert one.bound == pytest.approx(0.56 * j**-0.5, rel=1e-6)
        assert one.distance < one.bound
        exact = 0.5 * math.comb(j, j // 2) / 2**j  # half the jump at the middle
        assert one.distance == pytest.approx(exact, abs=2 * one.noise)
        found[j] = one.distance
    assert found[4] > 1.5 * found[16] > 2.25 * found[64]


def test_a_kernel_estimate_beside_the_normal_density() -> None:
    seen = inspect.normality(deep(300, 2, nn.SELU, 1.0), chainrule.randn(20, 300))
    grid = np.array(seen.grid)
    normal = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
    for one in seen.layers:
        np.testing.assert_allclose(one.density, normal, atol=0.04)
        assert np.trapezoid(one.density, grid) == pytest.approx(1.0, abs=0.01)
        assert one.skewness == pytest.approx(0.0, abs=0.2)
    assert "as normal as their width allows" in str(seen)
    assert [
        one.name
        for one in inspect.normality(deep(9, 2, nn.SELU, 1.0), chainrule.randn(5, 9), "2").layers
    ] == ["2"]


# --- initializers ---------------------------------------------------------------------------------


def test_six_initializers_draw_what_they_say() -> None:
    chainrule.manual_seed(0)
    model = nn.Sequential(nn.Linear(300, 200), nn.ReLU(), nn.Linear(200, 5))
    seen = inspect.weight_histograms(model)
    assert (seen.layer, seen.shape) == ("0.weight", (200, 300))
    expected = {
        "uniform": 1 / math.sqrt(12),
        "normal": 1.0,
        "xavier_uniform": math.sqrt(2 / 500),
        "xavier_normal": math.sqrt(2 / 500),
        "kaiming_uniform": math.sqrt(2 / 300),
        "kaiming_normal": math.sqrt(2 / 300),
    }
    assert [d.initializer for d in seen.drawn] == list(expected)
    for d in seen.drawn:
        assert d.statistics.std == pytest.approx(expected[d.initializer], rel=0.02)
        mean = d.statistics.mean
        assert d.scale == pytest.approx(300 * (d.statistics.std**2 + mean**2), rel=1e-4)
        if d.initializer.endswith("uniform") and d.initializer != "uniform":
            top = math.sqrt(3) * expected[d.initializer]
            assert d.statistics.max == pytest.approx(top, rel=0.01)
    now = inspect.weight_histograms(model, ["now"], "2.weight").drawn[0]
    assert now.statistics.norm == pytest.approx(
        float((model[2].weight ** 2).sum()) ** 0.5, rel=1e-5
    )
    with pytest.raises(ValueError, match=r"no initializer 'glorot'; select from"):
        inspect.weight_histograms(model, ["glorot"])
    with pytest.raises(ValueError, match=r"'7' matches no module"):
        inspect.weight_histograms(model, layer="7")
    with pytest.raises(ValueError, match="no weight of two"):
        inspect.weight_histograms(nn.ReLU())
