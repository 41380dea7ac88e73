"""The compiled sums, embeddings and random masks against their NumPy twins."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from native.twins import FLOATS, SETTINGS, agree, in_setting, native, numbers, reference

FULL = slice(None)


@pytest.fixture(autouse=True, params=SETTINGS, ids=str)
def setting(request: Any) -> Iterator[None]:
    yield from in_setting(request.param)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums(name: str, dtype: Any) -> None:
    for shape in ((), (1,), (7,), (3, 4), (2, 3, 4), (100, 33), (5, 1, 70), (700, 900), (200000,)):
        a = numbers(0, shape, dtype)
        n = len(shape)
        choices = {(), tuple(range(-n, 0)), (-1,)[:n], (-n,)[:n], (-n, -1)[:n], (0,)[:n]}
        for dim in choices:
            if len({d % n for d in dim}) < len(dim):
                continue
            for keepdim in (True, False):
                theirs = reference(name)(a, dim, keepdim)
                scale = 3.0 * a.size**0.5
                agree(getattr(native, name)(a, dim, keepdim), theirs, 4.0, scale)
                agree(getattr(native, name)(a, dim=dim, keepdim=keepdim), theirs, 4.0, scale)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sums_in_other_cases() -> None:
    x = numbers(0, (4, 6), np.float32)
    for a in (x.T, x[::2], x[:0], np.broadcast_to(x[:1], (5, 6)), x.astype(int)):
        for dim in ((-1,), (-2,), (-2, -1)):
            np.testing.assert_allclose(
                native.sum(a, dim, False), reference("sum")(a, dim, False), rtol=1e-5
            )
    assert np.isnan(native.mean(np.zeros((0,), "f"), (-1,), False))
    assert np.isinf(native.sum(np.array([1, np.inf], "f"), (-1,), False))
    with pytest.raises((TypeError, ValueError, IndexError)):
        native.sum(x, (-3,), False)
    with pytest.raises((TypeError, ValueError, IndexError)):
        native.sum(x, (-1, -1), False)


def test_a_long_sum_keeps_its_digits() -> None:
    x = np.full(3_000_000, 0.1, np.float32)
    assert abs(float(native.sum(x, (-1,), False)) - 3e5) < 0.1
    assert abs(float(native.sum(x.reshape(-1, 2), (-2,), False)[0]) - 1.5e5) < 0.5


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("width", [(), (1,), (5,), (3, 4), (300,)])
@pytest.mark.parametrize("chosen", [(), (1,), (7,), (4, 3), (500,), (0,)])
def test_rows(chosen: tuple[int, ...], width: tuple[int, ...], dtype: Any) -> None:
    a = numbers(0, (11, *width), dtype)
    at = np.random.default_rng(1).integers(0, 11, chosen)
    entries, tail = (..., *[FULL] * len(width)), len(width)
    given: dict[str, Any] = {"entries": entries, "tail": tail, "distinct": False}
    agree(native.index(a, at, **given), reference("index")(a, at, **given))
    agree(native.index(a, at - 11, **given), reference("index")(a, at - 11, **given))
    g = numbers(2, (*chosen, *width), dtype)
    given["shape"] = a.shape
    agree(native.index_place(g, at, **given), reference("index_place")(g, at, **given), 4.0, 50.0)
    agree(
        native.index_place(g, at - 11, **given),
        reference("index_place")(g, at - 11, **given),
        4.0,
        50.0,
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_added_from_anywhere(dtype: Any) -> None:
    """Gradients that were repeated, turned or cut out of others."""
    at = np.random.default_rng(0).integers(0, 40, (30, 50))
    given: dict[str, Any] = {
        "entries": (..., FULL),
        "tail": 1,
        "distinct": False,
        "shape": (40, 33),
    }
    whole = numbers(1, (30, 50, 35), dtype)
    for g in (
        np.broadcast_to(whole[:, :1, :33], (30, 50, 33)),
        whole[:, :, 1:34],
        np.ascontiguousarray(whole[..., :33].swapaxes(0, 1)).swapaxes(0, 1),
        np.ascontiguousarray(whole[..., :33].swapaxes(1, 2)).swapaxes(1, 2),
        whole[:, ::-1, :33],
    ):
        agree(
            native.index_place(g, at, **given), reference("index_place")(g, at, **given), 8.0, 50.0
        )
        assert np.array_equal(
            native.index_place(g, at, **given), native.index_place(g.copy(), at, **given)
        )


BAGS = {
    "offsets": (np.array([0, 3, 3, 170]), False),
    "last offset": (np.array([0, 40, 40, 200, 290]), True),
    "rows": (None, False),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("width", [1, 7, 64, 300])
@pytest.mark.parametrize("kind", BAGS)
def test_bags(kind: str, width: int, dtype: Any) -> None:
    offsets, last = BAGS[kind]
    rows = np.random.default_rng(0).integers(0, 11, (12, 25) if offsets is None else 300)
    table, factors = numbers(1, (11, width), dtype), numbers(2, rows.shape, dtype)
    bags = 12 if offsets is None else offsets.size - last
    g = numbers(3, (bags, width), dtype)
    for weights in (None, factors):
        for mode in ("sum", "mean", "max"):
            for padding in (-1, 5):
                others = (rows, offsets, weights)
                call: Any = (table, *others, mode, padding, last)
                agree(native.bag_rows(*call), reference("bag_rows")(*call), 4.0, 100.0)
                if mode != "max":
                    call = (g, *others, 11, mode, padding, last)
                    found = native.bag_rows_backward(*call)
                    agree(found, reference("bag_rows_backward")(*call), 4.0, 100.0)


def test_the_largest_of_a_bag_may_be_nan_or_infinite() -> None:
    table = numbers(0, (4, 70), np.float32)
    table[0], table[1] = -np.inf, np.nan
    rows = np.array([[0, 0], [0, 2], [1, 2], [2, 1], [3, 3]])
    found = native.bag_rows(table, rows, None, None, "max", 3, False)
    agree(found, reference("bag_rows")(table, rows, None, None, "max", 3, False))
    assert np.isneginf(found[0]).all()
    assert np.isnan(found[2:4]).all()
    assert not found[4].any()


def test_bags_that_are_none_are_refused() -> None:
    table, rows = np.ones((3, 2), "f"), np.array([0, 1, 2])
    for offsets in ([1, 2], [0, 4], [0, 2, 1], [0, -1]):
        with pytest.raises(RuntimeError, match="offsets must begin with 0"):
            native.bag_rows(table, rows, np.array(offsets), None, "sum", -1, False)
    for bad in (3, -1, 2**62):
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
            native.bag_rows(table, np.array([[0, bad]]), None, None, "sum", -1, False)
        at = np.array([[0, bad]])
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
            native.bag_rows_backward(np.ones((1, 2)), at, None, None, 3, "sum", -1, False)


def test_rows_out_of_range_are_refused() -> None:
    a = np.zeros((3, 2), "f")
    given: dict[str, Any] = {"entries": (..., FULL), "tail": 1, "distinct": False}
    for bad in (3, -4, 2**62):
        with pytest.raises(IndexError):
            native.index(a, np.array([0, bad]), **given)
    with pytest.raises(IndexError):
        native.index_place(np.ones((2, 2), "f"), np.array([0, 3]), shape=(3, 2), **given)


def test_other_subscripts() -> None:
    a, at = numbers(0, (4, 5, 6), np.float32), np.array([0, 2])
    for entries, tail in (((..., FULL), 1), ((FULL, ...), 0), ((..., 1, FULL), 1)):
        given: dict[str, Any] = {"entries": entries, "tail": tail, "distinct": False}
        theirs = reference("index")(a, at, **given)
        agree(native.index(a, at, **given), theirs)
        given["shape"] = a.shape
        agree(
            native.index_place(theirs, at, **given), reference("index_place")(theirs, at, **given)
        )


@pytest.mark.parametrize("dtype", [*FLOATS, np.float16])
@pytest.mark.parametrize("p", [0.0, 1e-12, 0.2, 0.5, 0.999, 1.0])
def test_masks(p: float, dtype: Any) -> None:
    for shape in ((), (1,), (3, 5), (0, 2), (300, 700)):
        ours, theirs = (
            kernel(np.random.default_rng(3), shape, np.dtype(dtype), p, 1.25)
            for kernel in (native.random_mask, reference("random_mask"))
        )
        assert ours.dtype == theirs.dtype == dtype
        assert ours.shape == shape
        np.testing.assert_array_equal(ours, theirs)
    assert abs(float((ours != 0).mean()) - p) < 0.005


def test_masks_are_random() -> None:
    g = np.random.default_rng(0)
    a, b = (native.random_mask(g, (400, 500), np.dtype("f"), 0.5, 1.0) - 0.5 for _ in range(2))
    limit = 4 * 0.25 / (a.size**0.5)
    assert abs((a * b).mean()) < limit
    for lag in (1, 2, 7, 500):
        assert abs((a.flat[lag:] * a.flat[:-lag]).mean()) < limit
    assert abs(a.mean()) < 2 * limit


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool, np.complex128, object])
def test_broadcast_to_is_a_view(dtype: Any) -> None:
    for a, shape in (
        (np.ones(3), (2, 3)),
        (np.ones((2, 1)), (2, 4)),
        (np.array(1.0), (2, 3)),
        (np.ones((3, 4))[::2, ::-1], (5, 2, 4)),
        (np.ones((0, 1)), (0, 7)),
        (np.array(1.0), ()),
        (np.ones(1), (0,)),
    ):
        a = a.astype(dtype)
        ours, theirs = native.broadcast_to(a, shape), np.broadcast_to(a, shape)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_array_equal(ours, theirs)
        assert np.shares_memory(ours, a) == np.shares_memory(theirs, a)
        assert ours.flags.writeable == theirs.flags.writeable
        np.testing.assert_array_equal(native.broadcast_to(a, shape=shape), theirs)
    for wrong in ((2,), (3, 2), (-1, 3), ()):
        with pytest.raises(ValueError, match="broadcast|shape|negative"):
            native.broadcast_to(np.ones(3), wrong)
    part = native.broadcast_to(np.arange(3.0), (2, 3))
    gc.collect()
    np.testing.assert_array_equal(part, [[0, 1, 2], [0, 1, 2]])
