"""Activations as data: exact for the known ones, found numerically for any function."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.nn import activation_properties
from chainrule.nn import functional as F

module = importlib.import_module("chainrule.nn.activations.properties")
LAMBDA_ALPHA = 1.7580993408473766

# Name or module, range, monotonic, largest slope, identity near 0.
TABLE: list[tuple[Any, str, str, float, bool]] = [
    ("identity", "(-inf, inf)", "increasing", 1.0, True),
    ("binary_step", "[0, 1]", "non-decreasing", 0.0, False),
    ("sigmoid", "(0, 1)", "increasing", 0.25, False),
    ("tanh", "(-1, 1)", "increasing", 1.0, True),
    ("lecun_tanh", "(-1.7159, 1.7159)", "increasing", 1.1439333, False),
    ("soboleva_tanh", "(-1, 1)", "increasing", 1.0, True),
    ("relu", "[0, inf)", "non-decreasing", 1.0, False),
    ("leaky_relu", "(-inf, inf)", "increasing", 1.0, False),
    (nn.PReLU(), "(-inf, inf)", "increasing", 1.0, False),
    ("elu", "(-1, inf)", "increasing", 1.0, True),
    (nn.ELU(0.5), "(-0.5, inf)", "increasing", 1.0, False),
    (nn.ELU(2.0), "(-2, inf)", "increasing", 2.0, False),
    ("selu", "(-1.7581, inf)", "increasing", LAMBDA_ALPHA, False),
    ("celu", "(-1, inf)", "increasing", 1.0, True),
    ("gelu", "[-0.169971, inf)", "no", 1.1289041, False),
    ("silu", "[-0.278465, inf)", "no", 1.0998393, False),
    ("mish", "[-0.308843, inf)", "no", 1.0884982, False),
    ("gaussian", "(0, 1]", "no", math.sqrt(2 / math.e), False),
    ("softplus", "(0, inf)", "increasing", 1.0, False),
    ("softsign", "(-1, 1)", "increasing", 1.0, True),
    ("hardtanh", "[-1, 1]", "non-decreasing", 1.0, True),
    ("hardsigmoid", "[0, 1]", "non-decreasing", 1 / 6, False),
    ("hardswish", "[-0.375, inf)", "no", 1.5, False),
    ("relu6", "[0, 6]", "non-decreasing", 1.0, False),
    ("logsigmoid", "(-inf, 0)", "increasing", 1.0, False),
    ("tanhshrink", "(-inf, inf)", "increasing", 1.0, False),
    (chainrule.erf, "(-1, 1)", "increasing", 2 / math.sqrt(math.pi), False),
    (lambda x: -x.tanh(), "(-1, 1)", "decreasing", 0.0, False),
    (chainrule.exp, "(0, inf)", "increasing", math.inf, False),
    (chainrule.sin, "[-1, 1]", "no", 1.0, True),
    (lambda x: -x, "(-inf, inf)", "decreasing", -1.0, False),
    (lambda x: 1 - 2 * x, "(-inf, inf)", "decreasing", -2.0, False),
    (lambda x: -x.relu(), "(-inf, 0]", "non-increasing", 0.0, False),
    (lambda x: 0 * x + 2, "[2, 2]", "non-increasing", 0.0, False),
]


@pytest.mark.parametrize(
    ("activation", "span", "monotonic", "top", "identity"),
    TABLE,
    ids=[getattr(t[0], "__name__", str(t[0])) for t in TABLE],
)
def test_table(activation: Any, span: str, monotonic: str, top: float, identity: bool) -> None:
    p = activation_properties(activation)
    assert (str(p.range), p.monotonic, p.identity_near_zero) == (span, monotonic, identity)
    assert p.max_slope == pytest.approx(top, abs=1e-6)


@pytest.mark.parametrize("function", list(module.KNOWN), ids=lambda f: f.__name__)
def test_exact_values_agree_with_what_is_found_numerically(function: Any) -> None:
    facts, scan = module.KNOWN[function](), module.Scan(function)
    found = scan.range()
    assert (found.low, found.high) == pytest.approx((facts.low, facts.high), abs=1e-7)
    assert found.closed == tuple(e in "[]" for e in facts.ends)
    assert scan.monotonic() == facts.monotonic
    assert scan.max_slope()[0] == pytest.approx(facts.max_slope, abs=1e-6)


# --- what the courses say, corrected --------------------------------------------------------------


def test_relu_is_neither_strictly_increasing_nor_positive() -> None:
    p = activation_properties(nn.ReLU())
    assert p.monotonic == "non-decreasing"
    assert 0.0 in p.range
    assert p.derivative(chainrule.tensor([-3.0])).item() == 0.0


def test_selu_is_not_the_identity_above_zero() -> None:
    p = activation_properties(nn.SELU())
    assert p.derivative(chainrule.tensor(2.0, dtype=chainrule.float64)).item() == 1.0507009873554805
    assert p.lower_bound == pytest.approx(-1.75810, abs=5e-6)


def test_the_slope_of_a_bounded_activation_has_no_compact_support() -> None:
    """It decays; only what is linear in pieces has a slope that ends."""
    assert activation_properties("sigmoid").derivative_support == module.Interval(
        -math.inf, math.inf
    )
    assert activation_properties("hardtanh").derivative_support == module.Interval(-1.0, 1.0)


def test_ends_of_ranges() -> None:
    """The Gaussian's maximum is taken; the lower ends of softplus, ELU and SELU are not."""
    gaussian = activation_properties("gaussian").range
    assert 1.0 in gaussian
    assert 0.0 not in gaussian
    assert 0.0 not in activation_properties("softplus").range
    assert -1.0 not in activation_properties("elu").range
    assert -LAMBDA_ALPHA not in activation_properties("selu").range


