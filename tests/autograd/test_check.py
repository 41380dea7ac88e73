"""The checker is itself checked: wrong rules are planted, and each must be caught."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor, backend, cos, sin
from chainrule.autograd import GradcheckError, gradcheck, gradgradcheck
from chainrule.ops.core.primitive import REGISTRY, Elementwise, Linear, Primitive
from chainrule.tensor import of_array

Rule = Callable[..., Any]


@pytest.fixture(autouse=True)
def _no_planted_rule_stays() -> Iterator[None]:
    names, bound = set(REGISTRY), len(backend._bound)
    yield
    for name in set(REGISTRY) - names:
        del REGISTRY[name]
    del backend._bound[bound:]


def variable(*shape: int, seed: int = 0) -> Tensor:
    return of_array(np.random.default_rng(seed).uniform(0.5, 1.5, size=shape)).requires_grad_()


def right_vjp(g: Any, out: Any, x: Any, *, needs: Any) -> Any:
    return (g * cos(x),)


def right_jvp(tangents: Any, out: Any, x: Any) -> Any:
    return tangents[0] * cos(x)


def hidden(x: Any) -> Any:
    """x without its history."""
    return x.detach() if isinstance(x, Tensor) else x


def sine(vjp: Rule = right_vjp, jvp: Rule = right_jvp) -> Primitive:
    return Primitive("planted", vjp, jvp, batch="align", kernel="sin")


# --- first order ----------------------------------------------------------------------------------


def test_right_rules_pass() -> None:
    planted = sine()
    assert gradcheck(planted, variable(2, 3), check_batched_grad=True)
    assert gradgradcheck(planted, variable(2, 3), check_over_fwd=True)


def test_a_wrong_factor_in_vjp_is_caught() -> None:
    planted = sine(vjp=lambda g, out, x, needs: (1.01 * g * cos(x),))
    with pytest.raises(GradcheckError, match="backward mode"):
        gradcheck(planted, variable(2, 3))
    assert gradcheck(planted, variable(2, 3), check_backward_ad=False)


def test_a_wrong_factor_in_jvp_is_caught() -> None:
    planted = sine(jvp=lambda tangents, out, x: 1.01 * tangents[0] * cos(x))
    with pytest.raises(GradcheckError, match="forward mode"):
        gradcheck(planted, variable(2, 3))
    assert gradcheck(planted, variable(2, 3), check_forward_ad=False)


def test_one_wrong_element_is_caught() -> None:
    mask = np.ones((2, 3))
    mask[1, 2] = 1.01
    planted = sine(vjp=lambda g, out, x, needs: (g * cos(x) * mask,))
    with pytest.raises(GradcheckError, match=r"entry \(1, 2\) of the output and \(1, 2\) of the"):
        gradcheck(planted, variable(2, 3))


def test_a_wrong_differential_is_caught_in_both_modes() -> None:
    planted = Elementwise("planted", [lambda d, x: d * sin(x)], kernel="sin")
    for mode in ({"check_forward_ad": False}, {"check_backward_ad": False}):
        with pytest.raises(GradcheckError, match="wrong in"):
            gradcheck(planted, variable(3), **mode)


def test_modes_that_differ_by_less_than_the_tolerance_are_caught() -> None:
    planted = sine(vjp=lambda g, out, x, needs: ((1 + 1e-6) * g * cos(x),))
    with pytest.raises(GradcheckError, match="not adjoint"):
        gradcheck(planted, variable(2, 3))
    assert gradcheck(planted, variable(2, 3), check_forward_ad=False)


def test_a_wrong_transpose_is_caught() -> None:
    planted = Linear("planted", lambda g, shape: 3 * g, kernel="neg")
    with pytest.raises(GradcheckError, match=r"backward mode.* numerical -1, analytical 3 "):
        gradcheck(planted, of_array(np.array([0.5])).requires_grad_(), eps=2.0**-20)


def test_a_sum_over_broadcast_dimensions_that_is_missing_is_caught() -> None:
    planted = Primitive(
        "planted",
        lambda g, out, x, y, needs: (g, chainrule.narrow(g, 0, 0, 1)),
        lambda tangents, out, x, y: tangents[0] + tangents[1],
        batch="align",
        kernel="add",
    )
    assert gradcheck(planted, (variable(1, 4), variable(1, 4, seed=1)))
    with pytest.raises(GradcheckError, match="with respect to input 1 is wrong in backward mode"):
        gradcheck(planted, (variable(3, 4), variable(1, 4, seed=1)))


def test_a_tangent_of_the_wrong_shape_is_caught() -> None:
    planted = Primitive(
        "planted",
        lambda g, out, x, y, needs: (g, g),
        lambda tangents, out, x, y: tangents[1],
        batch="align",
        kernel="add",
    )
    with pytest.raises(GradcheckError, match=r"the tangent of output 0 is \(1, 4\)"):
        gradcheck(planted, (variable(3, 4), variable(1, 4, seed=1)))


def test_a_term_that_is_missing_for_one_input_is_caught() -> None:
    """The rule for y takes x for a constant; where x is not varied, nothing is wrong."""
    planted = Elementwise("planted", [lambda d: d * 0, lambda d, x: d * x], kernel="mul")
    assert gradcheck(planted, (variable(3).detach(), variable(3, seed=1)))
    with pytest.raises(GradcheckError, match="with respect to input 0"):
        gradcheck(planted, (variable(3), variable(3, seed=1)))


def test_a_cotangent_that_is_used_wrongly_is_caught() -> None:
    """The rule is right for unit vectors, but it is not linear in g."""
    planted = sine(vjp=lambda g, out, x, needs: (g * g * g * cos(x),))
    assert gradcheck(planted, variable(3), check_forward_ad=False)
    with pytest.raises(GradcheckError, match="not adjoint"):
        gradcheck(planted, variable(3))


def test_nan_is_caught() -> None:
    planted = sine(vjp=lambda g, out, x, needs: (g * cos(x) * float("nan"),))
    with pytest.raises(GradcheckError, match="analytical nan"):
        gradcheck(planted, variable(2))


def test_a_wrong_batch_rule_is_caught() -> None:
    def first_only(op: Any, size: int, values: Any, mapped: Any, params: Any) -> Tensor:
        out = op(values[0], **params)
        return chainrule.narrow(out, 0, 0, 1).expand(tuple(out.shape))

    planted = Linear("planted", lambda g, shape: planted(g), batch=first_only, kernel="neg")
    assert gradcheck(planted, variable(3))
    with pytest.raises(GradcheckError, match="batched backward mode"):
        gradcheck(planted, variable(3), check_batched_grad=True)


def test_a_backward_pass_that_changes_is_caught() -> None:
    noise = itertools.count()
    planted = sine(vjp=lambda g, out, x, needs: (g * cos(x) * (1 + 1e-12 * next(noise)),))
    with pytest.raises(GradcheckError, match="not deterministic"):
        gradcheck(planted, variable(2))
    assert gradcheck(planted, variable(2), nondet_tol=1e-9)


def test_a_wrong_function_of_the_user_is_caught() -> None:
    class Wrong(chainrule.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return g * x

    with pytest.raises(GradcheckError, match="backward mode"):
        gradcheck(Wrong.apply, variable(3), check_forward_ad=False)


# --- second order ---------------------------------------------------------------------------------


def test_a_rule_that_hides_its_input_is_caught_at_second_order() -> None:
    """Right at first order; but the rule forgets that x has a history."""
    planted = sine(vjp=lambda g, out, x, needs: (g * cos(hidden(x)),))
    assert gradcheck(planted, variable(2, 3))
    with pytest.raises(GradcheckError):
        gradgradcheck(planted, variable(2, 3), check_fwd_over_rev=False)


def test_a_wrong_derivative_of_the_derivative_is_caught() -> None:
    wrong_cosine = Elementwise("planted", [lambda d, x: d * sin(x)], kernel="cos")
    planted = Elementwise("planted_sine", [lambda d, x: d * wrong_cosine(x)], kernel="sin")
    assert gradcheck(planted, variable(3))
    for mode in ({"check_fwd_over_rev": False}, {"check_rev_over_rev": False}):
        with pytest.raises(GradcheckError, match="with respect to input 0"):
            gradgradcheck(planted, variable(3), **mode)


def test_a_derivative_that_is_wrong_in_forward_mode_alone_is_caught() -> None:
    half_wrong = Primitive(
        "planted",
        lambda g, out, x, needs: (-g * sin(x),),
        lambda tangents, out, x: tangents[0] * sin(x),
        batch="align",
        kernel="cos",
    )
    planted = Elementwise("planted_sine", [lambda d, x: d * half_wrong(x)], kernel="sin")
    assert gradcheck(planted, variable(3))
    assert gradgradcheck(planted, variable(3), check_fwd_over_rev=False)
    with pytest.raises(GradcheckError, match="forward mode"):
        gradgradcheck(planted, variable(3))


def test_a_tangent_that_is_not_differentiable_is_caught() -> None:
    """Right at first order in both modes and at second order over reverse, not over forward."""
    wrong_cosine = Elementwise("planted", [lambda d, x: d * sin(x)], kernel="cos")
    planted = Primitive(
        "planted_sine",
        right_vjp,
        lambda tangents, out, x: tangents[0] * wrong_cosine(x),
        batch="align",
        kernel="sin",
    )
    assert gradcheck(planted, variable(3))
    assert gradgradcheck(planted, variable(3), check_fwd_over_rev=False)
    with pytest.raises(GradcheckError):
        gradgradcheck(planted, variable(3), check_over_fwd=True)


# --- what it accepts, refuses and says ------------------------------------------------------------


def test_the_message_names_output_input_entry_and_values() -> None:
    planted = Elementwise("planted", [lambda d: d, lambda d: 2 * d], kernel="add")

    def function(scale: float, n: Tensor, x: Tensor, y: Tensor) -> Any:
        return x * scale, n, planted(x, y)

    n = of_array(np.arange(3))
    with pytest.raises(
        GradcheckError,
        match=r"output 1 with respect to input 3 .* \(0,\) of the output and \(0,\) of the input: "
        r"numerical (1|0\.9999)\d*\.?\d*, analytical 2",
    ):
        gradcheck(function, (3.0, n, variable(3), variable(3, seed=1)), check_forward_ad=False)


def test_it_can_answer_instead_of_raising() -> None:
    planted = sine(vjp=lambda g, out, x, needs: (2 * g * cos(hidden(x)),))
    assert gradcheck(planted, variable(2), raise_exception=False) is False
    assert gradgradcheck(planted, variable(2), raise_exception=False) is False
    assert gradcheck(sin, variable(2), raise_exception=False) is True


def test_gradcheck_error_is_a_runtime_error() -> None:
    assert issubclass(GradcheckError, RuntimeError)


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_coarse_types_are_refused(check: Any) -> None:
    x = of_array(np.ones(2, dtype=np.float32)).requires_grad_()
    with pytest.raises(ValueError, match=r"input 1 is chainrule.float32.*x\.double\(\)"):
        check(lambda a, b: a * b, (variable(2), x))


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_something_must_require_a_gradient(check: Any) -> None:
    with pytest.raises(ValueError, match="at least one input tensor with requires_grad"):
        check(sin, variable(2).detach())


def test_something_must_be_differentiable() -> None:
    with pytest.raises(ValueError, match="no tensor of a floating point or complex dtype"):
        gradcheck(lambda x: x > 0, variable(2))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1,), (2, 1, 2)])
def test_every_shape_passes(shape: tuple[int, ...]) -> None:
    assert gradcheck(lambda x: sin(x) * x, variable(*shape), check_batched_grad=True)
    assert gradgradcheck(lambda x: sin(x) * x, variable(*shape), check_over_fwd=True)


def test_inputs_and_outputs_that_do_not_depend_on_each_other_pass() -> None:
    x, y = variable(2), variable(3)
    assert gradcheck(lambda x, y: (sin(x), y * 2, chainrule.ones_like(x)), (x, y))
    assert gradgradcheck(lambda x, y: (sin(x), y * y), (x, y))


def test_a_constant_that_should_not_be_one_is_caught() -> None:
    with pytest.raises(GradcheckError, match="analytical 0 "):
        gradcheck(lambda x: sin(x).detach(), variable(2), check_forward_ad=False)


def test_given_cotangents_are_used() -> None:
    seen = []

    def vjp(g: Any, out: Any, x: Any, *, needs: Any) -> Any:
        seen.append(np.array(g.numpy(force=True) if isinstance(g, Tensor) else g))
        return (g * cos(x),)

    g = of_array(np.array([3.0, 4.0]))
    assert gradgradcheck(sine(vjp=vjp), variable(2), g, check_fwd_over_rev=False)
    assert any(np.array_equal(s, [3.0, 4.0]) for s in seen)


def test_it_works_without_grad_mode_and_leaves_gradients_alone() -> None:
    x = variable(2)
    with chainrule.no_grad():
        assert gradcheck(sin, x)
    assert x.grad is None


# --- the comparison of the tests ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (np.array([1.0, 2.0]), np.array([1.0, 2.1])),
        (np.array([1.0, 2.0]), np.array([[1.0, 2.0]])),
        (np.array([1.0]), np.array([1])),
        (np.array([1]), np.array([True])),
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([np.nan]), np.array([1.0])),
        (np.array([1.0]), np.array([np.nan])),
        (np.array([np.inf]), np.array([-np.inf])),
        (np.array([1e300]), np.array([np.inf])),
        ([np.ones(2), np.ones(2)], [np.ones(2)]),
        ([np.ones(2)], np.ones((1, 2))),
        ((np.ones(2), np.ones(2)), (np.ones(2), np.zeros(2))),
        (of_array(np.ones(2)), np.array([1.0, 1.1])),
        (np.array([1 + 1j]), np.array([1 - 1j])),
    ],
)
def test_assert_close_fails(actual: Any, expected: Any) -> None:
    with pytest.raises(AssertionError):
        assert_close(actual, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (np.array([1.0, np.nan, np.inf]), np.array([1.0 + 1e-10, np.nan, np.inf])),
        (np.ones(2, dtype=np.float32), np.ones(2)),
        ([of_array(np.ones(2)), 1.0], (np.ones(2), 1.0)),
        (np.zeros((0, 2)), np.zeros((0, 2))),
        (2, 2),
    ],
)
def test_assert_close_passes(actual: Any, expected: Any) -> None:
    assert_close(actual, expected)
