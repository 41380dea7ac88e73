"""Images lighter, darker, with more or less contrast and color: functions of the values of pixels.

Factors are numbers, or tensors with one number for each image of a batch. All but ``equalize`` and
``posterize`` are differentiable with respect to the image almost everywhere.
"""

from __future__ import annotations

from collections.abc import Callable

from chainrule.backend import dtypes
from chainrule.data.image_arguments import (
    Factor,
    bound,
    check_image,
    in_float,
    in_levels,
    per_image,
)
from chainrule.ops.layers.conv import conv2d
from chainrule.ops.creation.patterns import arange, full_like
from chainrule.ops.elementwise.functions import floor, maximum, minimum
from chainrule.ops.elementwise.logic import bitwise_and, where
from chainrule.ops.elementwise.options import clamp, round
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.index.reading import gather
from chainrule.ops.reduce.order import amax, amin
from chainrule.ops.shape.padding import pad
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.creation.sampling import randn_like
from chainrule.ops.reduce.scan import cumsum
from chainrule.ops.shape.views import expand, reshape
from chainrule.ops.shape.stacking import cat
from chainrule.ops.reduce.sort import bincount
from chainrule.random import Generator
from chainrule.tensor import Tensor

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_hue",
    "adjust_saturation",
    "adjust_sharpness",
    "autocontrast",
    "equalize",
    "gaussian_noise",
    "invert",
    "posterize",
    "rgb_to_grayscale",
    "solarize",
]

LUMA = (0.2989, 0.587, 0.114)  # how bright red, green and blue look


def _blend(
    op: str, img: Tensor, other: Callable[[Tensor, float], Factor], factor: Factor
) -> Tensor:
    """factor * img + (1 - factor) * other, cut to the range of images."""
    f = per_image(op, f"{op.removeprefix('adjust_')}_factor", factor, img)
    return in_levels(op, img, lambda x, white: f * x + (1 - f) * other(x, white))


def _check_factor(op: str, factor: Factor, low: float = 0.0, high: float = float("inf")) -> None:
    if isinstance(factor, Tensor):
        inside = bool(((factor >= low) & (factor <= high)).all())
    else:
        inside = low <= factor <= high
    if not inside:
        rule = "non-negative" if high == float("inf") else f"in [{low}, {high}]"
        raise ValueError(f"{op}: {op.removeprefix('adjust_')}_factor must be {rule}, got {factor}")


def rgb_to_grayscale(img: Tensor, num_output_channels: int = 1) -> Tensor:
    """0.2989 red + 0.587 green + 0.114 blue, in one channel or in three that are equal."""
    check_image("rgb_to_grayscale", img, (1, 3))
    if num_output_channels not in (1, 3):
        raise ValueError(
            f"rgb_to_grayscale: num_output_channels must be 1 or 3, got {num_output_channels}"
        )
    gray = img
    if img.shape[-3] == 3:
        gray = in_levels("rgb_to_grayscale", img, lambda x, white: _luma(x))
    return expand(gray, (*gray.shape[:-3], num_output_channels, *gray.shape[-2:]))


def _luma(x: Tensor) -> Tensor:
    red, green, blue = (x[..., k : k + 1, :, :] for k in range(3))
    return LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue


def adjust_brightness(img: Tensor, brightness_factor: Factor) -> Tensor:
    """The image times a factor: 0 is black, 1 the image, 2 twice as bright.

    >>> import chainrule
    >>> from chainrule.data import transforms_functional as TF
    >>> TF.adjust_brightness(chainrule.tensor([[[0.1, 0.4, 0.8]]]), 2)
    tensor([[[0.2000, 0.8000, 1.0000]]])
    """
    check_image("adjust_brightness", img, (1, 3))
    _check_factor("adjust_brightness", brightness_factor)
    return _blend("adjust_brightness", img, lambda x, white: 0.0, brightness_factor)


def adjust_contrast(img: Tensor, contrast_factor: Factor) -> Tensor:
    """The image's distance from its mean gray times a factor: 0 is plain gray, 1 the image."""
    check_image("adjust_contrast", img, (1, 3))
    _check_factor("adjust_contrast", contrast_factor)
    gray = cast(rgb_to_grayscale(img), img.dtype if img.is_floating_point() else dtypes.float32)
    level = mean(gray, (-3, -2, -1), keepdim=True)
    return _blend("adjust_contrast", img, lambda x, white: level, contrast_factor)


def adjust_saturation(img: Tensor, saturation_factor: Factor) -> Tensor:
    """The image's distance from its gray version times a factor: 0 is gray, 1 the image."""
    check_image("adjust_saturation", img, (1, 3))
    _check_factor("adjust_saturation", saturation_factor)
    if img.shape[-3] == 1:
        return img
    gray = rgb_to_grayscale(img)
    return _blend("adjust_saturation", img, lambda x, white: gray, saturation_factor)


def adjust_hue(img: Tensor, hue_factor: Factor) -> Tensor:
    """The colors turned around the color wheel, by -1/2 to 1/2 of it.

    With the hue h in sixths of the wheel, the value v and the saturation s of a pixel, its red,
    green and blue are v - v s max(0, min(k, 4 - k, 1)), k = (n + h) mod 6, n = 5, 3, 1.
    """
    check_image("adjust_hue", img, (1, 3))
    _check_factor("adjust_hue", hue_factor, -0.5, 0.5)
    turn = per_image("adjust_hue", "hue_factor", hue_factor, img)
    if img.shape[-3] == 1:
        return img
    white = bound("adjust_hue", img)

    def turned(x: Tensor) -> Tensor:
        hue, saturation, value = _hsv(x / white)
        places = [(n + hue + 6 * turn) % 6 for n in (5, 3, 1)]
        parts = [clamp(minimum(k, 4 - k), 0.0, 1.0) for k in places]
        return white * cat([value * (1 - saturation * part) for part in parts], -3)

    return in_float(img, turned)


