"""Type promotion, Python numbers and errors of elementwise functions, without an oracle at hand.

The whole table is compared with PyTorch in ``parity/test_promotion.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import Tensor
from chainrule.func import grad, hessian, jvp
from chainrule.ops.core.promotion import result_type
from chainrule.tensor import of_array

NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


def of(dtype: str, *values: Any) -> Tensor:
    return of_array(np.array(values, dtype=dtype))


def scalar(dtype: str, value: Any = 1) -> Tensor:
    return of_array(np.array(value, dtype=dtype))


# --- promotion ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((of("float32", 1), 2.5), "float32"),
        ((of("float16", 1), 2.5), "float16"),
        ((of("float64", 1), 2), "float64"),
        ((of("int64", 1), 2), "int64"),
        ((of("int8", 1), 2), "int8"),
        ((of("int8", 1), 2.5), "float32"),
        ((of("bool", 1), 2), "int64"),
        ((of("bool", 1), True), "bool"),
        ((of("bool", 1), 0.5), "float32"),
        ((of("float32", 1), 1j), "complex64"),
        ((of("float64", 1), 1j), "complex128"),
        ((of("int64", 1), of("float16", 1)), "float16"),
        ((of("float16", 1), of("float32", 1)), "float32"),
        ((of("uint8", 1), of("int8", 1)), "int16"),
        ((of("bool", 1), of("uint8", 1)), "uint8"),
        ((of("float32", 1), scalar("float64")), "float32"),
        ((of("int32", 1), scalar("int64")), "int32"),
        ((of("int32", 1), scalar("float64")), "float64"),
        ((scalar("float32"), scalar("float64")), "float64"),
        ((scalar("float32"), 1.5), "float32"),
        ((of("float32", 1), scalar("complex128")), "complex64"),
        ((of("complex64", 1), of("float64", 1)), "complex128"),
        ((1, 2.5), "float32"),
        ((True, 2), "int64"),
    ],
)
def test_result_type(operands: tuple[Any, ...], expected: str) -> None:
    assert result_type(*operands).name == expected
    assert result_type(*reversed(operands)).name == expected
    if any(isinstance(x, Tensor) for x in operands):
        assert (operands[0] + operands[1]).dtype.name == expected
        assert (operands[1] + operands[0]).dtype.name == expected


def test_promotion_needs_an_operand() -> None:
    with pytest.raises(ValueError, match="result_type: no operands"):
        result_type()


@pytest.mark.parametrize("a", NAMES)
@pytest.mark.parametrize("b", NAMES)
def test_promotion_is_commutative_and_division_is_floating(a: str, b: str) -> None:
    x, y = of(a, 1, 1), of(b, 1, 1)
    assert (x * y).dtype is (y * x).dtype is result_type(x, y)
    assert (x / y).dtype.is_floating_point
    assert (x == y).dtype is chainrule.bool


def test_default_type_is_what_integers_become() -> None:
    x = of("int64", 1, 2)
    assert (x / 2).dtype is chainrule.sin(x).dtype is (x * 0.5).dtype is chainrule.float32
    chainrule.set_default_dtype(chainrule.float64)
    assert (x / 2).dtype is chainrule.sin(x).dtype is (x * 0.5).dtype is chainrule.float64
    assert (of("float32", 1) * 0.5).dtype is chainrule.float32


def test_gradients_come_back_in_the_type_of_each_input() -> None:
    x, y = of("float32", 1, 2).requires_grad_(), of("float64", 3, 4).requires_grad_()
    (x * y).sum().backward()
    assert x.grad.dtype is chainrule.float32
    assert y.grad.dtype is chainrule.float64
    np.testing.assert_array_equal(x.grad.numpy(), [3, 4])


def test_conversion_has_derivatives_in_both_modes_and_of_second_order() -> None:
    x = of("float32", 1, 2)

    def function(x: Tensor) -> Tensor:
        return (x.double() ** 3).float().sum()

    np.testing.assert_array_equal(grad(function)(x).numpy(), np.float32([3, 12]))
    value, slope = jvp(function, (x,), (of("float32", 1, 10),))
    assert value.dtype is slope.dtype is chainrule.float32
    assert slope.item() == 123
    np.testing.assert_array_equal(hessian(function)(x).numpy(), np.float32([[6, 0], [0, 12]]))


def test_gradient_through_an_integer_operand_is_none() -> None:
    x = of("float32", 1, 2).requires_grad_()
    n = of("int64", 3, 4)
    (n * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 4])
    assert n.grad is None


# --- Python numbers -------------------------------------------------------------------------------


def test_a_number_is_part_of_the_operation_and_nothing_is_saved() -> None:
    x = of("float32", 1, 2).requires_grad_()
    for y in (x * 2, x + 1, x / 3, 2 - x):
        assert y.grad_fn.saved is None or all(t is None for t in y.grad_fn.saved)
        assert len(y.grad_fn.edges) == 1


def test_zeros_keep_their_sign_whatever_came_before() -> None:
    x = of("float32", 1)
    for zero in (0.0, -0.0, 0.0, -0.0):
        assert (x / zero).item() == math.copysign(math.inf, zero)
        assert math.copysign(1, (x * zero).item()) == math.copysign(1, zero)


def test_equal_numbers_of_different_types_are_not_confused() -> None:
    x = of("float32", 4)
    assert (x**2).dtype is (x**2.0).dtype is (x * True).dtype is chainrule.float32
    n = of("int64", 4)
    assert [(n * c).dtype.name for c in (1, 1.0, True, 1)] == ["int64", "float32", "int64", "int64"]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite(number: float) -> None:
    for _ in range(2):
        np.testing.assert_equal((of("float32", 1) + number).numpy(), np.float32([number]))


def test_integers_wrap_around() -> None:
    np.testing.assert_array_equal((of("int8", 1) + 200).numpy(), np.int8([-55]))
    np.testing.assert_array_equal((of("uint8", 1) - 2).numpy(), np.uint8([255]))


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.int64(2)])
def test_numbers_of_numpy_do_not_widen(number: Any) -> None:
    x = of("float32", 1, 2)
    for y in (x * number, number * x, x + number, number - x):
        assert isinstance(y, Tensor)
        assert y.dtype is chainrule.float32


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda x: 2 + x, 6),
        (lambda x: 2 - x, -2),
        (lambda x: 2 * x, 8),
        (lambda x: 2 / x, 0.5),
        (lambda x: 9 // x, 2),
        (lambda x: 9 % x, 1),
        (lambda x: 2**x, 16),
        (lambda x: -x, -4),
        (lambda x: +x, 4),
        (lambda x: abs(-x), 4),
        (lambda x: x**0.5, 2),
        (lambda x: x // 3, 1),
    ],
)
def test_operators(operation: Any, expected: float) -> None:
    out = operation(of("float32", 4))
    assert out.dtype is chainrule.float32
    assert out.item() == expected


def test_power_of_zero() -> None:
    """0**0 is 1 with slope 0, and d/dy 0**y is 0 for y >= 0."""
    x, y = of("float64", 0, 0).requires_grad_(), of("float64", 0, 2).requires_grad_()
    (x**y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0])
    np.testing.assert_array_equal(y.grad.numpy(), [0, 0])


def test_ties_share_the_gradient() -> None:
    x, y = of("float64", 1, 2).requires_grad_(), of("float64", 1, 1).requires_grad_()
    chainrule.maximum(x, y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.5, 1])
    np.testing.assert_array_equal(y.grad.numpy(), [0.5, 0])


def test_other_names_are_the_same_functions() -> None:
    for name, other in [
        ("abs", "absolute"),
        ("neg", "negative"),
        ("mul", "multiply"),
        ("div", "divide"),
        ("sub", "subtract"),
        ("asin", "arcsin"),
        ("atan2", "arctan2"),
        ("acosh", "arccosh"),
        ("clamp", "clip"),
        ("trunc", "fix"),
        ("gt", "greater"),
        ("le", "less_equal"),
        ("ne", "not_equal"),
    ]:
        assert getattr(chainrule, name) is getattr(chainrule, other)


def test_functions_are_methods_and_have_forms_in_place() -> None:
    x = of("float64", 0.25, 0.5)
    for name in ("sin", "sqrt", "exp", "tanh", "log1p", "square", "neg"):
        y = x.clone()
        assert getattr(y, name + "_")() is y
        np.testing.assert_array_equal(y.numpy(), getattr(x, name)().numpy())
        np.testing.assert_array_equal(y.numpy(), getattr(chainrule, name)(x).numpy())


def test_where_with_a_condition_alone_says_where_it_holds() -> None:
    x = of("float64", 0, 1, -2, 0, 3, 0).reshape(2, 3)
    for condition in (x > 0, x):
        rows, columns = chainrule.where(condition)
        expected = np.nonzero(condition.numpy())
        np.testing.assert_array_equal(rows.numpy(), expected[0])
        np.testing.assert_array_equal(columns.numpy(), expected[1])
        assert chainrule.equal(x[rows, columns], x[condition != 0])


def test_functions_of_numpy_are_operations_on_tensors() -> None:
    x = of("float64", -0.25, 0.5).requires_grad_()
    for function, ours in [
        (np.sin, chainrule.sin),
        (np.arctan, chainrule.atan),
        (np.absolute, chainrule.abs),
        (np.conjugate, chainrule.conj),
        (np.deg2rad, chainrule.deg2rad),
        (np.isnan, chainrule.isnan),
        (np.logical_not, chainrule.logical_not),
    ]:
        out = function(x)
        assert isinstance(out, chainrule.Tensor)
        assert chainrule.equal(out, ours(x))
    for function, ours in [
        (np.subtract, chainrule.sub),
        (np.power, chainrule.pow),
        (np.less_equal, chainrule.le),
    ]:
        assert chainrule.equal(function(np.array([1.0, 2.0]), x), ours(np.array([1.0, 2.0]), x))
    np.exp(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([-0.25, 0.5]))


# --- errors ---------------------------------------------------------------------------------------

RUNTIME_ERRORS: list[tuple[Any, str]] = [
    (
        lambda x: x + of("float32", 1, 2),
        r"add: the size of tensor a \(3\) must match .* b \(2\) at non-singleton dimension 0; the "
        r"shapes are \(3,\) and \(2,\)\. .*reshape, unsqueeze or transpose",
    ),
    (lambda x: x * of("int64", 1, 2), r"mul: .*\(3,\) and \(2,\)"),
    (lambda x: x & x, r"bitwise_and: not implemented for chainrule.float32; it is for bool or int"),
    (lambda x: of("complex64", 1j) < 1, r"lt: not implemented for chainrule.complex64"),
    (lambda x: chainrule.maximum(of("complex64", 1j), x), r"maximum: .*complex64"),
    (lambda x: -of("bool", 1), r"neg: not implemented for chainrule.bool"),
    (lambda x: x - True, r"sub: a bool is not supported; use \^ or logical_xor"),
    (lambda x: of("int64", 1) // 0, r"floor_divide: integer division by zero"),
    (lambda x: of("int64", 1) % of("int64", 0), r"remainder: integer division by zero"),
    (lambda x: chainrule.fmod(of("int64", 1), 0), r"fmod: integer division by zero"),
    (lambda x: chainrule.div(of("int64", 1), 0, rounding_mode="trunc"), r"div: integer division"),
    (lambda x: of("int64", 2) ** -1, r"pow: integers to negative integer powers"),
    (lambda x: chainrule.add(of("int64", 1), 1, alpha=0.5), r"add: .*alpha.*0\.5"),
    (lambda x: chainrule.div(x, 2, rounding_mode="up"), r"div: .*'up'"),
    (lambda x: chainrule.where(x, x, x), r"where: .*boolean tensor.*float32"),
    (lambda x: chainrule.where(x > 0, of("float32", 1, 2), x), r"where: shapes .*\(3,\)"),
    (lambda x: chainrule.clamp(x), r"clamp: at least one of 'min' or 'max'"),
    (lambda x: chainrule.isclose(x, of("int64", 1)), r"isclose: .*float32 .*int64"),
    (lambda x: chainrule.polygamma(-1, x), r"polygamma: .*nonnegative, got -1"),
    (lambda x: chainrule.imag(x), r"imag: .*float32"),
]
TYPE_ERRORS: list[tuple[Any, str]] = [
    (lambda x: chainrule.add(x, "a"), r"add\(\): an operand must be a Tensor or a number, not str"),
    (lambda x: chainrule.sin(2.0), r"sin\(\): .* must be Tensor, not float; convert it with"),
    (lambda x: chainrule.isclose(x, 1.0), r"isclose\(\): .* must be Tensor, not float"),
    (lambda x: x * [1.0], r"list"),
    (lambda x: x < "a", r"str"),
]


@pytest.mark.parametrize(("call", "message"), RUNTIME_ERRORS)
def test_runtime_errors(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call(of("float32", 1, 2, 3))


@pytest.mark.parametrize(("call", "message"), TYPE_ERRORS)
def test_type_errors(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(of("float32", 1, 2, 3))


def test_comparison_with_anything_else_is_false() -> None:
    x = of("float32", 1)
    assert (x == "a") is False
    assert (x != None) is True  # noqa: E711
