"""Hessians, Gauss-Newton matrices and Taylor models against formulas."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from small_network import flat_jacobian, network, normal, params, softmax, tensor

import chainrule
from chainrule import Tensor, curvature
from chainrule.autograd import functional
from chainrule.curvature.graph import Derivatives
from chainrule.curvature.hessian import (
    condition_number,
    gauss_newton,
    gauss_newton_product,
    hessian_diagonal,
    hessian_matrix,
    taylor,
)
from chainrule.curvature.jacobian import per_output_hvp
from chainrule.curvature.parameters import blocks, ravel
from chainrule.func import grad, hessian
from chainrule.optim.second_derivatives import SecondOrderObjective


def loss(p: Any) -> Tensor:
    x, labels = tensor(normal(6, 2, seed=3)), tensor([0, 1, 2, 1, 0, 2])
    return chainrule.cross_entropy(network(p, x), labels)


# --- Hessian --------------------------------------------------------------------------------------


def test_hessian_matrix_has_the_blocks_of_the_hessian() -> None:
    p = params()
    matrix = hessian_matrix(loss, p)
    assert matrix.shape == (24, 24)
    assert_close(matrix, matrix.T.numpy(), atol=1e-14)
    got, expected = blocks(matrix, p), hessian(loss)(p)
    for row in ("w", "b"):
        for column in ("w", "b"):
            assert_close(got[row][column], expected[row][column])
    assert_close(got["out"][0]["w"], expected["out"][0]["w"])
    assert_close(hessian_matrix(loss, p, chunk_size=7), matrix.numpy())


def test_all_ways_to_a_hessian_lead_to_one() -> None:
    vector, unravel = ravel(params())

    def f(v: Tensor) -> Tensor:
        return loss(unravel(v))

    leaf = vector.detach().requires_grad_()
    expected = hessian(f)(vector).numpy()
    found = [
        functional.hessian(f, vector),
        functional.hessian(f, vector, outer_jacobian_strategy="forward-mode"),
        hessian_matrix(f, vector),
        hessian_matrix(f, vector, chunk_size=5),
        curvature.Hessian(f, params=vector).matrix(),
        Derivatives([leaf], f(leaf)).hessian(),
        SecondOrderObjective([leaf], lambda: f(leaf), "test").hessian(),
    ]
    assert_close(found, [expected] * len(found))


def test_hessian_matrix_evaluates_the_function_once() -> None:
    calls = []

    def f(v: Tensor) -> Tensor:
        calls.append(1)
        return (v**4).sum()

    hessian_matrix(f, chainrule.ones(10), chunk_size=3)
    assert len(calls) == 1


def test_hessian_matrix_can_be_differentiated_and_mapped() -> None:
    w = tensor([1.0, 2.0])
    third = chainrule.func.jacrev(lambda v: hessian_matrix(lambda u: (u**3).sum(), v))(w)
    assert third[0, 0].tolist() == [6.0, 0.0]
    several = chainrule.func.vmap(lambda v: hessian_matrix(lambda u: (u**3).sum(), v))
    assert_close(several(chainrule.stack([w, 2 * w]))[1], np.diag([12.0, 24.0]))


def test_hessian_diagonal_is_the_diagonal_of_the_hessian() -> None:
    p = params()
    expected = np.diagonal(hessian_matrix(loss, p).numpy())
    got = hessian_diagonal(loss, p)
    assert got["w"].shape == (4, 2)
    assert_close(ravel(got)[0], expected)
    for chunk in (1, 5, 24, 100):
        assert_close(ravel(hessian_diagonal(loss, p, chunk_size=chunk))[0], expected)


def test_hutchinson_is_unbiased_with_the_variance_it_says() -> None:
    """The estimate of entry i deviates by sqrt(sum_{j != i} H_ij^2 / samples)."""
    p, samples = params(), 400
    matrix = hessian_matrix(loss, p).numpy()
    off = matrix - np.diag(np.diagonal(matrix))
    error = np.sqrt((off**2).sum(1) / samples)
    generator = chainrule.Generator().manual_seed(0)
    runs = np.stack(
        [
            ravel(hessian_diagonal(loss, p, samples=samples, generator=generator))[0].numpy()
            for _ in range(20)
        ]
    )
    deviation = (runs - np.diagonal(matrix)) / error
    assert np.abs(deviation.mean(0)).max() < 4 / np.sqrt(20)
    assert deviation.std() == pytest.approx(1, abs=0.1)


def test_hutchinson_follows_the_generator_and_is_exact_for_a_diagonal_hessian() -> None:
    p = params()
    twice = [
        hessian_diagonal(loss, p, samples=3, generator=chainrule.Generator().manual_seed(1))
        for _ in range(2)
    ]
    assert_close(ravel(twice[0])[0], ravel(twice[1])[0].numpy(), rtol=0, atol=0)
    w = tensor(normal(5))
    got = hessian_diagonal(lambda v: (v**4).sum(), w, samples=1)
    assert_close(got, 12 * w.numpy() ** 2)
    got = hessian_diagonal(lambda v: (v**4).sum(), w, samples=7, chunk_size=2)
    assert_close(got, 12 * w.numpy() ** 2)


def diagonal_by_recursion(weights: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The second derivatives of 1/2 |y - net(x)|^2 by one backward pass, as for a diagonal Hessian.

    h_i = f'(s_i)^2 sum_l w_li^2 h_l + f''(s_i) dL/da_i, and d2L/dw_ij^2 = h_i a_j^2.
    """
    activations = [x]
    for w in weights[:-1]:
        activations.append(np.tanh(w @ activations[-1]))
    error, h = weights[-1] @ activations[-1] - y, np.ones(len(y))
    rows = []
    for w, a in zip(reversed(weights), reversed(activations), strict=True):
        rows.append(np.outer(h, a**2).reshape(-1))
        slope, by_output = 1 - a**2, w.T @ error
        h = slope**2 * (w.T**2 @ h) - 2 * a * slope * by_output
        error = slope * by_output
    return np.concatenate(rows[::-1])


