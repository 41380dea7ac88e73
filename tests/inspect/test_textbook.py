"""Differences and sums over paths agree with the derivatives, as far as they can."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor, autograd
from chainrule.inspect.theory.textbook import (
    compare,
    numerical_gradient,
    numerical_jacobian,
    path_sum_derivative,
)
from chainrule.func import grad


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def tensor(array: Any) -> Tensor:
    return chainrule.tensor(np.asarray(array))


# --- differences ----------------------------------------------------------------------------------


def test_numerical_gradient_of_a_formula() -> None:
    """d/dx sum(sin x) = cos x, up to about 1e-10."""
    x = normal(3, 2)
    got = numerical_gradient(lambda t: t.sin().sum(), tensor(x))
    assert_close(got, np.cos(x), rtol=1e-9, atol=1e-10)
    assert np.abs(got.numpy() - np.cos(x)).max() > 0


def test_numerical_gradient_of_large_numbers_and_of_single_precision() -> None:
    for x in (1e6, -3e8):
        assert_close(numerical_gradient(lambda t: t**2, tensor(x)), np.float64(2 * x), rtol=1e-8)
    single = chainrule.tensor([0.5, 2.0])
    got = numerical_gradient(lambda t: (t**3).sum(), single)
    assert got.dtype is chainrule.float32
    assert_close(got, np.array([0.75, 12.0]), rtol=1e-3)


def test_numerical_jacobian_has_the_shape_of_output_and_input() -> None:
    a, x = normal(4, 3), normal(3, 2, seed=1)
    got = numerical_jacobian(lambda t: tensor(a) @ t, tensor(x))
    assert got.shape == (4, 2, 3, 2)
    assert_close(got, np.einsum("ki,lj->klij", a, np.eye(2)), rtol=1e-8, atol=1e-9)


def test_numerical_gradient_of_nested_parameters() -> None:
    params = {"w": tensor(normal(2, 3)), "b": (tensor(normal(2)), tensor(0.5))}
    f = lambda p: (p["w"].sum(1) * p["b"][0]).sum() * p["b"][1].exp()  # noqa: E731
    got, expected = numerical_gradient(f, params), grad(f)(params)
    assert_close(got["w"], expected["w"].numpy(), rtol=1e-8, atol=1e-9)
    assert_close(got["b"][0], expected["b"][0].numpy(), rtol=1e-8, atol=1e-9)
    assert_close(got["b"][1], expected["b"][1].numpy(), rtol=1e-8, atol=1e-9)


def test_step_can_be_chosen() -> None:
    """The error of a central difference of x^3 is h^2."""
    got = numerical_gradient(lambda t: t**3, tensor(1.0), eps=0.5)
    assert_close(got, np.float64(3 + 0.25))


def test_differences_record_nothing() -> None:
    x = tensor(normal(3)).requires_grad_()
    assert not numerical_gradient(lambda t: (t * x).sum(), x).requires_grad
    assert x.grad is None


# --- the sum over all paths -----------------------------------------------------------------------


def test_paths_through_layers_of_nodes() -> None:
    """m layers of n nodes have n^m paths, and the derivative is the sum of their products."""
    factors = normal(4, 3)

    def f(x: Tensor) -> Tensor:
        for layer in factors:
            x = sum(float(c) * x for c in layer)
        return x

    expected = sum(np.prod(path) for path in itertools.product(*factors))
    value, paths = path_sum_derivative(f, tensor(0.7))
    assert paths == 3**4
    assert_close(value, np.float64(expected))
    assert_close(value, grad(f)(tensor(0.7)))


def test_paths_of_a_network_of_single_neurons() -> None:
    """Between 1 input and 1 output lie 3 hidden layers of 2 neurons: 2^3 paths."""
    weights = normal(4, 2, 2)

    def f(x: Tensor) -> Tensor:
        h = [(float(weights[0, j, 0]) * x).tanh() for j in range(2)]
        for layer in weights[1:3]:
            h = [sum(float(w) * v for w, v in zip(row, h, strict=True)).tanh() for row in layer]
        return float(weights[3, 0, 0]) * h[0] + float(weights[3, 0, 1]) * h[1]

    value, paths = path_sum_derivative(f, tensor(0.3))
    assert paths == 2**3
    assert_close(value, grad(f)(tensor(0.3)))


def test_a_path_goes_through_each_argument() -> None:
    value, paths = path_sum_derivative(lambda x: x * x * x, tensor(2.0))
    assert (value.item(), paths) == (12, 3)
    assert path_sum_derivative(lambda x: x, tensor(2.0)) == (tensor(1.0), 1)
    value, paths = path_sum_derivative(lambda x: chainrule.ones(()), tensor(2.0))
    assert (value.item(), paths) == (0, 0)


def test_paths_of_vectors_and_of_other_leaves() -> None:
    w = tensor(normal(3)).requires_grad_()
    x = normal(3, seed=1)
    f = lambda t: ((t * w).sin() + w * t**2).sum()  # noqa: E731
    value, paths = path_sum_derivative(f, tensor(x))
    assert paths == 2
    assert_close(value, grad(f)(tensor(x)).detach())
    assert w.grad is None


class Both(autograd.Function):
    """An operation with two outputs, x^2 and x^3."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        ctx.save_for_backward(x)
        return x**2, x**3

    @staticmethod
    def backward(ctx: Any, square: Tensor, cube: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * square + 3 * x**2 * cube


def test_paths_through_an_operation_with_two_outputs() -> None:
    def f(x: Tensor) -> Tensor:
        square, cube = Both.apply(x)
        return square * cube

    value, paths = path_sum_derivative(f, tensor(1.5))
    assert paths == 2
    assert_close(value, np.float64(5 * 1.5**4))


# --- side by side ---------------------------------------------------------------------------------


def test_comparison_of_all_ways() -> None:
    x = normal(4)
    table = compare(lambda t: (t.sin() * t).sum(), tensor(x), lambda t: t.cos() * t + t.sin())
    assert list(table.jacobians) == ["numerical", "forward", "reverse", "symbolic"]
    assert table.passes == {"numerical": 8, "forward": 4, "reverse": 1}
    assert_close(table.jacobians["reverse"], np.cos(x) * x + np.sin(x))
    assert 0 < table.deviation("numerical") < 1e-9
    assert table.deviation("forward") < 1e-15
    lines = str(table).splitlines()
    assert lines[0].split() == ["entry", "numerical", "forward", "reverse", "symbolic"]
    assert lines[2].split()[2] == f"{np.cos(x[1]) * x[1] + np.sin(x[1]):.10g}"
    assert lines[-2].split() == ["passes", "8", "4", "1", "-"]
    assert len(lines) == 4 + 3


def test_comparison_of_a_function_with_several_outputs() -> None:
    a = normal(2, 3)
    table = compare(lambda t: tensor(a) @ t, tensor(normal(3, seed=1)))
    assert table.passes == {"numerical": 6, "forward": 3, "reverse": 2}
    assert_close(table.jacobians["forward"], a)
    assert len(str(table).splitlines()) == 6 + 3


def test_a_wrong_formula_is_seen() -> None:
    table = compare(lambda t: t.exp().sum(), tensor([0.0, 1.0]), lambda t: 2 * t.exp())
    assert table.deviation("symbolic") == pytest.approx(np.e)


# --- errors ---------------------------------------------------------------------------------------


def test_wrong_calls_are_refused() -> None:
    x = tensor(normal(3))
    with pytest.raises(RuntimeError, match=r"numerical_gradient.*0 dimensions.*\(3,\)"):
        numerical_gradient(lambda t: t * 2, x)
    with pytest.raises(RuntimeError, match="floating point dtype, got chainrule.int64"):
        numerical_jacobian(lambda t: t, tensor([1, 2]))
    with pytest.raises(ValueError, match="eps.*got -1"):
        numerical_jacobian(lambda t: t, x, eps=-1)
    with pytest.raises(RuntimeError, match=r"path_sum_derivative.*0 dimensions.*\(3,\)"):
        path_sum_derivative(lambda t: t * 2, x)
    with pytest.raises(RuntimeError, match="max_paths=100 "):
        path_sum_derivative(_doubled_many_times, tensor(1.0), max_paths=100)
    with pytest.raises(RuntimeError, match=r"symbolic returned shape \(\).*shape \(3,\)"):
        compare(lambda t: t.sum(), x, lambda t: t.sum())


def _doubled_many_times(x: Tensor) -> Tensor:
    for _ in range(60):
        x = x + x
    return x


def test_reverse_mode_needs_no_walk_over_the_paths() -> None:
    assert grad(_doubled_many_times)(tensor(1.0)).item() == 2.0**60
