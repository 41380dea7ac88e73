"""The compiled softmax and cross-entropy against their NumPy twins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from native.twins import FLOATS, SETTINGS, agree, in_setting, native, numbers, reference

SHAPES: list[tuple[int, ...]] = [
    (1, 1),
    (5, 3),
    (3,),
    (70, 10),
    (2, 3, 4),
    (3, 16),
    (9, 33),
    (4, 5000),
    (700, 201),
    (2, 70000),
]


@pytest.fixture(autouse=True, params=SETTINGS, ids=str)
def setting(request: Any) -> Iterator[None]:
    yield from in_setting(request.param)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name: str, dtype: Any) -> None:
    for seed, shape in enumerate(SHAPES):
        x, g = numbers(seed, shape, dtype), numbers(seed + 50, shape, dtype)
        out = reference(name)(x, -1)
        agree(getattr(native, name)(x, -1), out)
        agree(getattr(native, name)(a=x, dim=len(shape) - 1), out)
        slope = f"{name}_backward"
        scale = float(np.abs(g).sum(-1).max())
        agree(getattr(native, slope)(g, out, -1), reference(slope)(g, out, -1), 2.0, scale)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_what_is_not_finite(name: str, dtype: Any) -> None:
    for n in (2, 7, 40):
        x = np.zeros((8, n), dtype)
        x[0, 1], x[1, 1], x[2, 1], x[3, 0] = np.nan, np.inf, -np.inf, np.nan
        x[4], x[5, 0], x[6, 0] = -np.inf, 1e30, -1e30
        agree(getattr(native, name)(x, -1), reference(name)(x, -1))


def test_softmax_of_other_memory() -> None:
    x = numbers(0, (4, 6), np.float32)
    for a in (x.T, x[:, ::2], x[::-1], x[:0], x[:, :0], x.astype(np.float16), x.astype(">f4")):
        for dim in (-1, -2):
            if a.size:
                np.testing.assert_allclose(native.softmax(a, dim), reference("softmax")(a, dim))
            assert native.softmax(a, dim).shape == a.shape
    with pytest.raises((TypeError, ValueError, IndexError)):
        native.softmax(x, 5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignore", [-100, 0, 10**30])
def test_cross_entropy(reduction: str, ignore: int, dtype: Any) -> None:
    for seed, shape in enumerate(SHAPES):
        x = numbers(seed, shape, dtype)
        target = np.random.default_rng(seed).integers(0, shape[-1], shape[:-1])
        if ignore == -100 and target.size > 2:
            target.flat[1] = -100
        settings = {"dim": -1, "ignore_index": ignore, "reduction": reduction}
        theirs = reference("cross_entropy_and_softmax")(x, target, **settings)
        agree(native.cross_entropy_and_softmax(x, target, **settings), theirs)
        agree(native.cross_entropy(x, target, -1, ignore, reduction), theirs[0])
        g = np.asarray(1.5, dtype) if reduction != "none" else numbers(7, shape[:-1], dtype)
        name = "cross_entropy_backward"
        agree(
            native.cross_entropy_backward(g, theirs[1], target, **settings),
            reference(name)(g, theirs[1], target, **settings),
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignore", [-100, 0])
def test_cross_entropy_of_a_stack(reduction: str, ignore: int, dtype: Any) -> None:
    """A reduction for each entry of the dimensions in front, one of which ignores all targets."""
    for shape, within in (
        ((5, 32, 3), 1),
        ((1, 7, 4), 1),
        ((3, 1, 2), 1),
        ((4, 3), 1),
        ((2, 3, 5, 4), 1),
        ((2, 3, 5, 4), 2),
        ((2, 3, 5, 4), 3),
        ((3, 400, 10), 1),
        ((2, 3000, 40), 1),
    ):
        x = numbers(0, shape, dtype)
        target = np.random.default_rng(1).integers(0, shape[-1], shape[:-1])
        target[-1] = ignore
        settings = {"dim": -1, "ignore_index": ignore, "reduction": reduction, "within": within}
        theirs = reference("cross_entropy_and_softmax")(x, target, **settings)
        agree(native.cross_entropy_and_softmax(x, target, **settings), theirs)
        agree(native.cross_entropy(x, target, **settings), theirs[0])
        g = numbers(7, shape[: -1 if reduction == "none" else within], dtype)
        name = "cross_entropy_backward"
        agree(
            native.cross_entropy_backward(g, theirs[1], target, **settings),
            reference(name)(g, theirs[1], target, **settings),
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_cross_entropy_of_nothing_kept() -> None:
    x, target = np.zeros((2, 3), "f"), np.array([-100, -100])
    assert np.isnan(native.cross_entropy(x, target, -1, -100, "mean"))
    assert native.cross_entropy(x, target, -1, -100, "sum") == 0
    g = np.asarray(1.0, "f")
    assert not native.cross_entropy_backward(g, x, target, -1, -100, "mean").any()


def test_stray_targets_are_told() -> None:
    x = np.zeros((2, 3), "f")
    for bad in (3, -1, 2**62, -(2**62)):
        with pytest.raises(IndexError, match="out of bounds"):
            native.cross_entropy(x, np.array([0, bad]), -1, -100, "mean")
        with pytest.raises(IndexError, match="out of bounds"):
            native.cross_entropy_backward(
                np.asarray(1.0, "f"), x, np.array([0, bad]), -1, -100, "mean"
            )


def test_cross_entropy_in_other_cases() -> None:
    """Classes in another dimension, no samples, other integers: by NumPy."""
    x = numbers(0, (2, 5, 3), np.float32)
    target = np.random.default_rng(0).integers(0, 5, (2, 3))
    agree(
        native.cross_entropy(x, target, -2, -100, "mean"),
        reference("cross_entropy")(x, target, -2, -100, "mean"),
    )
    x = numbers(0, (4, 5), np.float32)
    agree(
        native.cross_entropy(x, np.array([1, 2, 3, 4], np.int32), -1, -100, "mean"),
        reference("cross_entropy")(x, np.array([1, 2, 3, 4]), -1, -100, "mean"),
    )
    assert native.cross_entropy(x[:0], np.zeros(0, np.int64), -1, -100, "sum") == 0


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cross_entropy_into_the_softmax(reduction: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    p = rng.random((7, 33)).astype(dtype)
    target = rng.integers(0, 33, 7)
    target[2] = 5
    g = rng.standard_normal(7 if reduction == "none" else ()).astype(dtype)
    settings: dict[str, Any] = {"dim": -1, "ignore_index": 5, "reduction": reduction}
    wanted = native.cross_entropy_backward(g, p, target, **settings)
    for kernel in (native.cross_entropy_backward, reference("cross_entropy_backward")):
        own, other = p.copy(), np.empty_like(p)
        assert kernel(g, own, target, **settings, into=own) is own
        assert kernel(g, p, target, **settings, into=other) is other
        agree(own, wanted)
        agree(other, wanted)
