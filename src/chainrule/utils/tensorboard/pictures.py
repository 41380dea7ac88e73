"""Images as TensorBoard shows them: PNG files inside a message."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

from chainrule.backend import K
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor, of_array
from chainrule.utils.tensorboard.messages import inside, integer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["boxed", "figure_pixels", "in_bytes", "message", "one_picture", "png", "tiled"]


def png(pixels: Tensor) -> bytes:
    """An image (H, W, C) of bytes, C = 1, 3 or 4, as a PNG file."""
    h, w, c = pixels.shape
    lines = pixels.reshape(h, w * c).numpy().tobytes()
    rows = b"".join([b"\0" + lines[i : i + w * c] for i in range(0, h * w * c, w * c)])
    header = struct.pack(">IIBBBBB", w, h, 8, {1: 0, 3: 2, 4: 6}[c], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join([_chunk(kind, data) for kind, data in chunks])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def message(pixels: Tensor) -> bytes:
    """The field of a Summary.Value that holds an image (H, W, C) of bytes."""
    h, w, c = pixels.shape
    sizes = integer(1, h) + integer(2, w) + integer(3, c)
    return inside(4, sizes + inside(4, png(pixels)))


def in_bytes(image: Tensor) -> Tensor:
    """Floating values in [0, 1] as bytes; bytes as they are."""
    if image.dtype.name == "uint8":
        return image
    return clamp(image.detach().float() * 255, 0, 255).to("uint8")


def one_picture(image: Any, dataformats: str) -> Tensor:
    """An image, or several in a grid, as bytes (H, W, C); gray ones with three channels.

    ``dataformats`` names the dimensions: "HW", "CHW", "HWC", "NCHW", "NHWC", ...
    """
    x, letters = as_tensor(image).detach(), dataformats.upper()
    if len(set(letters)) != len(letters):
        raise AssertionError(f"add_image: a dimension stands twice in dataformats={dataformats!r}")
    wanted = {2: "HW", 3: "HWC", 4: "NHWC"}.get(len(letters), "")
    if set(wanted) != set(letters) or not letters:
        raise AssertionError(
            f"add_image: dataformats={dataformats!r} should have the letters HW, CHW or NCHW, in "
            "the order of the dimensions"
        )
    if x.ndim != len(letters):
        raise AssertionError(
            f"add_image: size of input tensor and input format are different: shape "
            f"{tuple(x.shape)}, dataformats={dataformats!r}"
        )
    x = x.permute(*[letters.index(c) for c in wanted])
    if x.ndim == 2:
        x = x.unsqueeze(2)
    if x.shape[-1] not in (1, 3, 4):
        raise AssertionError(f"add_image: an image has 1, 3 or 4 channels, got {x.shape[-1]}")
    if x.shape[-1] == 1:
        x = cat([x, x, x], -1)
    return in_bytes(tiled(x, 8) if x.ndim == 4 else x)


def tiled(images: Tensor, columns: int) -> Tensor:
    """Images (N, H, W, C) side by side, in rows of so many."""
    n, h, w, c = images.shape
    columns = min(n, columns)
    rows = -(-n // columns)
    blank = zeros(rows * columns - n, h, w, c, dtype=images.dtype, device=images.device)
    grid = cat([images, blank]).reshape(rows, columns, h, w, c)
    return grid.permute(0, 2, 1, 3, 4).reshape(rows * h, columns * w, c)


def boxed(pixels: Tensor, boxes: Any) -> Tensor:
    """The image (H, W, C) with red frames, two pixels wide; a box is (xmin, ymin, xmax, ymax)."""
    h, w, c = pixels.shape
    out = pixels.clone()
    red = as_tensor([255, 0, 0, 255][:c], dtype="uint8")
    for left, top, right, bottom in as_tensor(boxes).reshape(-1, 4).tolist():
        x0, x1 = (min(max(int(x), 0), w - 1) for x in (left, right))
        y0, y1 = (min(max(int(y), 0), h - 1) for y in (top, bottom))
        for rows, columns in (
            (slice(y0, y0 + 2), slice(x0, x1 + 1)),
            (slice(max(y1 - 1, 0), y1 + 1), slice(x0, x1 + 1)),
            (slice(y0, y1 + 1), slice(x0, x0 + 2)),
            (slice(y0, y1 + 1), slice(max(x1 - 1, 0), x1 + 1)),
        ):
            out[rows, columns] = red
    return out


def figure_pixels(figure: Figure | list[Figure], close: bool) -> Tensor:
    """A figure of matplotlib's, or several, drawn: bytes (H, W, 3), or (N, H, W, 3)."""
    if isinstance(figure, list):
        return stack([figure_pixels(f, close) for f in figure])
    from matplotlib import pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    drawn = of_array(K.asarray(canvas.buffer_rgba(), copy=True))
    if close:
        pyplot.close(figure)
    return drawn[:, :, :3]
