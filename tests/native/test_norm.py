"""The compiled normalization against its NumPy twin."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import chainrule
from native.twins import in_setting
from native.twins import native as _native
from chainrule.backend.numpy_kernels import norm as reference

SETTINGS = [(isa, threads) for isa in ("baseline", "avx2", "avx512") for threads in (1, 2, 3)]
TOLERANCE = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-12}


@pytest.fixture(params=SETTINGS, ids=lambda p: f"{p[0]}-{p[1]}")
def kernels(request: pytest.FixtureRequest) -> Any:
    for _ in in_setting(request.param):
        yield _native


# The input, the dimensions, the weight: layer, batch, instance and group norm, and their like.
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None]] = [
    ((5, 7), (-1,), (7,)),
    ((1, 1), (-1,), (1,)),
    ((3, 1), (-1,), (1,)),
    ((64, 1000), (-1,), (1000,)),
    ((4, 3, 65), (-2, -1), (3, 65)),
    ((4, 3, 65), (-2, -1), None),
    ((2, 3, 33), (-1,), (3, 33)),
    ((300, 17), (-2,), (17,)),
    ((2, 1), (-2,), (1,)),
    ((129, 200), (0,), None),
    ((6, 3, 11), (-3, -1), (3, 1)),
    ((1, 3, 11), (-3, -1), (3, 1)),
    ((8, 16, 31, 33), (-4, -2, -1), (16, 1, 1)),
    ((8, 5, 2, 2), (-4, -2, -1), (5, 1, 1)),
    ((7, 4, 9, 5), (-2, -1), (4, 1, 1)),
    ((7, 4, 9, 5), (-2, -1), None),
    ((6, 2, 3, 50), (-2, -1), (2, 3, 1)),
    ((40, 4, 8, 1), (-2, -1), (4, 8, 1)),
    ((3, 6, 5), (-3, -2, -1), (1, 1, 1)),
    ((2, 3, 4, 5), (-3, -1), (2, 1, 4, 1)),  # left to NumPy
    ((3, 4, 5), (-1,), (3, 1, 1)),
    ((3, 4, 5), (-2,), (5,)),
]


def close(a: Any, b: Any, scale: float = 1.0) -> None:
    if a is None or b is None:
        assert a is b
        return
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    np.testing.assert_allclose(a, b, rtol=TOLERANCE[a.dtype], atol=TOLERANCE[a.dtype] * scale)


def draw(shape: tuple[int, ...], dtype: Any, seed: int, layout: str) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if layout == "plain":
        return (rng.standard_normal(shape) + 0.5).astype(dtype)
    if layout == "transposed":
        return (rng.standard_normal(shape[::-1]) + 0.5).astype(dtype).T
    return (rng.standard_normal((*shape, 3)) + 0.5).astype(dtype)[..., 1]


@pytest.mark.parametrize("layout", ["plain", "transposed", "apart"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_forward_and_backward(kernels: Any, case: Any, dtype: Any, layout: str) -> None:
    shape, dim, weight_shape = case
    x, g = draw(shape, dtype, 1, layout), draw(shape, dtype, 2, layout)
    affine = [] if weight_shape is None else [draw(weight_shape, dtype, k, "plain") for k in (3, 4)]
    for center, count in itertools.product((True, False), range(len(affine) + 1)):
        how = {"dim": dim, "eps": 1e-3, "center": center}
        out, mean, rstd, var = kernels.normalize_parts(x, *affine[:count], **how)
        expected = reference.normalize_parts(x, *affine[:count], **how)
        for a, b in zip((out, mean, rstd, var), expected, strict=True):
            close(a, b)
        np.testing.assert_array_equal(out, kernels.normalize(x, *affine[:count], **how))
        w = affine[0] if count else None
        shapes = (shape, *[weight_shape] * count)
        for needs in itertools.product((True, False), repeat=count + 1):
            arguments = (g, x, expected[1], expected[2], w, dim, shapes, needs)
            gradients = kernels.normalize_backward(*arguments)
            wanted = reference.normalize_backward(*arguments)
            assert len(gradients) == len(wanted) == count + 1
            for a, b in zip(gradients, wanted, strict=True):
                close(a, b, 1.0 if b is None or b.shape == shape else 30.0)


LARGE = [
    ((64, 300), (-1,), (300,)),
    ((9, 6, 40, 41), (-4, -2, -1), (6, 1, 1)),
    ((600, 130), (-2,), (130,)),
    ((30, 4, 6, 77), (-2, -1), (4, 6, 1)),
]


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_the_result_does_not_depend_on_the_threads(case: Any) -> None:
    shape, dim, weight_shape = case
    x, g, w = (draw(s, np.float32, k, "plain") for k, s in enumerate((shape, shape, weight_shape)))
    results = []
    before = _native.get_num_threads()
    for threads in (1, 2, 3, 5):
        _native.set_num_threads(threads)
        out, mean, rstd, _ = _native.normalize_parts(x, w, w, dim=dim, eps=1e-5, center=True)
        shapes = (shape, weight_shape, weight_shape)
        results.append(
            [out, *_native.normalize_backward(g, x, mean, rstd, w, dim, shapes, (True,) * 3)]
        )
    _native.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_extreme_values_stay_in_their_group(kernels: Any, value: float) -> None:
    for shape, dim in (((6, 40), (-1,)), ((6, 40), (-2,)), ((6, 3, 40), (-3, -1))):
        x, g = draw(shape, np.float64, 1, "plain"), draw(shape, np.float64, 2, "plain")
        x[2, 1] = value
        how = {"dim": dim, "eps": 1e-5, "center": True}
        with np.errstate(all="ignore"):
            expected = reference.normalize_parts(x, **how)
            arguments = (g, x, expected[1], expected[2], None, dim, (shape,), (True,))
            wanted = reference.normalize_backward(*arguments)
        for a, b in zip(kernels.normalize_parts(x, **how), expected, strict=True):
            close(a, b)
        close(kernels.normalize_backward(*arguments)[0], wanted[0])


def test_a_large_mean_costs_no_digits(kernels: Any) -> None:
    x = (np.random.default_rng(0).standard_normal((4, 5000)) + 1e6).astype(np.float64)
    for dim in ((-1,), (-2,)):
        out = kernels.normalize(x, dim=dim, eps=0.0, center=True)
        d = x - x.mean(dim, keepdims=True)
        wanted = d / np.sqrt((d * d).mean(dim, keepdims=True))
        np.testing.assert_allclose(out, wanted, atol=1e-8)


def test_what_is_left_to_numpy() -> None:
    half = draw((4, 8), np.float16, 0, "plain")
    how: dict[str, Any] = {"dim": (-1,), "eps": 1e-5, "center": True}
    np.testing.assert_array_equal(_native.normalize(half, **how), reference.normalize(half, **how))
    swapped = draw((4, 8), np.float32, 0, "plain").astype(">f4")
    np.testing.assert_array_equal(
        _native.normalize(swapped, **how), reference.normalize(swapped, **how)
    )
    for shape in ((0, 4), (4, 0)):
        empty = np.zeros(shape, np.float32)
        with np.errstate(all="ignore"):
            assert _native.normalize(empty, **how).shape == shape
    with pytest.raises((TypeError, ValueError)):
        _native.normalize()
    with pytest.raises(Exception, match="axis|dim|range"):
        _native.normalize(half.astype(np.float32), dim=(-5,), eps=1e-5, center=True)


@pytest.mark.parametrize("shape", [(4, 7), (3, 5, 1), (2, 33, 4, 4), (2, 3, 17, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_running_moments_give_the_same_bits_with_and_without_a_graph(
    shape: tuple[int, ...], dtype: str
) -> None:
    rng = np.random.default_rng(0)
    x, m, v, w, b = (
        chainrule.tensor(rng.uniform(0.5, 2, size).astype(dtype))
        for size in (shape, *[shape[1:2]] * 4)
    )
    with_graph = chainrule.nn.functional.batch_norm(x.requires_grad_(), m, v, w, b)
    with chainrule.no_grad():
        without = chainrule.nn.functional.batch_norm(x, m, v, w, b)
    assert with_graph.requires_grad
    assert not without.requires_grad
    np.testing.assert_array_equal(with_graph.detach().numpy(), without.numpy())
