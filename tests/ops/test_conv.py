"""Convolution: random settings against loops, the closed family, memory, sizes and errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from samples import conv as reference
from scipy import signal

import chainrule
from chainrule.autograd import grad
from chainrule.backend.numpy_kernels import conv as kernels
from chainrule.func import vmap
from chainrule.graph import Node
from chainrule.tensor import Tensor, of_array


def tensor(array: Any, requires_grad: bool = False) -> Tensor:
    return of_array(np.array(array)).requires_grad_(requires_grad)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def convolve(nd: int, transposed: bool = False) -> Any:
    return getattr(chainrule, f"conv_transpose{nd}d" if transposed else f"conv{nd}d")


# --- values ---------------------------------------------------------------------------------------


def settings(seed: int) -> tuple[int, np.ndarray, np.ndarray, dict[str, Any]]:
    """A random convolution that is possible: dimensions, input, weight and settings."""
    r = np.random.default_rng(seed)
    nd = int(r.integers(1, 4))
    kernel, stride, dilation, padding = (
        tuple(int(n) for n in r.integers(low, 4, size=nd)) for low in (1, 1, 1, 0)
    )
    groups = int(r.integers(1, 4))
    size = [
        max((k - 1) * d + 1 - 2 * p, 1) + int(r.integers(0, 3))
        for k, d, p in zip(kernel, dilation, padding, strict=True)
    ]
    x = r.normal(size=(int(r.integers(1, 3)), groups * int(r.integers(1, 3)), *size))
    w = r.normal(size=(groups * int(r.integers(1, 3)), x.shape[1] // groups, *kernel))
    chosen = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return nd, x, w, chosen


@pytest.mark.parametrize("seed", range(60))
def test_random_settings(seed: int) -> None:
    nd, x, w, chosen = settings(seed)
    assert_close(convolve(nd)(tensor(x), tensor(w), **chosen), reference.conv(x, w, **chosen))


@pytest.mark.parametrize("seed", range(60))
def test_random_transposed_settings(seed: int) -> None:
    """The transposed convolution of what a convolution gives, by loops and as an adjoint."""
    nd, x, w, chosen = settings(seed)
    y = reference.conv(x, w, **chosen)
    lost = [
        (n + 2 * p - d * (k - 1) - 1) % s
        for n, k, s, p, d in zip(
            x.shape[2:],
            w.shape[2:],
            *(chosen[k] for k in ("stride", "padding", "dilation")),
            strict=True,
        )
    ]
    chosen["output_padding"] = tuple(lost)
    z = random(*y.shape, seed=seed)
    back = convolve(nd, transposed=True)(tensor(z), tensor(w), **chosen)
    assert tuple(back.shape) == x.shape
    assert_close(back, reference.conv_transpose(z, w, **chosen))
    assert np.vdot(y, z) == pytest.approx(np.vdot(x, back.numpy()))


@pytest.mark.parametrize("nd", [1, 2, 3])
def test_scipy_correlates_alike(nd: int) -> None:
    x, w = random(*[6] * nd), random(*[3] * nd, seed=1)
    out = convolve(nd)(tensor(x[None, None]), tensor(w[None, None]))
    assert_close(out.numpy()[0, 0], signal.correlate(x, w, "valid"), rtol=1e-9, atol=1e-12)
    full = convolve(nd, transposed=True)(tensor(x[None, None]), tensor(w[None, None]))
    assert_close(full.numpy()[0, 0], signal.convolve(x, w, "full"), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("limits", [{"CHUNK": 400}, {"LIMIT": 300}, {"SMALL": 0}, {"SMALL": 10**6}])
def test_memory_limits_change_nothing(limits: dict[str, int], monkeypatch: Any) -> None:
    """Chunks of samples, halves of outputs, one product for all samples or one for each."""
    for name, value in limits.items():
        monkeypatch.setattr(kernels, name, value)
    for seed in range(20):
        nd, x, w, chosen = settings(seed)
        a, b = tensor(x, True), tensor(w, True)
        out = convolve(nd)(a, b, **chosen)
        assert_close(out, reference.conv(x, w, **chosen))
        g = random(*out.shape)
        got = grad(out, (a, b), tensor(g))
        assert_close(list(got), loop_gradients(x, w, g, **chosen))


def loop_gradients(
    x: np.ndarray,
    w: np.ndarray,
    g: np.ndarray,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> list[np.ndarray]:
    """Output by output: the gradient of <g, conv(x, w)>."""
    whole = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    gx, gw = np.zeros_like(whole), np.zeros_like(w)
    per_group, inputs = len(w) // groups, w.shape[1]
    for o in range(len(w)):
        channels = slice(o // per_group * inputs, (o // per_group + 1) * inputs)
        for at in np.ndindex(*g.shape[2:]):
            here = reference.window(at, w.shape[2:], stride, dilation)
            share = g[(slice(None), o, *at)].reshape(-1, *[1] * (w.ndim - 1))
            gx[:, channels][here] += share * w[o]
            gw[o] += (share * whole[:, channels][here]).sum(axis=0)
    return [gx[(..., *[slice(p, n - p) for p, n in zip(padding, gx.shape[2:], strict=True)])], gw]


def test_float32_and_float16() -> None:
    x, w = random(2, 3, 6, 6), random(4, 3, 3, 3)
    exact = reference.conv(x, w)
    for dtype, tolerance in ((np.float32, 1e-5), (np.float16, 2e-2)):
        a, b = tensor(x.astype(dtype), True), tensor(w.astype(dtype), True)
        out = chainrule.conv2d(a, b)
        out.sum().backward()
        assert out.numpy(force=True).dtype == a.grad.numpy().dtype == b.grad.numpy().dtype == dtype
        assert_close(out.double(), exact, rtol=tolerance, atol=tolerance * 10)


def test_operands_in_any_layout_are_left_alone() -> None:
    x = random(5, 6, 3, 2).transpose(3, 2, 0, 1)[:, :, ::-1]
    w = random(3, 3, 4, 3).transpose(2, 3, 0, 1)
    before = x.copy(), w.copy()
    a, b = of_array(x).requires_grad_(), of_array(w).requires_grad_()
    chainrule.conv2d(a, b, padding=1).sum().backward()
    assert_close([x, w], list(before), rtol=0, atol=0)
    chainrule.conv2d(of_array(x), of_array(x[:, :, :1, :1]))  # the windows are the input itself
    assert_close(x, before[0], rtol=0, atol=0)


def test_no_samples() -> None:
    x, w, b = tensor(np.zeros((0, 2, 5, 5)), True), tensor(random(3, 2, 3, 3), True), random(3)
    out = chainrule.conv2d(x, w, tensor(b))
    assert tuple(out.shape) == (0, 3, 3, 3)
    out.sum().backward()
    assert tuple(x.grad.shape) == (0, 2, 5, 5)
    assert_close(w.grad, np.zeros((3, 2, 3, 3)))
    back = chainrule.conv_transpose2d(tensor(np.zeros((0, 3, 3, 3))), w)
    assert tuple(back.shape) == (0, 2, 5, 5)


# --- derivatives ----------------------------------------------------------------------------------

FAMILY = {"ConvolutionBackward", "ConvolutionInputBackward", "ConvolutionWeightBackward"}


def names_in_graph(y: Tensor) -> set[str]:
    found, todo = set(), [y.grad_fn]
    while todo:
        node = todo.pop()
        if isinstance(node, Node):
            found.add(node.name())
            todo += [edge for edge, _ in node.next_functions]
    return found


def test_every_derivative_stays_in_the_family() -> None:
    x, w = tensor(random(1, 2, 4, 4), True), tensor(random(2, 1, 2, 2), True)
    y = chainrule.conv2d(x, w, stride=2, padding=1, groups=2)
    v = tensor(random(*y.shape), True)
    gx, gw = grad(y, (x, w), v, create_graph=True)
    u, t = tensor(random(*gx.shape), True), tensor(random(*gw.shape), True)
    second = [*grad(gx, (w, v), u, create_graph=True), *grad(gw, (x, v), t, create_graph=True)]
    third = [
        grad(z, s, of_array(random(*z.shape)), create_graph=True)[0]
        for z, s in zip(second, (u, u, t, t), strict=True)
    ]
    used = [names_in_graph(z) for z in (y, gx, gw, *second, *third)]
    assert set.union(*used) == FAMILY


def test_weight_gradient_is_a_correlation_with_the_output() -> None:
    """dL/dw = delta correlated with x; dL/dx = delta, padded, convolved with w."""
    x, w = tensor(random(1, 1, 6, 6), True), tensor(random(1, 1, 3, 3), True)
    delta = random(1, 1, 4, 4, seed=3)
    chainrule.conv2d(x, w).backward(tensor(delta))
    a, b = x.detach().numpy()[0, 0], w.detach().numpy()[0, 0]
    assert_close(w.grad.numpy()[0, 0], signal.correlate(a, delta[0, 0], "valid"))
    assert_close(x.grad.numpy()[0, 0], signal.convolve(delta[0, 0], b, "full"))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dims", [(0, None), (None, 0), (0, 0), (2, 1)])
def test_vmap_of_all_three(dims: tuple[Any, Any], groups: int) -> None:
    """A batch of inputs, of weights or of both, in value and in both gradients."""
    xs, ws = random(3, 2, 4, 5), random(3, 4, 4 // groups, 3, seed=1)

    def loss(x: Tensor, w: Tensor) -> Tensor:
        return chainrule.conv1d(x, w, stride=2, groups=groups).pow(2).sum()

    def everything(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        return (
            chainrule.conv1d(x, w, padding=1, groups=groups),
            chainrule.conv_transpose1d(x, w, stride=2, groups=groups),
            *chainrule.func.grad(loss, (0, 1))(x, w),
        )

    a, b = (
        values[0] if d is None else np.moveaxis(values, 0, d)
        for values, d in zip((xs, ws), dims, strict=True)
    )
    mapped = vmap(everything, in_dims=dims)(tensor(a), tensor(b))
    for i in range(3):
        x, w = xs[0 if dims[0] is None else i], ws[0 if dims[1] is None else i]
        each = list(everything(tensor(x), tensor(w)))
        assert_close([m[i] for m in mapped], each, rtol=1e-9, atol=1e-12)


# --- windows as columns ---------------------------------------------------------------------------


def test_convolution_is_a_product_with_columns() -> None:
    x, w = random(2, 3, 5, 6), random(4, 3, 3, 2)
    cols = chainrule.im2col(tensor(x), (3, 2), padding=1, stride=2).numpy()
    out = chainrule.conv2d(tensor(x), tensor(w), padding=1, stride=2)
    assert_close(w.reshape(4, -1) @ cols, out.numpy().reshape(2, 4, -1), rtol=1e-9, atol=1e-12)


def test_col2im_counts_how_often_a_pixel_is_seen() -> None:
    ones = chainrule.im2col(tensor(np.ones((1, 1, 4, 4))), 3)
    seen = chainrule.col2im(ones, (4, 4), 3)
    assert_close(seen.numpy()[0, 0], np.outer([1, 2, 2, 1], [1.0, 2, 2, 1]))


def test_im2col_makes_a_copy() -> None:
    x = tensor(random(1, 2, 3, 3))
    chainrule.im2col(x, 1).zero_()
    assert x.abs().sum().item() > 0


# --- sizes ----------------------------------------------------------------------------------------


def if_it_fits(call: Any, *arguments: Any) -> int | None:
    try:
        found = call(*arguments)
    except RuntimeError:
        return None
    return found if isinstance(found, int) else int(found.shape[2])


def test_output_sizes_are_those_of_convolutions() -> None:
    """Over a grid of settings: a size wherever at least one window fits, and only there."""
    checked = 0
    for i, k, s, p, d in itertools.product(range(1, 8), (1, 2, 3), (1, 2, 3), (0, 1, 2), (1, 2)):
        x, w = tensor(np.zeros((1, 1, i))), tensor(np.zeros((1, 1, k)))
        size = if_it_fits(chainrule.conv_output_size, i, k, s, p, d)
        assert size == if_it_fits(chainrule.conv1d, x, w, None, s, p, d)
        grown = if_it_fits(chainrule.conv_transpose_output_size, i, k, s, p, 0, d)
        assert grown == if_it_fits(chainrule.conv_transpose1d, x, w, None, s, p, 0, 1, d)
        checked += size is not None
    assert 250 < checked < 378


def test_sizes_as_numbers_and_tuples() -> None:
    assert chainrule.conv_output_size(28, 5) == 24
    assert chainrule.conv_output_size((28, 28), 5) == (24, 24)
    assert chainrule.conv_output_size(28, (5, 3), padding="same") == (28, 28)
    assert chainrule.conv_output_size(7, 3, stride=2, padding="valid") == 3
    assert chainrule.conv_transpose_output_size((7, 7), 4, stride=2, padding=1) == (14, 14)
    assert chainrule.conv_transpose_output_size(7, 3, 2, 1, output_padding=1) == 14


# --- errors ---------------------------------------------------------------------------------------

X, W = tensor(random(2, 4, 6, 6)), tensor(random(4, 4, 3, 3))
BAD: dict[str, tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = {
    "dimensions": ((X.sum(0).sum(0), W), {}, RuntimeError, r"expected 3D \(unbatched\) or 4D"),
    "channels": ((X[:, :2], W), {}, RuntimeError, r"to have 4 channels, but got 2 channels"),
    "weight": ((X, W[0]), {}, RuntimeError, r"expected a weight of 4 dimensions"),
    "too small": (
        (X[:, :, :2], W),
        {},
        RuntimeError,
        r"size per channel: \(2 x 6\). Kernel size: "
        r"\(3 x 3\).*Kernel size can't be greater than actual input size",
    ),
    "no width": ((X[..., :0], W[..., :1, :1]), {}, RuntimeError, r"Kernel size can't be greater"),
    "stride": ((X, W), {"stride": 0}, RuntimeError, r"non-positive stride"),
    "three strides": ((X, W), {"stride": (1, 1, 1)}, RuntimeError, r"a single integer value or 2"),
    "padding": ((X, W), {"padding": -1}, RuntimeError, r"negative padding is not supported"),
    "padding's name": ((X, W), {"padding": "full"}, RuntimeError, r"invalid padding string 'full'"),
    "same": ((X, W), {"padding": "same", "stride": 2}, RuntimeError, r"strided convolutions"),
    "dilation": ((X, W), {"dilation": 0}, RuntimeError, r"non-positive dilation"),
    "groups": ((X, W), {"groups": 3}, RuntimeError, r"expected weight to be divisible by 3"),
    "no groups": ((X, W), {"groups": 0}, RuntimeError, r"non-positive groups"),
    "group's channels": ((X, W), {"groups": 2}, RuntimeError, r"to have 8 channels"),
    "bias": ((X, W, tensor(np.ones(3))), {}, RuntimeError, r"1-dimensional with 4 elements"),
    "types": ((X, W.float()), {}, RuntimeError, r"input type .* and weight type"),
    "bias's type": ((X, W, tensor(np.ones(4, np.float32))), {}, RuntimeError, r"and bias type"),
    "list": (([1.0], W), {}, TypeError, r"argument 'input' must be Tensor, not list"),
    "array": ((X, random(4, 4, 3, 3)), {}, TypeError, r"argument 'weight' must be Tensor"),
    "fraction": ((X, W), {"stride": 1.5}, TypeError, r"stride must be an int or a tuple of ints"),
}


@pytest.mark.parametrize("case", BAD)
def test_conv2d_refuses(case: str) -> None:
    args, kwargs, error, message = BAD[case]
    with pytest.raises(error, match=rf"(?s)conv2d.*{message}"):
        chainrule.conv2d(*args, **kwargs)


BAD_TRANSPOSED: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "channels": ((X[:, :2], W), {}, r"to have 4 channels, but got 2"),
    "output padding": ((X, W), {"output_padding": 1}, r"smaller than either stride or dilation"),
    "negative": ((X, W), {"output_padding": -1}, r"negative output_padding"),
    "nothing left": ((X, W), {"padding": 4}, r"output size is too small"),
    "bias": ((X, W, tensor(np.ones(3))), {}, r"1-dimensional with 4 elements"),
}


@pytest.mark.parametrize("case", BAD_TRANSPOSED)
def test_conv_transpose2d_refuses(case: str) -> None:
    args, kwargs, message = BAD_TRANSPOSED[case]
    with pytest.raises(RuntimeError, match=rf"conv_transpose2d: .*{message}"):
        chainrule.conv_transpose2d(*args, **kwargs)


def test_columns_refuse() -> None:
    with pytest.raises(RuntimeError, match=r"im2col: .*blocks has shape \(-2, -2\)"):
        chainrule.im2col(X, 9)
    with pytest.raises(RuntimeError, match=r"im2col: non-positive kernel_size"):
        chainrule.im2col(X, 0)
    with pytest.raises(RuntimeError, match=r"col2im: expected columns of shape \(N, C \* 4, 9\)"):
        chainrule.col2im(tensor(random(2, 5, 9)), (4, 4), 2)
    with pytest.raises(RuntimeError, match=r"expected output_size to be a single integer value"):
        chainrule.col2im(tensor(random(2, 4, 9)), (4, 4, 4), 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chainrule.conv_output_size(3, 5), "kernel_size=5 .* does not fit into size=3"),
        (lambda: chainrule.conv_output_size(3, 4), "does not fit"),
        (lambda: chainrule.conv_output_size((8, 3), 5), r"does not fit into size=\(8, 3\)"),
        (lambda: chainrule.conv_output_size(5, 3, dilation=3), "dilation=3 does not fit"),
        (lambda: chainrule.conv_output_size(5, 3, stride=0), "non-positive stride"),
        (lambda: chainrule.conv_output_size(5, 0), "non-positive kernel_size"),
        (lambda: chainrule.conv_output_size(5, 3, padding=-1), "negative padding"),
        (lambda: chainrule.conv_transpose_output_size(2, 2, padding=4), "use less padding"),
        (lambda: chainrule.conv_transpose_output_size(2, 2, stride=0), "non-positive stride"),
    ],
)
def test_sizes_that_do_not_exist(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()