def test_soboleva_range_needs_small_a_and_b() -> None:
    within = activation_properties(nn.SobolevaTanh(0.5, 0.5, 1.0, 1.0)).range
    assert -1 < within.low < within.high < 1
    assert activation_properties(nn.SobolevaTanh(2.0, 1.0, 1.0, 1.0)).upper_bound == math.inf


def test_the_largest_slope_of_the_sigmoid_is_taken() -> None:
    p = activation_properties("sigmoid")
    assert p.max_slope == 0.25
    assert 0.0 in p.max_slope_at


def test_slopes_at_zero() -> None:
    """The library takes PyTorch's: 0 for ReLU (to the right it is 1), 1.7581 for SELU."""
    relu, selu = activation_properties("relu"), activation_properties("selu")
    assert (relu.slope_at_zero, relu.one_sided_slopes_at_zero) == (0.0, (0.0, 1.0))
    assert selu.slope_at_zero == pytest.approx(1.7581, abs=5e-5)
    assert selu.one_sided_slopes_at_zero == pytest.approx((1.7581, 1.0507), abs=5e-5)


# --- saturation, derivative, arguments ------------------------------------------------------------


def test_saturation() -> None:
    """Where the slope is below 0.01; in closed form for sigmoid and tanh."""
    (left, right) = activation_properties("sigmoid").saturation
    edge = math.log((1 + math.sqrt(0.96)) / (1 - math.sqrt(0.96)))
    assert (left.high, right.low) == pytest.approx((-edge, edge), rel=1e-9)
    (_, right) = activation_properties("tanh").saturation
    assert right.low == pytest.approx(math.atanh(math.sqrt(0.99)), rel=1e-9)
    (left,) = activation_properties("relu").saturation
    assert str(left) == "(-inf, 0]"
    assert activation_properties("leaky_relu").saturation == ()


def test_derivative_is_a_function() -> None:
    x = chainrule.linspace(-2, 2, 9, dtype=chainrule.float64)
    t = x.tanh()
    assert_close(activation_properties("tanh").derivative(x), 1 - t * t)


def test_modules_bring_their_options() -> None:
    assert str(activation_properties(nn.Hardtanh(-2.0, 0.5, inplace=True)).range) == "[-2, 0.5]"
    assert activation_properties(nn.Softplus(beta=2.0)).value_at_zero == pytest.approx(
        math.log(2) / 2
    )


def test_a_module_is_left_as_it_is() -> None:
    layer = nn.PReLU().train()
    activation_properties(layer)
    assert layer.weight.dtype is chainrule.float32
    assert layer.training


@pytest.mark.parametrize(
    ("activation", "error", "match"),
    [
        ("no such", ValueError, "no activation is named 'no such'; select from .*'tanh'"),
        ("flatten", ValueError, "no activation is named 'flatten'; select from .*'identity'"),
        (3, TypeError, "expected an activation.*int"),
        (lambda x: x.sum(), ValueError, "expected an elementwise function"),
        (lambda x: x * np.nan, ValueError, "no finite values"),
        ("softmax", ValueError, "each output of softmax depends on more than one input"),
        (nn.Softmax(0), ValueError, "each output of Softmax depends on more"),
        (nn.LogSoftmax(-1), ValueError, "each output of LogSoftmax depends on more"),
        (lambda x: x.softmax(-1), ValueError, "expected an elementwise function"),
        (lambda x: x - x.mean(), ValueError, "expected an elementwise function"),
        (lambda x: x.sort()[0], ValueError, "expected an elementwise function"),
        (lambda x: x.cumsum(0), ValueError, "expected an elementwise function"),
    ],
)
def test_errors(activation: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        activation_properties(activation)


def test_functions_and_names_mean_the_same() -> None:
    assert activation_properties(F.selu).range == activation_properties("selu").range
