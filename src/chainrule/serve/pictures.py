"""Images in requests: files in base64 inside JSON, or one file as the body."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from chainrule.backend import dtypes
from chainrule.data import TableError
from chainrule.data.image_encoder import ImageEncoder, image_facts
from chainrule.data.images import ImageError, read_image
from chainrule.ops.creation.patterns import full
from chainrule.train import FittedNetwork
from chainrule.utils.tensorboard.pictures import png

__all__ = [
    "IMAGE",
    "MistakeInRow",
    "content_of",
    "example_picture",
    "files_of",
    "mistake_in",
    "takes_images",
]

IMAGE = "image"  # the name in a row, and the kind of what stands there


class MistakeInRow(TableError):
    """An image that cannot be read, with the number of its row in the request."""

    def __init__(self, row: int, rule: str):
        super().__init__(f"row {row}, column {IMAGE!r}: {rule}")
        self.row, self.rule = row, rule


def takes_images(network: FittedNetwork) -> bool:
    """Whether the rows of a network are images."""
    return isinstance(network.inputs, ImageEncoder)


def content_of(value: Any) -> bytes | None:
    """The bytes of a file that a text holds in base64, also as a data URL; None if it does not.

    >>> content_of("aGk="), content_of("data:image/png;base64,aGk="), content_of("?")
    (b'hi', b'hi', None)
    """
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        return None
    if value.startswith("data:"):
        head, _, value = value.partition(",")
        if not head.endswith(";base64"):
            return None
    try:
        return base64.b64decode(value, validate=True) or None
    except (binascii.Error, ValueError):
        return None


def files_of(rows: Sequence[Mapping[str, Any]], max_pixels: int) -> list[bytes]:
    """The files in rows, after a look at how large their pictures are: the pixels of a small file
    can fill the memory, and those of many small files the time."""
    files = [content_of(row[IMAGE]) or b"" for row in rows]
    total = 0
    for number, file in enumerate(files):
        try:
            height, width, _ = image_facts(file)
        except ImageError as error:
            raise MistakeInRow(number, _rule(error)) from None
        total += height * width
        if total > max_pixels:
            rule = (
                f"has {height} x {width} pixels; all images of a request together have at most "
                f"{max_pixels}"
            )
            raise MistakeInRow(number, rule)
    return files


def mistake_in(files: Sequence[bytes], error: ImageError) -> MistakeInRow:
    """Which of the files cannot be read, where one of them was told to be damaged."""
    for number, file in enumerate(files):
        try:
            read_image(file, "RGBA")
        except ImageError as own:
            return MistakeInRow(number, _rule(own))
    return MistakeInRow(0, _rule(error))


def _rule(error: ImageError) -> str:
    """The error without the name of the function that told it."""
    return str(error).partition(": ")[2]


def example_picture(network: FittedNetwork) -> str:
    """A gray picture of the size that the network sees, as a file in base64."""
    height, width = network.inputs.size or (1, 1)
    return base64.b64encode(png(full((height, width, 1), 128, dtype=dtypes.uint8))).decode()
