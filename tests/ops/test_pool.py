"""Pooling: random settings against loops, choices among equals and NaN, inverses, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from samples import pool as reference

import chainrule
from chainrule.autograd import grad
from chainrule.func import jvp, vmap
from chainrule.tensor import Tensor, of_array


def tensor(array: Any, requires_grad: bool = False) -> Tensor:
    return of_array(np.array(array)).requires_grad_(requires_grad)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def settings(seed: int) -> tuple[int, np.ndarray, dict[str, Any]]:
    """A random pooling that is possible: dimensions, input and settings."""
    r = np.random.default_rng(seed)
    nd = int(r.integers(1, 4))
    kernel, stride, dilation = (
        tuple(int(n) for n in r.integers(1, high, size=nd)) for high in (4, 4, 3)
    )
    padding = tuple(int(r.integers(0, k // 2 + 1)) for k in kernel)
    size = [(k - 1) * d + 1 + int(r.integers(0, 4)) for k, d in zip(kernel, dilation, strict=True)]
    x = r.normal(size=(*[(2, 2), (2,)][seed % 5 == 0], *size))
    chosen = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    return nd, x, chosen | {"ceil_mode": bool(r.integers(0, 2))}


# --- values and gradients against loops -----------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_max_pool(seed: int) -> None:
    nd, x, chosen = settings(seed)
    a = tensor(x, True)
    out, index = getattr(chainrule, f"max_pool{nd}d")(a, **chosen, return_indices=True)
    assert_close(out, reference.maximum(nd)(x, **chosen))
    rows, places = x.reshape(*x.shape[:-nd], -1), index.numpy().reshape(*x.shape[:-nd], -1)
    assert_close(np.take_along_axis(rows, places, -1).reshape(out.shape), out)
    # Each maximum hands its gradient to the element it is.
    g = random(*out.shape, seed=seed)
    expected = np.zeros_like(rows)
    for lead in np.ndindex(*rows.shape[:-1]):
        np.add.at(expected[lead], places[lead], g[lead].reshape(-1))
    (got,) = grad(out, a, tensor(g))
    assert_close(got, expected.reshape(x.shape), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("count_include_pad", [False, True])
def test_avg_pool(seed: int, count_include_pad: bool) -> None:
    nd, x, chosen = settings(seed)
    chosen["count_include_pad"] = count_include_pad
    if nd > 1 and seed % 4 == 0:
        chosen["divisor_override"] = 3
    function, loops = getattr(chainrule, f"avg_pool{nd}d"), reference.average(nd)
    a = tensor(x, True)
    out = function(a, **chosen)
    assert_close(out, loops(x, **chosen), rtol=1e-9, atol=1e-12)
    # The gradient is the adjoint: <g, P t> = <P^T g, t>.
    g, t = random(*out.shape, seed=1), random(*x.shape, seed=2)
    (back,) = grad(out, a, tensor(g))
    assert np.vdot(g, loops(t, **chosen)) == pytest.approx(np.vdot(back.numpy(), t))


@pytest.mark.parametrize("nd", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_adaptive_pools(nd: int, size: int) -> None:
    x = random(2, 2, *(5, 6, 4)[:nd])
    average = getattr(chainrule, f"adaptive_avg_pool{nd}d")(tensor(x), size)
    assert_close(average, reference.adaptive(nd, np.mean)(x, size), rtol=1e-9, atol=1e-12)
    largest = getattr(chainrule, f"adaptive_max_pool{nd}d")(tensor(x), size)
    assert_close(largest, reference.adaptive(nd, np.max)(x, size))


def test_integers_have_maxima() -> None:
    x = np.random.default_rng(0).integers(-100, 0, size=(2, 2, 5, 5))
    out = chainrule.max_pool2d(tensor(x), 3, stride=2, padding=1)
    assert out.dtype is chainrule.int64
    assert_close(out.double(), reference.maximum(2)(x, 3, 2, 1))


def test_float32_and_float16_stay() -> None:
    for dtype in (np.float32, np.float16):
        for name in ("max_pool2d", "avg_pool2d", "lp_pool2d"):
            x = tensor(np.abs(random(1, 1, 4, 4)).astype(dtype), True)
            args = (2.0, 2) if name == "lp_pool2d" else (2,)
            out = getattr(chainrule, name)(x, *args)
            out.sum().backward()
            assert out.numpy(force=True).dtype == x.grad.numpy().dtype == dtype, name


# --- which of several -----------------------------------------------------------------------------


def test_first_of_equal_maxima_is_chosen() -> None:
    x = tensor(np.zeros((1, 1, 4, 4)), True)
    out, index = chainrule.max_pool2d(x, 2, return_indices=True)
    assert index.tolist() == [[[[0, 2], [8, 10]]]]
    out.sum().backward()
    assert x.grad.sum().item() == 4
    assert x.grad[0, 0, ::2, ::2].sum().item() == 4


def test_nan_is_the_maximum() -> None:
    nan = np.nan
    x = tensor([[1.0, nan, 3.0, nan, 0.0, 2.0]])
    out, index = chainrule.max_pool1d(x, 3, stride=2, padding=1, return_indices=True)
    assert_close(out, np.array([[nan, nan, nan]]))
    assert index.tolist() == [[1, 3, 3]]  # the last NaN, as in PyTorch
    assert_close(chainrule.max_pool1d(x, 2), np.array([[nan, nan, 2.0]]))


def test_padding_is_less_than_minus_infinity() -> None:
    x = tensor(np.full((1, 1, 3, 3), -np.inf))
    out, index = chainrule.max_pool2d(x, 3, stride=2, padding=1, return_indices=True)
    assert_close(out, np.full((1, 1, 2, 2), -np.inf))
    assert index.tolist() == [[[[0, 1], [3, 4]]]]


def test_windows_of_more_than_256_places() -> None:
    x = random(1, 1, 20, 20)
    out = chainrule.max_pool2d(tensor(x), 18, stride=1)
    assert_close(out, reference.maximum(2)(x, 18, 1))


# --- there and back -------------------------------------------------------------------------------


def test_unpooling_puts_maxima_back() -> None:
    x = random(2, 3, 7, 6)
    out, index = chainrule.max_pool2d(tensor(x), 2, return_indices=True)
    back = chainrule.max_unpool2d(out, index, 2, output_size=(2, 3, 7, 6))
    assert tuple(back.shape) == x.shape
    kept = back.numpy() != 0
    assert kept.sum() == out.numel()
    assert_close(back.numpy()[kept], x[kept])
    again, same = chainrule.max_pool2d(
        chainrule.exp(tensor(x)) * (back != 0), 2, return_indices=True
    )
    assert same.tolist() == index.tolist()
    assert_close(again.log(), out, rtol=1e-9, atol=1e-12)


def test_overlapping_windows_put_a_shared_maximum_back_once() -> None:
    out, index = chainrule.max_pool1d(tensor([[0.0, 5.0, 1.0]]), 2, stride=1, return_indices=True)
    back = chainrule.max_unpool1d(out, index, 2, stride=1)
    assert_close(back, np.array([[0.0, 5.0, 0.0]]))


def test_pooling_inside_transformations() -> None:
    """vmap over channels' batch, and the tangent of a maximum is its own element's."""
    x, t = random(3, 2, 4, 4), random(3, 2, 4, 4, seed=1)
    whole = chainrule.max_pool2d(tensor(x), 2)
    assert_close(vmap(lambda a: chainrule.max_pool2d(a, 2))(tensor(x)), whole)
    _, tangent = jvp(lambda a: chainrule.max_pool2d(a, 2), (tensor(x),), (tensor(t),))
    _, index = chainrule.max_pool2d(tensor(x), 2, return_indices=True)
    rows = np.take_along_axis(t.reshape(3, 2, 16), index.numpy().reshape(3, 2, 4), -1)
    assert_close(tangent, rows.reshape(3, 2, 2, 2))


# --- errors ---------------------------------------------------------------------------------------

X = tensor(random(2, 3, 6, 6))
BAD: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str]] = {
    "padding": ("max_pool2d", (X, 3), {"padding": 2}, RuntimeError, r"at most half of kernel size"),
    "avg padding": ("avg_pool2d", (X, 2), {"padding": 2}, RuntimeError, r"at most half of kernel"),
    "too small": ("max_pool2d", (X, 7), {}, RuntimeError, r"output size is too small"),
    "avg too small": ("avg_pool2d", (X, (2, 7)), {}, RuntimeError, r"output size is \(3 x 0\)"),
    "stride": ("max_pool2d", (X, 2), {"stride": 0}, RuntimeError, r"non-positive stride"),
    "kernel": ("max_pool2d", (X, 0), {}, RuntimeError, r"non-positive kernel_size"),
    "dilation": ("max_pool2d", (X, 2), {"dilation": 0}, RuntimeError, r"non-positive dilation"),
    "dimensions": ("max_pool1d", (X, 2), {}, RuntimeError, r"expected 2D \(unbatched\) or 3D"),
    "avg dimensions": ("avg_pool3d", (X[0], 2), {}, RuntimeError, r"4D \(unbatched\) or 5D"),
    "no channels": ("max_pool2d", (X[:, :0], 2), {}, RuntimeError, r"non-zero size"),
    "kernels": ("max_pool2d", (X, (2, 2, 2)), {}, RuntimeError, r"expected kernel_size to be"),
    "divisor": ("avg_pool2d", (X, 2), {"divisor_override": 0}, RuntimeError, r"must be not zero"),
    "integers": ("avg_pool2d", (X.int(), 2), {}, NotImplementedError, r"not implemented for"),
    "adaptive": ("adaptive_avg_pool2d", (X, -1), {}, RuntimeError, r"negative output_size"),
    "sizes": ("adaptive_max_pool2d", (X, (2, 2, 2)), {}, RuntimeError, r"must have 2 elements"),
    "nothing": ("adaptive_avg_pool2d", (X[:, :, :0], 2), {}, RuntimeError, r"non-zero size"),
    "list": ("max_pool2d", ([1.0], 2), {}, TypeError, r"argument 'input' must be Tensor, not list"),
}


@pytest.mark.parametrize("case", BAD)
def test_pools_refuse(case: str) -> None:
    name, args, kwargs, error, message = BAD[case]
    with pytest.raises(error, match=f"{name}.*{message}"):
        getattr(chainrule, name)(*args, **kwargs)


def test_unpooling_refuses() -> None:
    out, index = chainrule.max_pool2d(X, 2, return_indices=True)
    with pytest.raises(ValueError, match=r"invalid output_size \(12, 6\)"):
        chainrule.max_unpool2d(out, index, 2, output_size=(12, 6))
    with pytest.raises(ValueError, match=r"a sequence of 2 or 4 elements"):
        chainrule.max_unpool2d(out, index, 2, output_size=(6, 6, 6))
    with pytest.raises(RuntimeError, match=r"found an invalid max index: \d+"):
        chainrule.max_unpool2d(out, index + 30, 2)
    with pytest.raises(RuntimeError, match=r"should be int64"):
        chainrule.max_unpool2d(out, index.int(), 2)
    with pytest.raises(RuntimeError, match=r"expected shape of indices"):
        chainrule.max_unpool2d(out, index[:, :, :2], 2)
    with pytest.raises(RuntimeError, match=r"expected 3D \(unbatched\) or 4D"):
        chainrule.max_unpool2d(out[0, 0], index[0, 0], 2)
