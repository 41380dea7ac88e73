"""Images resized, cut, mirrored, turned and shifted, as torchvision.transforms.functional does.

All take an image (C, H, W) or a batch (N, C, H, W), are differentiable with respect to it, and
return integers as integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from chainrule.backend import dtypes
from chainrule.data.image_arguments import Fill, check_image, in_float, pair
from chainrule.nn.layers.grid import affine_grid, grid_sample
from chainrule.nn.layers.upsample import interpolate
from chainrule.ops.shape import padding as P
from chainrule.ops.creation.patterns import ones_like
from chainrule.ops.elementwise.logic import where
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.ops.index.reading import index_select
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.rearrange import flip
from chainrule.ops.shape.views import expand, reshape
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike, Sizes

__all__ = [
    "affine",
    "center_crop",
    "crop",
    "erase",
    "hflip",
    "inverse_affine_matrix",
    "pad",
    "resize",
    "resized_crop",
    "rotate",
    "vflip",
    "warp",
]

RESIZING = ("nearest", "nearest-exact", "bilinear", "bicubic")
WARPING = ("nearest", "bilinear")
PADDING = {"constant": "constant", "edge": "replicate", "reflect": "reflect", "symmetric": ""}
Matrix = Sequence[float]


def check_choice(op: str, name: str, value: str, allowed: Sequence[str]) -> str:
    """The value, or an error if it is not one of those allowed."""
    if value not in allowed:
        raise ValueError(f"{op}: {name} must be one of {', '.join(allowed)}; got {value!r}")
    return str(value)


# --- size -----------------------------------------------------------------------------------------


def resize(
    img: Tensor,
    size: Sizes,
    interpolation: str = "bilinear",
    max_size: int | None = None,
    antialias: bool = True,
) -> Tensor:
    """The image in another size: (height, width), or one number for the shorter edge.

    ``max_size`` limits the longer edge where ``size`` is one number. ``antialias`` averages over
    all pixels where a "bilinear" or "bicubic" image shrinks; the others take single pixels.

    >>> import chainrule
    >>> from chainrule.data import transforms_functional as TF
    >>> TF.resize(chainrule.zeros(3, 20, 30), 10).shape
    chainrule.Size([3, 10, 15])
    """
    check_image("resize", img)
    check_choice("resize", "interpolation", interpolation, RESIZING)
    target = _resized("resize", img, size, max_size)
    if target == tuple(img.shape[-2:]):
        return img
    weighted = interpolation in ("bilinear", "bicubic")
    smooth = {"align_corners": False, "antialias": bool(antialias)} if weighted else {}
    batch = reshape(img, (-1, *img.shape[-3:]))
    if weighted:
        out = in_float(batch, lambda x: interpolate(x, target, mode=interpolation, **smooth))
    else:
        out = interpolate(batch, target, mode=interpolation)
    return reshape(out, (*img.shape[:-2], *target))


def check_size(op: str, size: Sizes, max_size: int | None) -> tuple[int, ...]:
    """(height, width), or (edge,)."""
    numbers = tuple(size) if isinstance(size, Sequence) else (size,)
    if len(numbers) == 2 and max_size is not None:
        raise ValueError(f"{op}: max_size is for one number as size, got size={size!r}")
    height, width = pair(op, "size", size)
    if len(numbers) == 1 and max_size is not None and max_size <= height:
        raise ValueError(
            f"{op}: max_size = {max_size} must be greater than the size asked for the shorter "
            f"edge, {height}"
        )
    return (height, width) if len(numbers) == 2 else (height,)


def _resized(op: str, img: Tensor, size: Sizes, max_size: int | None) -> tuple[int, int]:
    numbers = check_size(op, size, max_size)
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    h, w = img.shape[-2:]
    if min(h, w) == 0:
        raise ValueError(f"{op}: the image is empty, its shape is {tuple(img.shape)}")
    short, long = numbers[0], int(numbers[0] * max(h, w) / min(h, w))
    if max_size is not None and long > max_size:
        short, long = int(max_size * short / long), max_size
    return (short, long) if h <= w else (long, short)


def crop(img: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """The rectangle of this corner and size; zeros where it lies outside of the image."""
    check_image("crop", img)
    h, w = img.shape[-2:]
    border = (-left, left + width - w, -top, top + height - h)  # what is negative is cut off
    return P.pad(img, border) if any(border) else img


def center_crop(img: Tensor, output_size: Sizes) -> Tensor:
    """The middle of the image; zeros around it where it is too small."""
    check_image("center_crop", img)
    height, width = pair("center_crop", "output_size", output_size)
    h, w = img.shape[-2:]
    if width > w or height > h:
        dx, dy = max(width - w, 0), max(height - h, 0)
        img = pad(img, (dx // 2, dy // 2, (dx + 1) // 2, (dy + 1) // 2))
        h, w = img.shape[-2:]
    return crop(img, round((h - height) / 2.0), round((w - width) / 2.0), height, width)


def resized_crop(
    img: Tensor,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Sizes,
    interpolation: str = "bilinear",
    antialias: bool = True,
) -> Tensor:
    """A rectangle of the image, brought to a size."""
    part = crop(img, top, left, height, width)
    return resize(part, size, interpolation, antialias=antialias)


def pad(img: Tensor, padding: Sizes, fill: float = 0, padding_mode: str = "constant") -> Tensor:
    """The image with a border.

    ``padding`` is one number, (left and right, above and below), or (left, above, right, below).
    ``padding_mode`` is "constant" (``fill``), "edge" (the border pixel), "reflect" (a mirror image
    without the border pixel) or "symmetric" (with it).
    """
    check_image("pad", img)
    check_choice("pad", "padding_mode", padding_mode, tuple(PADDING))
    left, above, right, below = border(padding)
    if padding_mode == "constant":
        return P.pad(img, (left, right, above, below), value=fill)
    if padding_mode == "symmetric":
        return _symmetric(_symmetric(img, -2, above, below), -1, left, right)
    return P.pad(img, (left, right, above, below), PADDING[padding_mode])


def border(padding: Sizes) -> tuple[int, int, int, int]:
    """(left, above, right, below), from one, two or four numbers."""
    given = tuple(padding) if isinstance(padding, Sequence) else (padding,)
    if len(given) not in (1, 2, 4) or not all([hasattr(n, "__index__") for n in given]):
        raise ValueError(f"pad: padding must be one int or a tuple of 1, 2 or 4, got {padding!r}")
    n = tuple([n.__index__() for n in given]) * (4 // len(given))
    return n[0], n[1], n[2], n[3]


def _symmetric(img: Tensor, dim: int, before: int, after: int) -> Tensor:
    n = img.shape[dim]
    if max(before, after) > n or min(before, after) < 0:
        raise ValueError(
            f"pad: a symmetric border of {(before, after)} does not fit {n} pixels; it can be as "
            "wide as the image"
        )
    numbers = [*range(before - 1, -1, -1), *range(n), *range(n - 1, n - 1 - after, -1)]
    return index_select(img, dim, tensor(numbers, dtype=dtypes.int64))


def hflip(img: Tensor) -> Tensor:
    """The mirror image, left for right."""
    return flip(check_image("hflip", img), (-1,))


def vflip(img: Tensor) -> Tensor:
    """The mirror image, top for bottom."""
    return flip(check_image("vflip", img), (-2,))


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: ArrayLike) -> Tensor:
    """The image with the values ``v`` in the rectangle of the corner (i, j) and the size (h, w)."""
    check_image("erase", img)
    height, width = img.shape[-2:]
    if not (0 <= i <= i + h <= height and 0 <= j <= j + w <= width):
        raise ValueError(
            f"erase: the rectangle of corner {(i, j)} and size {(h, w)} is not inside the image of "
            f"{height} by {width}"
        )
    values = cast(as_tensor(v), img.dtype)
    if values.ndim == 1:
        values = reshape(values, (-1, 1, 1))
    inside = P.pad(
        ones_like(img[..., :1, i : i + h, j : j + w].detach(), dtype=dtypes.bool_),
        (j, width - j - w, i, height - i - h),
    )
    if tuple(values.shape[-2:]) == (h, w) != (1, 1):
        values = P.pad(values, (j, width - j - w, i, height - i - h))
    return where(inside, values, img)


# --- affine maps ----------------------------------------------------------------------------------


def inverse_affine_matrix(
    center: Sequence[float],
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float],
) -> list[float]:
    """The inverse of T C R S H C^-1: shear H, scale S and rotation R around the center C, then a
    translation T; its two rows one after the other. Angles are degrees, positive clockwise.

    R H is [[a, b], [c, d]] with determinant 1.
    """
    rot, sx, sy = (math.radians(v) for v in (angle, *shear))
    a = math.cos(rot - sy) / math.cos(sy)
    b = -a * math.tan(sx) - math.sin(rot)
    c = math.sin(rot - sy) / math.cos(sy)
    d = -c * math.tan(sx) + math.cos(rot)
    (cx, cy), (tx, ty) = center, translate
    row_x, row_y = (d / scale, -b / scale), (-c / scale, a / scale)
    shift = (-cx - tx, -cy - ty)
    return [
        *row_x,
        row_x[0] * shift[0] + row_x[1] * shift[1] + cx,
        *row_y,
        row_y[0] * shift[0] + row_y[1] * shift[1] + cy,
    ]


def warp(
    img: Tensor,
    matrices: Sequence[Matrix],
    interpolation: str = "nearest",
    fill: Fill = None,
    size: tuple[int, int] | None = None,
) -> Tensor:
    """A batch under affine maps: one for all images, or one for each.

    The output's pixel at (x, y) from its center is the input's at M (x, y, 1) from its own center,
    in pixels. ``fill`` (a number, or one for each channel) is what lies around the image.
    """
    n, c, h, w = img.shape
    height, width = size or (h, w)

    def sampled(x: Tensor) -> Tensor:
        exact = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
        # affine_grid and grid_sample measure from -1 to 1.
        units = [[width / w, height / w, 2 / w], [width / h, height / h, 2 / h]]
        theta = reshape(tensor(matrices, dtype=exact), (-1, 2, 3)) * tensor(units, dtype=exact)
        grid = affine_grid(expand(theta, (n, 2, 3)), (n, c, height, width), align_corners=False)
        out = grid_sample(x, grid, interpolation, "zeros", align_corners=False)
        if values is not None:
            border = reshape(tensor(values, dtype=x.dtype), (-1, 1, 1))
            out = out + _outside(x, grid, interpolation) * border
        return cast(out, x.dtype)

    values = _fill("warp", fill, c)
    return in_float(img, sampled) if n else img


def _outside(x: Tensor, grid: Tensor, interpolation: str) -> Tensor:
    """How much of each pixel comes from outside the image."""
    inside = ones_like(x[:, :1].detach())
    return 1 - grid_sample(inside, grid, interpolation, "zeros", align_corners=False)


def _fill(op: str, fill: Fill, channels: int) -> list[float] | None:
    if fill is None:
        return None
    numbers = list(fill) if isinstance(fill, Sequence) else [fill]
    if len(numbers) not in (1, channels):
        raise ValueError(
            f"{op}: fill must be one number or one for each of the {channels} channels, got "
            f"{len(numbers)}"
        )
    return [float(v) for v in numbers] if any(numbers) else None


def affine(
    img: Tensor,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    interpolation: str = "nearest",
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Tensor:
    """The image sheared, scaled, turned (clockwise, in degrees) around its center, and shifted by
    ``translate`` pixels (right, down).

    >>> import chainrule
    >>> from chainrule.data import transforms_functional as TF
    >>> x = chainrule.tensor([[[1.0, 2.0, 3.0]]])
    >>> TF.affine(x, angle=0, translate=(1, 0), scale=1, shear=0)
    tensor([[[0., 1., 2.]]])
    """
    check_image("affine", img)
    check_choice("affine", "interpolation", interpolation, WARPING)
    if len(translate) != 2:
        raise ValueError(f"affine: translate must be (right, down), got {translate!r}")
    if not scale > 0:
        raise ValueError(f"affine: scale must be positive, got {scale}")
    given = tuple(shear) if isinstance(shear, Sequence) else (shear,)
    if len(given) not in (1, 2):
        raise ValueError(f"affine: shear must be one angle or two, got {shear!r}")
    both = given if len(given) == 2 else (given[0], 0.0)
    matrix = inverse_affine_matrix(middle("affine", img, center), angle, translate, scale, both)
    return single(img, lambda x: warp(x, [matrix], interpolation, fill))


def rotate(
    img: Tensor,
    angle: float,
    interpolation: str = "nearest",
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Tensor:
    """The image turned by an angle in degrees, counter-clockwise, around its center.

    With ``expand`` the result is as large as the turned image needs to be seen as a whole.

    >>> import chainrule
    >>> from chainrule.data import transforms_functional as TF
    >>> TF.rotate(chainrule.tensor([[[1.0, 2.0], [3.0, 4.0]]]), 90)
    tensor([[[2., 4.],
             [1., 3.]]])
    """
    check_image("rotate", img)
    check_choice("rotate", "interpolation", interpolation, WARPING)
    check_expand("rotate", expand, center)
    matrix = inverse_affine_matrix(middle("rotate", img, center), -angle, (0, 0), 1, (0, 0))
    size = _turned(angle, *img.shape[-2:]) if expand else None
    return single(img, lambda x: warp(x, [matrix], interpolation, fill, size))


def single(img: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """A function of batches, applied to a batch or to one image."""
    return function(img) if img.ndim == 4 else function(img[None])[0]


def middle(op: str, img: Tensor, center: Sequence[float] | None) -> tuple[float, float]:
    """A center given as (x, y) from the upper left corner, counted from the image's own."""
    if center is None:
        return 0.0, 0.0
    if len(center) != 2:
        raise ValueError(f"{op}: center must be (x, y), got {center!r}")
    return center[0] - img.shape[-1] / 2, center[1] - img.shape[-2] / 2


def check_expand(op: str, expand: bool, center: Sequence[float] | None) -> None:
    """An error for a center beside ``expand``."""
    if expand and center is not None:
        raise ValueError(
            f"{op}: expand=True shows the whole image wherever its center is; leave out "
            f"center={center!r}"
        )


def _turned(angle: float, h: int, w: int) -> tuple[int, int]:
    """The size of the box around an image that is turned."""
    cos, sin = abs(math.cos(math.radians(angle))), abs(math.sin(math.radians(angle)))
    # What is off by less than a ten thousandth of a pixel is rounding.
    return math.ceil(h * cos + w * sin - 1e-4), math.ceil(w * cos + h * sin - 1e-4)
