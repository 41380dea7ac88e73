"""How large a picture is on a page."""

from __future__ import annotations

import re
import struct
from pathlib import Path

__all__ = ["Size", "size_of"]

Size = tuple[int, int]  # width and height in pixels of CSS, 96 to the inch
INCH = 96
UNITS = {"": 1.0, "px": 1.0, "pt": INCH / 72}
SIDE = r'\s%s="([\d.]+)(px|pt|)"'


def size_of(picture: Path) -> Size:
    """Width and height of a PNG or SVG file; of a PNG with more dots to the inch than a page has,
    those of the drawing."""
    content = picture.read_bytes()
    return _of_png(content) if picture.suffix == ".png" else _of_svg(content.decode())


def _of_svg(text: str) -> Size:
    opening = text[text.index("<svg") :].partition(">")[0]
    sides = [re.search(SIDE % side, opening) for side in ("width", "height")]
    width, height = (float(s[1]) * UNITS[s[2]] for s in sides if s is not None)
    return round(width), round(height)


def _of_png(content: bytes) -> Size:
    width, height = struct.unpack(">II", content[16:24])
    at = content.find(b"pHYs", 24)
    if at < 0:
        return width, height
    across, _, is_meters = struct.unpack(">IIB", content[at + 4 : at + 13])
    scale = INCH / (across * 0.0254) if is_meters else 1.0
    return round(width * scale), round(height * scale)
