"""What functions of images share: the checks of their arguments, and arithmetic on integers.

An image is a tensor (C, H, W), a batch of images (N, C, H, W). Its numbers are bytes (uint8, 0 to
255) or floating (0 to 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chainrule.backend import K, dtypes
from chainrule.ops.elementwise.options import clamp, round
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor
from chainrule.typing import Array, Sizes

__all__ = ["bound", "check_image", "floating", "in_float", "in_levels", "pair", "per_image"]

Factor = float | Tensor  # a tensor: one number for each image of a batch
PerChannel = float | Sequence[float] | Tensor | Array  # one number for all channels, or for each
Fill = float | Sequence[float] | None  # a sequence: one number for each channel
Span = float | Sequence[float]  # one number for both directions, or (from, to)


def check_image(op: str, value: object, channels: Sequence[int] = ()) -> Tensor:
    """Refuses what is not an image or a batch of images, or has other channels than these."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{op}: expected an image as a Tensor, got {type(value).__name__}; convert it with "
            "ToTensor()"
        )
    if value.ndim not in (3, 4):
        raise ValueError(
            f"{op}: expected an image (C, H, W) or a batch (N, C, H, W), got shape "
            f"{tuple(value.shape)}"
        )
    if channels and value.shape[-3] not in channels:
        raise ValueError(
            f"{op}: expected images of {' or '.join(map(str, channels))} channels, got "
            f"{value.shape[-3]} (shape {tuple(value.shape)}; the order is C, H, W)"
        )
    return value


def floating(op: str, value: Tensor) -> Tensor:
    """Refuses images of bytes."""
    if not value.is_floating_point():
        raise TypeError(
            f"{op}: expected a floating-point image, got {value.dtype}; put ToTensor() before it"
        )
    return value


def bound(op: str, image: Tensor) -> float:
    """White: 1 for floating images, 255 for bytes."""
    if image.is_floating_point():
        return 1.0
    if image.dtype is not dtypes.uint8:
        raise TypeError(f"{op}: expected an image of uint8 or floating type, got {image.dtype}")
    return 255.0


def in_float(image: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """The function, computed in float32 if the image holds integers, and rounded back to those."""
    if image.is_floating_point():
        return function(image)
    if image.dtype is dtypes.bool_:
        return function(cast(image, dtypes.float32)) >= 0.5
    low, high = K.integer_limits(image.array.dtype)
    out = round(function(cast(image, dtypes.float32)))
    return cast(clamp(out, low, high), image.dtype)


def in_levels(op: str, image: Tensor, function: Callable[[Tensor, float], Tensor]) -> Tensor:
    """``function(image, white)``, cut to [0, white]; of bytes what is behind the point is dropped,
    as Pillow and torchvision do."""
    white = bound(op, image)
    if image.is_floating_point():
        return clamp(function(image, white), 0.0, white)
    return cast(clamp(function(cast(image, dtypes.float32), white), 0.0, white), image.dtype)


def per_image(op: str, name: str, value: Factor, image: Tensor) -> Factor:
    """A number, or one for every image of a batch as a tensor (N, 1, 1, 1)."""
    if not isinstance(value, Tensor):
        return float(value)
    if value.ndim == 0:
        return value
    if image.ndim != 4 or tuple(value.shape) != (image.shape[0],):
        raise ValueError(
            f"{op}: {name} must be a number or a tensor with one number for each image of a batch; "
            f"got shape {tuple(value.shape)} for images of shape {tuple(image.shape)}"
        )
    return reshape(value, (-1, 1, 1, 1))


def pair(op: str, name: str, value: Sizes) -> tuple[int, int]:
    """(height, width), given as such or as one number for both."""
    numbers = tuple(value) if isinstance(value, Sequence) else (value,)
    if len(numbers) == 1:
        numbers *= 2
    if len(numbers) != 2 or not all([hasattr(n, "__index__") for n in numbers]):
        raise ValueError(f"{op}: {name} must be an int or (height, width), got {value!r}")
    height, width = (n.__index__() for n in numbers)
    if min(height, width) < 1:
        raise ValueError(f"{op}: {name} must be positive, got {value!r}")
    return height, width
