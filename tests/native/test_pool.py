"""The compiled pooling against its NumPy twins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from chainrule import backend
from chainrule.backend.numpy_kernels import pool as reference

native: Any = pytest.importorskip("chainrule.backend._native", reason=backend.why_not_native)

Array = np.ndarray[Any, Any]
SETS = ["baseline", "avx2", "avx512"]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    threads, isa = native.get_num_threads(), native.get_isa()
    yield
    native.set_num_threads(threads)
    native.set_isa(isa)


def agree(name: str, /, *args: Any, exact: bool = False, **settings: Any) -> Array:
    """Native and NumPy give the same; averages up to rounding."""
    expected: Array = getattr(reference, name)(*args, **settings)
    got: Array = getattr(native, name)(*args, **settings)
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    tolerance = 0 if exact else 1e-5 if got.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
    return got


def odd_values(rng: np.random.Generator, x: Array) -> Array:
    """Sometimes with ties, NaN or many -inf."""
    kind = rng.random()
    if kind < 0.3:
        return np.round(x)
    if kind < 0.5:
        x[rng.random(x.shape) < 0.1] = np.nan
    elif kind < 0.7:
        x[rng.random(x.shape) < 0.6] = -np.inf
    elif kind < 0.75:
        x[...] = -np.inf
    return x


def pooled(rng: np.random.Generator, inputs: tuple[int, ...]) -> tuple[dict[str, Any], bool] | None:
    """Random windows with their output size, and whether no two of them overlap."""
    nd = len(inputs)

    def some(low: int, high: int) -> tuple[int, ...]:
        return tuple(int(n) for n in rng.integers(low, high, nd))

    kernel = some(1, 5)
    stride = some(1, 5) if rng.random() < 0.6 else kernel
    dilation = some(1, 3) if rng.random() < 0.4 else (1,) * nd
    padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in kernel)
    up = rng.random() < 0.4
    size = []
    for n, k, s, p, d in zip(inputs, kernel, stride, padding, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if up else room // s) + 1
        size.append(count - 1 if up and (count - 1) * s >= n + p else count)
    if min(size) < 1:
        return None
    apart = all(s > (k - 1) * d for k, s, d in zip(kernel, stride, dilation, strict=True))
    names = ("size", "kernel", "stride", "padding", "dilation")
    return dict(zip(names, (tuple(size), kernel, stride, padding, dilation), strict=True)), apart


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_random_windows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        nd = int(rng.integers(1, 4))
        lead = tuple(int(n) for n in rng.integers(1, 5, int(rng.integers(0, 3))))
        inputs = tuple(int(n) for n in rng.integers(1, {1: 300, 2: 40, 3: 12}[nd], nd))
        found = pooled(rng, inputs)
        if found is None:
            continue
        windows, apart = found
        dtype = np.float32 if rng.random() < 0.5 else np.float64
        native.set_isa(str(rng.choice(SETS)))
        native.set_num_threads(int(rng.integers(1, 4)))
        x = odd_values(rng, np.asarray(rng.standard_normal(lead + inputs), dtype))
        narrow = bool(rng.random() < 0.5)
        index = agree("max_pool_indices", x, exact=True, narrow=narrow, **windows)
        assert index.dtype == (np.int32 if narrow else np.int64)
        y = agree("pool_gather", x, index, nd=nd, unique=apart, exact=True)
        g = np.asarray(rng.standard_normal(y.shape), dtype)
        agree("pool_scatter", g, index, size=inputs, unique=apart)
        whole = int(np.prod(windows["kernel"]))
        divisor = [None, whole, 2.5][int(rng.integers(3))]
        counting: dict[str, Any] = {"divisor": divisor, "count_pad": bool(rng.random() < 0.5)}
        finite = np.nan_to_num(x, neginf=-1.0)
        agree("avg_pool", finite, **windows, **counting)
        agree("avg_pool_transpose", g, **(windows | {"size": inputs}), **counting)
        size = tuple(int(n) for n in rng.integers(1, 8, nd))
        agree("adaptive_max_pool_indices", x, size=size, narrow=narrow, exact=True)
        agree("adaptive_avg_pool", finite, size=size)
        g = np.asarray(rng.standard_normal(lead + size), dtype)
        agree("adaptive_avg_pool_transpose", g, size=inputs)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_averages_of_infinities() -> None:
    x = np.zeros((1, 6, 9))
    x[0, 2, 3], x[0, 5, 8] = np.inf, np.nan
    windows: dict[str, Any] = {
        "size": (4, 5),
        "kernel": (3, 3),
        "stride": (2, 2),
        "padding": (1, 1),
        "dilation": (1, 1),
        "divisor": None,
        "count_pad": False,
    }
    agree("avg_pool", x, **(windows | {"size": (3, 5)}))
    agree("avg_pool_transpose", x[:, :3, :5], **(windows | {"size": (6, 9)}))


def test_any_strides_and_other_dtypes() -> None:
    rng = np.random.default_rng(0)
    windows: dict[str, Any] = {
        "size": (3, 4),
        "kernel": (2, 2),
        "stride": (2, 2),
        "padding": (0, 0),
        "dilation": (1, 1),
    }
    x = rng.standard_normal((2, 3, 6, 8))
    for a in (x, x.swapaxes(0, 1), np.asfortranarray(x), x[::-1, ::-1], x.astype(">f8")):
        index = agree("max_pool_indices", a, exact=True, **windows)
        agree("pool_gather", a, index, nd=2, unique=True, exact=True)
        agree("avg_pool", a, divisor=4, count_pad=True, **windows)
    for dtype in (np.float16, np.int64):
        index = agree("max_pool_indices", (x * 9).astype(dtype), exact=True, **windows)
        agree("pool_gather", (x * 9).astype(dtype), index, nd=2, unique=True, exact=True)
    index = native.max_pool_indices(x, **windows)
    agree("pool_gather", x, index[..., ::-1], nd=2, unique=True, exact=True)
    agree("pool_gather", x, index.astype(np.int32), nd=2, unique=True, exact=True)


def test_no_elements() -> None:
    windows: dict[str, Any] = {"kernel": (2,), "stride": (2,), "padding": (0,), "dilation": (1,)}
    empty = np.zeros((0, 4))
    index = agree("max_pool_indices", empty, size=(2,), **windows)
    agree("pool_gather", empty, index, nd=1, unique=True)
    agree("pool_scatter", np.zeros((0, 2)), index, size=(4,), unique=True)
    agree("avg_pool", empty, size=(2,), divisor=2, count_pad=True, **windows)
    agree("avg_pool_transpose", np.zeros((0, 2)), size=(4,), divisor=2, count_pad=True, **windows)
    agree("adaptive_avg_pool", np.zeros((2, 4)), size=(0,))


def test_repeated_indices() -> None:
    g, index = np.array([[1.0, 2.0, 4.0]]), np.array([[1, 1, 0]])
    np.testing.assert_array_equal(
        native.pool_scatter(g, index, size=(3,), unique=False), [[4.0, 3.0, 0.0]]
    )
    np.testing.assert_array_equal(
        native.pool_scatter(g, index, size=(3,), unique=True), [[4.0, 2.0, 0.0]]
    )


@pytest.mark.parametrize(
    ("stray", "kind"),
    [(3, "i8"), (1 << 40, "i8"), (-(1 << 40), "i8"), (3, "i4"), (-4, "i4"), (-(1 << 31), "i4")],
)
def test_indices_outside_are_refused(stray: int, kind: str) -> None:
    x, index = np.arange(3.0), np.array([0, stray], kind)
    with pytest.raises(IndexError):
        native.pool_gather(x, index, nd=1, unique=True)
    with pytest.raises((IndexError, ValueError, MemoryError)):
        native.pool_scatter(np.ones(2), index, size=(3,), unique=True)


def test_settings_beyond_all_measure() -> None:
    x = np.arange(4.0)
    far = {"kernel": (1,), "stride": (1 << 29,), "padding": (0,), "dilation": (1 << 29,)}
    assert native.max_pool_indices(x, size=(1,), **far).tolist() == [0]
    with pytest.raises((MemoryError, ValueError)):
        native.avg_pool_transpose(
            x,
            size=(1 << 30,) * 3,
            kernel=(1,) * 3,
            stride=(1,) * 3,
            padding=(0,) * 3,
            dilation=(1,) * 3,
            divisor=1,
            count_pad=True,
        )


def test_number_of_threads_changes_nothing() -> None:
    x = np.random.default_rng(0).standard_normal((8, 16, 33, 35)).astype(np.float32)
    windows: dict[str, Any] = {
        "size": (17, 18),
        "kernel": (3, 3),
        "stride": (2, 2),
        "padding": (1, 1),
        "dilation": (1, 1),
    }
    results = []
    for threads in (1, 2, 3):
        native.set_num_threads(threads)
        index = native.max_pool_indices(x, **windows)
        y = native.avg_pool(x, divisor=None, count_pad=False, **windows)
        back = native.pool_scatter(y, index, size=(33, 35), unique=False)
        results.append((index, y, back))
    for result in results[1:]:
        for a, b in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(a, b)
