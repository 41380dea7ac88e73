"""Geometry and color of images, and their derivatives."""

from __future__ import annotations

import colorsys
import itertools
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from scipy import ndimage

import chainrule
from chainrule.data import transforms as T
from chainrule.data import transforms_functional as TF


F64 = chainrule.float64


def seeded(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


def image(*shape: int, seed: int = 0) -> Any:
    return chainrule.tensor(np.random.default_rng(seed).random(shape))


def bytes_(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def pillow(function: Any, x: np.ndarray) -> np.ndarray:
    """A function of Pillow images, on (C, H, W)."""
    given = Image.fromarray(x[0] if len(x) == 1 else x.transpose(1, 2, 0))
    out = np.asarray(function(given))
    return out[None] if out.ndim == 2 else out.transpose(2, 0, 1)


def assert_levels(actual: Any, expected: np.ndarray, most: int = 1) -> None:
    """Bytes that differ by at most so many levels."""
    assert actual.dtype is chainrule.uint8
    assert tuple(actual.shape) == expected.shape
    assert np.abs(actual.numpy().astype(int) - expected.astype(int)).max() <= most


# --- geometry -------------------------------------------------------------------------------------


def warped(x: np.ndarray, forward: np.ndarray, shift: Any, fill: float, order: int) -> np.ndarray:
    """SciPy's affine map of each channel around the center, ``forward`` acting on (x, y)."""
    back = np.linalg.inv(forward)[::-1, ::-1]  # on (row, column)
    middle = (np.array(x.shape[-2:]) - 1) / 2
    offset = middle - back @ (middle + np.array(shift[::-1]))
    return np.stack(
        [
            ndimage.affine_transform(c, back, offset, order=order, mode="grid-constant", cval=fill)
            for c in x
        ]
    )


def turn(degrees: float) -> np.ndarray:
    """Clockwise, as y points down."""
    a = np.radians(degrees)
    return np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])


@pytest.mark.parametrize("angle", [0.0, 17.0, -75.5, 90.0, 180.0, 359.0])
@pytest.mark.parametrize("fill", [None, 0.7])
def test_rotate(angle: float, fill: float | None) -> None:
    x = image(2, 9, 12)
    expected = warped(x.numpy(), turn(-angle), (0, 0), fill or 0.0, 1)
    assert_close(TF.rotate(x, angle, "bilinear", fill=fill), expected, atol=1e-9)


@pytest.mark.parametrize("shape", [(3, 4, 4), (1, 5, 5), (2, 3, 6, 6)])
def test_quarter_turns_move_pixels(shape: tuple[int, ...]) -> None:
    x = image(*shape)
    for k in range(4):
        assert_close(TF.rotate(x, 90 * k), np.rot90(x.numpy(), k, (-2, -1)).copy())
        expanded = TF.rotate(x[..., :3], 90 * k, expand=True)
        assert_close(expanded, np.rot90(x.numpy()[..., :3], k, (-2, -1)).copy())


def test_rotate_expanded_holds_the_corners() -> None:
    x = chainrule.ones(1, 20, 30)
    out = TF.rotate(x, 45, "bilinear", expand=True)
    assert tuple(out.shape) == (1, 36, 36)  # 50 / sqrt(2) = 35.36
    assert abs(out.sum().item() - 600) < 6


def test_rotate_around_a_point() -> None:
    x = chainrule.zeros(1, 7, 9)
    x[0, 1, 2] = 1
    x[0, 1, 4] = 2
    out = TF.rotate(x, 90, center=(2.5, 1.5))  # the middle of the pixel in row 1, column 2
    assert out[0, 1, 2] == 1
    assert TF.rotate(x, 180, center=(3.5, 1.5))[0, 1, 2] == 2


