"""Creation and conversion: what is made, of which type, and whose memory it lies in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor

# --- from data ------------------------------------------------------------------------------------

INFERRED: list[tuple[Any, Any, tuple[int, ...]]] = [
    (1, chainrule.int64, ()),
    (1.5, chainrule.float32, ()),
    (True, chainrule.bool, ()),
    (2j, chainrule.complex64, ()),
    ([1, 2], chainrule.int64, (2,)),
    ([1, 2.5], chainrule.float32, (2,)),
    ([True, 1], chainrule.int64, (2,)),
    ([[True], [False]], chainrule.bool, (2, 1)),
    ([1, 2j], chainrule.complex64, (2,)),
    ([], chainrule.float32, (0,)),
    ([[], []], chainrule.float32, (2, 0)),
    (range(3), chainrule.int64, (3,)),
    (((1, 2), (3, 4)), chainrule.int64, (2, 2)),
    (np.float64(1), chainrule.float64, ()),
    (np.arange(3, dtype=np.int16), chainrule.int16, (3,)),
    ([np.float32(1), 2.0], chainrule.float32, (2,)),
    ([np.float64(1), 2.0], chainrule.float64, (2,)),
    ([np.zeros(2), np.ones(2)], chainrule.float64, (2, 2)),
]


@pytest.mark.parametrize(("data", "dtype", "shape"), INFERRED, ids=str)
def test_tensor_infers_its_type(data: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    x = chainrule.tensor(data)
    assert x.dtype is dtype
    assert x.shape == shape
    assert_close(x, np.array(data).astype(dtype.array_dtype))


def test_tensor_infers_the_default_type() -> None:
    chainrule.set_default_dtype(chainrule.float64)
    assert chainrule.tensor([1.0]).dtype is chainrule.float64
    assert chainrule.tensor([1j]).dtype is chainrule.complex128
    assert chainrule.zeros(2).dtype is chainrule.float64


def test_tensor_copies() -> None:
    a = np.zeros(3)
    x = chainrule.tensor(a)
    y = chainrule.tensor(x)
    a[0] = 1
    x[1] = 2
    assert_close(y, np.zeros(3))


def test_tensor_of_tensors_has_no_history() -> None:
    x = chainrule.ones((), requires_grad=True) * 2
    y = chainrule.tensor([x, 3.0])
    assert_close(y, np.array([2.0, 3.0], np.float32))
    assert not y.requires_grad
    assert not chainrule.tensor(x).requires_grad


REFUSED = [
    ([[1, 2], [3]], ValueError, "expected sequence of length 2 at dim 1"),
    ([[1, 2], [3, 4, 5]], ValueError, r"got 3 at item 1"),
    ([[[1]], [[1, 2]]], ValueError, "expected sequence of length 1 at dim 2"),
    ([[[1], [2]], [[1], 2]], TypeError, "sequences only at dim 2"),
    ([[[]], [[1]]], ValueError, "expected sequence of length 0 at dim 2"),
    ([np.zeros(2), np.zeros(3)], ValueError, "length 2 at dim 1"),
    ([1, [2]], TypeError, "numbers only"),
    ([[1], 2], TypeError, "sequences only"),
    ("a", TypeError, "str"),
    (["a"], ValueError, "too many dimensions 'str'"),
    (None, RuntimeError, "could not infer dtype of NoneType"),
    ({}, RuntimeError, "could not infer dtype of dict"),
    (2**63, ValueError, "too large"),
    (np.array(["a"]), TypeError, "cannot hold"),
]


@pytest.mark.parametrize(("data", "error", "message"), REFUSED, ids=str)
def test_tensor_refuses(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        chainrule.tensor(data)


def test_tensor_refuses_tensors_with_several_elements_in_a_list() -> None:
    with pytest.raises(ValueError, match="use chainrule.stack"):
        chainrule.tensor([chainrule.ones(2), chainrule.ones(2)])


def test_tensor_refuses_what_the_type_cannot_hold() -> None:
    for value in (300, float("inf"), float("nan")):
        with pytest.raises(RuntimeError, match="without overflow"):
            chainrule.tensor(value, dtype=chainrule.uint8)
    with pytest.raises(TypeError):
        chainrule.tensor(1j, dtype=chainrule.float32)


def test_conversion_of_a_number_too_large_is_infinite() -> None:
    assert chainrule.tensor(1e40).item() == float("inf")
    assert chainrule.tensor([1e6], dtype=chainrule.float16).item() == float("inf")


def test_requires_grad() -> None:
    for make in (chainrule.zeros, chainrule.ones, chainrule.rand, chainrule.randn, chainrule.empty):
        assert make(2, requires_grad=True).requires_grad
    assert chainrule.tensor(1.0, requires_grad=True).is_leaf
    with pytest.raises(RuntimeError, match="floating point"):
        chainrule.tensor(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="floating point"):
        chainrule.zeros(2, dtype=chainrule.int64, requires_grad=True)


def test_there_is_only_the_cpu() -> None:
    assert chainrule.zeros(2, device="cpu").device == chainrule.device("cpu")
    for make in (
        lambda: chainrule.zeros(2, device="cuda"),
        lambda: chainrule.tensor(1.0, device="cuda:0"),
        lambda: chainrule.arange(2, device=0),
        lambda: chainrule.rand(2, device="mps"),
        lambda: chainrule.ones(2).to("cuda"),
    ):
        with pytest.raises(RuntimeError, match="cpu"):
            make()


# --- shared memory --------------------------------------------------------------------------------


def test_from_numpy_shares_memory() -> None:
    a = np.zeros(3, np.float32)
    x = chainrule.from_numpy(a)
    a[0] = 1
    x[1] = 2
    assert_close(x, np.array([1, 2, 0], np.float32))
    assert np.shares_memory(a, x.numpy())
    with pytest.raises(TypeError, match="expected np.ndarray"):
        chainrule.from_numpy([1])  # type: ignore[arg-type]


def test_as_tensor_shares_memory_where_it_can() -> None:
    a = np.zeros(3)
    x = chainrule.ones(2)
    assert np.shares_memory(chainrule.as_tensor(a).numpy(), a)
    assert not np.shares_memory(chainrule.as_tensor(a, dtype=chainrule.float32).numpy(), a)
    assert chainrule.as_tensor(x) is x
    assert chainrule.as_tensor([1, 2]).dtype is chainrule.int64


def test_as_tensor_keeps_history() -> None:
    x = chainrule.ones(2, requires_grad=True)
    chainrule.as_tensor(x, dtype=chainrule.float64).sum().backward()
    assert_close(x.grad, np.ones(2, np.float32))


def test_asarray() -> None:
    a = np.zeros(3)
    assert np.shares_memory(chainrule.asarray(a).numpy(), a)
    assert not np.shares_memory(chainrule.asarray(a, copy=True).numpy(), a)
    assert chainrule.asarray([1.0], requires_grad=True).requires_grad
    with pytest.raises(ValueError, match="alias"):
        chainrule.asarray(a, dtype=chainrule.float32, copy=False)
    with pytest.raises(ValueError, match="alias"):
        chainrule.asarray([1, 2], copy=False)
    x = chainrule.ones(2, requires_grad=True)
    assert not chainrule.asarray(x, requires_grad=False).requires_grad
    assert chainrule.asarray(x, copy=True).grad_fn is not None


def test_dlpack_shares_memory_both_ways() -> None:
    a = np.arange(3.0)
    x = chainrule.from_dlpack(a)
    x[0] = 7
    assert a[0] == 7
    assert np.shares_memory(np.from_dlpack(chainrule.from_numpy(a)), a)
    with pytest.raises(TypeError, match="__dlpack__"):
        chainrule.from_dlpack([1])


# --- filled and patterns --------------------------------------------------------------------------


def test_every_way_to_give_a_size() -> None:
    two = chainrule.tensor(2)
    for x in (
        chainrule.zeros(2, 3),
        chainrule.zeros((2, 3)),
        chainrule.zeros([2, 3]),
        chainrule.zeros(size=(2, 3)),
        chainrule.zeros(two, np.int64(3)),
        chainrule.zeros(chainrule.ones(2, 3).shape),
        chainrule.ones(1).new_zeros(2, 3),
    ):
        assert x.shape == (2, 3)
    assert chainrule.zeros(()).shape == ()
    with pytest.raises(TypeError, match="size"):
        chainrule.zeros()
    with pytest.raises(TypeError, match="must be int"):
        chainrule.zeros(2.0)
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        chainrule.ones(2, -1)


def test_full_takes_the_type_of_its_value() -> None:
    for value, dtype in ((True, "bool"), (1, "int64"), (1.5, "float32"), (1j, "complex64")):
        assert chainrule.full((2,), value).dtype.name == dtype
    assert_close(chainrule.full((2,), 1.7, dtype=chainrule.int64), np.array([1, 1]))
    assert_close(chainrule.full((2,), chainrule.tensor(2.5)), np.array([2.5, 2.5], np.float32))
    with pytest.raises(TypeError, match="tuple of ints"):
        chainrule.full(2, 1)
    with pytest.raises(TypeError, match="fill_value"):
        chainrule.full((2,), "a")


def test_likes() -> None:
    x = chainrule.ones(2, 3, dtype=chainrule.int32)
    assert_close(chainrule.zeros_like(x), np.zeros((2, 3), np.int32))
    assert_close(chainrule.ones_like(x, dtype=chainrule.float64), np.ones((2, 3)))
    assert_close(chainrule.full_like(x, 2.5), np.full((2, 3), 2, np.int32))
    assert chainrule.empty_like(x).shape == (2, 3)
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        chainrule.zeros_like([1])  # type: ignore[arg-type]


def test_new_ones_like_me() -> None:
    x = chainrule.ones(2, dtype=chainrule.float64)
    assert x.new_tensor([1]).dtype is chainrule.float64
    assert x.new_full((2,), 3).dtype is chainrule.float64
    assert x.new_ones(2, dtype=chainrule.int64).dtype is chainrule.int64
    assert x.new_empty((0, 2)).shape == (0, 2)


RANGES: list[tuple[tuple[Any, ...], Any, str]] = [
    ((5,), np.arange(5), "int64"),
    ((1, 4), np.arange(1, 4), "int64"),
    ((5, 0, -2), np.array([5, 3, 1]), "int64"),
    ((0,), np.array([], int), "int64"),
    ((2.5,), np.array([0.0, 1.0, 2.0]), "float32"),
    ((0, 1, 0.25), np.array([0, 0.25, 0.5, 0.75]), "float32"),
    ((1, 2, 0.3), np.array([1, 1.3, 1.6, 1.9]), "float32"),
]


@pytest.mark.parametrize(("bounds", "expected", "dtype"), RANGES, ids=str)
def test_arange(bounds: tuple[Any, ...], expected: np.ndarray, dtype: str) -> None:
    out = chainrule.arange(*bounds)
    assert out.dtype.name == dtype
    assert_close(out, expected.astype(dtype), rtol=1e-7)


def test_arange_by_name_and_by_tensor() -> None:
    assert chainrule.arange(start=1, end=4, step=2).tolist() == [1, 3]
    assert chainrule.arange(1, end=3).tolist() == [1, 2]
    assert chainrule.arange(chainrule.tensor(3)).tolist() == [0, 1, 2]
    assert chainrule.arange(2, dtype=chainrule.float64).dtype is chainrule.float64
    assert chainrule.arange(2**60, 2**60 + 3).tolist() == [2**60, 2**60 + 1, 2**60 + 2]


def test_arange_refuses() -> None:
    for bounds, message in (
        ((1, 5, 0), "nonzero"),
        ((5, 1), "step sign"),
        ((1, 5, -1), "step sign"),
        ((float("nan"),), "unsupported range"),
        ((0, float("inf")), "unsupported range"),
    ):
        with pytest.raises(RuntimeError, match=message):
            chainrule.arange(*bounds)
    with pytest.raises(TypeError, match="arange"):
        chainrule.arange()


def test_spaces() -> None:
    assert_close(chainrule.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32), rtol=1e-7)
    assert chainrule.linspace(-10, 10, 7, dtype=chainrule.int64).tolist() == [
        -10,
        -6,
        -3,
        0,
        3,
        6,
        10,
    ]
    assert chainrule.linspace(3, 4, 1).tolist() == [3.0]
    assert chainrule.linspace(3, 4, 0).shape == (0,)
    assert_close(chainrule.logspace(-1, 2, 4, base=2), np.array([0.5, 1, 2, 4], np.float32))
    with pytest.raises(RuntimeError, match="non-negative"):
        chainrule.linspace(0, 1, -1)
    with pytest.raises(TypeError, match="steps"):
        chainrule.logspace(0, 1, 2.5)  # type: ignore[arg-type]


def test_matrices_and_indices() -> None:
    assert_close(chainrule.eye(2, 3), np.eye(2, 3, dtype=np.float32))
    for ours, theirs in (
        (chainrule.tril_indices, np.tril_indices),
        (chainrule.triu_indices, np.triu_indices),
    ):
        for row, col, offset in ((3, 3, 0), (2, 4, 1), (4, 2, -1), (0, 2, 0)):
            assert_close(ours(row, col, offset), np.stack(theirs(row, offset, col)))
    with pytest.raises(RuntimeError, match="greater or equal to 0"):
        chainrule.eye(-1)
    with pytest.raises(RuntimeError, match="non-negative"):
        chainrule.tril_indices(-1, 2)


def test_complex() -> None:
    x = chainrule.complex(chainrule.tensor([1.0, float("inf")]), chainrule.tensor([2.0]))
    assert x.dtype is chainrule.complex64
    assert x.tolist() == [1 + 2j, complex(float("inf"), 2)]
    with pytest.raises(RuntimeError, match="floating"):
        chainrule.complex(chainrule.tensor([1]), chainrule.tensor([1]))


# --- conversion -----------------------------------------------------------------------------------


def test_to() -> None:
    x = chainrule.ones(2)
    assert x.to() is x
    assert x.to(chainrule.float32) is x
    assert x.to("cpu") is x
    assert x.to(chainrule.float32, copy=True) is not x
    for y in (
        x.to(chainrule.float64),
        x.to("cpu", chainrule.float64),
        x.to(dtype=chainrule.float64),
        x.to(chainrule.ones(1).double()),
        x.to(device="cpu", dtype=chainrule.float64),
        x.double(),
        x.type(chainrule.float64),
        x.type_as(chainrule.ones(1).double()),
        x.type("chainrule.DoubleTensor"),
    ):
        assert y.dtype is chainrule.float64
    assert x.type() == "chainrule.FloatTensor"
    with pytest.raises(RuntimeError, match="cpu"):
        x.to("foo")
    with pytest.raises(TypeError, match="unexpected keyword"):
        x.to(shape=2)


def test_every_type_has_a_method() -> None:
    x = chainrule.tensor([1.7, -1.7, 0.0])
    for name, dtype in (
        ("bool", "bool"),
        ("byte", "uint8"),
        ("char", "int8"),
        ("short", "int16"),
        ("int", "int32"),
        ("long", "int64"),
        ("half", "float16"),
        ("float", "float32"),
        ("double", "float64"),
        ("cfloat", "complex64"),
        ("cdouble", "complex128"),
    ):
        assert getattr(x, name)().dtype.name == dtype
    assert x.long().tolist() == [1, -1, 0]
    assert x.bool().tolist() == [True, True, False]


def test_clone_has_its_own_memory_and_its_gradient() -> None:
    x = chainrule.ones(2, requires_grad=True)
    y = x.clone()
    assert not np.shares_memory(x.detach().numpy(), y.detach().numpy())
    (y * 3).sum().backward()
    assert_close(x.grad, np.array([3, 3], np.float32))


def test_contiguous() -> None:
    x = chainrule.ones(2, 3)
    assert x.contiguous() is x
    assert x.T.contiguous().is_contiguous()
    assert not x.T.is_contiguous()


def test_questions() -> None:
    x = chainrule.ones(2, 3)
    assert chainrule.is_tensor(x)
    assert not chainrule.is_tensor(x.numpy())
    assert chainrule.is_floating_point(x)
    assert not chainrule.is_complex(x)
    assert chainrule.numel(x) == x.nelement() == 6
    assert x.ndimension() == 2
    assert chainrule.is_nonzero(chainrule.tensor(2.0))
    with pytest.raises(TypeError, match="must be Tensor"):
        chainrule.is_floating_point(3)  # type: ignore[arg-type]


def test_inside_vmap_new_tensors_are_the_same_for_all() -> None:
    def function(x: Tensor) -> Tensor:
        return x + chainrule.ones_like(x) + chainrule.tensor([1.0, 2.0]) + x.new_zeros(2)

    out = chainrule.func.vmap(function)(chainrule.zeros(3, 2))
    assert_close(out, np.broadcast_to(np.array([2, 3], np.float32), (3, 2)))


def test_made_in_inference_mode() -> None:
    with chainrule.inference_mode():
        x = chainrule.ones(2)
    y = chainrule.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="inference"):
        (x * y).sum().backward()
