"""Points for TensorBoard's projector: tables and a picture beside the events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.shape.stacking import cat
from chainrule.utils.tensorboard.pictures import in_bytes, png, tiled

__all__ = ["write_embedding"]


def write_embedding(
    folder: Path,
    mat: Any,
    metadata: Sequence[Any] | None,
    label_img: Any,
    step: int,
    tag: str,
    header: Sequence[str] | None,
) -> str:
    """Writes the tables of points (N, D), their labels and images; returns their description."""
    points = as_tensor(mat).detach()
    if points.ndim != 2:
        raise AssertionError(
            "add_embedding: mat should be 2D, where mat.size(0) is the number of data points; got "
            f"shape {tuple(points.shape)}"
        )
    below = Path(f"{step:05d}") / _encoded(tag)
    (folder / below).mkdir(parents=True, exist_ok=True)
    _table(folder / below / "tensors.tsv", points.tolist())
    told = [
        f'  tensor_name: "{_quoted(tag)}:{step:05d}"',
        f'  tensor_path: "{_quoted((below / "tensors.tsv").as_posix())}"',
    ]
    if metadata is not None:
        _write_labels(folder / below / "metadata.tsv", metadata, header, len(points))
        told.append(f'  metadata_path: "{_quoted((below / "metadata.tsv").as_posix())}"')
    if label_img is not None:
        height, width = _write_sprite(folder / below / "sprite.png", label_img, len(points))
        told += [
            "  sprite {",
            f'    image_path: "{_quoted((below / "sprite.png").as_posix())}"',
            f"    single_image_dim: {width}",
            f"    single_image_dim: {height}",
            "  }",
        ]
    return "embeddings {\n" + "\n".join(told) + "\n}\n"


def _encoded(tag: str) -> str:
    """A tag as the name of a folder."""
    return tag.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _table(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    path.write_text("".join(["\t".join(map(str, row)) + "\n" for row in rows]), "utf-8")


def _write_labels(
    path: Path, labels: Sequence[Any], header: Sequence[str] | None, points: int
) -> None:
    if len(labels) != points:
        raise AssertionError(
            f"add_embedding: #labels should equal with #data points, got {len(labels)} and {points}"
        )
    if not header:
        _table(path, [(label,) for label in labels])
        return
    if len(header) != len(labels[0]):
        raise AssertionError(
            "add_embedding: len of header must be equal to the number of columns in metadata, got "
            f"{len(header)} and {len(labels[0])}"
        )
    _table(path, [header, *labels])


def _write_sprite(path: Path, label_img: Any, points: int) -> tuple[int, int]:
    """Images (N, C, H, W) in a square of squares; returns the size of one."""
    images = as_tensor(label_img).detach()
    if images.ndim != 4 or images.shape[1] not in (1, 3):
        raise AssertionError(
            "add_embedding: label_img should be (N, C, H, W) with 1 or 3 channels, got shape "
            f"{tuple(images.shape)}"
        )
    if len(images) != points:
        raise AssertionError(
            f"add_embedding: #images should equal with #data points, got {len(images)} and {points}"
        )
    if images.shape[1] == 1:
        images = cat([images, images, images], 1)
    side = math.ceil(points**0.5)
    _, _, height, width = images.shape
    grid = in_bytes(tiled(images.permute(0, 2, 3, 1), side))
    missing = max(grid.shape[1] - grid.shape[0], 0)
    square = cat([grid, zeros(missing, grid.shape[1], 3, dtype="uint8")])
    path.write_bytes(png(square))
    return height, width
