"""Special functions where they are hard: infinities, NaN, zeros, numbers far out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from scipy import special

import chainrule
from chainrule.autograd import gradcheck, gradgradcheck
from chainrule.tensor import Tensor, of_array

INF, NAN = math.inf, math.nan


def of(*numbers: float, dtype: str = "float64") -> Tensor:
    return chainrule.tensor(numbers, dtype=dtype)


@pytest.mark.parametrize(
    ("function", "place", "value"),
    [
        (chainrule.lgamma, -INF, INF),
        (chainrule.lgamma, INF, INF),
        (lambda x: chainrule.mvlgamma(x, 3), -INF, INF),
        (lambda x: chainrule.polygamma(0, x), INF, INF),
        (lambda x: chainrule.polygamma(2, x), INF, 0.0),
        (lambda x: chainrule.special.zeta(2.0 * chainrule.ones_like(x), x), INF, 0.0),
        (lambda x: chainrule.igamma(chainrule.ones_like(x), x), INF, 1.0),
        (lambda x: chainrule.igammac(chainrule.ones_like(x), x), INF, 0.0),
        (chainrule.special.spherical_bessel_j0, INF, 0.0),
        (chainrule.special.spherical_bessel_j0, -INF, 0.0),
        (chainrule.special.modified_bessel_k0, INF, 0.0),
        (chainrule.special.airy_ai, 1e10, 0.0),
        (chainrule.special.airy_ai, INF, 0.0),
        (chainrule.special.airy_ai, -1e5, -0.0131529787374982),  # by mpmath
        (chainrule.special.airy_ai, -1e6, -0.00219126114134306),
    ],
)
def test_far_out(function: Any, place: float, value: float) -> None:
    assert_close(function(of(place)), np.array([value]), rtol=1e-6)


def test_nan_stays() -> None:
    x = of(NAN)
    for f in (chainrule.lgamma, chainrule.special.airy_ai, chainrule.special.spherical_bessel_j0):
        assert f(x).isnan().all()
    assert chainrule.igamma(of(INF), x).isnan().all()


def test_the_slope_of_the_airy_function_far_out() -> None:
    """Where the asymptotic form takes over, it continues what SciPy computes."""
    x = of(-99_999.9, -100_000.1)
    ours = chainrule.func.vmap(chainrule.func.grad(chainrule.special.airy_ai))(x)
    assert_close(ours, special.airy(x.numpy())[1], rtol=1e-6)


def test_single_precision_near_zeros() -> None:
    near_half = np.float32(0.5) + np.arange(1, 9, dtype=np.float32) * np.float32(2**-20)
    ours = chainrule.logit(of_array(near_half))
    assert_close(ours, special.logit(near_half.astype(np.float64)).astype(np.float32), rtol=1e-6)
    near_root = np.float32(1.4616321) + np.arange(-4, 5, dtype=np.float32) * np.float32(1e-4)
    for f, g in (
        (chainrule.digamma, special.psi),
        (lambda x: chainrule.polygamma(0, x), special.psi),
    ):
        assert_close(
            f(of_array(near_root)), g(near_root.astype(np.float64)).astype(np.float32), 1e-6
        )


@pytest.mark.parametrize("number", [True, False])
def test_a_limit_that_is_nan(number: bool) -> None:
    x = of(1.0, 2.0)
    bad: Any = NAN if number else of(NAN, NAN)
    assert x.clamp(min=bad).isnan().all()
    assert x.clamp(max=bad).isnan().all()
    assert chainrule.clamp(x, of(0.0, NAN), of(NAN, 3.0)).isnan().all()
    assert chainrule.clamp_min(of(NAN), 0.0).isnan().all()


def test_polynomials_of_degrees_that_are_no_degrees() -> None:
    x = of(0.5, NAN)
    p = chainrule.special.legendre_polynomial_p
    assert p(x, -1).tolist() == [0.0, 0.0]
    assert p(x, 0).tolist() == [1.0, 1.0]
    assert p(x, 1.9)[0] == 0.5
    assert p(0.5, chainrule.tensor([0, 1])).tolist() == [1.0, 0.5]
    assert p(chainrule.tensor([1, 2]), 2).dtype is chainrule.float32
    with pytest.raises(TypeError, match="'input' or 'n' must be Tensor"):
        p(0.5, 2)
    with pytest.raises(RuntimeError, match="legendre_polynomial_p: not implemented for .*complex"):
        p(x * 1j, 2)


def test_polynomials_have_all_derivatives() -> None:
    """Of degree 3: the third is constant, the fourth 0."""
    x = of(0.3, -0.8)
    f = chainrule.special.hermite_polynomial_he  # x^3 - 3 x
    for order in range(1, 5):
        f = (lambda g: lambda y, n: chainrule.func.grad(lambda z: g(z, n).sum())(y))(f)
        expected = {1: 3 * x * x - 3, 2: 6 * x, 3: 6 + 0 * x, 4: 0 * x}[order]
        assert_close(f(x, 3), expected)
    for place in (1.0, -1.0, 0.0):
        y = of(place).requires_grad_()
        assert gradcheck(lambda z: chainrule.special.chebyshev_polynomial_t(z, 5), y)
        assert gradgradcheck(lambda z: chainrule.special.chebyshev_polynomial_u(z, 5), y)


def test_nextafter_moves_with_its_input() -> None:
    x, y = of(1.0, 2.0).requires_grad_(), of(3.0, 0.0).requires_grad_()
    chainrule.nextafter(x, y).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert y.grad.tolist() == [0.0, 0.0]


def test_truth_values() -> None:
    x = chainrule.tensor([True, False])
    assert x.sign().tolist() == x.sgn().tolist() == [True, False]
    assert x.square().dtype is chainrule.int64


def test_tolerances_are_not_negative() -> None:
    x = of(1.0)
    with pytest.raises(RuntimeError, match=r"rtol must be greater than or equal to zero, but got"):
        chainrule.isclose(x, x, rtol=-0.4)
    with pytest.raises(RuntimeError, match=r"atol must be greater than or equal to zero, but got"):
        chainrule.allclose(x, x, atol=-0.4)


@pytest.mark.parametrize("name", ["fft2", "ifftn", "rfftn", "irfft2", "hfftn", "ihfft2"])
def test_a_transform_of_nothing(name: str) -> None:
    with pytest.raises(IndexError, match="dimension specified as 0 but tensor has no dimensions"):
        getattr(chainrule.fft, name)(chainrule.tensor(1.0), dim=[0])