@pytest.mark.parametrize(
    ("angle", "translate", "scale", "shear"),
    [
        (0, (3, -2), 1, (0, 0)),
        (12, (2, -3), 1.3, (0, 0)),
        (0, (0, 0), 0.6, (0, 0)),
        (0, (0, 0), 1, (20, 0)),
        (0, (0, 0), 1, (0, 15)),
        (-33, (1, 1), 0.9, (10, -8)),
    ],
)
def test_affine(angle: float, translate: Any, scale: float, shear: Any) -> None:
    """R(angle) with y sheared by tan(shear_y), x by tan(shear_x), scaled, then shifted."""
    sx, sy = np.tan(np.radians(shear))
    # The rotation by (angle - shear_y) / cos(shear_y) is that of the angle times a shear of y.
    shear_y = np.array([[1, 0], [-sy, 1]])
    shear_x = np.array([[1, -sx], [0, 1]])
    forward = scale * turn(angle) @ shear_y @ shear_x
    x = image(3, 11, 14)
    out = TF.affine(x, angle, translate, scale, shear, "bilinear", fill=0.25)
    assert_close(out, warped(x.numpy(), forward, translate, 0.25, 1), atol=1e-9)


def test_whole_shifts_are_exact() -> None:
    x = image(2, 3, 8, 8)
    out = TF.affine(x, 0, (2, -1), 1, 0).numpy()
    assert_close(out[..., :-1, 2:], x.numpy()[..., 1:, :-2])
    assert not out[..., :2].any()
    assert not out[..., -1:, :].any()


def test_shear_moves_rows() -> None:
    """P16: row y moves by tan(shear) y, counted from the center."""
    x = chainrule.zeros(1, 5, 9)
    x[0, :, 4] = 1
    out = TF.affine(x, 0, (0, 0), 1, -45)
    assert out[0].argmax(1).tolist() == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("size", [(5, 30), (40, 7), (17, 23), (8, 8)])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_resize_is_pillows(size: tuple[int, int], mode: str) -> None:
    x = bytes_(3, 17, 23)
    how = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}[mode]
    expected = pillow(lambda im: im.resize(size[::-1], how), x)
    assert_levels(TF.resize(chainrule.tensor(x), size, mode), expected)
    floats = np.stack(
        [np.asarray(Image.fromarray(c).resize(size[::-1], how)) for c in x.astype(np.float32)]
    )
    assert_close(TF.resize(chainrule.tensor(x).float(), size, mode), floats, rtol=1e-4, atol=1e-3)


def test_resize_by_the_nearest_pixel() -> None:
    x = bytes_(2, 6, 8)
    assert_close(TF.resize(chainrule.tensor(x), (3, 4), "nearest"), x[:, ::2, ::2])
    exact = pillow(lambda im: im.resize((13, 5), Image.Resampling.NEAREST), x[:1])
    assert_close(TF.resize(chainrule.tensor(x[:1]), (5, 13), "nearest-exact"), exact)


def test_resize_of_the_shorter_edge() -> None:
    """P19: images of different sizes brought to one."""
    assert TF.resize(chainrule.zeros(3, 20, 30), 10).shape == (3, 10, 15)
    assert TF.resize(chainrule.zeros(2, 3, 31, 20), 10).shape == (2, 3, 15, 10)
    assert TF.resize(chainrule.zeros(3, 20, 60), 10, max_size=20).shape == (3, 6, 20)
    whole = T.Compose([T.Resize(8), T.CenterCrop(8)])
    assert {tuple(whole(image(3, h, w)).shape) for h, w in [(9, 9), (30, 8), (8, 51)]} == {
        (3, 8, 8)
    }


def test_shrinking_averages() -> None:
    """Without antialiasing single pixels decide."""
    checkers = chainrule.tensor(np.indices((32, 32)).sum(0)[None] % 2).float()
    assert_close(TF.resize(checkers, (8, 8))[0, 1:-1, 1:-1], np.full((6, 6), 0.5, np.float32), 1e-6)
    assert TF.resize(checkers, (8, 8), "nearest").unique().tolist() == [0.0]


@pytest.mark.parametrize("padding", [2, (1, 2), (1, 2, 3, 0)])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_pad_is_numpys(padding: Any, mode: str) -> None:
    x = bytes_(2, 5, 6)
    left, above, right, below = {2: (2, 2, 2, 2), (1, 2): (1, 2, 1, 2)}.get(padding, padding)
    options = {"constant_values": 9} if mode == "constant" else {}
    expected = np.pad(x, ((0, 0), (above, below), (left, right)), mode, **options)  # type: ignore[call-overload]
    fill = 9 if mode == "constant" else 0
    assert_close(TF.pad(chainrule.tensor(x), padding, fill, mode), expected)


