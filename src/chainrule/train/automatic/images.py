"""From a folder of images by class to a trained, evaluated convolutional network."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from chainrule import nn
from chainrule.data import Column, TargetEncoder
from chainrule.data import train_validation_test_split as split_in_three
from chainrule.data.image_encoder import ImageEncoder, image_files
from chainrule.random import fork_rng, manual_seed
from chainrule.train.automatic.choice import check_target
from chainrule.train.automatic.parts import EXAMPLES, Parts
from chainrule.train.automatic.settings import Settings
from chainrule.train.automatic.tables import finish
from chainrule.train.fitted import FittedNetwork
from chainrule.train.progress import ProgressLike
from chainrule.train.run_folder import RunFolder

__all__ = ["fit_images"]


def small_convnet(
    channels: int, height: int, width: int, classes: int, settings: Settings
) -> nn.Sequential:
    """Two or three blocks of convolution, normalization and pooling, then a dense head."""
    layers: list[nn.Module] = []
    wide = channels
    for out in (16, 32, 64):
        if min(height, width) < 4:
            break
        layers += [
            nn.Conv2d(wide, out, 3, padding=1),
            nn.BatchNorm2d(out),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        wide, height, width = out, height // 2, width // 2
    layers += [nn.Flatten()]
    features = wide * height * width
    for size in settings.hidden or ():
        layers += [nn.Linear(features, size), nn.ReLU()]
        if settings.dropout:
            layers += [nn.Dropout(settings.dropout)]
        features = size
    return nn.Sequential(*layers, nn.Linear(features, classes))


def fit_images(
    folder: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    size: Sequence[int] | None = None,
    channels: int = 3,
    progress: ProgressLike = True,
    checkpoints: RunFolder | None = None,
) -> FittedNetwork:
    """Trains a convolutional network on a folder with one subfolder of images for each class.

    Args:
        folder: the folder.
        settings: see :class:`Settings`; ``hidden`` are the dense layers after the convolutions.
        size: (height, width) to resize all images to.
        channels: 3 for color, 1 for gray.
        progress: whether to show a bar, or "plot" for curves.
        checkpoints: where they are kept from which the training can be resumed.
    """
    settings = (settings or Settings(hidden=(64,), epochs=60, patience=10)).as_plain()
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
    inputs = ImageEncoder(size, channels).fit([paths[i] for i in train])
    goal = TargetEncoder("classification").fit(column.take(train))
    encoded = [
        (inputs([paths[i] for i in rows]), goal(column.take(rows)))
        for rows in (train, validation, test)
    ]
    examples = [paths[i] for i in train[:EXAMPLES]]
    rows = [paths[i] for i in test]
    parts = Parts(inputs, goal, encoded[0], encoded[1], encoded[2], rows, examples)
    _, c, h, w = parts.train[0].shape
    counts = Counter(classes)
    about = {
        "source": str(folder),
        "rows": len(paths),
        "columns": ["image", "class"],
        "images": True,
        "features": [f"{c} x {h} x {w} pixels"],
        "left_out": {},
        "size": None if size is None else list(size),
        "channels": channels,
        "summary": [
            {
                "column": "class",
                "kind": "category",
                "missing": 0,
                "values": ", ".join(f"{k} ({n})" for k, n in counts.most_common(12)),
            },
            {"column": "image", "kind": "image", "missing": 0, "values": f"{c} x {h} x {w} pixels"},
        ],
    }
    with fork_rng():
        manual_seed(settings.seed)
        model = small_convnet(int(c), int(h), int(w), goal.outputs, settings)
        return finish(model, parts, settings, "class", about, progress, checkpoints)