def _hsv(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue (in sixths of the wheel), saturation and value, each with one channel."""
    red, green, blue = (x[..., k : k + 1, :, :] for k in range(3))
    high, low = maximum(maximum(red, green), blue), minimum(minimum(red, green), blue)
    span = high - low
    divisor = where(span == 0, 1.0, span)  # gray has no hue
    of_green = where(high == green, (blue - red) / divisor + 2, (red - green) / divisor + 4)
    hue = where(high == red, (green - blue) / divisor, of_green)
    return hue, span / where(high == 0, 1.0, high), high


def adjust_sharpness(img: Tensor, sharpness_factor: Factor) -> Tensor:
    """The image's distance from a blurred version times a factor: 0 is blurred, 1 the image.

    The blur is [[1, 1, 1], [1, 5, 1], [1, 1, 1]] / 13; the border pixels stay.
    """
    check_image("adjust_sharpness", img, (1, 3))
    _check_factor("adjust_sharpness", sharpness_factor)
    if min(img.shape[-2:]) < 3:
        return img
    blurred = in_float(img, _blurred)
    return _blend("adjust_sharpness", img, lambda x, white: blurred, sharpness_factor)


def _blurred(x: Tensor) -> Tensor:
    kernel = tensor([[1.0, 1.0, 1.0], [1.0, 5.0, 1.0], [1.0, 1.0, 1.0]], dtype=x.dtype) / 13
    h, w = x.shape[-2:]
    inner = conv2d(reshape(x, (-1, 1, h, w)), reshape(kernel, (1, 1, 3, 3)))
    inner = reshape(inner, (*x.shape[:-2], h - 2, w - 2))
    inside = pad(full_like(inner.detach(), 1, dtype=dtypes.bool_), (1, 1, 1, 1))
    return where(inside, pad(inner, (1, 1, 1, 1)), x)


# --- curves ---------------------------------------------------------------------------------------


def invert(img: Tensor) -> Tensor:
    """White minus the image: its negative."""
    white = bound("invert", check_image("invert", img))
    return white - img if img.is_floating_point() else int(white) - img


def solarize(img: Tensor, threshold: float) -> Tensor:
    """The negative of all that is as bright as the threshold or brighter."""
    check_image("solarize", img)
    if not 0 <= threshold <= bound("solarize", img):
        raise ValueError(
            f"solarize: threshold must be in [0, {bound('solarize', img):g}], the range of "
            f"{img.dtype} images, got {threshold}"
        )
    return where(img >= threshold, invert(img), img)


def posterize(img: Tensor, bits: int) -> Tensor:
    """The image with 2**bits levels of brightness in each channel, rounded down."""
    check_image("posterize", img)
    if not 0 <= bits <= 8:
        raise ValueError(f"posterize: bits must be in [0, 8], got {bits}")
    if bound("posterize", img) == 255:
        return bitwise_and(img, tensor(256 - 2 ** (8 - bits), dtype=dtypes.uint8))
    levels = 2**bits
    return clamp(floor(img * levels), 0, levels - 1) / levels


def autocontrast(img: Tensor) -> Tensor:
    """Every channel stretched so that its darkest pixel is black and its brightest white."""
    check_image("autocontrast", img)

    def stretched(x: Tensor, white: float) -> Tensor:
        low, high = amin(x, (-2, -1), keepdim=True), amax(x, (-2, -1), keepdim=True)
        flat = low == high
        return (x - where(flat, 0.0, low)) * where(flat, 1.0, white / where(flat, 1.0, high - low))

    return in_levels("autocontrast", img, stretched)


def equalize(img: Tensor) -> Tensor:
    """Every channel with its levels of brightness spread so that they are equally frequent.

    Level v becomes (the number of darker pixels + step / 2) / step, the step being a 255th of all
    pixels but the brightest.
    """
    check_image("equalize", img)
    if img.is_floating_point():
        levels = cast(round(clamp(img, 0.0, 1.0).detach() * 255), dtypes.uint8)
        return cast(equalize(levels), img.dtype) / 255
    bound("equalize", img)
    h, w = img.shape[-2:]
    flat = cast(reshape(img, (-1, h * w)), dtypes.int64)
    m = flat.shape[0]
    if flat.numel() == 0:
        return img
    own = 256 * reshape(arange(m), (-1, 1))  # each channel counts in a table of its own
    counts = reshape(bincount(reshape(flat + own, (-1,)), minlength=256 * m), (m, 256))
    brightest = gather(counts, 1, amax(flat, 1, keepdim=True))
    step = (h * w - brightest) // 255
    divisor = where(step == 0, 1, step)
    table = (cumsum(counts, 1) - counts + step // 2) // divisor
    table = where(step == 0, arange(256), clamp(table, 0, 255))
    return cast(reshape(gather(table, 1, flat), tuple(img.shape)), img.dtype)


def gaussian_noise(
    img: Tensor,
    mean: float = 0.0,
    sigma: float = 0.1,
    clip: bool = True,
    generator: Generator | None = None,
) -> Tensor:
    """The image plus normal noise; ``clip`` cuts the result to [0, 1]."""
    check_image("gaussian_noise", img)
    if not img.is_floating_point():
        raise TypeError(
            f"gaussian_noise: expected a floating-point image, got {img.dtype}; put ToTensor() "
            "before it"
        )
    if not sigma >= 0:
        raise ValueError(f"gaussian_noise: sigma must be non-negative, got {sigma}")
    out = img + (mean + sigma * randn_like(img.detach(), generator=generator))
    return clamp(out, 0.0, 1.0) if clip else out