def test_crops() -> None:
    x = bytes_(3, 8, 10)
    t = chainrule.tensor(x)
    assert_close(TF.crop(t, 2, 3, 4, 5), x[:, 2:6, 3:8])
    assert_close(TF.crop(t, -1, 8, 3, 4), np.pad(x, ((0, 0), (1, 0), (0, 2)))[:, :3, 8:12])
    assert_close(TF.center_crop(t, 4), x[:, 2:6, 3:7])
    assert_close(TF.center_crop(t, (9, 3)), np.pad(x, ((0, 0), (0, 1), (0, 0)))[:, :, 4:7])
    assert_close(TF.hflip(t), x[:, :, ::-1].copy())
    assert_close(TF.vflip(t), x[:, ::-1].copy())
    halves = TF.resized_crop(chainrule.tensor(x).double(), 0, 0, 8, 10, (4, 5), "bilinear", False)
    assert_close(halves, x.reshape(3, 4, 2, 5, 2).mean((2, 4)))


def test_erase() -> None:
    x = bytes_(3, 6, 7)
    expected = x.copy()
    expected[:, 1:4, 2:6] = 5
    t = chainrule.tensor(x)
    assert_close(TF.erase(t, 1, 2, 3, 4, 5), expected)
    expected[:, 1:4, 2:6] = np.array([1, 2, 3])[:, None, None]
    assert_close(TF.erase(t, 1, 2, 3, 4, [1, 2, 3]), expected)
    patch = bytes_(3, 3, 4, seed=1)
    expected[:, 1:4, 2:6] = patch
    assert_close(TF.erase(t, 1, 2, 3, 4, chainrule.tensor(patch)), expected)
    assert_close(t, x)
    with pytest.raises(ValueError, match=r"of corner \(5, 0\) and size \(3, 3\) is not inside"):
        TF.erase(t, 5, 0, 3, 3, 0)


# --- color ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.0, 0.4, 1.0, 1.9])
def test_brightness_contrast_saturation_sharpness_are_pillows(factor: float) -> None:
    x = bytes_(3, 14, 11)
    t = chainrule.tensor(x)
    for enhance, adjust, most in (
        (ImageEnhance.Brightness, TF.adjust_brightness, 1),
        (ImageEnhance.Contrast, TF.adjust_contrast, 2),  # Pillow rounds the mean gray
        (ImageEnhance.Color, TF.adjust_saturation, 2),  # and weighs red by 0.299
        (ImageEnhance.Sharpness, TF.adjust_sharpness, 1),
    ):
        expected = pillow(lambda im, e=enhance: e(im).enhance(factor), x)  # type: ignore[misc]
        assert_levels(adjust(t, factor), expected, most)


def test_factors_in_closed_form() -> None:
    x = image(3, 4, 5)
    a = x.numpy()
    gray = np.tensordot([0.2989, 0.587, 0.114], a, 1)
    assert_close(TF.rgb_to_grayscale(x), gray[None])
    assert_close(TF.rgb_to_grayscale(x, 3), np.stack([gray] * 3))
    assert_close(TF.adjust_brightness(x, 1.5), (1.5 * a).clip(0, 1))
    assert_close(TF.adjust_contrast(x, 0.3), 0.3 * a + 0.7 * gray.mean())
    assert_close(TF.adjust_saturation(x, 0.3), 0.3 * a + 0.7 * gray)
    assert_close(TF.invert(x), 1 - a)
    assert_close(TF.solarize(x, 0.4), np.where(a >= 0.4, 1 - a, a))
    assert_close(TF.posterize(x, 2), np.floor(a * 4) / 4)
    low, high = a.min((1, 2), keepdims=True), a.max((1, 2), keepdims=True)
    assert_close(TF.autocontrast(x), (a - low) / (high - low))


