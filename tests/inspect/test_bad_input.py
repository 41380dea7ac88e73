"""Instruments that are given what they cannot look at: they say so, and what to do."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import chainrule
from chainrule import inspect, models, nn, optim
from chainrule.nn import functional as F

nan = float("nan")


def net() -> nn.Sequential:
    chainrule.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def batch(n: int = 6) -> tuple[Any, Any]:
    return chainrule.randn(n, 4), chainrule.arange(n) % 3


# Those that measure sizes, each on a model, its inputs and targets.
MEASURING: dict[str, Callable[[Any, Any, Any], Any]] = {
    "layer_jacobians": lambda m, x, y: inspect.layer_jacobians(m, x),
    "variance_propagation": lambda m, x, y: inspect.variance_propagation(m, x),
    "normality": lambda m, x, y: inspect.normality(m, x),
    "cockpit": lambda m, x, y: inspect.cockpit(m, F.cross_entropy, (x, y)),
}
ALL = MEASURING | {
    "gradient_flow": lambda m, x, y: inspect.gradient_flow(m, F.cross_entropy, (x, y)),
    "activations": lambda m, x, y: inspect.activations(m, x),
    "back_propagation": lambda m, x, y: inspect.back_propagation(m, x, y, F.cross_entropy),
}


@pytest.mark.parametrize("name", ALL)
def test_no_samples(name: str) -> None:
    x, y = chainrule.randn(0, 4), chainrule.zeros(0).long()
    with pytest.raises(ValueError, match=rf"{name}: the inputs have shape \(0, 4\).*one or more"):
        ALL[name](net(), x, y)


@pytest.mark.parametrize("name", MEASURING)
def test_values_that_are_not_finite(name: str) -> None:
    x, y = batch()
    model = net()
    with chainrule.no_grad():
        model[0].weight[0, 0] = math.inf
    with pytest.raises(ValueError, match=f"{name}: .* in the parameter 0.weight; .*autopsy"):
        MEASURING[name](model, x, y)
    x[2, 1] = nan
    with pytest.raises(ValueError, match=f"{name}: .* in the inputs; .*autopsy"):
        MEASURING[name](net(), x, y)


def test_a_gap_in_a_sequence_does_not_explode() -> None:
    x = chainrule.randn(5, 2, 3)
    x[2, 0, 0] = nan
    with pytest.raises(ValueError, match=r"through_time: .* in the inputs"):
        inspect.through_time(nn.RNN(3, 4), x)


OF_MODULES = [
    name
    for name, one in inspect.INSTRUMENTS.items()
    if one.function.__annotations__.get("model") == "Module"  # others take functions, too
]


def test_most_instruments_take_modules() -> None:
    assert len(OF_MODULES) > 20


@pytest.mark.parametrize("name", OF_MODULES)
def test_what_is_no_module(name: str) -> None:
    function = inspect.INSTRUMENTS[name].function
    with pytest.raises(TypeError, match=f"{name}: model must be an nn.Module, got function; put"):
        function(lambda x: x, chainrule.ones(2, 3))
    with pytest.raises(TypeError, match=f"{name}: .* got the class Linear; make one: Linear"):
        function(nn.Linear, chainrule.ones(2, 3))


@pytest.mark.parametrize("name", ["gradient_flow", "cockpit", "back_propagation"])
def test_targets_may_be_arrays(name: str) -> None:
    x, y = batch()
    assert str(ALL[name](net(), x.numpy(), y.numpy()))


@pytest.mark.parametrize("name", ["doctor", "cockpit"])
def test_the_name_of_an_optimizer_is_none(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: optimizer must be .* got 'adam'; make one"):
        getattr(inspect, name)(net(), F.cross_entropy, batch(), "adam")


def test_steps_show_values_that_are_not_finite() -> None:
    image = chainrule.ones(3, 3)
    image[0, 0] = nan
    seen = inspect.convolution_steps(nn.Conv2d(1, 1, 2), image)
    assert ">nan</text>" in seen.to_html()
    x, y = batch()
    x[0, 0] = math.inf
    page = inspect.back_propagation(net(), x, y, F.cross_entropy).to_html()
    assert ">inf</td>" in page
    assert ">nan</td>" in page


def test_a_result_that_has_too_much_to_draw_is_still_shown_in_a_notebook() -> None:
    pytest.importorskip("matplotlib").use("agg")
    layers = [layer for _ in range(14) for layer in (nn.Linear(4, 4), nn.Tanh())]
    seen = inspect.activations(nn.Sequential(*layers), chainrule.ones(2, 4))
    with pytest.raises(ValueError, match="28 panels are too many"):
        seen.plot()
    shown = seen._repr_html_()
    assert "no picture: plot: 28 panels are too many" in shown
    assert "preactivation" in shown


def test_units_of_a_network_whose_inputs_nobody_can_guess() -> None:
    with pytest.raises(TypeError, match=r"LeNet cannot be called with \(2, 120\).*give inputs"):
        inspect.draw(models.LeNet(), level="units")


def test_numbers_near_the_end_of_their_type() -> None:
    x, y = batch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's kernels tell of an overflow
        seen = inspect.cockpit(net(), F.cross_entropy, (1e30 * x, y))
    assert "beyond the numbers of this type" in str(seen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = inspect.activations(net(), 1e30 * x)["preactivation"]["0"].last
    assert found.norm == pytest.approx(float((net()[0](1e30 * x)).double().norm()), rel=1e-6)


def test_an_exploding_network_is_compared_with_the_theory_at_once() -> None:
    chainrule.manual_seed(0)
    layers = [layer for _ in range(4) for layer in (nn.Linear(64, 64, bias=False), nn.ReLU())]
    model = nn.Sequential(*layers)
    for layer in layers[::2]:
        nn.init.normal_(layer.weight, std=1e4)
    seen = inspect.variance_propagation(model, chainrule.randn(50, 64)).layers[-1]
    assert seen.measured > 1e30
    assert seen.measured == pytest.approx(seen.predicted, rel=0.5)


# --- the doctor and the preflight -----------------------------------------------------------------


def rules(model: nn.Module, x: Any, y: Any) -> list[str]:
    return inspect.doctor(model, F.cross_entropy, (x, y), optim.Adam(model.parameters())).rules


def test_weights_that_are_not_finite_are_found() -> None:
    model = net()
    with chainrule.no_grad():
        model[2].weight[0, 0] = nan
    seen = inspect.doctor(model, F.cross_entropy, batch(60))
    assert seen.rules == ["not finite"]
    assert seen.findings[0].layer == "2.weight"
    assert seen.findings[0].number == 1


def test_data_that_does_not_vary_is_found() -> None:
    x, y = batch(60)
    assert "nothing varies" in rules(net(), x, 0 * y)
    assert "nothing varies" in rules(net(), 0 * x + 1, y)
    assert rules(net(), x, y) == []


def test_a_loss_of_many_numbers_does_not_pass() -> None:
    seen = inspect.preflight(net(), nn.CrossEntropyLoss(reduction="none"), batch(), steps=5)
    assert seen.checks[1].passed is False
    assert "reduction='mean'" in str(seen)


def test_one_sample_without_a_batch() -> None:
    with pytest.raises(ValueError, match="targets are a single number; give a batch"):
        inspect.preflight(net(), F.cross_entropy, (chainrule.randn(4), chainrule.tensor(1)))


# --- remarks of a watch ---------------------------------------------------------------------------


def test_a_gradient_of_zero_has_not_vanished() -> None:
    chainrule.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    with chainrule.no_grad():
        model[0].bias.fill_(-100.0)
    optimizer = optim.SGD(model.parameters(), lr=0.001)
    with inspect.watch(model, optimizer, what=["grad", "update"], every=1) as seen:
        model(chainrule.randn(5, 3)).square().mean().backward()
        optimizer.step()
    said = seen.remarks()
    assert said == [
        "the gradient of 0.weight, 0.bias, 2.weight is exactly 0: is what it makes used in the "
        "loss, or are all units behind it dead?"
    ]


def test_a_legend_of_some_lines_says_how_many_there_are() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    layers = [layer for _ in range(8) for layer in (nn.Linear(3, 3), nn.Tanh())]
    model = nn.Sequential(*layers)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    with inspect.watch(model, optimizer, what="grad", every=1) as seen:
        model(chainrule.randn(5, 3)).square().mean().backward()
        optimizer.step()
    ax = seen.plot("norms")
    assert ax.get_legend().get_title().get_text() == "12 of 16 lines"
    plt.close(ax.figure)
