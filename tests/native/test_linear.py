"""The compiled products of matrices and sums of rows against their NumPy twins."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from chainrule.backend import openblas
from native.twins import FLOATS, SETTINGS, agree, in_setting, native, numbers, reference

# (rows, outputs, inputs): loops, thin products, BLAS, BLAS on several threads, blocks of rows.
SIZES = [
    (1, 1, 1),
    (5, 8, 4),
    (5, 3, 8),
    (4, 1, 7),
    (1, 9, 3),
    (17, 33, 29),
    (100, 1, 100),
    (100, 700, 2),
    (3, 1000, 1),
    (129, 200, 300),
    (2000, 65, 40),
    (70, 1000, 80),
    (300, 1100, 40),
]


@pytest.fixture(autouse=True, params=SETTINGS, ids=str)
def setting(request: Any) -> Iterator[None]:
    yield from in_setting(request.param)


def scale(*arrays: np.ndarray) -> float:
    """How large the terms of a product and their sum may be."""
    a, b = arrays
    return float(np.abs(a).max() * np.abs(b).max() * a.shape[-1] ** 0.5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_linear(size: tuple[int, int, int], dtype: Any) -> None:
    m, n, k = size
    x, w, b = numbers(0, (m, k), dtype), numbers(1, (n, k), dtype), numbers(2, n, dtype)
    g = numbers(3, (m, n), dtype)
    agree(native.linear(x, w, b), reference("linear")(x, w, b), 4.0, scale(x, w))
    agree(native.linear(x, w), reference("linear")(x, w), 4.0, scale(x, w))
    agree(native.linear(x, w, None), reference("linear")(x, w), 4.0, scale(x, w))
    agree(native.linear(x[None, :], w, b), reference("linear")(x[None, :], w, b), 4.0, scale(x, w))
    for given in ((g, x, w, True), (g, None, w, True), (g, x, None, False), (g, None, None, True)):
        theirs = reference("linear_backward")(*given)
        agree(native.linear_backward(*given), theirs, 4.0, scale(g, g) * m**0.5)
    agree(native.sum_to(g, (n,)), reference("sum_to")(g, (n,)), 4.0)


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_linear_with_activation(size: tuple[int, int, int], dtype: Any, activation: str) -> None:
    m, n, k = size
    x, w = numbers(0, (m, k), dtype, 1.0), numbers(1, (n, k), dtype, k**-0.5)
    b, g = numbers(2, n, dtype, 1.0), numbers(3, (m, n), dtype)
    name = f"linear_{activation}"
    ours, theirs = getattr(native, name), reference(name)
    for given in ((x, w, b), (x, w), (x, w, None), (x[None, :], w, b), (x[:, ::-1], w, b)):
        agree(ours(*given), theirs(*given), 4.0, scale(x, w))
    out = theirs(x, w, b)
    for rest in ((x, w, True), (None, w, True), (x, None, False), (None, None, True)):
        mine = getattr(native, f"{name}_backward")(g, out, *rest)
        agree(mine, reference(f"{name}_backward")(g, out, *rest), 4.0, scale(g, g) * m**0.5)
    with pytest.raises(ValueError, match="shapes|broadcast"):
        getattr(native, f"{name}_backward")(g, out[:, :0], x, w, True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_linear_of_rows_that_lie_anywhere(size: tuple[int, int, int], dtype: Any) -> None:
    """A batch and a sequence that changed places, rows with gaps, rows that are one."""
    m, n, k = size
    w, b = numbers(1, (n, k), dtype), numbers(2, (n,), dtype)
    turned = numbers(0, (3, m, k), dtype).swapaxes(0, 1)
    gaps = numbers(0, (m, 4, k + 3), dtype)[:, ::2, 2:-1]
    once = np.broadcast_to(numbers(0, (m, 1, k), dtype), (m, 3, k))
    for x in (turned, gaps, once, gaps[::-1]):
        scale = float(np.abs(x).max() * np.abs(w).sum(1).max())
        found, plain = native.linear(x, w, b), native.linear(x.copy(), w, b)
        agree(found, reference("linear")(x, w, b), 1.0, scale)
        assert found.flags.c_contiguous
        agree(found, plain, 1.0, scale)
        agree(native.linear_tanh(x, w, b), native.linear_tanh(x.copy(), w, b))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_matmul_of_any_order_in_memory(size: tuple[int, int, int], dtype: Any) -> None:
    m, n, k = size
    a, b = numbers(0, (m, k), dtype), numbers(1, (k, n), dtype)
    padded = np.zeros((m + 1, k + 2), dtype)
    padded[:m, 2:] = a
    for x in (a, np.asfortranarray(a), padded[:m, 2:], a[::-1], np.repeat(a, 2, 1)[:, ::2]):
        for y in (b, np.asfortranarray(b), b[:, ::-1]):
            agree(native.matmul(x, y), reference("matmul")(x, y), 4.0, scale(a, b.T))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("count", [1, 3])
def test_stacks_of_layers(count: int, size: tuple[int, int, int], dtype: Any) -> None:
    m, n, k = size
    w, b = numbers(1, (count, n, k), dtype), numbers(2, (count, n), dtype)
    g = numbers(3, (count, m, n), dtype)
    for x in (numbers(0, (count, m, k), dtype), numbers(0, (m, k), dtype)):
        for given in ((x, w, b), (x, w), (x, w, None)):
            agree(native.linear(*given), reference("linear")(*given), 4.0, scale(x, w))
        for given in ((g, x, w, True), (g, x, None, False), (g, None, None, True)):
            theirs = reference("linear_backward")(*given)
            agree(native.linear_backward(*given), theirs, 4.0, scale(g, g) * m**0.5)


def test_stacks_of_layers_in_other_cases() -> None:
    """Other memory, dtypes and numbers of dimensions are NumPy's; shapes that do not fit, too."""
    x, w, b = (numbers(i, s, np.float32) for i, s in enumerate([(3, 5, 4), (3, 2, 4), (3, 2)]))
    for a in (x[:, ::-1], x[0, ::2], x[:1], x[:, :0], np.stack([x, x]), x.astype(np.float64)):
        agree(native.linear(a, w, b), reference("linear")(a, w, b), 4.0)
    agree(native.linear(x, w[:, ::-1], b[:1]), reference("linear")(x, w[:, ::-1], b[:1]), 4.0)
    g = native.linear(x, w, b)
    for gradient in (g[:, ::-1], g, np.stack([g, g])):
        given = (gradient, x, w, True)
        agree(native.linear_backward(*given), reference("linear_backward")(*given), 8.0)
    for wrong in ((x[:2], w), (x, w[..., :3]), (x, w, b[:2]), (x[..., :3], w, b)):
        with pytest.raises(ValueError, match="mismatch|broadcast"):
            native.linear(*wrong)
    for gradient in (g[:2], g[:, :4], g[..., :1]):
        with pytest.raises(ValueError, match="mismatch|broadcast"):
            native.linear_backward(gradient, x, w, True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "size", [(3, 4, 5, 2), (131, 20, 16, 4), (2, 70, 300, 90), (1, 1, 1, 1)], ids=str
)
def test_matmul_of_batches(size: tuple[int, int, int, int], dtype: Any) -> None:
    count, m, k, n = size
    a, b = numbers(0, (count, m, k), dtype), numbers(1, (count, k, n), dtype)
    turned_a, turned_b = numbers(0, (count, k, m), dtype).mT, numbers(1, (count, n, k), dtype).mT
    for x in (a, a[0], turned_a, turned_a[0], a[::-1], a[:, ::2][:, : m // 2 or 1], a[..., ::-1]):
        for y in (b, b[0], turned_b, turned_b[0], b[::-1]):
            agree(native.matmul(x, y), reference("matmul")(x, y), 4.0, scale(a, b.mT))


def test_what_is_not_a_product_of_matrices() -> None:
    x, w = numbers(0, (2, 3, 4), np.float32), numbers(1, (4, 5), np.float32)
    for a, b in ((x, w), (w[0], w.T), (w, w[0]), (w[0], w[0]), (x, np.swapaxes(x, 1, 2))):
        agree(native.matmul(a, b), reference("matmul")(a, b), 4.0)
    for shapes in (((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0))):
        a, b = (np.ones(s, np.float32) for s in shapes)
        agree(native.matmul(a, b), reference("matmul")(a, b))
        agree(native.linear(a, b.T.copy()), reference("linear")(a, b.T.copy()))
    assert native.matmul(np.ones((2, 2)), np.ones((2, 2), np.float32)).dtype == np.float64
    np.testing.assert_array_equal(native.matmul(np.ones((2, 2), int), np.eye(2, dtype=int)), 1)
    with pytest.raises(ValueError, match="shapes"):
        native.matmul(np.ones((2, 3), "f"), np.ones((2, 3), "f"))
    with pytest.raises(ValueError, match="shapes"):
        native.linear(np.ones((2, 3), "f"), np.ones((2, 4), "f"))
    with pytest.raises((ValueError, TypeError)):
        native.linear(np.ones((2, 3), "f"), np.ones((2, 3), "f"), np.ones(5, "f"))
    with pytest.raises(TypeError):
        native.linear()


def test_what_is_not_finite_comes_out() -> None:
    for m, n, k in SIZES:
        x, w = np.zeros((m, k), "f"), np.ones((n, k), "f")
        x[0, 0] = np.nan
        assert np.isnan(native.linear(x, w)[0]).all()
        assert not np.isnan(native.linear(x, w)[1:]).any()


@pytest.fixture
def threads_of_blas() -> None:
    """BLAS has several threads, which a product of ours does not use."""
    openblas.set_threads(3)


@pytest.mark.usefixtures("threads_of_blas")
def test_results_do_not_depend_on_threads() -> None:
    x, w = numbers(0, (200, 300), np.float32), numbers(1, (512, 300), np.float32)
    ours = []
    for threads in (1, 2, 3):
        native.set_num_threads(threads)
        ours.append(native.linear(x, w))
    # Where BLAS sums in another order, sums of k terms round otherwise: by some sqrt(k) roundings
    # of the sizes of their terms.
    bound = np.sqrt(x.shape[1]) * np.finfo(np.float32).eps * (np.abs(x) @ np.abs(w).T)
    assert (np.abs(ours[1] - ours[0]) <= bound).all()
    assert (np.abs(ours[2] - ours[0]) <= bound).all()


@pytest.mark.usefixtures("threads_of_blas")
def test_many_python_threads() -> None:
    x, w = numbers(0, (128, 300), np.float32), numbers(1, (512, 300), np.float32)
    expected, found = native.linear(x, w), []
    work = [threading.Thread(target=lambda: found.append(native.linear(x, w))) for _ in range(8)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    for out in found:
        np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-4)


def _product(queue: Any) -> None:
    queue.put(float(native.matmul(np.ones((300, 300)), np.ones((300, 300))).sum()))


@pytest.mark.usefixtures("threads_of_blas")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_after_fork() -> None:
    context = multiprocessing.get_context("fork")
    _product(queue := context.SimpleQueue())
    assert queue.get() == 300.0**3
    child = context.Process(target=_product, args=(queue,))
    child.start()
    assert queue.get() == 300.0**3
    child.join()


@pytest.mark.parametrize("dtype", FLOATS)
def test_sum_to(dtype: Any) -> None:
    for shape, to in (
        ((5, 3), (3,)),
        ((1, 1), (1,)),
        ((1000, 7), (7,)),
        ((3, 4, 5), (5,)),
        ((3, 4, 5), (4, 5)),
        ((3, 4), (3, 1)),
        ((3, 4), ()),
        ((0, 4), (4,)),
        ((100, 5000), (5000,)),
        ((4, 6, 5, 5), (6, 1, 1)),
        ((4, 6, 5, 5), (1, 6, 1, 1)),
        ((64, 3, 40, 40), (3, 1, 1)),
        ((4, 6, 5), (4, 1, 1)),
        ((4, 6, 5), (1, 5)),
        ((4, 6, 5), (6, 5)),
        ((4, 6, 5), (4, 1, 5)),
        ((4, 6, 5, 3), (4, 1, 1, 3)),
        ((4, 6, 5, 3), (4, 1, 5, 1)),
        ((131, 20, 3), (131, 1, 3)),
        ((4, 6, 5), (4, 6, 1)),
        ((2, 1, 3, 4), (2, 1, 1, 4)),
    ):
        a = numbers(0, shape, dtype)
        agree(native.sum_to(a, to), reference("sum_to")(a, to), 4.0)
        agree(native.sum_to(a, shape=to), reference("sum_to")(a, to), 4.0)