@pytest.mark.parametrize(("hidden", "exact"), [(1, True), (2, False)])
def test_hessian_diagonal_by_recursion_is_exact_for_one_hidden_layer(
    hidden: int, exact: bool
) -> None:
    """A pass of cost O(W) leaves out what is off the diagonal: from the second layer on it errs."""
    sizes = [3, *[4] * hidden, 2]
    weights = [normal(n, m, seed=m + n) for m, n in itertools.pairwise(sizes)]
    x, y = normal(3, seed=5), normal(2, seed=6)

    def error(ws: list[Tensor]) -> Tensor:
        a = tensor(x)
        for w in ws[:-1]:
            a = (w @ a).tanh()
        return 0.5 * ((tensor(y) - ws[-1] @ a) ** 2).sum()

    got = ravel(hessian_diagonal(error, [tensor(w) for w in weights]))[0].numpy()
    deviation = np.abs(diagonal_by_recursion(weights, x, y) - got).max() / np.abs(got).max()
    assert deviation < 1e-14 if exact else deviation > 0.01


def test_types_are_kept() -> None:
    w = chainrule.tensor([1.0, 2.0])
    f = lambda v: (v**3).sum()  # noqa: E731
    for result in (
        hessian_matrix(f, w),
        hessian_diagonal(f, w),
        hessian_diagonal(f, w, samples=2),
        gauss_newton(lambda v, x: v * x, w, f, w),
        condition_number(hessian_matrix(f, w)),
        taylor(f, w)(w),
    ):
        assert result.dtype is chainrule.float32


def test_second_order_results_can_be_differentiated_again() -> None:
    """Of sum w^4 the diagonal is 12 w^2; the gradient of its sum is 24 w."""
    w = tensor(normal(3))
    g = grad(lambda v: hessian_diagonal(lambda u: (u**4).sum(), v).sum())(w)
    assert_close(g, 24 * w.numpy())


# --- Gauss-Newton ---------------------------------------------------------------------------------


def test_gauss_newton_is_the_hessian_for_a_linear_model() -> None:
    x, y, w = normal(6, 3), normal(6, seed=1), normal(3, seed=2)
    squared = lambda z: 0.5 * ((z - tensor(y)) ** 2).sum()  # noqa: E731
    got = gauss_newton(lambda v, x: x @ v, tensor(x), squared, tensor(w))
    assert_close(got, x.T @ x)
    assert_close(got, hessian(lambda v: squared(tensor(x) @ v))(tensor(w)))


def test_gauss_newton_is_jacobian_hessian_jacobian() -> None:
    p, x, labels = params(), tensor(normal(6, 2, seed=3)), tensor([0, 1, 2, 1, 0, 2])
    a = softmax(network(p, x).numpy())
    core = np.einsum("nk,kl,nm->nkml", a, np.eye(3), np.eye(6))
    core -= np.einsum("nk,ml,nm->nkml", a, a, np.eye(6))
    j = flat_jacobian(p, x)
    expected = j.T @ (core.reshape(18, 18) / 6) @ j
    cross_entropy = lambda z: chainrule.cross_entropy(z, labels)  # noqa: E731
    got = gauss_newton(network, x, cross_entropy, p)
    assert_close(got, expected, atol=1e-14)
    assert_close(gauss_newton(network, x, cross_entropy, p, chunk_size=5), got.numpy())
    assert np.linalg.eigvalsh(got.numpy()).min() > -1e-14


def test_gauss_newton_product_is_the_matrix_times_a_vector() -> None:
    p, x = params(), tensor(normal(6, 2, seed=3))
    squared = lambda z: (z**2).sum()  # noqa: E731
    matrix = gauss_newton(network, x, squared, p).numpy()
    v = normal(24, seed=5)
    vector = ravel(p)[1](tensor(v))
    got = gauss_newton_product(network, x, squared, vector, p)
    assert got["out"][0].shape == (3, 4)
    assert_close(ravel(got)[0], matrix @ v)


