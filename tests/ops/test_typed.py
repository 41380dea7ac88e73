"""Tensors by sizes or by values: PyTorch's older constructors, and the limits of types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import Tensor
from chainrule.func import jvp
from chainrule.tensor import of_array


def test_an_array_is_converted_to_the_default_type() -> None:
    for a in (np.arange(3.0), np.arange(3), np.arange(3) > 0):
        assert Tensor(a).dtype is chainrule.float32
        assert Tensor(a).tolist() == a.astype(float).tolist()
    a = np.ones(3, np.float32)
    assert Tensor(a).array is a
    assert Tensor(np.int64(3)).shape == (3,)
    assert Tensor(np.array(3.0)).item() == 3


def test_the_library_wraps_an_array_as_it_is() -> None:
    a = np.arange(3.0)
    assert of_array(a).array is a


def test_a_tensor_by_its_sizes() -> None:
    assert Tensor(2, 3).shape == (2, 3)
    assert Tensor(chainrule.zeros(4, 1).shape).shape == (4, 1)
    assert Tensor(2).dtype is chainrule.float32
    assert Tensor().shape == (0,)


def test_a_tensor_by_its_values() -> None:
    assert Tensor([[1, 2], [3, 4]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert Tensor((2, 3)).tolist() == [2.0, 3.0]
    assert Tensor([chainrule.tensor(1), 2]).tolist() == [1.0, 2.0]
    x = chainrule.ones(2, requires_grad=True)
    assert Tensor(x).array is x.array
    assert not Tensor(x).requires_grad
    assert Tensor(x.double()).dtype is chainrule.float64


def test_a_box_is_wrapped_as_it_is() -> None:
    _, tangent = jvp(lambda x: of_array(x.array) * 2, (chainrule.ones(2),), (chainrule.ones(2),))
    assert tangent.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Tensor(2.5), TypeError, "argument 'size' must be int, not float"),
        (lambda: Tensor(2, -1), RuntimeError, "negative dimension -1"),
        (lambda: Tensor(np.float32(2)), TypeError, "argument 'size' must be int, not float32"),
        (lambda: Tensor("2"), TypeError, "invalid data type 'str'"),
        (lambda: Tensor(np.zeros(2), 3), TypeError, "argument 'size' must be int"),
        (lambda: chainrule.LongTensor(chainrule.ones(2)), TypeError, "convert it with .to"),
    ],
)
def test_what_is_neither_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


TYPED = {
    "BoolTensor": "bool",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "HalfTensor": "float16",
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
}


@pytest.mark.parametrize(("name", "dtype"), TYPED.items())
def test_typed_tensors(name: str, dtype: str) -> None:
    kind = getattr(chainrule, name)
    x = kind([0, 1])
    assert x.dtype.name == dtype
    assert x.tolist() == [0, 1]
    assert kind(2, 3).shape == (2, 3)
    assert isinstance(x, kind)
    assert x.type() == f"chainrule.{name}"
    assert chainrule.zeros(2, dtype=chainrule.complex64).real.type(kind).dtype.name == dtype
    assert not isinstance(chainrule.zeros(1, dtype=chainrule.complex64), kind)
    assert x.new(2).dtype.name == dtype
    assert x.new([1]).tolist() == [1]


def test_the_default_by_a_typed_tensor() -> None:
    try:
        chainrule.set_default_tensor_type(chainrule.DoubleTensor)
        assert Tensor([1]).dtype is chainrule.float64
    finally:
        chainrule.set_default_tensor_type("chainrule.FloatTensor")
    assert Tensor([1]).dtype is chainrule.float32
    with pytest.raises(TypeError, match="only floating-point types"):
        chainrule.set_default_tensor_type(chainrule.LongTensor)


def test_limits_of_types() -> None:
    assert chainrule.finfo(chainrule.float64).eps == 2.0**-52
    assert chainrule.finfo().max == float(np.finfo(np.float32).max)
    assert chainrule.iinfo(chainrule.uint8).max == 255
    with pytest.raises(TypeError, match="use iinfo"):
        chainrule.finfo(chainrule.int8)
    with pytest.raises(TypeError, match="use finfo"):
        chainrule.iinfo(chainrule.float32)
    assert (chainrule.pi, chainrule.e, chainrule.inf) == (math.pi, math.e, math.inf)
    assert chainrule.zeros(2)[:, chainrule.newaxis].shape == (2, 1)


def test_where_a_tensor_lives() -> None:
    x = chainrule.zeros(2)
    assert x.is_cpu
    assert not any((x.is_cuda, x.is_sparse, x.is_quantized, x.is_mps, x.is_meta))
    assert x.layout is chainrule.strided
