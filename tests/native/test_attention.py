"""The compiled attention against its NumPy twin."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from native.twins import FLOATS, SETTINGS, agree, in_setting, native, numbers, reference

# N, L, S, A, D, E: below, at and beyond tiles, panels and blocks of rows
SIZES = [
    (1, 1, 1, 1, 1, 1),
    (2, 5, 7, 3, 4, 6),
    (2, 24, 32, 2, 32, 32),
    (2, 65, 65, 3, 64, 64),
    (3, 130, 70, 2, 33, 31),
    (1, 50, 128, 1, 16, 40),
    (1, 300, 300, 2, 8, 8),
]


@pytest.fixture(autouse=True, params=SETTINGS, ids=str)
def setting(request: Any) -> Iterator[None]:
    yield from in_setting(request.param)


def arguments(size: tuple[int, ...], dtype: Any) -> tuple[np.ndarray, ...]:
    n, length, keys, heads, d, e = size
    q, k = (
        numbers(0, (n, length, heads, d), dtype, 1.0),
        numbers(1, (n, keys, heads, d), dtype, 1.0),
    )
    return q, k, numbers(2, (n, keys, heads, e), dtype), numbers(3, (n, length, heads, e), dtype)


def masks(size: tuple[int, ...], dtype: Any) -> Iterator[np.ndarray | None]:
    n, length, keys, heads, _, _ = size
    yield None
    yield numbers(4, (length, keys), dtype)
    r = np.random.default_rng(5)
    padding = np.where(r.random((n, 1, 1, keys)) < 0.4, -np.inf, 0.0).astype(dtype)
    yield padding
    each = np.where(r.random((n, heads, length, keys)) < 0.4, -np.inf, 0.5).astype(dtype)
    each[:, :, length // 2] = -np.inf  # this query may read nothing
    yield each


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_attention(size: tuple[int, ...], dtype: Any) -> None:
    q, k, v, g = arguments(size, dtype)
    for mask, causal in itertools.product(masks(size, dtype), (False, True)):
        found = native.attention(q, k, v, mask, 0.3, causal)
        expected = reference("attention")(q, k, v, mask, 0.3, causal)
        agree(found, expected, 4.0, 3.0)
        given = (g, q, k, v, mask, expected[1], 0.3, causal)
        scale = float(np.abs(g).sum(1).max())
        agree(
            native.attention_backward(*given), reference("attention_backward")(*given), 4.0, scale
        )


@pytest.mark.parametrize("dtype", FLOATS)
def test_results_do_not_depend_on_the_threads(dtype: Any) -> None:
    q, k, v, g = arguments((1, 300, 300, 2, 32, 32), dtype)
    out, lse = native.attention(q, k, v, None, 0.1, True)
    grads = native.attention_backward(g, q, k, v, None, lse, 0.1, True)
    before = native.get_num_threads()
    native.set_num_threads(1)
    alone = native.attention(q, k, v, None, 0.1, True)
    assert np.array_equal(out, alone[0])
    assert np.array_equal(lse, alone[1])
    for a, b in zip(
        grads, native.attention_backward(g, q, k, v, None, lse, 0.1, True), strict=True
    ):
        assert np.array_equal(a, b)
    native.set_num_threads(before)


def test_heads_as_a_linear_layer_leaves_them() -> None:
    """Views of one array, heads before the length, repeated and turned memory."""
    packed = numbers(0, (2, 9, 3, 2, 8), np.float32)
    q, k, v = (packed[:, :, i] for i in range(3))
    turned = np.ascontiguousarray(k.swapaxes(1, 2)).swapaxes(1, 2)
    once = np.broadcast_to(v[:1], v.shape)
    across = np.ascontiguousarray(q.swapaxes(1, 3)).swapaxes(1, 3)
    for call in ((q, k, v), (q, turned, v), (q, k, once), (across, k, v), (q[:, ::-2], k, v)):
        found = native.attention(*call, None, 0.3, False)
        agree(found, reference("attention")(*call, None, 0.3, False), 4.0, 3.0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_scores_far_out(dtype: Any) -> None:
    """Only differences count: neither overflow nor 0 / 0."""
    q, k, v, g = arguments((1, 40, 40, 1, 16, 16), dtype)
    found = native.attention(1000 * q, k, v, None, 1.0, False)
    assert np.isfinite(found[0]).all()
    grads = native.attention_backward(g, 1000 * q, k, v, None, found[1], 1.0, False)
    assert all(np.isfinite(a).all() for a in grads)
