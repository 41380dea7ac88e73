"""Activations and their slopes, the map of moments, what normalizations take together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule import inspect, nn
from chainrule.nn import functional as F


def test_curves_are_the_functions_and_their_slopes() -> None:
    seen = inspect.activation_curves(["sigmoid", nn.Tanh(), F.softplus], points=11)
    x = seen.x.numpy()
    s = 1 / (1 + np.exp(-x))
    expected = {
        "sigmoid": (s, s * (1 - s)),
        "Tanh": (np.tanh(x), 1 - np.tanh(x) ** 2),
        "softplus": (np.log1p(np.exp(x)), s),
    }
    assert list(seen.values) == list(expected)
    for name, (value, slope) in expected.items():
        np.testing.assert_allclose(seen.values[name].numpy(), value, rtol=1e-9)
        np.testing.assert_allclose(seen.slopes[name].numpy(), slope, rtol=1e-9)
    assert seen.facts["Tanh"]["range"] == "(-1, 1)"
    assert "(-inf" in seen.facts["sigmoid"]["saturates"]


def test_arrows_point_to_the_fixed_point_of_selu() -> None:
    """The courses' figure: (0, 1) is fixed, and the map contracts around it."""
    seen = inspect.moment_map(points=5)
    assert seen.fixed == pytest.approx((0.0, 1.0), abs=1e-9)
    assert seen.contraction == pytest.approx(0.7877, abs=1e-4)
    for i, v in enumerate(seen.variances.tolist()):
        for j, m in enumerate(seen.means.tolist()):
            rng = np.random.default_rng(0)
            z = m * 0 + np.sqrt(v) * rng.normal(size=400_000)
            out = F.selu(nn.Parameter(np_tensor(z))).detach().numpy()
            assert float(seen.new_means[i, j]) == pytest.approx(out.mean(), abs=0.01)
            assert float(seen.new_variances[i, j]) == pytest.approx(out.var(), rel=0.02)
            before, after = abs(v - 1.0), abs(float(seen.new_variances[i, j]) - 1.0)
            assert after <= before + 1e-9


def np_tensor(z: Any) -> Any:
    import chainrule

    return chainrule.from_numpy(z)


@pytest.mark.parametrize(
    ("layer", "count", "shared"),
    [
        (nn.BatchNorm1d(4), 4, ["samples", "places"]),
        (nn.LayerNorm((4, 5)), 3, ["channels", "places"]),
        (nn.LayerNorm(5), 12, ["places"]),
        (nn.InstanceNorm1d(4), 12, ["places"]),
        (nn.GroupNorm(1, 4), 3, ["channels", "places"]),
    ],
)
def test_groups_are_those_of_the_definition(layer: Any, count: int, shared: list[str]) -> None:
    seen = inspect.normalization_groups(layer)
    assert int(seen.groups.max()) + 1 == count
    assert seen.shared == shared
    assert seen.svg.count("<rect") == seen.groups.numel() + 1


def test_group_norm_splits_the_channels() -> None:
    groups = inspect.normalization_groups(nn.GroupNorm(2, 4), samples=1, places=1).groups
    assert groups.reshape(-1).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: inspect.activation_curves([]), "no activation"),
        (lambda: inspect.activation_curves("relu", 1, 0), "low must be"),
        (lambda: inspect.activation_curves("nothing"), "no activation is named"),
        (lambda: inspect.moment_map(variances=(-1.0, 1.0)), "variances are positive"),
        (lambda: inspect.normalization_groups(nn.LayerNorm((2, 3, 4))), "no plane picture"),
        (lambda: inspect.normalization_groups(nn.Flatten()), "gives shape"),
    ],
)
def test_what_cannot_be_shown(call: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        call()
