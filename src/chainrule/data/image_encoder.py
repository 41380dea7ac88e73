"""Image files by class, as tensors for a network."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from chainrule.backend import dtypes
from chainrule.data.images import (
    ImageError,
    _check_pixels,
    _opened,
    _pillow,
    _too_large,
    read_image,
)
from chainrule.data.preprocess import Fittable, saved
from chainrule.data.table import TableError
from chainrule.nn.functional import interpolate
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor

__all__ = ["ImageEncoder", "image_facts", "image_files", "images_in"]

GRAY = ("1", "L", "LA", "La")
ORIENTATION, WIDTH, HEIGHT = 274, 256, 257  # the numbers under which files keep these
LARGEST = 2**27  # pixels of an image that a network can take
SIDE = 64  # pixels of the longer side of a size that is chosen, at most
Picture = str | os.PathLike[str] | bytes  # a file, or what stands in one
SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp")
LITTER = "__MACOSX"  # a folder that archives leave behind; others begin with a point


def image_files(folder: str | os.PathLike[str]) -> tuple[list[Path], list[str]]:
    """The images in a folder and their classes: the names of its subfolders.

    Folders and files whose names begin with a point are left out.
    """
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"there is no folder {root}")
    paths = [p for p in images_in(root) if len(p.relative_to(root).parts) > 1]
    if not paths:
        raise TableError(
            f"{root} has no subfolders with images ({', '.join(SUFFIXES)}); expected "
            f"{root.name}/CLASS/image.png"
        )
    return paths, [p.relative_to(root).parts[0] for p in paths]


def images_in(folder: Path) -> list[Path]:
    """The images in a folder and its subfolders, by their names.

    Left out are those whose name, or that of a folder, begins with a point, and what archives of a
    Mac leave behind.
    """
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in SUFFIXES and not _is_litter(path.relative_to(folder))
    ]


def image_facts(path: Picture) -> tuple[int, int, bool]:
    """Height and width of the picture in a file, as its camera turned it, and whether it is gray.

    Only the beginning of the file is read.
    """
    pillow, (file, content) = _pillow(), _opened(path)
    try:
        with pillow.Image.open(content) as image:
            _check_pixels(image)
            if image.format == "TIFF":  # of which Pillow does not tell one size before and after
                height, width = image.tag_v2[HEIGHT], image.tag_v2[WIDTH]
            elif image.getexif().get(ORIENTATION, 1) >= 5:
                height, width = image.size
            else:
                width, height = image.size
            return height, width, image.mode in GRAY or image.mode.startswith("I")
    except (pillow.Image.DecompressionBombError, pillow.Image.DecompressionBombWarning):
        raise ImageError(f"image_facts: {file} {_too_large()}") from None
    except ImageError as error:
        raise ImageError(f"image_facts: {file} {error}") from None
    except pillow.UnidentifiedImageError:
        raise ImageError(f"image_facts: {file} is not a picture, or damaged at its start") from None
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:
        raise ImageError(f"image_facts: {file} is damaged or not complete: {error}") from error


def _is_litter(path: Path) -> bool:
    return any([part.startswith(".") or part == LITTER for part in path.parts])


class ImageEncoder(Fittable):
    """Image files, or the bytes of such, as a standardized tensor (N, C, H, W) of one size.

    All images are brought to one size and one number of channels: gray, palettes, 16 bits a pixel
    (scaled to 8), transparency (laid on white), and photographs turned as their camera says.

    Args:
        size: (height, width); by default that of the training images where they have one, else the
            median of their heights and of their widths, and made smaller until the longer side has
            at most 64 pixels.
        channels: 1 (gray) or 3 (color); by default 1 if all training images are gray.
    """

    def __init__(self, size: Sequence[int] | None = None, channels: int | None = None):
        super().__init__()
        if channels not in (None, 1, 3):
            raise ValueError(f"ImageEncoder: channels must be 1 or 3, got {channels}")
        if size is not None and (len(size) != 2 or min(size) < 1 or math.prod(size) > LARGEST):
            raise ValueError(
                f"ImageEncoder: size must be (height, width), at most {LARGEST} pixels, got {size}"
            )
        self.given = (None if size is None else [int(s) for s in size], channels)
        self.size, self.channels = self.given
        self.mean, self.spread = 0.0, 1.0
        self.seen: tuple[int, ...] = ()  # least and most height and width in training, if looked at

    def _read(self, paths: Sequence[Picture]) -> Tensor:
        if self.size is None or self.channels is None:
            raise RuntimeError("ImageEncoder: not fitted; call fit(paths) with the training images")
        if not len(paths):
            raise TableError("ImageEncoder: there are no images")
        return cast(stack([self._one(path) for path in paths]), dtypes.get_default_dtype())

    def _one(self, path: Picture) -> Tensor:
        """An image in [0, 1], without transparency, of the one size."""
        mode = "LA" if self.channels == 1 else "RGBA"
        image = cast(read_image(path, mode, apply_exif_orientation=True), "float32") / 255
        alpha = image[-1:]
        image = image[:-1] * alpha + (1 - alpha)
        if [int(n) for n in image.shape[1:]] == self.size:
            return image
        return interpolate(image.unsqueeze(0), size=self.size, mode="bilinear", antialias=True)[0]

    def fit(self, paths: Sequence[Picture]) -> Self:
        """Learns size, channels, mean and spread of the training images."""
        self.fit_transform(paths)
        return self

    def fit_transform(self, paths: Sequence[Picture]) -> Tensor:
        """Fits and encodes the training images, which are read once."""
        if not len(paths):
            raise TableError("ImageEncoder: there are no images")
        self.size, self.channels = self.given
        if self.size is None or self.channels is None:
            facts = [image_facts(path) for path in paths]
            sides = list(zip(*[(h, w) for h, w, _ in facts], strict=True))
            self.seen = tuple(end for side in sides for end in (min(side), max(side)))
            self.size = self.size or _common([(h, w) for h, w, _ in facts])
            self.channels = self.channels or (1 if all([gray for _, _, gray in facts]) else 3)
        x = self._read(paths)
        self.mean, self.spread = float(x.mean()), float(x.std()) or 1.0
        return (x - self.mean) / self.spread

    def forward(self, paths: Sequence[Picture], target: str | None = None) -> Tensor:
        return (self._read(paths) - self.mean) / self.spread

    def get_extra_state(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "channels": self.channels,
            "mean": self.mean,
            "spread": self.spread,
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        size, channels, mean, spread = saved(
            "ImageEncoder", state, size="sizes", channels="count", mean="number", spread="number"
        )
        if len(size) != 2 or math.prod(size) > LARGEST:
            raise ValueError(f"ImageEncoder: the saved size {size} is not that of an image")
        if channels not in (1, 3):
            raise ValueError(f"ImageEncoder: the saved channels must be 1 or 3, got {channels}")
        self.size, self.channels = list(size), int(channels)
        self.mean, self.spread = float(mean), float(spread)

    def extra_repr(self) -> str:
        return f"size={self.size}, channels={self.channels}"


def _common(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """The size of images where they have one, else a median one; bounded."""
    (size, count), *_ = Counter(sizes).most_common(1)
    if count < len(sizes):
        size = tuple(sorted(axis)[len(sizes) // 2] for axis in zip(*sizes, strict=True))
    shrink = min(1.0, SIDE / max(size))
    return [max(1, round(n * shrink)) for n in size]
