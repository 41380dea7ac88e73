"""``assert_close`` sees differences, and says what they are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import tensor
from chainrule.testing import assert_allclose, assert_close, make_tensor

NAN = float("nan")
SAME: dict[str, tuple[Any, Any]] = {
    "tensors": (tensor([1.0, 2.0]), tensor([1.0, 2.0 + 1e-6])),
    "float64": (tensor([1.0], dtype="float64"), tensor([1.0 + 1e-8], dtype="float64")),
    "with a gradient": (chainrule.ones(2, requires_grad=True), chainrule.ones(2)),
    "parameters": (chainrule.nn.Parameter(chainrule.ones(2)), chainrule.ones(2)),
    "empty": (tensor([]), tensor([])),
    "bool": (tensor([True]), tensor([True])),
    "infinite": (tensor([float("inf")]), tensor([float("inf")])),
    "arrays": (np.ones(2), np.ones(2)),
    "numbers": (1.0, 1.0 + 1e-9),
    "None": (None, None),
    "nested": ([1, {"a": (tensor(1), None)}], [1, {"a": [tensor(1), None]}]),
}


@pytest.mark.parametrize(("actual", "expected"), SAME.values(), ids=SAME)
def test_what_is_close(actual: Any, expected: Any) -> None:
    assert_close(actual, expected)


DIFFERENT: dict[str, tuple[Any, Any, str]] = {
    "tensors": (tensor([1.0, 2.0]), tensor([1.0, 2.0001]), "not close!.*elements: 1 / 2 .50.0%"),
    "float64": (
        tensor([1.0], dtype="float64"),
        tensor([1.0 + 1e-6], dtype="float64"),
        "up to 1e-07 allowed",
    ),
    "integers": (tensor([1, 2]), tensor([1, 3]), r"not equal!.*difference: 1 at index \(1,\)\n"),
    "bytes": (
        tensor([1], dtype="uint8"),
        tensor([2], dtype="uint8"),
        "Greatest absolute difference: 1 at",
    ),
    "bool": (tensor([True]), tensor([False]), "Tensor-likes are not equal!"),
    "place": (
        tensor([[1.0, 2.0], [3.0, 4.0]]),
        tensor([[1.0, 2.1], [3.0, 4.9]]),
        r"absolute difference: 0.9\d* at index \(1, 1\).*relative difference: 0.18\d* at index "
        r"\(1, 1\)",
    ),
    "by zero": (tensor([1.0]), tensor([0.0]), "relative difference: inf"),
    "infinite": (tensor([float("inf")]), tensor([1.0]), "absolute difference: inf"),
    "NaN": (tensor(NAN), tensor(NAN), "Scalars are not close!.*Expected nan but got nan"),
    "complex": (tensor([1 + 1j]), tensor([2 + 1j]), "absolute difference: 1.0"),
    "shape": (tensor([1.0]), tensor([[1.0]]), r"'shape' do not match: .*\[1\].* != .*\[1, 1\]"),
    "dtype": (tensor([1.0]), tensor([1]), "'dtype' do not match: .*float32 != .*int64"),
    "numbers": (1.0, 1.5, "Scalars are not close!.*Expected 1.5 but got 1.0.*difference: 0.5"),
    "whole numbers": (1, 2, "Scalars are not equal!.*Absolute difference: 1\nRelative"),
    "kinds of numbers": (1.0, 1, "types do not match: <class 'float'> != <class 'int'>"),
    "truth": (True, False, "Booleans mismatch: True is not False"),
    "None": (3, None, "None mismatch: 3 is not None"),
    "length": ([1], [1, 2], "length of the sequences mismatch: 1 != 2"),
    "keys": ({"a": 1}, {"b": 1}, r"Missing keys.*\['b'\].*Additional keys.*\['a'\]"),
    "inside": ({"a": [1, (2, 3)]}, {"a": [1, (2, 4)]}, r"failure occurred for item \['a'\]\[1\]"),
}


@pytest.mark.parametrize(("actual", "expected", "match"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_is_not(actual: Any, expected: Any, match: str) -> None:
    with pytest.raises(AssertionError) as error:
        assert_close(actual, expected)
    assert re.search(match, str(error.value), re.DOTALL), str(error.value)


def test_options() -> None:
    assert_close(tensor([1.0]), tensor([1.1]), rtol=0.2, atol=0)
    assert_close(tensor([NAN]), tensor([NAN]), equal_nan=True)
    assert_close(tensor([1.0]), tensor([1], dtype="int64"), check_dtype=False)
    assert_close(1, 1.0, check_dtype=False)
    square = tensor([[1.0, 2.0], [3.0, 4.0]])
    assert_close(square.t().contiguous().t(), square)
    with pytest.raises(AssertionError, match=r"'stride\(\)' do not match: \(1, 2\) != \(2, 1\)"):
        assert_close(square.t().contiguous().t(), square, check_stride=True)
    with pytest.raises(AssertionError, match="^wrong$"):
        assert_close(1, 2, msg="wrong")
    with pytest.raises(AssertionError, match="^So: Scalars"):
        assert_close(1, 2, msg=lambda text: f"So: {text}")


@pytest.mark.parametrize(
    ("actual", "expected"),
    [(1.0, tensor(1.0)), (np.ones(1), tensor([1.0])), ("a", "a"), ({1}, {1})],
)
def test_what_cannot_be_compared(actual: Any, expected: Any) -> None:
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(actual, expected)


def test_wrong_calls() -> None:
    with pytest.raises(ValueError, match="but got no atol"):
        assert_close(1, 1, rtol=0.1)
    with pytest.raises(TypeError, match="Parameter.*Tensor"):
        assert_close(
            chainrule.nn.Parameter(chainrule.ones(2)), chainrule.ones(2), allow_subclasses=False
        )


def test_the_older_function() -> None:
    assert_allclose([1.0, NAN], tensor([1.0, NAN], dtype="float64"))
    with pytest.raises(AssertionError, match="not close"):
        assert_allclose(1.0, 2.0)


# --- tensors to test with -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("bool", 0, 1),
        ("uint8", 0, 9),
        ("int8", -9, 9),
        ("int64", -9, 9),
        ("float16", -9, 9),
        ("float32", -9, 9),
        ("float64", -9, 9),
    ],
)
def test_default_ranges(dtype: str, low: float, high: float) -> None:
    chainrule.manual_seed(0)
    x = make_tensor(2000, dtype=dtype, device="cpu")
    assert x.dtype.name == dtype
    assert float(x.min()) == pytest.approx(low, abs=0.1)
    assert float(x.max()) == pytest.approx(high, abs=0.1)


def test_made_to_order() -> None:
    x = make_tensor((2, 3), dtype="float64", device="cpu", low=1, high=2, noncontiguous=True)
    assert x.shape == (2, 3)
    assert not x.is_contiguous()
    assert bool(((x >= 1) & (x < 2)).all())
    z = make_tensor(1000, dtype="complex64", device="cpu", requires_grad=True)
    assert z.requires_grad
    assert float(z.real.min()) < -8
    assert float(z.imag.max()) > 8
    n = make_tensor(1000, dtype="int32", device="cpu", low=-1, high=2, exclude_zero=True)
    assert set(n.tolist()) == {-1, 1}


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"dtype": "float32", "low": NAN}, "cannot be NaN"),
        ({"dtype": "float32", "low": 2, "high": 1}, "must be less than"),
        ({"dtype": "uint8", "low": -3, "high": -1}, r"only supports \[0, 256\)"),
        ({"dtype": "int64", "requires_grad": True}, "boolean and integral dtypes"),
    ],
)
def test_wrong_orders(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make_tensor(2, device="cpu", **arguments)
