"""Covariances with weights, slopes at uneven places, distances that vanish, LU of what is odd."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule.tensor import of_array


def test_covariance_with_weights() -> None:
    r = np.random.default_rng(0)
    x, f, a = r.normal(size=(3, 5)), r.integers(1, 4, size=5), r.uniform(0.5, 2, size=5)
    for weights in ({"fweights": f}, {"aweights": a}, {"fweights": f, "aweights": a}):
        given = {name: of_array(w) for name, w in weights.items()}
        assert_close(chainrule.cov(of_array(x), **given), np.cov(x, **weights))
        assert_close(
            chainrule.cov(of_array(x), correction=0, **given), np.cov(x, ddof=0, **weights)
        )


def test_slopes_at_uneven_places() -> None:
    at = np.array([0.0, 0.5, 2.0, 3.0, 3.2])
    y = np.random.default_rng(0).normal(size=(5, 3))
    for edge in (1, 2):
        (slope,) = chainrule.gradient(of_array(y), spacing=(of_array(at),), dim=0, edge_order=edge)
        assert_close(slope, np.gradient(y, at, axis=0, edge_order=edge))
    with pytest.raises(RuntimeError, match=r"edge_order\+1 = 3"):
        chainrule.gradient(chainrule.zeros(2), edge_order=2)
    with pytest.raises(RuntimeError, match="one entry for each of 2 dimensions"):
        chainrule.gradient(chainrule.zeros(2, 2), spacing=(1.0,))


def test_the_gradient_of_no_distance_is_zero() -> None:
    x = chainrule.ones(2, 3, requires_grad=True)
    chainrule.cdist(x, x).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3] * 2
    with pytest.raises(RuntimeError, match="the same number of columns"):
        chainrule.cdist(x, chainrule.ones(2, 2))


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 3, 3), (0, 0), (2, 0, 3)])
def test_factors_multiply_to_the_matrix(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(0).normal(size=shape)
    p, lower, upper = chainrule.linalg.lu(of_array(a))
    assert_close(p @ lower @ upper, a, atol=1e-12)
    p, lower, upper = chainrule.lu_unpack(*chainrule.linalg.lu_factor(of_array(a)))
    assert_close(p @ lower @ upper, a, atol=1e-12)


def test_factors_of_a_singular_matrix() -> None:
    a = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
    p, lower, upper = chainrule.linalg.lu(of_array(a))
    assert_close(p @ lower @ upper, a, atol=1e-12)
    zeros = chainrule.linalg.lu(chainrule.zeros(2, 2))
    assert zeros.U.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_factors_without_exchanges() -> None:
    a = of_array(np.array([[1.0, 2.0], [4.0, 4.0]]))
    p, lower, upper = chainrule.linalg.lu(a, pivot=False)
    assert p.shape == (0,)
    assert_close(lower @ upper, a)


def test_equations_from_factors() -> None:
    r = np.random.default_rng(0)
    a, b = of_array(r.normal(size=(2, 3, 3))), of_array(r.normal(size=(2, 3, 2)))
    factors = chainrule.linalg.lu_factor(a)
    assert_close(chainrule.linalg.lu_solve(*factors, b), chainrule.linalg.solve(a, b), rtol=1e-8)
    z = a + 1j * b[..., :1]
    c = chainrule.linalg.lu_factor(z)
    right = b.mT.to(chainrule.complex128)
    solution = chainrule.linalg.lu_solve(*c, right, left=False)
    assert_close(solution @ z, right, atol=1e-9)


def test_the_covariance_of_one_variable_is_a_number() -> None:
    x = of_array(np.array([[1.0, 2.0, 4.0]]))
    assert chainrule.cov(x).shape == chainrule.corrcoef(x).shape == ()
    assert_close(chainrule.cov(x), np.cov(x.numpy()))
    assert chainrule.cov(of_array(np.array([[1, 2], [3, 5]]))).dtype is chainrule.float32


@pytest.mark.parametrize(
    ("match", "weights"),
    [
        ("fweights to have integral dtype", {"fweights": np.ones(3)}),
        ("aweights to have floating point dtype", {"aweights": np.ones(3, int)}),
        (
            r"a vector of 3 numbers, one for each observation, got shape \(2,\)",
            {"aweights": np.ones(2)},
        ),
        ("fweights cannot be negative", {"fweights": np.array([1, -1, 2])}),
        ("weights sum to zero", {"aweights": np.zeros(3)}),
    ],
)
def test_weights_of_a_covariance(match: str, weights: dict[str, np.ndarray]) -> None:
    with pytest.raises(RuntimeError, match=match):
        chainrule.cov(of_array(np.ones((2, 3))), **{k: of_array(w) for k, w in weights.items()})