@pytest.mark.parametrize("turned", [-0.5, -0.21, 0.0, 0.1, 1 / 3, 0.5])
def test_hue_is_colorsys(turned: float) -> None:
    x = image(3, 6, 7)
    x[:, 0, :3] = chainrule.tensor([[1.0, 0.5, 0.0]] * 3, dtype=F64)  # white, gray and black
    expected = np.empty((3, 6, 7))
    for i, j in itertools.product(range(6), range(7)):
        h, s, v = colorsys.rgb_to_hsv(*x[:, i, j].tolist())
        expected[:, i, j] = colorsys.hsv_to_rgb((h + turned) % 1, s, v)
    assert_close(TF.adjust_hue(x, turned), expected, atol=1e-12)


def test_a_third_of_the_wheel_exchanges_channels() -> None:
    x = chainrule.tensor(bytes_(3, 5, 5))
    assert_levels(TF.adjust_hue(x, 1 / 3), x.numpy()[[2, 0, 1]])


def test_curves_are_pillows() -> None:
    x = np.random.default_rng(0).normal(110, 25, (3, 40, 50)).clip(0, 255).astype(np.uint8)
    t = chainrule.tensor(x)
    assert_close(TF.invert(t), pillow(ImageOps.invert, x))
    assert_close(TF.solarize(t, 100), pillow(lambda im: ImageOps.solarize(im, 100), x))
    for bits in range(1, 9):
        expected = pillow(lambda im, b=bits: ImageOps.posterize(im, b), x)  # type: ignore[misc]
        assert_close(TF.posterize(t, bits), expected)
    assert_close(TF.equalize(t), pillow(ImageOps.equalize, x))
    assert_levels(TF.autocontrast(t), pillow(ImageOps.autocontrast, x))
    smooth = pillow(lambda im: im.filter(ImageFilter.SMOOTH), x)
    assert_levels(TF.adjust_sharpness(t, 0.0), smooth)
    batch = chainrule.tensor(np.stack([x, x[::-1]]))
    assert_close(
        TF.equalize(batch), np.stack([TF.equalize(t).numpy(), TF.equalize(t).numpy()[::-1]])
    )
    assert_close(TF.equalize(t.float() / 255) * 255, TF.equalize(t).float(), rtol=1e-6)


def test_flat_images() -> None:
    flat = chainrule.full((3, 6, 6), 7, dtype=chainrule.uint8)
    assert TF.equalize(flat).tolist() == flat.tolist()
    assert TF.autocontrast(flat).tolist() == flat.tolist()
    tiny = chainrule.tensor(bytes_(3, 2, 2))
    assert TF.adjust_sharpness(tiny, 0.0).tolist() == tiny.tolist()
    gray = chainrule.tensor(bytes_(1, 4, 4))
    assert TF.adjust_saturation(gray, 0.0).tolist() == gray.tolist()
    assert TF.adjust_hue(gray, 0.3).tolist() == gray.tolist()


def test_a_factor_for_each_image() -> None:
    x = image(3, 3, 4, 5)
    for adjust, factors in (
        (TF.adjust_brightness, [0.2, 1.0, 1.6]),
        (TF.adjust_contrast, [0.2, 1.0, 1.6]),
        (TF.adjust_saturation, [0.2, 1.0, 1.6]),
        (TF.adjust_sharpness, [0.2, 1.0, 1.6]),
        (TF.adjust_hue, [-0.2, 0.0, 0.4]),
    ):
        out = adjust(x, chainrule.tensor(factors, dtype=F64))
        assert_close(out, np.stack([adjust(i, f).numpy() for i, f in zip(x, factors, strict=True)]))
    with pytest.raises(ValueError, match=r"one number for each image.*got shape \(2,\)"):
        TF.adjust_brightness(x, chainrule.ones(2))


# --- derivatives ----------------------------------------------------------------------------------


