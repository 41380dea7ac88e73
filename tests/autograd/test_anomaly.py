"""NaN and Inf are traced to their operation and the user's line."""

from __future__ import annotations

import pytest

import chainrule
from chainrule.autograd import detect_anomaly, record_lines, set_detect_anomaly


def test_forward_names_operation_and_line() -> None:
    x = chainrule.tensor([1.0, 0.0, -1.0])
    with detect_anomaly(), pytest.raises(RuntimeError, match=r"log produced 2 non-finite") as error:
        chainrule.log(x)  # the culprit
    assert "test_anomaly.py" in str(error.value)
    assert "# the culprit" in str(error.value)


def test_a_nan_that_was_there_before_is_not_blamed() -> None:
    x = chainrule.tensor([1.0, float("nan")])
    with detect_anomaly():
        assert not (x * 2).isfinite().all()


def test_backward_names_operation_and_line() -> None:
    x = chainrule.tensor([0.0, 4.0], requires_grad=True)
    with detect_anomaly():
        y = x.sqrt()  # infinite slope at 0
        with pytest.raises(RuntimeError, match=r"'SqrtBackward' returned nan or inf") as error:
            y.sum().backward()
    assert "# infinite slope at 0" in str(error.value)


def test_lines_are_recorded_without_checks() -> None:
    x = chainrule.tensor([1.0], requires_grad=True)
    with record_lines():
        y = x * 2  # here
    assert "# here" in y.grad_fn.trace
    assert (x * 2).grad_fn.trace is None


def test_switch() -> None:
    x = chainrule.tensor([0.0])
    set_detect_anomaly(True)
    try:
        with pytest.raises(RuntimeError, match="reciprocal"):
            x.reciprocal()
    finally:
        set_detect_anomaly(False)
    assert x.reciprocal().isinf().all()


def test_works_under_transformations() -> None:
    x = chainrule.tensor([[1.0, 2.0]])
    with detect_anomaly():
        out = chainrule.func.vmap(lambda a: a.log().sum())(x)
    assert out.shape == (1,)
