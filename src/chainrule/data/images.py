"""Pictures in files, as tensors, and side by side.

Pillow reads and writes the files: ``pip install 'chainrule[image]'``. It is imported when first
used.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.backend import K, dtypes
from chainrule.data.image_arguments import PerChannel, check_image, floating
from chainrule.ops.core.arguments import made
from chainrule.ops.elementwise.functions import maximum, minimum
from chainrule.ops.elementwise.options import clamp, round
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.ops.reduce.order import amax, amin
from chainrule.ops.shape.padding import pad
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.views import expand, permute, reshape
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor
from chainrule.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from PIL.Image import Image

__all__ = [
    "ImageError",
    "imshow",
    "make_grid",
    "normalize",
    "read_image",
    "to_float",
    "to_pil_image",
    "to_tensor",
    "to_uint8",
    "unnormalize",
    "write_image",
]

MODES = ("L", "LA", "RGB", "RGBA", "unchanged")
FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF"}
# What "unchanged" makes of the ways in which a file can hold pixels.
KEPT = {"1": "L", "La": "LA", "PA": "RGBA", "RGBa": "RGBA"}
KEPT |= dict.fromkeys(("P", "CMYK", "YCbCr", "HSV", "LAB", "RGBX"), "RGB")


class ImageError(ValueError):
    """A picture that cannot be read or written; the message names the file."""


def _pillow() -> Any:
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError as error:
        raise ImportError(
            "images are read and written with Pillow, which is not installed: "
            "pip install 'chainrule[image]'"
        ) from error
    return PIL


# --- files ----------------------------------------------------------------------------------------


def read_image(
    path: str | os.PathLike[str] | bytes, mode: str = "RGB", apply_exif_orientation: bool = False
) -> Tensor:
    """The picture in a file, or in the bytes of one, as a tensor (C, H, W) of uint8.

    ``mode`` says which channels: "RGB", "L" (gray), "RGBA", "LA", or "unchanged" for those of the
    file (then a picture with 16 bits a pixel is int32, one of floating-point numbers float32). Of a
    file with several pictures the first is read. ``apply_exif_orientation`` turns a photograph as
    its camera says. A picture of more than ``PIL.Image.MAX_IMAGE_PIXELS`` pixels is refused before
    they are read: a small file can hold more of them than fit into the memory.
    """
    if mode not in MODES:
        raise ValueError(f"read_image: mode must be one of {', '.join(MODES)}; got {mode!r}")
    pillow, (file, content) = _pillow(), _opened(path)
    try:
        with pillow.Image.open(content) as image:
            _check_pixels(image)
            image.load()
            if apply_exif_orientation:
                image = pillow.ImageOps.exif_transpose(image)
            return _pixels(_in_mode(image, mode))
    except ImageError as error:
        raise ImageError(f"read_image: {file} {error}") from None
    except (pillow.Image.DecompressionBombError, pillow.Image.DecompressionBombWarning):
        raise ImageError(f"read_image: {file} {_too_large()}") from None
    except pillow.UnidentifiedImageError:
        raise ImageError(f"read_image: {file} is not a picture, or damaged at its start") from None
    except PermissionError:
        raise
    except Exception as error:
        raise ImageError(f"read_image: {file} is damaged or not complete: {error}") from error


def _opened(path: str | os.PathLike[str] | bytes) -> tuple[str, Any]:
    """What a picture is called in errors, and what Pillow opens."""
    content: Path | io.BytesIO
    if isinstance(path, bytes):
        name, size, content = f"the picture of {len(path)} bytes", len(path), io.BytesIO(path)
    elif (file := Path(path)).is_dir():
        raise IsADirectoryError(f"read_image: {file} is a folder, not a picture")
    elif not file.exists():
        raise FileNotFoundError(f"read_image: there is no file {file}")
    else:
        name, size, content = str(file), file.stat().st_size, file
    if not size:
        raise ImageError(f"read_image: {name} is empty")
    return name, content


def _check_pixels(image: Image) -> None:
    """Refuses what Pillow only warns of."""
    limit = _pillow().Image.MAX_IMAGE_PIXELS
    if limit is not None and image.width * image.height > limit:
        raise ImageError(f"is {image.width} x {image.height} and {_too_large()}")


def _too_large() -> str:
    limit = _pillow().Image.MAX_IMAGE_PIXELS
    return (
        f"has more than {limit} pixels, the most that are read, since a small file can fill the "
        "memory with them; make the picture smaller, or set PIL.Image.MAX_IMAGE_PIXELS if you "
        "trust it"
    )


def _in_mode(image: Image, mode: str) -> Image:
    if mode == "unchanged":
        target = KEPT.get(image.mode, image.mode)
        if image.mode == "P" and "transparency" in image.info:
            target = "RGBA"
        return image if image.mode == target else image.convert(target)
    if image.mode == "F":
        raise ImageError(
            "holds floating-point numbers, whose black and white are not known; read it with "
            "mode='unchanged'"
        )
    if image.mode.startswith("I"):
        image = _in_bytes(image)
    return image if image.mode == mode else image.convert(mode)


def _in_bytes(image: Image) -> Image:
    """A picture with 16 bits a pixel in 8; Pillow would cut off all that is above 255."""
    levels = _pixels(image)[0]
    low, high = int(levels.min()), int(levels.max())
    if low < 0 or high > 65535:
        raise ImageError(
            f"holds numbers from {low} to {high}, whose black and white are not known; read it "
            "with mode='unchanged'"
        )
    return _pillow().Image.fromarray(cast(round(levels / 257), dtypes.uint8).numpy())


def _pixels(image: Image) -> Tensor:
    """The pixels of a Pillow image, (C, H, W)."""
    array = K.from_python(image)
    if array.dtype.kind in "iu" and array.dtype.itemsize > 1:
        array = K.astype(array, "int32")
    return _channels_first(made(array))


def _channels_first(x: Tensor) -> Tensor:
    return x[None] if x.ndim == 2 else permute(x, (2, 0, 1)).contiguous()


def write_image(image: Tensor, path: str | os.PathLike[str], quality: int | None = None) -> None:
    """Writes an image (C, H, W) or (H, W) as PNG, JPEG or TIFF, as the name of the file ends.

    The numbers are uint8, or floating in [0, 1]. PNG and TIFF keep every bit; ``quality``, from 1
    to 95, is JPEG's (75 if not given). The file is written as a whole or not at all.
    """
    file = Path(path)
    kind = FORMATS.get(file.suffix.lower())
    if kind is None:
        raise ValueError(
            f"write_image: {file} should end in one of {', '.join(FORMATS)}, which says the format"
        )
    if quality is not None and (kind != "JPEG" or not 1 <= quality <= 95):
        raise ValueError(f"write_image: quality is a number from 1 to 95 for JPEG, got {quality}")
    picture = to_pil_image(image)
    if kind == "JPEG" and picture.mode not in ("L", "RGB"):
        raise ValueError(
            f"write_image: JPEG holds 1 or 3 channels, got {len(picture.getbands())}; write a PNG"
        )
    buffer = io.BytesIO()
    options = {"quality": quality or 75} if kind == "JPEG" else {}
    picture.save(buffer, kind, **options)
    part = file.with_name(file.name + ".part")
    try:
        part.write_bytes(buffer.getvalue())
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


# --- tensors --------------------------------------------------------------------------------------


def to_tensor(pic: Image | Array | Tensor) -> Tensor:
    """An image as a floating-point tensor (C, H, W) in [0, 1].

    From a Pillow image, an array (H, W) or (H, W, C), or a tensor (C, H, W) such as the datasets
    here give. Bytes are divided by 255; floating-point numbers stay as they are.

    >>> import chainrule
    >>> from chainrule.data import transforms_functional as TF
    >>> TF.to_tensor(chainrule.tensor([[[0, 51, 255]]], dtype=chainrule.uint8))
    tensor([[[0.0000, 0.2000, 1.0000]]])
    """
    if isinstance(pic, Tensor):
        return to_float(pic)
    if isinstance(pic, K.Array):
        if pic.ndim not in (2, 3):
            raise ValueError(f"to_tensor: expected an array (H, W) or (H, W, C), got {pic.shape}")
        return to_float(_channels_first(as_tensor(pic)))
    image: Any = pic
    if hasattr(image, "getbands") and hasattr(image, "convert"):
        image = image.convert("L") if image.mode == "1" else image
        return to_float(_pixels(image)) if "I" not in image.mode else _pixels(image)
    raise TypeError(
        f"to_tensor: expected a Pillow image, an array or a Tensor, got {type(pic).__name__}"
    )


def to_float(image: Tensor) -> Tensor:
    """Bytes (0 to 255) as floating-point numbers in [0, 1]; others stay as they are."""
    if image.is_floating_point():
        return image
    if image.dtype is dtypes.bool_:
        return cast(image, dtypes.get_default_dtype())
    if image.dtype is not dtypes.uint8:
        raise TypeError(
            f"to_float: expected uint8, whose white is 255, got {image.dtype}; divide by the value "
            "that white has"
        )
    return cast(image, dtypes.get_default_dtype()) / 255


def to_uint8(image: Tensor) -> Tensor:
    """Floating-point numbers in [0, 1] as bytes, rounded; bytes stay as they are."""
    if image.dtype is dtypes.uint8:
        return image
    if not image.is_floating_point():
        raise TypeError(f"to_uint8: expected uint8 or floating-point numbers, got {image.dtype}")
    x = image.detach()
    if x.numel():
        low, high = float(x.min()), float(x.max())
        if not (low > -1e-3 and high < 1 + 1e-3):  # also if they are NaN
            raise ValueError(
                f"to_uint8: expected numbers in [0, 1], got {low:g} to {high:g}; undo a "
                "normalization with unnormalize, or use make_grid(..., normalize=True)"
            )
    return cast(round(clamp(x, 0.0, 1.0) * 255), dtypes.uint8)


def to_pil_image(pic: Tensor) -> Image:
    """An image (C, H, W) or (H, W) of uint8, or floating in [0, 1], as a Pillow image."""
    if not isinstance(pic, Tensor) or pic.ndim not in (2, 3):
        shape = f" of shape {tuple(pic.shape)}" if isinstance(pic, Tensor) else ""
        raise ValueError(
            f"to_pil_image: expected one image (C, H, W) or (H, W), got a {type(pic).__name__}"
            f"{shape}; make_grid puts several side by side"
        )
    image = pic if pic.ndim == 3 else pic[None]
    if image.shape[0] not in (1, 2, 3, 4) or 0 in image.shape:
        raise ValueError(
            "to_pil_image: expected 1 (gray), 2 (gray, alpha), 3 (RGB) or 4 (RGB, alpha) channels "
            f"and at least one pixel, got shape {tuple(pic.shape)}; the order is C, H, W"
        )
    bytes_ = to_uint8(image)
    last = bytes_[0] if len(bytes_) == 1 else permute(bytes_, (1, 2, 0))
    return _pillow().Image.fromarray(last.contiguous().numpy())


def _per_channel(op: str, name: str, value: PerChannel, like: Tensor) -> Tensor:
    """Numbers for the channels as a tensor (C, 1, 1)."""
    numbers = cast(as_tensor(value), like.dtype)
    if numbers.ndim > 1 or numbers.numel() not in (1, like.shape[-3]):
        raise ValueError(
            f"{op}: {name} must be one number or one for each of the {like.shape[-3]} channels, "
            f"got shape {tuple(numbers.shape)} for images of shape {tuple(like.shape)}"
        )
    return reshape(numbers, (-1, 1, 1))


def normalize(image: Tensor, mean: PerChannel, std: PerChannel) -> Tensor:
    """(image - mean) / std, with one mean and standard deviation for each channel.

    >>> import chainrule
    >>> from chainrule.data import transforms_functional as TF
    >>> TF.normalize(chainrule.tensor([[[0.0, 0.5, 1.0]]]), 0.5, 0.5)
    tensor([[[-1.,  0.,  1.]]])
    """
    floating("normalize", check_image("normalize", image))
    divisor = _per_channel("normalize", "std", std, image)
    if not bool(divisor.all()):
        raise ValueError(f"normalize: std contains zero, which cannot be divided by; got {std}")
    return (image - _per_channel("normalize", "mean", mean, image)) / divisor


def unnormalize(image: Tensor, mean: PerChannel, std: PerChannel) -> Tensor:
    """image * std + mean: what was before ``normalize``.

    >>> import chainrule
    >>> from chainrule.data import unnormalize
    >>> unnormalize(chainrule.tensor([[[-1.0, 0.0, 1.0]]]), 0.5, 0.5)
    tensor([[[0.0000, 0.5000, 1.0000]]])
    """
    floating("unnormalize", check_image("unnormalize", image))
    scale = _per_channel("unnormalize", "std", std, image)
    return image * scale + _per_channel("unnormalize", "mean", mean, image)


# --- several pictures in one ----------------------------------------------------------------------


def make_grid(
    tensor: Tensor | Sequence[Tensor],
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """A batch of images (N, C, H, W), or a list of images, as one: ``nrow`` in every row.

    Around each lie ``padding`` pixels of ``pad_value``.

    ``normalize`` brings the numbers to [0, 1], from ``value_range`` or from the smallest to the
    largest of all (``scale_each``: of each image). Gray images get three channels; one image alone
    gets no border.

    >>> import chainrule
    >>> from chainrule.data import make_grid
    >>> make_grid(chainrule.zeros(10, 1, 28, 28), nrow=5).shape
    chainrule.Size([3, 62, 152])
    """
    images = _three_channels(tensor)
    if nrow < 1 or padding < 0:
        raise ValueError(
            f"make_grid: nrow must be positive and padding not negative, got {nrow=}, {padding=}"
        )
    if value_range is not None and (not normalize or len(value_range) != 2):
        raise ValueError(
            "make_grid: value_range is (low, high) and needs normalize=True; got "
            f"{value_range!r} and normalize={normalize}"
        )
    if normalize:
        images = _to_range(images, value_range, scale_each)
    n, c, h, w = images.shape
    if n == 1:
        return images[0]
    columns = min(nrow, n)
    rows = math.ceil(n / columns)
    images = pad(images, (padding, 0, padding, 0), value=pad_value)
    if rows * columns > n:  # the last row is filled up with empty places
        images = pad(images, (0, 0, 0, 0, 0, 0, 0, rows * columns - n), value=pad_value)
    h, w = h + padding, w + padding
    placed = permute(reshape(images, (rows, columns, c, h, w)), (2, 0, 3, 1, 4))
    return pad(
        reshape(placed, (c, rows * h, columns * w)), (0, padding, 0, padding), value=pad_value
    )


def _three_channels(images: Any) -> Tensor:
    if isinstance(images, (list, tuple)) and all([isinstance(t, Tensor) for t in images]):
        if not images:
            raise ValueError("make_grid: the list is empty; expected at least one image")
        images = stack(list(images))
    if not isinstance(images, Tensor):
        raise TypeError(f"make_grid: expected a Tensor or a list of them, got {images!r:.80}")
    if images.ndim not in (2, 3, 4) or images.shape[0] == 0:
        raise ValueError(
            f"make_grid: expected images (N, C, H, W), at least one, got {tuple(images.shape)}"
        )
    if images.ndim < 4:
        images = reshape(images, (1,) * (4 - images.ndim) + tuple(images.shape))
    n, c, h, w = images.shape
    return expand(images, (n, 3, h, w)) if c == 1 else images


def _to_range(images: Tensor, given: tuple[float, float] | None, each: bool) -> Tensor:
    floating("make_grid", images)
    dims = (1, 2, 3) if each else (0, 1, 2, 3)
    if given is not None:
        low, high = (tensor(float(v), dtype=images.dtype) for v in given)
    else:
        low, high = amin(images, dims, keepdim=True), amax(images, dims, keepdim=True)
    span = maximum(high - low, tensor(1e-5, dtype=images.dtype))
    return (minimum(maximum(images, low), high) - low) / span


def imshow(
    image: Tensor,
    mean: PerChannel | None = None,
    std: PerChannel | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws an image with matplotlib, into the axes ``ax`` or the current ones; returns them.

    With ``mean`` and ``std`` a normalization is undone first.
    """
    if (mean is None) != (std is None):
        raise ValueError("imshow: mean and std undo a normalization together; give both or none")
    if mean is not None and std is not None:
        image = unnormalize(image.detach(), mean, std)
        image = clamp(image, 0.0, 1.0)
    picture = to_uint8(image if image.ndim == 3 else image[None])
    if picture.ndim != 3 or picture.shape[0] not in (1, 3, 4):
        raise ValueError(
            "imshow: expected one image of 1, 3 or 4 channels (C, H, W), got "
            f"{tuple(image.shape)}; make_grid puts several side by side"
        )
    if ax is None:
        ax = _current_axes()
    gray = picture.shape[0] == 1
    last = picture[0] if gray else permute(picture, (1, 2, 0))
    options: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": 255} if gray else {}
    ax.imshow(last.numpy(), **options)
    ax.set_axis_off()
    return ax


def _current_axes() -> Axes:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "imshow draws with matplotlib, which is not installed: pip install 'chainrule[plot]'"
        ) from error
    return pyplot.gca()
