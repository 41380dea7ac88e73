"""The check of second derivatives finds the mistakes that are planted, in either mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from ops.second_order import check_backward_pass

from chainrule import Tensor, backend, cos, sin
from chainrule.ops.core.primitive import REGISTRY, Elementwise, Primitive

X = np.array([[0.3, -1.1, 2.0], [0.7, 0.1, -0.4]])


@pytest.fixture(autouse=True)
def _planted_operations_are_forgotten() -> Iterator[None]:
    names, bound = set(REGISTRY), len(backend._bound)
    yield
    for name in set(REGISTRY) - names:
        del REGISTRY[name]
    del backend._bound[bound:]


def sine(in_reverse: float = -1.0, in_forward: float = -1.0) -> Callable[..., Any]:
    """The sine, whose derivative has a derivative of these factors times the sine in each mode."""
    slope = Primitive(
        "planted",
        lambda g, out, x, needs: (in_reverse * g * sin(x),),
        lambda tangents, out, x: in_forward * tangents[0] * sin(x),
        batch="align",
        kernel="cos",
    )
    planted = Elementwise("planted_sine", [lambda d, x: d * slope(x)], kernel="sin")
    return lambda *xs: tuple(planted(x) for x in xs)


def test_right_rules_pass() -> None:
    check_backward_pass(sine(), [X, X[0]])


@pytest.mark.parametrize("wrong", [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.01, -1.01)], ids=str)
def test_wrong_rules_are_found(wrong: tuple[float, float]) -> None:
    with pytest.raises(AssertionError, match="elements differ"):
        check_backward_pass(sine(*wrong), [X, X[0]])


def test_one_wrong_entry_is_found() -> None:
    """In one place of the second input."""
    wrong = sine(1.0, 1.0)
    with pytest.raises(AssertionError, match="1 of 72 elements differ"):
        check_backward_pass(lambda x, y: (sin(x), *wrong(y[1:2]), sin(y[::2])), [X[0], X[1]])


def test_a_rule_that_forgets_the_history_is_found() -> None:
    """Right at first order."""

    def hidden(x: Any) -> Any:
        return x.detach() if isinstance(x, Tensor) else x

    forgetful = Primitive(
        "planted",
        lambda g, out, x, needs: (g * cos(hidden(x)),),
        lambda tangents, out, x: tangents[0] * cos(x),
        batch="align",
        kernel="sin",
    )
    with pytest.raises(AssertionError):
        check_backward_pass(lambda x: (forgetful(x),), [X])
