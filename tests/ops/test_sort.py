"""Sorting, searching and counting: order, ties and NaN, gradients to what was chosen, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from hypothesis import given
from hypothesis import strategies as st

import chainrule
from chainrule.func import vmap
from chainrule.tensor import of_array

NAN = float("nan")
NUMBERS = st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, float("inf"), NAN])


@st.composite
def tables(draw: Any) -> np.ndarray:
    """Small tables with many ties and some NaN."""
    shape = draw(st.tuples(st.integers(1, 3), st.integers(1, 6)))
    flat = draw(st.lists(NUMBERS, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    return np.array(flat).reshape(shape)


def key(value: float) -> tuple[bool, float]:
    """NaN is larger than every number."""
    return (value != value, 0.0 if value != value else value)


@given(tables(), st.booleans())
def test_sorting_is_stable_and_puts_nan_at_the_large_end(x: np.ndarray, descending: bool) -> None:
    values, indices = chainrule.sort(of_array(x), descending=descending)
    for row, got, order in zip(x, values.numpy(), indices.numpy(), strict=True):
        # Python's sort is stable, in both directions.
        expected = sorted(range(len(row)), key=lambda i: key(row[i]), reverse=descending)
        assert order.tolist() == expected
        assert_close(got, row[expected])
    assert_close(chainrule.argsort(of_array(x), -1, descending), indices.numpy())


@given(tables(), st.booleans(), st.data())
def test_topk_is_the_start_of_the_sorted(x: np.ndarray, largest: bool, data: Any) -> None:
    k = data.draw(st.integers(0, x.shape[1]))
    values, indices = chainrule.topk(of_array(x), k, largest=largest)
    expected = chainrule.sort(of_array(x), descending=largest).values[:, :k]
    assert_close(values, expected.numpy())
    assert_close(values, np.take_along_axis(x, indices.numpy(), 1))


@given(tables(), st.data())
def test_kthvalue_is_in_the_sorted(x: np.ndarray, data: Any) -> None:
    k = data.draw(st.integers(1, x.shape[1]))
    values, indices = chainrule.kthvalue(of_array(x), k)
    assert_close(values, np.sort(x, axis=1)[:, k - 1])
    assert_close(values, np.take_along_axis(x, indices.numpy()[:, None], 1)[:, 0])


@pytest.mark.parametrize("largest", [True, False])
def test_few_of_many(largest: bool) -> None:
    """The way that does not sort everything."""
    x = np.random.default_rng(0).integers(0, 50, size=(2, 1000)) * 1.0
    x[0, 17] = NAN
    values, indices = chainrule.topk(of_array(x), 9, largest=largest)
    assert_close(values, chainrule.sort(of_array(x), descending=largest).values[:, :9].numpy())
    assert all(len(set(row)) == 9 for row in indices.tolist())
    assert chainrule.topk(of_array(x), 0).values.shape == (2, 0)


def test_gradients_flow_to_the_chosen() -> None:
    x = chainrule.tensor([3.0, 1.0, 2.0], requires_grad=True)
    (chainrule.sort(x).values * chainrule.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100, 1, 10]
    x.grad = None
    (x.topk(2).values.sum() + x.kthvalue(1).values * 5 + x.msort()[0]).backward()
    assert x.grad.tolist() == [1, 6, 1]


def test_results_have_names() -> None:
    for out in (chainrule.sort, lambda t: t.topk(1), lambda t: t.kthvalue(1)):
        result = out(chainrule.tensor([2.0, 1.0]))
        assert (result.values, result.indices) == tuple(result)


# --- different values -----------------------------------------------------------------------------


def test_unique_shapes() -> None:
    x = chainrule.tensor([[1, 2], [3, 2]])
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3]
    assert inverse.tolist() == [[0, 1], [2, 1]]
    assert counts.tolist() == [1, 2, 1]
    assert x.unique(dim=1).tolist() == [[1, 2], [3, 2]]
    assert chainrule.tensor(3).unique().tolist() == [3]
    assert chainrule.zeros(0, 2).unique(dim=0).shape == (0, 2)
    assert chainrule.tensor([NAN, NAN]).unique().shape == (2,)
    with pytest.raises(RuntimeError, match="0 sized dimensions"):
        chainrule.zeros(0, 2).unique(dim=1)


def test_runs_of_rows() -> None:
    x = chainrule.tensor([[1, 1], [1, 1], [2, 2], [1, 1]])
    values, inverse, counts = x.unique_consecutive(return_inverse=True, return_counts=True, dim=0)
    assert values.tolist() == [[1, 1], [2, 2], [1, 1]]
    assert inverse.tolist() == [0, 0, 1, 2]
    assert counts.tolist() == [2, 1, 1]
    values, inverse = x.unique_consecutive(return_inverse=True)
    assert values.tolist() == [1, 2, 1]
    assert inverse.shape == (4, 2)
    assert chainrule.zeros(0).unique_consecutive().shape == (0,)


# --- counting and searching -----------------------------------------------------------------------


def test_types_of_counts() -> None:
    x = chainrule.tensor([3, 1, 1])
    for dtype, expected in (("float32", "float32"), ("float64", "float64"), ("int64", "float64")):
        weights = of_array(np.ones(3, dtype))
        assert chainrule.bincount(x, weights).dtype.name == expected
    assert chainrule.bincount(x).tolist() == [0, 2, 0, 1]
    assert chainrule.bincount(x[:0], minlength=2).tolist() == [0, 0]


def test_searching_forms() -> None:
    edges = chainrule.tensor([1.0, 3.0, 5.0])
    assert chainrule.searchsorted(edges, 3).item() == 1
    assert chainrule.searchsorted(edges, 3, side="right").item() == 2
    assert chainrule.searchsorted(edges, chainrule.tensor(9.0), right=True).item() == 3
    found = chainrule.searchsorted(edges, chainrule.tensor([[0.0], [4.0]]), out_int32=True)
    assert found.tolist() == [[0], [2]]
    assert found.dtype is chainrule.int32
    sorter = chainrule.tensor([2, 1, 0])
    assert chainrule.searchsorted(edges.flip(0), edges, sorter=sorter).tolist() == [0, 1, 2]
    assert chainrule.bucketize(3.0, edges, right=True).item() == 2


def test_histogram_ranges() -> None:
    x = chainrule.tensor([1.0, 2.0, 2.0, 3.0, 5.0])
    assert chainrule.histc(x, 4).tolist() == [1, 2, 1, 1]
    assert chainrule.histc(x, 4, min=0, max=4).tolist() == [0, 1, 2, 1]
    assert chainrule.histc(chainrule.ones(3), 4).tolist() == [0, 0, 3, 0]
    assert chainrule.histc(chainrule.zeros(0), 4).tolist() == [0, 0, 0, 0]
    with_nan = chainrule.tensor([1.0, NAN, 3.0])
    assert chainrule.histc(with_nan, 2, min=0, max=4).tolist() == [1, 1]
    assert vmap(lambda t: chainrule.histc(t, 2, 0, 4))(x.reshape(5, 1)).shape == (5, 2)


def test_membership() -> None:
    x = chainrule.tensor([1, 2, 3])
    assert chainrule.isin(x, 2).tolist() == [False, True, False]
    assert chainrule.isin(2, x).item() is True
    assert chainrule.isin(x, chainrule.tensor([1.0, 2.5])).tolist() == [True, False, False]
    sets = chainrule.tensor([[1, 2], [3, 9], [7, 8]])
    mapped = vmap(lambda s: chainrule.isin(x, s))(sets)
    assert mapped.tolist() == [[True, True, False], [False, False, True], [False, False, False]]


X = chainrule.tensor([[3.0, 1.0, 2.0]])
N = chainrule.tensor([3, 1, 1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: chainrule.sort(X, 2), IndexError, "sort: dimension out of range"),
        (lambda: chainrule.sort(X * 1j), RuntimeError, "complex numbers have no order"),
        (lambda: chainrule.topk(X, 4), RuntimeError, "topk: selected index k out of range: k is 4"),
        (lambda: chainrule.topk(X, -1), RuntimeError, "topk: selected index k out of range"),
        (lambda: chainrule.topk(X[0, 0], 2), RuntimeError, "topk: selected index k out of range"),
        (lambda: chainrule.kthvalue(X, 0), RuntimeError, "kthvalue: selected number k out of"),
        (lambda: chainrule.kthvalue(X[:, :0], 1), IndexError, "to have non-zero size"),
        (lambda: chainrule.unique(X, dim=2), IndexError, "unique: dimension out of range"),
        (lambda: chainrule.bincount(X[0]), NotImplementedError, "bincount: not implemented for"),
        (lambda: chainrule.bincount(-N), RuntimeError, "1-d non-negative integral inputs"),
        (lambda: chainrule.bincount(N, X), RuntimeError, "have the same length as input"),
        (lambda: chainrule.bincount(N, minlength=-1), RuntimeError, "minlength should be >= 0"),
        (lambda: chainrule.searchsorted(X, 1.0), RuntimeError, "first N-1 dimensions"),
        (lambda: chainrule.searchsorted(X[0, 0], X), RuntimeError, "positive dimension"),
        (lambda: chainrule.searchsorted(X[0], X, side="up"), RuntimeError, "'left' or 'right'"),
        (lambda: chainrule.searchsorted(X[0], X, side="left", right=True), RuntimeError, "oppos"),
        (lambda: chainrule.searchsorted(X[0], X, sorter=N[:2]), RuntimeError, "the same size"),
        (lambda: chainrule.searchsorted(X[0], X, sorter=X[0]), RuntimeError, "sorter: expected"),
        (lambda: chainrule.searchsorted(X[0], X, sorter=N), RuntimeError, "3 is out of bounds"),
        (lambda: chainrule.bucketize(X, X), RuntimeError, "must be 1 dimension"),
        (lambda: chainrule.histc(X, 0), RuntimeError, "bins must be > 0"),
        (lambda: chainrule.histc(X, 2, 3, 1), RuntimeError, "max must be larger than min"),
        (lambda: chainrule.histc(X / 0, 2), RuntimeError, "is not finite"),
        (lambda: chainrule.histc(N), NotImplementedError, "histc: not implemented for"),
        (lambda: chainrule.isin([1], N), TypeError, "isin: expected Tensors or numbers, got list"),
    ],
)
def test_calls_that_are_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", ["unique", "unique_consecutive", "bincount"])
def test_sizes_that_depend_on_values_cannot_be_mapped(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"vmap: {name} cannot be mapped"):
        vmap(getattr(chainrule, name))(chainrule.tensor([[1, 2], [1, 1]]))
