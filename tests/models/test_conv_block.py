"""Convolution, detector, pooling: values, and what small shifts of the image change (M25)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import signal

import chainrule
from chainrule import models, nn

DOUBLE = chainrule.float64


def by_hand(image: np.ndarray, block: Any, pool: int) -> np.ndarray:
    """One convolution, ReLU and the maxima of windows, with SciPy."""
    w, b = (p.detach().numpy() for p in block[0].parameters())
    maps = []
    for k in range(len(w)):
        total = sum(signal.correlate(image[c], w[k, c], "same") for c in range(len(image)))
        seen = np.maximum(total + b[k], 0)
        h, v = (n // pool for n in seen.shape)
        windows = seen[: h * pool, : v * pool].reshape(h, pool, v, pool)
        maps.append(windows.max(axis=(1, 3)))
    return np.array(maps)


@pytest.mark.parametrize("pool", [2, 3])
def test_a_block_is_convolution_detector_and_pooling(pool: int) -> None:
    chainrule.manual_seed(0)
    block = models.ConvBlock(2, 4, 3, pool=pool).double()
    x = np.random.default_rng(0).normal(size=(3, 2, 11, 10))
    out = block(chainrule.tensor(x)).detach().numpy()
    for image, maps in zip(x, out, strict=True):
        np.testing.assert_allclose(maps, by_hand(image, block, pool), rtol=1e-10, atol=1e-12)


def test_the_parts_of_a_block() -> None:
    block = models.ConvBlock(3, 8, 5, convolutions=2, activation="tanh", pooling="average")
    assert [type(m).__name__ for m in block] == ["Conv2d", "Tanh", "Conv2d", "Tanh", "AvgPool2d"]
    assert (block[0].in_channels, block[2].in_channels) == (3, 8)
    assert block(chainrule.zeros(2, 3, 12, 9)).shape == (2, 8, 6, 4)
    x = chainrule.randn(2, 3, 8, 8, requires_grad=True)
    block(x).square().sum().backward()
    assert x.grad.abs().min() > 0
    with pytest.raises(ValueError, match="kernel_size must be odd"):
        models.ConvBlock(1, 1, 4)
    with pytest.raises(ValueError, match="pooling must be 'max' or 'average', got 'min'"):
        models.ConvBlock(1, 1, pooling="min")


def blurred(seed: int) -> chainrule.Tensor:
    """Smooth images with an empty border, so that nothing leaves them by a shift."""
    noise = np.random.default_rng(seed).normal(size=(8, 1, 32, 32))
    kernel = np.exp(-(np.arange(-3, 4) ** 2) / 4)
    smooth = signal.convolve(noise, (kernel[:, None] * kernel)[None, None], "same")
    smooth[..., :6, :] = smooth[..., -6:, :] = smooth[..., :6] = smooth[..., -6:] = 0
    return chainrule.tensor(smooth)


@pytest.mark.parametrize("pooling", ["max", "average"])
def test_small_shifts_change_little(pooling: str) -> None:
    """The mean squared change by a shift, in parts of the variance: much less with pooling."""

    def change(block: nn.Module, by: int, seed: int) -> float:
        x = blurred(seed)
        a, b = block(x), block(chainrule.roll(x, by, -1))
        return float(((a - b) ** 2).mean() / a.var())

    for by in (1, 2):
        with_pool, without = [], []
        for seed in range(5):
            chainrule.manual_seed(seed)
            block = models.ConvBlock(1, 6, 3, pool=8, pooling=pooling).double()
            with_pool.append(change(block, by, seed))
            without.append(change(block[:-1], by, seed))
        assert np.mean(with_pool) < 0.5 * np.mean(without)


def test_a_shift_within_a_window_changes_nothing_and_one_by_a_window_moves_the_map() -> None:
    """Exact where it can be: a kernel of one place, and a single bright point."""
    block = models.ConvBlock(1, 2, 1, pool=4).double()
    with chainrule.no_grad():
        block[0].weight.copy_(chainrule.tensor([[[[2.0]]], [[[0.5]]]]))
        block[0].bias.zero_()
    x = chainrule.zeros(1, 1, 16, 16, dtype=DOUBLE)
    x[0, 0, 4, 8] = 1.0
    at = block(x)
    for down in range(4):
        for right in range(4):
            moved = chainrule.roll(x, (down, right), (-2, -1))
            assert chainrule.equal(block(moved), at)
    assert not chainrule.equal(block(chainrule.roll(x, 4, -1)), at)
    y = blurred(0)[:1]
    y[..., 20:] = 0  # so that nothing leaves the image
    assert chainrule.equal(block(chainrule.roll(y, 4, -1)), chainrule.roll(block(y), 1, -1))
