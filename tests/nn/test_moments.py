"""Moments under normal inputs: quadrature, and SELU's map with its fixed point."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.special
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.nn.activations.moments import (
    gaussian_expectation,
    selu_fixed_point,
    selu_jacobian,
    selu_moments,
    slope,
)


def by_scipy(f: Any, mean: float, variance: float, kinks: tuple[float, ...] = (0.0,)) -> float:
    """E[f(S)] by adaptive quadrature."""
    std = math.sqrt(variance)

    def integrand(s: float) -> float:
        return f(s) * math.exp(-0.5 * ((s - mean) / std) ** 2) / (std * math.sqrt(2 * math.pi))

    ends = sorted({mean - 12 * std, mean + 12 * std, mean, *kinks})
    parts = itertools.pairwise(ends)
    return sum(scipy.integrate.quad(integrand, a, b, epsabs=1e-13, limit=200)[0] for a, b in parts)


def selu(s: float) -> float:
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return scale * (s if s > 0 else alpha * math.expm1(s))


# --- quadrature -----------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0, 1, 2, 4, 6])
def test_moments_of_the_normal_distribution(power: int) -> None:
    expected = scipy.special.factorial2(power - 1) if power % 2 == 0 and power else 1 - power % 2
    assert gaussian_expectation(lambda s: s**power) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (0.7, 0.3), (-2.0, 25.0), (0.0, 1e-4)])
def test_expectation_is_that_of_scipy(mean: float, variance: float) -> None:
    ours = gaussian_expectation(nn.functional.selu, mean, variance)
    assert ours == pytest.approx(by_scipy(selu, mean, variance), rel=1e-9, abs=1e-11)


def test_expectation_across_kinks() -> None:
    def hardtanh(s: float) -> float:
        return min(max(s, -1.0), 1.0) ** 2

    expected = by_scipy(hardtanh, 0.0, 2.0, (-1.0, 1.0))
    ours = gaussian_expectation(lambda s: nn.functional.hardtanh(s) ** 2, 0.0, 2.0)
    assert ours == pytest.approx(expected, rel=1e-12)


def test_slope_of_steps_is_zero() -> None:
    x = chainrule.tensor([-1.0, 2.0])
    assert_close(slope(nn.functional.binary_step)(x), np.zeros(2, np.float32))
    assert_close(slope(lambda x: chainrule.ones_like(x))(x), np.zeros(2, np.float32))


@pytest.mark.parametrize("variance", [0.0, -1.0, math.inf, math.nan])
def test_expectation_refuses_a_variance(variance: float) -> None:
    with pytest.raises(ValueError, match="gaussian_expectation: expected a finite mean"):
        gaussian_expectation(lambda s: s, 0.0, variance)


# --- SELU -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (0.3, 0.7), (-0.5, 2.0), (1.0, 0.1)])
@pytest.mark.parametrize(("omega", "tau"), [(1.0, 1.0), (0.0, 1.0), (-0.1, 1.2)])
def test_selu_moments_match_quadrature(
    mean: float, variance: float, omega: float, tau: float
) -> None:
    m, v = mean * omega, variance * tau
    mu, nu = (t.item() for t in selu_moments(mean, variance, omega, tau))
    first, second = (by_scipy(lambda s, k=k: selu(s) ** k, m, v) for k in (1, 2))
    assert mu == pytest.approx(first, abs=1e-10)
    assert nu == pytest.approx(second - first**2, abs=1e-10)


def test_selu_fixed_point_and_jacobian() -> None:
    point = selu_fixed_point(start=(0.2, 1.8))
    assert point.mean == pytest.approx(0.0, abs=1e-12)
    assert point.variance == pytest.approx(1.0, abs=1e-12)
    expected = np.array([[0.0, 0.0888348], [0.0, 0.7826479]])
    assert_close(point.jacobian, expected, rtol=0, atol=5e-8)
    assert chainrule.linalg.norm(selu_jacobian(), 2).item() == pytest.approx(0.7876734, abs=5e-8)


def test_selu_map_contracts_from_everywhere_near() -> None:
    """Each step comes closer to (0, 1)."""
    mean, variance = 0.1, 1.4
    distance = math.hypot(mean, variance - 1)
    for _ in range(20):
        mean, variance = (t.item() for t in selu_moments(mean, variance))
        closer = math.hypot(mean, variance - 1)
        assert closer < distance
        distance = closer
    assert distance < 0.02


def test_selu_jacobian_is_that_of_differences() -> None:
    at, h = (0.2, 1.3), 1e-6
    columns = []
    for step in ((h, 0.0), (0.0, h)):
        ahead = selu_moments(at[0] + step[0], at[1] + step[1], 0.5, 1.1)
        behind = selu_moments(at[0] - step[0], at[1] - step[1], 0.5, 1.1)
        columns.append(
            [(a.item() - b.item()) / (2 * h) for a, b in zip(ahead, behind, strict=True)]
        )
    assert_close(selu_jacobian(*at, 0.5, 1.1), np.array(columns).T, rtol=1e-6, atol=1e-8)


def test_selu_moments_refuse_a_variance() -> None:
    with pytest.raises(ValueError, match="variance \\* weight_square_sum > 0"):
        selu_moments(0.0, 0.0)


def test_selu_fixed_point_says_when_there_is_none() -> None:
    with pytest.raises(ValueError, match="diverge"):
        selu_fixed_point(0.0, 4.0)
