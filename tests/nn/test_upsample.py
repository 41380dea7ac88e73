"""Resampling: functions that it reproduces, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from scipy import ndimage

import chainrule
from chainrule import func, nn
from chainrule.nn.functional import (
    affine_grid,
    grid_sample,
    interpolate,
    pixel_shuffle,
    pixel_unshuffle,
)


def image(*shape: int) -> chainrule.Tensor:
    return chainrule.tensor(np.random.default_rng(0).normal(size=shape))


def test_nearest_repeats() -> None:
    x = image(1, 2, 3, 4)
    expected = x.numpy().repeat(2, axis=2).repeat(3, axis=3)
    assert_close(interpolate(x, scale_factor=(2, 3)), expected)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("size", [(6, 8), (9, 4), (3, 12), (5, 9), (2, 8)])
def test_nearest_is_the_same_where_it_is_looked_at(mode: str, size: tuple[int, int]) -> None:
    """Whole factors are repeated at once, in transformations each dimension is gathered."""
    x = image(2, 3, 3, 4).requires_grad_()
    direct, seen = interpolate(x, size, mode=mode), chainrule.autograd.detect_anomaly()
    with seen:
        gathered = interpolate(x, size, mode=mode)
    assert direct.tolist() == gathered.tolist()
    assert (
        direct.tolist() == func.vmap(lambda x: interpolate(x[None], size, mode=mode)[0])(x).tolist()
    )
    g = image(*direct.shape)
    assert_close(*[chainrule.autograd.grad(y, x, g)[0] for y in (direct, gathered)], rtol=1e-12)
    half = x.detach().half()
    assert interpolate(half, size, mode=mode).tolist() == direct.half().tolist()


def test_aligned_corners_as_scipy_zooms() -> None:
    x = image(1, 1, 5, 4)
    expected = ndimage.zoom(x.numpy()[0, 0], (9 / 5, 10 / 4), order=1, grid_mode=False)
    assert_close(interpolate(x, (9, 10), mode="bilinear", align_corners=True)[0, 0], expected)


@pytest.mark.parametrize("align_corners", [True, False])
def test_planes_stay_planes(align_corners: bool) -> None:
    """Away from the border, where the image is continued by its last pixels."""
    i, j = np.meshgrid(np.arange(12.0), np.arange(10.0), indexing="ij")
    x = chainrule.tensor((2 + 0.5 * i - 0.3 * j)[None, None])
    out = interpolate(x, (24, 20), mode="bilinear", align_corners=align_corners).numpy()[0, 0]
    for axis in (0, 1):
        assert np.allclose(np.diff(out[6:-6, 6:-6], 2, axis=axis), 0, atol=1e-12)


def test_constants_stay_constant() -> None:
    x = chainrule.ones(1, 1, 5, 7, dtype=chainrule.float64)
    for mode in ("nearest", "nearest-exact", "area", "bilinear", "bicubic"):
        assert_close(interpolate(x, (3, 9), mode=mode), np.ones((1, 1, 3, 9)))


def test_area_averages() -> None:
    x = image(1, 1, 6, 4)
    assert_close(interpolate(x, scale_factor=0.5, mode="area"), nn.AvgPool2d(2)(x))


def test_scale_or_rounded_sizes() -> None:
    """5 elements times 1.7 make 8; recomputed the factor is 8 / 5."""
    x = image(1, 1, 5)
    given = interpolate(x, scale_factor=1.7, mode="linear")
    recomputed = interpolate(x, scale_factor=1.7, mode="linear", recompute_scale_factor=True)
    at = (np.arange(8) + 0.5) / 1.7 - 0.5
    assert_close(given[0, 0], np.interp(at, np.arange(5), x.numpy()[0, 0]))
    assert_close(recomputed, interpolate(x, 8, mode="linear"))


def test_the_result_is_a_copy() -> None:
    x = image(1, 1, 4)
    for mode in ("nearest", "linear", "nearest-exact"):
        y = interpolate(x, 4, mode=mode)
        assert_close(y, x)
        y += 1
        assert not np.allclose(x.numpy(), y.numpy())


def test_integers_and_infinities_repeat() -> None:
    assert interpolate(chainrule.tensor([[[1, 2]]]), 4).tolist() == [[[1, 1, 2, 2]]]
    x = chainrule.tensor([[[1.0, float("inf")]]])
    assert interpolate(x, 4).tolist() == [[[1, 1, np.inf, np.inf]]]


def test_shuffles_undo_each_other() -> None:
    x = image(2, 8, 3, 4)
    assert_close(pixel_unshuffle(pixel_shuffle(x, 2), 2), x)
    shuffle, back = nn.ChannelShuffle(2), nn.ChannelShuffle(4)
    assert_close(back(shuffle(x)), x)


def test_unfold_and_fold() -> None:
    """Folding what was unfolded counts each pixel as often as windows see it."""
    x = image(1, 2, 4, 5)
    unfold, fold = nn.Unfold(2), nn.Fold((4, 5), 2)
    times = fold(unfold(chainrule.ones(1, 2, 4, 5, dtype=chainrule.float64)))
    assert_close(fold(unfold(x)), times * x)
    assert times[0, 0, 1:3, 1:4].tolist() == [[4, 4, 4], [4, 4, 4]]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "exactly one of size and scale_factor"),
        ({"size": 3, "scale_factor": 2}, ValueError, "exactly one of size and scale_factor"),
        ({"size": (3, 3, 3)}, ValueError, "same number of spatial dimensions"),
        ({"size": 2.5}, TypeError, "expected size to be an int or ints, got 2.5"),
        ({"size": 3, "mode": "cubic"}, NotImplementedError, "got shape .* and mode 'cubic'"),
        ({"size": 3, "mode": "linear"}, NotImplementedError, "mode 'linear' needs 3D"),
        ({"size": 3, "align_corners": True}, ValueError, "align_corners can only be set"),
        ({"size": 0}, RuntimeError, "sizes should be greater than 0"),
        ({"scale_factor": 0.1}, RuntimeError, "sizes should be greater than 0"),
        ({"size": 3, "antialias": True}, ValueError, "antialias=True is restricted to the modes"),
    ],
)
def test_interpolate_refuses(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        interpolate(chainrule.ones(1, 1, 4, 4), **arguments)


def test_shuffles_refuse() -> None:
    with pytest.raises(RuntimeError, match="divisible by the square of upscale_factor"):
        pixel_shuffle(chainrule.ones(6, 2, 2), 2)
    with pytest.raises(RuntimeError, match="divisible by downscale_factor"):
        pixel_unshuffle(chainrule.ones(1, 3, 4), 2)
    with pytest.raises(RuntimeError, match="at least 3 dimensions"):
        pixel_shuffle(chainrule.ones(4, 4), 2)
    with pytest.raises(RuntimeError, match="upscale_factor to be positive, got 0"):
        pixel_shuffle(chainrule.ones(4, 4, 4), 0)
    with pytest.raises(RuntimeError, match="divisible by groups, got 5 channels and 2"):
        nn.ChannelShuffle(2)(chainrule.ones(1, 5, 2))


# --- grids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_the_identity_gives_the_image_back(mode: str, align_corners: bool) -> None:
    x = image(2, 3, 5, 4)
    theta = chainrule.eye(3, dtype=chainrule.float64)[:2].expand(2, 2, 3)
    grid = affine_grid(theta, x.shape, align_corners)
    assert_close(grid_sample(x, grid, mode, align_corners=align_corners), x, rtol=1e-12)


def test_a_turn_by_a_quarter() -> None:
    x = image(1, 1, 5, 5)
    theta = chainrule.tensor([[[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]], dtype=chainrule.float64)
    turned = grid_sample(x, affine_grid(theta, x.shape, False), align_corners=False)
    assert_close(turned[0, 0], np.rot90(x.numpy()[0, 0], -1), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"mode": "linear"}, ValueError, "expected mode to be one of .*got 'linear'"),
        ({"padding_mode": "wrap"}, ValueError, "expected padding_mode to be .*got 'wrap'"),
        ({"grid": chainrule.zeros(1, 2, 2)}, RuntimeError, "the same number of dimensions"),
        ({"grid": chainrule.zeros(2, 2, 2, 2)}, RuntimeError, "the batch size of input"),
        ({"grid": chainrule.zeros(1, 2, 2, 3)}, RuntimeError, "size 2 in the last dimension"),
    ],
)
def test_grids_are_refused(settings: Any, error: type[Exception], message: str) -> None:
    given = {"grid": chainrule.zeros(1, 2, 2, 2), "align_corners": False} | settings
    with pytest.raises(error, match=message):
        grid_sample(chainrule.ones(1, 1, 4, 4), **given)


def test_affine_maps_are_refused() -> None:
    with pytest.raises(ValueError, match=r"affine matrices of shape \(N, 2, 3\).*got \(1, 3, 3\)"):
        affine_grid(chainrule.ones(1, 3, 3), (1, 1, 4, 4), False)
    with pytest.raises(ValueError, match="theta to have floating point type"):
        affine_grid(chainrule.ones(1, 2, 3, dtype=chainrule.int64), (1, 1, 4, 4), False)
    with pytest.raises(NotImplementedError, match="only supports 4D and 5D sizes"):
        affine_grid(chainrule.ones(1, 2, 3), (1, 1, 4), False)
    with pytest.warns(UserWarning, match="align_corners is not given and taken as False"):
        affine_grid(chainrule.ones(1, 2, 3), (1, 1, 4, 4))


def test_channels_are_sampled_alike() -> None:
    x, grid = (
        image(2, 3, 5, 4),
        chainrule.tensor(np.random.default_rng(1).uniform(-1, 1, (2, 4, 2, 2))),
    )
    out = grid_sample(x, grid, align_corners=True)
    assert out.shape == (2, 3, 4, 2)
    for c in range(3):
        assert_close(out[:, c : c + 1], grid_sample(x[:, c : c + 1], grid, align_corners=True))
