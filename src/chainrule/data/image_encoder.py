"""Image files by class, as tensors for a network."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from chainrule.backend import dtypes
from chainrule.data.images import read_image
from chainrule.data.preprocess import Fittable, saved
from chainrule.data.table import TableError
from chainrule.nn.functional import interpolate
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor

__all__ = ["ImageEncoder", "image_files"]

LARGEST = 2**27  # pixels of an image that a network can take
SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp")


def image_files(folder: str | os.PathLike[str]) -> tuple[list[Path], list[str]]:
    """The images in a folder and their classes: the names of its subfolders."""
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"there is no folder {root}")
    paths = [
        p
        for sub in sorted(root.iterdir())
        if sub.is_dir()
        for p in sorted(sub.rglob("*"))
        if p.suffix.lower() in SUFFIXES
    ]
    if not paths:
        raise TableError(
            f"{root} has no subfolders with images ({', '.join(SUFFIXES)}); expected "
            f"{root.name}/CLASS/image.png"
        )
    return paths, [p.relative_to(root).parts[0] for p in paths]


class ImageEncoder(Fittable):
    """Image files as a standardized tensor (N, C, H, W) of one size.

    Args:
        size: (height, width) to resize to; by default all images must have one size.
        channels: 1 (gray) or 3 (color).
    """

    def __init__(self, size: Sequence[int] | None = None, channels: int = 3):
        super().__init__()
        if channels not in (1, 3):
            raise ValueError(f"ImageEncoder: channels must be 1 or 3, got {channels}")
        self.resize = size is not None
        self.size = None if size is None else [int(s) for s in size]
        self.channels = channels
        self.mean, self.spread = 0.0, 1.0

    def _read(self, paths: Sequence[str | os.PathLike[str]]) -> Tensor:
        images = []
        for path in paths:
            image = cast(read_image(path, "L" if self.channels == 1 else "RGB"), "float32") / 255
            if self.resize:
                image = interpolate(
                    image.unsqueeze(0), size=self.size, mode="bilinear", antialias=True
                )[0]
            shape = [int(n) for n in image.shape[1:]]
            self.size = self.size or shape
            if shape != self.size:
                raise TableError(
                    f"images have different sizes: {path} is {shape[0]} x {shape[1]}, others are "
                    f"{self.size[0]} x {self.size[1]}; give one size: --size "
                    f"{self.size[0]},{self.size[1]}"
                )
            images.append(image)
        return cast(stack(images), dtypes.get_default_dtype())

    def fit(self, paths: Sequence[str | os.PathLike[str]]) -> Self:
        """Learns the size, mean and spread of the training images."""
        x = self._read(paths)
        self.mean, self.spread = float(x.mean()), float(x.std()) or 1.0
        return self

    def forward(self, paths: Sequence[str | os.PathLike[str]], target: str | None = None) -> Tensor:
        return (self._read(paths) - self.mean) / self.spread

    def get_extra_state(self) -> dict[str, Any]:
        return {"size": self.size, "mean": self.mean, "spread": self.spread}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        size, mean, spread = saved(
            "ImageEncoder", state, size="sizes", mean="number", spread="number"
        )
        if len(size) != 2 or math.prod(size) > LARGEST:
            raise ValueError(f"ImageEncoder: the saved size {size} is not that of an image")
        self.size, self.mean, self.spread = list(size), float(mean), float(spread)

    def extra_repr(self) -> str:
        return f"size={self.size}, channels={self.channels}"
