"""From a folder of images by class to a trained, evaluated convolutional network."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from chainrule import nn
from chainrule.data import Column, TargetEncoder
from chainrule.data import train_validation_test_split as split_in_three
from chainrule.data.augment_geometry import RandomCrop
from chainrule.data.image_encoder import ImageEncoder, image_files
from chainrule.models.mlp import activation_module
from chainrule.random import fork_rng, manual_seed
from chainrule.train.automatic.choice import check_target
from chainrule.train.automatic.parts import EXAMPLES, Parts
from chainrule.train.automatic.settings import Settings
from chainrule.train.automatic.tables import finish
from chainrule.train.fitted import FittedNetwork
from chainrule.train.placing import DevicesLike
from chainrule.train.progress import ProgressLike
from chainrule.train.run_folder import RunFolder

__all__ = ["IMAGES", "SHIFTED", "fit_images"]

IMAGES = Settings(hidden=(64,), norm="batch", epochs=60, patience=10)  # what is usual for images
SHIFTED = 16  # pixels from which shifts help by default; of 8 by 8 one is too far


def small_convnet(
    channels: int, height: int, width: int, classes: int, settings: Settings, augment: bool = False
) -> nn.Sequential:
    """Two or three blocks of convolution, normalization and pooling, then a dense head.

    With ``augment`` training images are shifted at random by up to a tenth of their size, the
    border going on; in evaluation they pass as they are.
    """
    layers: list[nn.Module] = []
    if augment:
        border = (max(1, round(width / 10)), max(1, round(height / 10)))
        layers += [RandomCrop((height, width), padding=border, padding_mode="edge")]
    wide = channels
    for out in (16, 32, 64):
        if min(height, width) < 4:
            break
        layers += [nn.Conv2d(wide, out, 3, padding=1), *_norm(settings.norm, out)]
        layers += [activation_module(settings.activation or "relu"), nn.MaxPool2d(2)]
        wide, height, width = out, height // 2, width // 2
    layers += [nn.Flatten()]
    features = wide * height * width
    for size in settings.hidden or ():
        layers += [nn.Linear(features, size), activation_module(settings.activation or "relu")]
        if settings.dropout:
            layers += [nn.Dropout(settings.dropout)]
        features = size
    return nn.Sequential(*layers, nn.Linear(features, classes))


def _norm(kind: str | None, channels: int) -> list[nn.Module]:
    """The normalization behind a convolution; that of a layer is over all channels and places."""
    if kind is None:
        return []
    if kind not in ("batch", "layer"):
        raise ValueError(f"norm must be 'batch', 'layer' or None, got {kind!r}")
    return [nn.BatchNorm2d(channels) if kind == "batch" else nn.GroupNorm(1, channels)]


def fit_images(
    folder: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    size: Sequence[int] | None = None,
    channels: int | None = None,
    augment: bool | None = None,
    progress: ProgressLike = True,
    checkpoints: RunFolder | None = None,
    devices: DevicesLike | None = None,
) -> FittedNetwork:
    """Trains a convolutional network on a folder with one subfolder of images for each class.

    Args:
        folder: the folder.
        settings: see :class:`Settings`; ``hidden`` are the dense layers after the convolutions,
            ``norm`` is that of the convolutions. By default hidden=(64,), norm="batch", epochs=60,
            patience=10.
        size: (height, width) to bring all images to; by default theirs, or a median one, with at
            most 64 pixels on the longer side.
        channels: 3 for color, 1 for gray; by default 1 if all images are gray.
        augment: whether to shift training images at random by up to a tenth of their size; by
            default from 16 by 16 pixels on. They are not mirrored: a digit would be another one.
        progress: whether to show a bar, or "plot" for curves.
        checkpoints: where they are kept from which the training can be resumed.
        devices: which devices share each batch: see :class:`~chainrule.train.Trainer`. The fitted
            network computes on the CPU.
    """
    settings = (settings or IMAGES).as_plain()
    if settings.effort != "normal":
        raise ValueError(f"effort {settings.effort!r} is for tables; a folder of images has none")
    paths, classes = image_files(folder)
    column = Column("class", "category", classes)
    check_target(column, "classification")
    TargetEncoder("classification").fit(column)
    train, validation, test = split_in_three(
        list(range(len(paths))),
        validation_size=settings.validation_size,
        test_size=settings.test_size,
        random_state=settings.seed,
        stratify=classes,
    )
    inputs = ImageEncoder(size, channels)
    goal = TargetEncoder("classification").fit(column.take(train))
    encoded = [(inputs.fit_transform([paths[i] for i in train]), goal(column.take(train)))]
    encoded += [
        (inputs([paths[i] for i in rows]), goal(column.take(rows))) for rows in (validation, test)
    ]
    examples = [paths[i] for i in train[:EXAMPLES]]
    rows = [paths[i] for i in test]
    parts = Parts(inputs, goal, encoded[0], encoded[1], encoded[2], rows, examples)
    c, h, w = (int(n) for n in parts.train[0].shape[1:])
    shifted = min(h, w) >= SHIFTED if augment is None else augment
    given = {"size": None if size is None else list(size), "channels": channels, "augment": augment}
    about = {
        "source": str(folder),
        "rows": len(paths),
        "columns": ["image", "class"],
        "images": True,
        "features": [f"{c} x {h} x {w} pixels"],
        "left_out": {},
        "given": {name: value for name, value in given.items() if value is not None},
        "augment": shifted,
        "summary": _summary(classes, _pixels(inputs, c, h, w) + ", shifted at random" * shifted),
    }
    with fork_rng():
        manual_seed(settings.seed)
        model = small_convnet(c, h, w, goal.outputs, settings, shifted)
        return finish(model, parts, settings, "class", about, progress, checkpoints, devices)


def _pixels(inputs: ImageEncoder, channels: int, height: int, width: int) -> str:
    """How large images are for the network, and how large they were."""
    kind = "gray" if channels == 1 else "color"
    taken = f"{height} x {width} pixels in {kind}"
    if not inputs.seen or inputs.seen == (height, height, width, width):
        return taken
    shortest, tallest, narrowest, widest = (f"{n:,}" for n in inputs.seen)
    heights = shortest if shortest == tallest else f"{shortest} to {tallest}"
    widths = narrowest if narrowest == widest else f"{narrowest} to {widest}"
    return f"{taken}, brought from {heights} x {widths} (height x width)"


def _summary(classes: Sequence[str], pixels: str) -> list[dict[str, object]]:
    """The lines about the data for the report."""
    counts = Counter(classes)
    more = f", and {len(counts) - 12} more" if len(counts) > 12 else ""
    listed = ", ".join(f"{k} ({n})" for k, n in counts.most_common(12)) + more
    return [
        {"column": "class", "kind": "category", "missing": 0, "values": listed},
        {"column": "image", "kind": "image", "missing": 0, "values": pixels},
    ]