DIFFERENTIABLE = {
    "rotate": lambda x: TF.rotate(x, 20, "bilinear", fill=0.4),
    "rotate nearest": lambda x: TF.rotate(x, 20),
    "affine": lambda x: TF.affine(x, 10, (1, 0), 1.2, (5, 5), "bilinear"),
    "resize": lambda x: TF.resize(x, (3, 7)),
    "resize bicubic": lambda x: TF.resize(x, (7, 3), "bicubic"),
    "center_crop": lambda x: TF.center_crop(x, (3, 6)),
    "pad": lambda x: TF.pad(x, 1, padding_mode="symmetric"),
    "hflip": TF.hflip,
    "erase": lambda x: TF.erase(x, 1, 1, 2, 2, 0.5),
    "brightness": lambda x: TF.adjust_brightness(x, 0.7),
    "contrast": lambda x: TF.adjust_contrast(x, 0.7),
    "saturation": lambda x: TF.adjust_saturation(x, 0.7),
    "hue": lambda x: TF.adjust_hue(x, 0.13),
    "sharpness": lambda x: TF.adjust_sharpness(x, 0.7),
    "gray": TF.rgb_to_grayscale,
    "solarize": lambda x: TF.solarize(x, 0.5),
    "autocontrast": TF.autocontrast,
    "normalize": lambda x: TF.normalize(x, 0.3, 0.2),
    "noise": lambda x: TF.gaussian_noise(x, sigma=0.01, clip=False, generator=seeded()),
    "jitter": lambda x: T.ColorJitter(0.2, 0.2, 0.2, 0.1)(x, generator=seeded()),
    "crop": lambda x: T.RandomCrop(3)(x, generator=seeded()),
    "erasing": lambda x: T.RandomErasing(1.0)(x, generator=seeded()),
    "resized crop": lambda x: T.RandomResizedCrop(4)(x, generator=seeded()),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.parametrize("batch", [(), (2,)], ids=["image", "batch"])
def test_gradients(name: str, batch: tuple[int, ...]) -> None:
    x = image(*batch, 3, 5, 4).requires_grad_()
    assert chainrule.autograd.gradcheck(DIFFERENTIABLE[name], (x,))


def test_a_factor_has_a_gradient() -> None:
    x, f = image(2, 3, 4, 4), chainrule.tensor([0.4, 0.8], dtype=F64, requires_grad=True)
    assert chainrule.autograd.gradcheck(lambda f: TF.adjust_contrast(x, f), (f,))


# --- bad arguments --------------------------------------------------------------------------------


BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda: TF.hflip(np.zeros((1, 2, 2))), TypeError, "expected an image as a Tensor, got ndarr"),
    (lambda: T.RandomRotation(3)(Image.new("L", (2, 2))), TypeError, "got Image; .*ToTensor"),
    (lambda: TF.vflip(chainrule.zeros(2, 2)), ValueError, r"expected an image \(C, H, W\) or a b"),
    (lambda: TF.adjust_hue(chainrule.zeros(2, 4, 4), 0), ValueError, "of 1 or 3 channels, got 2"),
    (lambda: TF.adjust_brightness(image(3, 2, 2), -1), ValueError, "brightness_factor must be non"),
    (lambda: TF.adjust_hue(image(3, 2, 2), 0.6), ValueError, r"hue_factor must be in \[-0.5, 0.5"),
    (lambda: TF.invert(chainrule.zeros(1, 2, 2).long()), TypeError, "uint8 or floating type, got"),
    (lambda: TF.solarize(image(1, 2, 2), 200), ValueError, r"threshold must be in \[0, 1\]"),
    (lambda: TF.posterize(image(1, 2, 2), 9), ValueError, r"bits must be in \[0, 8\], got 9"),
    (lambda: TF.resize(image(1, 4, 4), (1, 2, 3)), ValueError, r"size must be an int or \(height"),
    (lambda: TF.resize(image(1, 4, 4), 0), ValueError, "size must be positive, got 0"),
    (lambda: TF.resize(image(1, 4, 4), 2, "lanczos"), ValueError, "interpolation must be one of"),
    (lambda: T.Resize(8, max_size=8), ValueError, "max_size = 8 must be greater than the size"),
    (lambda: T.Resize((8, 8), max_size=9), ValueError, "max_size is for one number as size"),
    (lambda: TF.resize(chainrule.zeros(1, 0, 4), 2), ValueError, "the image is empty"),
    (lambda: TF.pad(image(1, 4, 4), (1, 2, 3)), ValueError, "padding must be one int or a tuple"),
    (lambda: T.Pad(1, 0, "mirror"), ValueError, "padding_mode must be one of constant, edge"),
    (lambda: TF.pad(image(1, 2, 2), 3, 0, "symmetric"), ValueError, "can be as wide as the image"),
    (lambda: TF.rotate(image(1, 4, 4), 3, "bicubic"), ValueError, "must be one of nearest, biline"),
    (lambda: TF.rotate(image(3, 4, 4), 3, fill=[1, 2]), ValueError, "of the 3 channels, got 2"),
    (lambda: TF.rotate(image(3, 4, 4), 3, center=(1,)), ValueError, r"center must be \(x, y\)"),
    (lambda: T.RandomRotation(3, expand=True, center=(1, 1)), ValueError, "leave out center=.1, 1"),
    (lambda: TF.affine(image(1, 4, 4), 0, (1,), 1, 0), ValueError, r"translate must be \(right"),
    (lambda: TF.affine(image(1, 4, 4), 0, (1, 1), 0, 0), ValueError, "scale must be positive"),
    (lambda: TF.affine(image(1, 4, 4), 0, (1, 1), 1, (1, 2, 3)), ValueError, "shear must be one"),
    (lambda: TF.gaussian_noise(image(1, 2, 2), sigma=-1), ValueError, "sigma must be non-negative"),
    (lambda: T.GaussianNoise(sigma=-1), ValueError, "sigma must be non-negative, got -1"),
    (lambda: T.RandomHorizontalFlip(1.5), ValueError, "RandomHorizontalFlip: p must be a probabil"),
    (lambda: T.RandomRotation(-3), ValueError, "degrees as a single number must be non-negative"),
    (lambda: T.RandomRotation((5, 1)), ValueError, r"degrees must be a number or \(from, to\) in"),
    (lambda: T.RandomRotation("3"), TypeError, "degrees must be a number"),
    (lambda: T.RandomRotation(3, expand=True)(image(2, 1, 4, 4)), ValueError, "single images; got"),
    (lambda: T.RandomAffine(0, translate=(2, 0)), ValueError, r"two fractions of the size, in \[0"),
    (lambda: T.RandomAffine(0, scale=(0, 1)), ValueError, "scale must be positive"),
    (lambda: T.RandomAffine(0, shear=90), ValueError, "angles below 90 degrees"),
    (lambda: T.RandomResizedCrop(3, scale=(0.5, 1.5)), ValueError, r"scale must be .* in \[0, 1\]"),
    (lambda: T.RandomResizedCrop(3, ratio=(0, 1)), ValueError, "ratio must be positive"),
    (lambda: T.RandomErasing(value="noise"), ValueError, "or 'random'; got 'noise'"),
    (lambda: T.RandomErasing(1, value=(1, 2))(image(3, 9, 9)), ValueError, "each of the 3 channel"),
    (lambda: T.ColorJitter(hue=0.7), ValueError, r"hue must be in \[0, 0.5\], got 0.7"),
    (lambda: T.ColorJitter(brightness=(-1, 2)), ValueError, r"brightness must be .* in \[0, inf\]"),
    (lambda: T.Grayscale(2), ValueError, "num_output_channels must be 1 or 3, got 2"),
    (lambda: T.Normalize((0.5, 0.5), (0.5, 0)), ValueError, "std contains zero"),
    (lambda: T.Normalize("half", 1), TypeError, "mean must be a number or one for each channel"),
    (lambda: T.RandAugment(magnitude=31), ValueError, "magnitude from 0 to num_magnitude_bins - 1"),
    (lambda: T.AutoAugment("mnist"), ValueError, "there is no policy 'mnist'; there are"),
    (lambda: T.AutoAugment([[("Melt", 1, 1)]]), ValueError, r"is \(name, probability, strength\)"),
    (lambda: T.AutoAugment([[("Rotate", 1, 10)]]), ValueError, "strengths are from 0 to 9"),
    (lambda: T.AutoAugment([]), ValueError, "the policy is empty"),
    (lambda: T.RandomCrop(0), ValueError, "size must be positive, got 0"),
    (lambda: T.RandomCrop(2)(image(1, 4, 4), generator=3), TypeError, "must be Generator, not int"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda c: c[2][:40])
def test_refuses(case: Any) -> None:
    function, error, message = case
    with pytest.raises(error, match=message):
        function()
