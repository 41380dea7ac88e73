"""Convolutional layers: the figures of the courses, their errata, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from scipy import integrate, signal

import chainrule
from chainrule import nn
from chainrule.nn.functional import conv1d, conv2d, conv_transpose2d, convolve, max_pool2d, pad


def normal(*shape: int, seed: int = 0) -> chainrule.Tensor:
    return chainrule.tensor(np.random.default_rng(seed).normal(size=shape))


def seeded(layer: nn.Module) -> Any:
    """The layer in float64 with the same parameters every time."""
    layer.double()
    for k, p in enumerate(layer.parameters()):
        p.detach().copy_(normal(*p.shape, seed=k + 1))
    return layer


# --- values ---------------------------------------------------------------------------------------


def test_a_layer_is_cross_correlation_and_convolution_with_flip() -> None:
    """L02 and L03: SciPy knows both."""
    x = normal(1, 1, 8, 7)
    plain, true = seeded(nn.Conv2d(1, 1, 3, bias=False)), nn.Conv2d(1, 1, 3, bias=False, flip=True)
    true.double().load_state_dict(plain.state_dict())
    image, kernel = x[0, 0].numpy(), plain.weight[0, 0].detach().numpy()
    assert_close(plain(x)[0, 0].detach(), signal.correlate(image, kernel, "valid"))
    assert_close(true(x)[0, 0].detach(), signal.convolve(image, kernel, "valid"))
    assert repr(true).endswith("bias=False, flip=True)")


def test_true_convolution_by_its_sum() -> None:
    """L04: (h * k)(a) = sum_i h(a - i) k(i), as np.convolve has it."""
    h, k = np.array([1.0, 2.0, -1.0, 3.0]), np.array([2.0, 0.5, 1.0])
    out = convolve(chainrule.tensor(h[None, None]), chainrule.tensor(k[None, None]), padding=2)
    assert_close(out[0, 0], np.convolve(h, k))


def test_convolution_commutes_and_correlation_does_not() -> None:
    a, b = normal(1, 1, 5), normal(1, 1, 5, seed=1)
    assert_close(convolve(a, b, padding=4), convolve(b, a, padding=4))
    assert not np.allclose(conv1d(a, b, padding=4).numpy(), conv1d(b, a, padding=4).numpy())


def test_one_entry_of_the_sum() -> None:
    """s_ab = sum_c sum_ij w_ijc x_(a+i)(b+j)c + b, the bias once."""
    layer, x = seeded(nn.Conv2d(2, 3, 2)), normal(1, 2, 4, 4)
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    s = b[1] + sum(
        w[1, c, i, j] * x.numpy()[0, c, 2 + i, 1 + j]
        for c in range(2)
        for i in range(2)
        for j in range(2)
    )
    assert float(layer(x)[0, 1, 2, 1]) == pytest.approx(s)


def test_sizes_of_the_courses() -> None:
    """28 with a kernel of 5 gives 24; stride 2 halves; padding (k - 1) / 2 keeps."""
    assert nn.Conv2d(1, 20, 5)(chainrule.ones(1, 1, 28, 28)).shape == (1, 20, 24, 24)
    assert nn.Conv2d(1, 1, 2, stride=2)(chainrule.ones(1, 28, 28)).shape == (1, 14, 14)
    assert nn.Conv2d(1, 1, 5, padding=2)(chainrule.ones(1, 28, 28)).shape == (1, 28, 28)


def test_padding_that_leaves_no_blank_border() -> None:
    """Erratum 11: k = 3 goes with p = 1 and k = 5 with p = 2, not the other way around."""
    x = chainrule.ones(1, 188, 257)
    sizes = {
        (k, p): tuple(nn.Conv2d(1, 1, k, padding=p)(x).shape[1:]) for k in (3, 5) for p in (1, 2)
    }
    assert sizes[3, 1] == sizes[5, 2] == (188, 257)
    assert sizes[3, 2] == (190, 259)
    assert sizes[5, 1] == (186, 255)


def test_the_size_is_rounded_down() -> None:
    """Errata 10 and 113: A = 6, R = 3, S = 2 gives 2, not 2.5."""
    assert nn.Conv1d(1, 1, 3, stride=2)(chainrule.ones(1, 6)).shape == (1, 2)


# --- dilation -------------------------------------------------------------------------------------


def test_dilation_spaces_the_input_alone() -> None:
    """Erratum 7: z[i] = sum_u H[u] psi[i - d u]; the kernel is not indexed with d u."""
    h, psi, d = np.array([1.0, 2.0, 3.0]), np.random.default_rng(0).normal(size=9), 2
    out = convolve(chainrule.tensor(psi[None, None]), chainrule.tensor(h[None, None]), dilation=d)
    expected = [sum(h[u] * psi[i - d * u] for u in range(3)) for i in range(4, 9)]
    assert_close(out[0, 0], np.array(expected))


def test_dilated_convolution_of_functions() -> None:
    """Erratum 6: the integral of H(u) psi(x - D u), where printed is H(D u), which is the ordinary
    convolution divided by D."""

    def kernel(u: Any) -> Any:
        return np.exp(-((u - 0.3) ** 2))

    def psi(x: Any) -> Any:
        return np.cos(x) / (1 + x * x)

    d, x, limits = 2.0, 0.4, (-8.0, 8.0)
    true = integrate.quad(lambda u: kernel(u) * psi(x - d * u), *limits)[0]
    printed = integrate.quad(lambda u: kernel(d * u) * psi(x - d * u), *limits)[0]
    ordinary = integrate.quad(lambda u: kernel(u) * psi(x - u), *limits)[0]
    assert printed == pytest.approx(ordinary / d)
    assert abs(true - printed) > 0.05
    # The layer, on a fine grid, computes the true one.
    h = 0.02
    u = np.arange(-400, 401) * h
    grid = x + h * np.arange(-800, 801)
    samples, weights = (chainrule.tensor(v[None, None]) for v in (psi(grid), kernel(u) * h))
    assert float(convolve(samples, weights, dilation=2)) == pytest.approx(true, abs=1e-6)


def test_dilation_widens_the_view_at_equal_cost() -> None:
    """L06: k_eff = k + (k - 1)(d - 1) inputs, but k weights."""
    for d in (1, 2, 3):
        layer = nn.Conv1d(1, 1, 3, dilation=d)
        x = chainrule.zeros(1, 20, requires_grad=True)
        layer(x)[0, 5].backward()
        seen = np.flatnonzero(x.grad.numpy())
        assert seen.max() - seen.min() + 1 == 3 + 2 * (d - 1)
        assert len(seen) == 3


# --- translation ----------------------------------------------------------------------------------


def shifted(x: chainrule.Tensor, by: int) -> chainrule.Tensor:
    return chainrule.roll(x, by, -1)


def test_convolution_commutes_with_translation() -> None:
    """L20: z = H * psi + b moves with its input; exactly so on a circle."""
    layer = seeded(nn.Conv1d(2, 3, 5, padding="same", padding_mode="circular"))
    x = normal(1, 2, 16)
    for by in (1, 3, -4):
        assert_close(layer(shifted(x, by)).detach(), shifted(layer(x), by).detach())


def test_stride_breaks_translation() -> None:
    """L05: moving the input by the stride moves the output by one, by less no more."""
    layer = seeded(nn.Conv1d(1, 1, 3, stride=2, padding=1, padding_mode="circular"))
    x = normal(1, 1, 16)
    assert_close(layer(shifted(x, 2)).detach(), shifted(layer(x), 1).detach())
    moved = layer(shifted(x, 1)).detach().numpy()
    assert all(not np.allclose(moved, np.roll(layer(x).detach().numpy(), k)) for k in range(8))


# --- backward -------------------------------------------------------------------------------------


def test_gradients_are_correlations() -> None:
    """L12 and L13: by the weights delta correlated with x; by the input the flipped kernel
    correlated with delta, padded by R - 1."""
    layer = seeded(nn.Conv2d(1, 1, 3, bias=False))
    x, delta = normal(1, 1, 7, 6).requires_grad_(), normal(1, 1, 5, 4, seed=3)
    layer(x).backward(delta)
    w = layer.weight.detach()
    assert_close(layer.weight.grad, conv2d(x.detach(), delta))
    padded = pad(delta, (2, 2, 2, 2))
    assert_close(x.grad, conv2d(padded, chainrule.flip(w, (2, 3))))
    assert_close(x.grad, conv_transpose2d(delta, w))


def test_jacobian_by_the_input() -> None:
    """Erratum 111: ds_ij / dx_ab = w_(a-i)(b-j), not w_(i-a)(j-b)."""
    w, x = normal(1, 1, 3, 3), normal(1, 1, 5, 5)
    jacobian = chainrule.func.jacrev(lambda x: conv2d(x, w))(x).numpy()[0, 0, :, :, 0, 0]
    for i, j, a, b in np.ndindex(3, 3, 5, 5):
        inside = 0 <= a - i < 3 and 0 <= b - j < 3
        assert jacobian[i, j, a, b] == (w.numpy()[0, 0, a - i, b - j] if inside else 0)


def test_transposed_layer_is_the_adjoint() -> None:
    """L11 and M29: <conv(x), y> = <x, conv_transpose(y)> with the same weight, for any settings."""
    for settings in ({}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2}):
        down = seeded(nn.Conv2d(2, 3, 3, bias=False, **settings))
        up = nn.ConvTranspose2d(3, 2, 3, bias=False, **settings).double()
        up.load_state_dict(down.state_dict())
        x = normal(1, 2, 8, 9)
        y = normal(*down(x).shape, seed=5)
        back = up(y, output_size=x.shape)
        assert back.shape == x.shape
        assert float((down(x) * y).sum()) == pytest.approx(float((x * back).sum()))


def test_encoder_and_decoder() -> None:
    """M29: what a convolution halves its transpose doubles; they learn to copy."""
    chainrule.manual_seed(0)
    encoder = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.Tanh(), nn.Conv2d(4, 8, 3, 2, 1))
    decoder = nn.Sequential(
        nn.ConvTranspose2d(8, 4, 4, 2, 1), nn.Tanh(), nn.ConvTranspose2d(4, 1, 4, 2, 1)
    )
    net = nn.Sequential(encoder, nn.Tanh(), decoder)
    x = chainrule.rand(4, 1, 16, 16)
    assert encoder(x).shape == (4, 8, 4, 4)
    assert net(x).shape == x.shape
    errors = []
    for _ in range(60):
        error = ((net(x) - x) ** 2).mean()
        net.zero_grad()
        error.backward()
        with chainrule.no_grad():
            for p in net.parameters():
                p -= 0.3 * p.grad
        errors.append(float(error))
    assert errors[-1] < 0.5 * errors[0]


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])
def test_start_is_uniform(kind: Any) -> None:
    """Within 1 / sqrt(fan in), where PyTorch counts the second dimension of the weight."""
    chainrule.manual_seed(0)
    layer = kind(32, 64, 5, groups=2)
    bound = 1 / np.sqrt(layer.weight.shape[1] * 25)
    w = layer.weight.detach().numpy()
    assert 0.99 * bound < abs(w).max() <= bound
    assert w.std() == pytest.approx(bound / np.sqrt(3), rel=0.01)
    assert abs(layer.bias.detach().numpy()).max() <= bound


def test_factory_keywords() -> None:
    layer = nn.Conv1d(1, 1, 1, device="cpu", dtype=chainrule.float64)
    assert layer.weight.dtype is layer.bias.dtype is chainrule.float64


def test_output_sizes_in_every_way_of_saying_them() -> None:
    up = nn.ConvTranspose2d(1, 1, 3, stride=2)
    x = chainrule.ones(1, 1, 4, 4)
    assert up(x).shape == (1, 1, 9, 9)
    for size in ((10, 9), [10, 9], (1, 1, 10, 9)):
        assert up(x, output_size=size).shape == (1, 1, 10, 9)
    assert up(x[0], output_size=(1, 10, 9)).shape == (1, 10, 9)


def test_empty_batch() -> None:
    layer = nn.Conv2d(1, 2, 3)
    out = layer(chainrule.ones(0, 1, 5, 5))
    assert out.shape == (0, 2, 3, 3)
    out.sum().backward()
    assert not layer.weight.grad.numpy().any()


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": 0}, "Conv2d: groups must be a positive integer, got 0"),
        ({"groups": 2, "in_channels": 3}, "in_channels must be divisible.*in_channels=3"),
        ({"groups": 2, "out_channels": 3}, "out_channels must be divisible.*out_channels=3"),
        ({"padding": "full"}, "invalid padding string 'full', should be 'same' or 'valid'"),
        ({"padding": "same", "stride": 2}, "padding='same' is not supported for strided.*2, 2"),
        ({"padding_mode": "mirror"}, "padding_mode must be one of .*got 'mirror'"),
    ],
)
def test_layers_refuse(arguments: Any, message: str) -> None:
    settings = {"in_channels": 4, "out_channels": 4, "kernel_size": 3} | arguments
    with pytest.raises(ValueError, match=message):
        nn.Conv2d(**settings)


def test_transposed_layers_refuse() -> None:
    with pytest.raises(ValueError, match="ConvTranspose1d: padding_mode must be one of"):
        nn.ConvTranspose1d(1, 1, 3, padding_mode="reflect")
    up = nn.ConvTranspose2d(1, 1, 3, stride=2)
    x = chainrule.ones(1, 1, 4, 4)
    with pytest.raises(
        ValueError, match=r"output size of \(12, 9\), but valid sizes range.*10, 10"
    ):
        up(x, output_size=(12, 9))
    with pytest.raises(ValueError, match=r"output_size must have 2 or 4 elements, got \(9,\)"):
        up(x, output_size=(9,))


def test_calls_refuse() -> None:
    layer = nn.Conv2d(3, 4, 5)
    with pytest.raises(RuntimeError, match=r"conv2d.*to have 3 channels, but got 1"):
        layer(chainrule.ones(1, 1, 8, 8))
    with pytest.raises(RuntimeError, match="Kernel size can't be greater than actual input size"):
        layer(chainrule.ones(1, 3, 4, 8))
    with pytest.raises(RuntimeError, match=r"expected 3D \(unbatched\) or 4D"):
        layer(chainrule.ones(8, 8))
    with pytest.raises(RuntimeError, match="should be the same; convert"):
        layer(chainrule.ones(1, 3, 8, 8, dtype=chainrule.float64))
    with pytest.raises(RuntimeError, match="pad: padding size should be less"):
        nn.Conv1d(1, 1, 3, padding=4, padding_mode="reflect")(chainrule.ones(1, 4))
    with pytest.raises(RuntimeError, match="convolve: expected weight of shape"):
        convolve(chainrule.ones(1, 1, 4), chainrule.ones(4))
    with pytest.raises(
        RuntimeError, match="expected kernel_size to be a single integer value or 2"
    ):
        nn.Conv2d(1, 1, (3, 3, 3))


def test_pooling_errata() -> None:
    """Erratum 9: the maximum of the patch, without sums; erratum 12: at most half of padding."""
    x = chainrule.tensor([[[[1.0, 2.0], [4.0, 3.0]]]])
    assert max_pool2d(x, 2).item() == 4.0
    with pytest.raises(RuntimeError, match="pad should be at most half of kernel size"):
        nn.MaxPool2d(3, padding=2)(chainrule.ones(1, 1, 8, 8))


# --- a convolution and its bias as one operation --------------------------------------------------


@pytest.mark.parametrize("frozen", ["", "weight", "bias", "input"])
def test_what_is_known_of_a_shape_changes_nothing(frozen: str) -> None:
    """The first call checks its arguments; later ones with the same shapes take a shorter way."""
    layer, x = seeded(nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)), normal(3, 4, 9, 8)
    x.requires_grad_(frozen != "input")
    for name in ("weight", "bias"):
        getattr(layer, name).requires_grad_(frozen != name)
    inputs = [t for t in (x, layer.weight, layer.bias) if t.requires_grad]
    apart = conv2d(x, layer.weight, None, 2, 1, 1, 2) + layer.bias.reshape(-1, 1, 1)
    layer(x)
    joined = layer(x)
    assert_close(joined, apart, rtol=1e-13)
    weights = normal(*joined.shape, seed=7)
    for a, b in zip(
        chainrule.autograd.grad((joined.tanh() * weights).sum(), inputs, create_graph=True),
        chainrule.autograd.grad((apart.tanh() * weights).sum(), inputs, create_graph=True),
        strict=True,
    ):
        assert_close(a, b, rtol=1e-11, atol=1e-13)
        for c, d in zip(
            chainrule.autograd.grad(a.square().sum(), inputs, retain_graph=True),
            chainrule.autograd.grad(b.square().sum(), inputs, retain_graph=True),
            strict=True,
        ):
            assert_close(c, d, rtol=1e-10, atol=1e-12)
    layer(x).square().sum().backward()
    for t in inputs:
        (expected,) = chainrule.autograd.grad(apart.square().sum(), t, retain_graph=True)
        assert_close(t.grad, expected, rtol=1e-11, atol=1e-13)


def test_settings_of_another_type_are_refused_after_a_good_call() -> None:
    x, w, b = normal(1, 2, 6, 6), normal(3, 2, 3, 3), normal(3)
    for _ in range(2):
        conv2d(x, w, b, (2, 2))
        max_pool2d(x, (2, 2))
    with pytest.raises(TypeError, match="stride must be an int"):
        conv2d(x, w, b, (2.0, 2.0))
    with pytest.raises(TypeError, match="kernel_size must be an int"):
        max_pool2d(x, (2.0, 2.0))
    with pytest.raises(RuntimeError, match="should be the same"):
        conv2d(x.float(), w, b, (2, 2))
    steps = [2, 2]
    assert conv2d(x, w, b, steps).shape == (1, 3, 2, 2)
    steps[:] = [1, 1]
    assert conv2d(x, w, b, steps).shape == (1, 3, 4, 4)


def test_operands_that_are_no_tensors() -> None:
    x, w, b = normal(1, 2, 6, 6), normal(3, 2, 3, 3), normal(3)
    for name, given in {
        "weight": (x, w.numpy(), b),
        "bias": (x, w, b.numpy()),
        "input": (x.numpy(), w, b),
    }.items():
        with pytest.raises(TypeError, match=rf"conv2d\(\): argument '{name}' must be Tensor"):
            conv2d(*given)