def test_hessian_is_gauss_newton_and_the_curvature_of_the_outputs() -> None:
    """H = J^T H_L J + sum_k dL/dz_k H^k, with H^k the Hessian of output k."""
    p, x = params(), tensor(normal(2, seed=3))
    squared = lambda z: (z**2).sum()  # noqa: E731
    slope = grad(squared)(network(p, x)).numpy()
    v = normal(24, seed=5)
    direction = ravel(p)[1](tensor(v))
    scaled = {
        "w": tensor(np.multiply.outer(slope, direction["w"].numpy())),
        "b": tensor(np.multiply.outer(slope, direction["b"].numpy())),
        "out": [tensor(np.multiply.outer(slope, direction["out"][0].numpy()))],
    }
    second = ravel(per_output_hvp(network, x, scaled, p))[0].numpy()
    first = gauss_newton(network, x, squared, p).numpy() @ v
    expected = hessian_matrix(lambda q: squared(network(q, x)), p).numpy() @ v
    assert np.abs(second).max() > 0.1
    assert_close(first + second, expected)


def test_gauss_newton_of_several_outputs() -> None:
    w = tensor(normal(3))
    f = lambda v, x: (v * x, v.sum())  # noqa: E731
    convex = lambda z: 0.5 * (z[0] ** 2).sum() + z[1].exp()  # noqa: E731
    x = normal(3, seed=1)
    expected = np.diag(x**2) + np.exp(w.numpy().sum())
    assert_close(gauss_newton(f, tensor(x), convex, w), expected)


# --- condition number and Taylor model ------------------------------------------------------------


def test_condition_number_of_a_bowl() -> None:
    """w1^2 + 5 w2^2 has the Hessian diag(2, 10)."""
    h = hessian_matrix(lambda w: w[0] ** 2 + 5 * w[1] ** 2, tensor([0.3, -1.0]))
    assert_close(condition_number(h), np.float64(5))


def test_condition_number_of_any_symmetric_matrix() -> None:
    a = normal(5, 5)
    a = a + a.T
    assert_close(condition_number(tensor(a)), np.float64(np.linalg.cond(a)))
    assert condition_number(tensor(np.diag([1.0, 0.0]))).item() == np.inf


def test_taylor_model_of_a_quadratic_is_the_quadratic() -> None:
    a, w, step = normal(3, 3), normal(3, seed=1), normal(3, seed=2)
    f = lambda v: v @ tensor(a) @ v + v.sum()  # noqa: E731
    model = taylor(f, tensor(w))
    assert_close(model.value, f(tensor(w)))
    assert_close(model.gradient, (a + a.T) @ w + 1)
    assert_close(model(tensor(step)), f(tensor(w + step)))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_taylor_error_falls_with_the_power_after_the_order(order: int) -> None:
    p = params()
    model = taylor(loss, p, order)
    _, unravel = ravel(p)
    errors = []
    for scale in (1e-3, 1e-4):
        step = scale * normal(24, seed=7)
        moved = unravel(ravel(p)[0] + tensor(step))
        errors.append(abs(loss(moved).item() - model(unravel(tensor(step))).item()))
    assert np.log10(errors[0] / errors[1]) == pytest.approx(order + 1, abs=0.1)


def test_taylor_model_by_the_hessian() -> None:
    p, step = params(), normal(24, seed=7)
    _, unravel = ravel(p)
    g, h = ravel(grad(loss)(p))[0].numpy(), hessian_matrix(loss, p).numpy()
    expected = loss(p).item() + g @ step + 0.5 * step @ h @ step
    assert_close(taylor(loss, p)(unravel(tensor(step))), np.float64(expected))
    slope = grad(lambda s: taylor(loss, p)(unravel(s)))(tensor(step))
    assert_close(slope, g + h @ step)


# --- errors ---------------------------------------------------------------------------------------


def test_wrong_arguments_are_refused() -> None:
    w = tensor(normal(3))
    f = lambda v: (v**2).sum()  # noqa: E731
    linear = lambda v, x: x @ v  # noqa: E731
    with pytest.raises(ValueError, match="hessian_diagonal: chunk_size.*got 0"):
        hessian_diagonal(f, w, chunk_size=0)
    with pytest.raises(ValueError, match="samples.*at least 1, got 0"):
        hessian_diagonal(f, w, samples=0)
    with pytest.raises(ValueError, match="order must be 0, 1 or 2, got 3"):
        taylor(f, w, 3)
    with pytest.raises(RuntimeError, match=r"0 dimensions.*\(3,\)"):
        hessian_matrix(lambda v: v, w)
    with pytest.raises(TypeError, match="params="):
        gauss_newton(linear, w, f)


def test_wrong_matrices_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"square matrix, got shape \(2, 3\)"):
        condition_number(tensor(normal(2, 3)))
    with pytest.raises(ValueError, match="symmetric"):
        condition_number(tensor(normal(3, 3)))
