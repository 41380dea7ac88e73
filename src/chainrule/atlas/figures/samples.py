"""Pictures that networks are trained with: sheets of samples, and grids with their classes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import chainrule
from chainrule import Tensor, charts, inspect
from chainrule import data as datasets
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.data import transforms

KINDS = (
    "disc",
    "square",
    "diamond",
    "ring",
    "cross",
    "bar",
    "post",
    "wedge",
    "checks",
    "frame",
)
DIGITS_STAND_IN = (
    "1,797 digits of 8 by 8 pixels, enlarged to 28 by 28, stand in for MNIST; --full --data DIR "
    "reads its files. "
)
COLORS_STAND_IN = "Painted shapes of 32 by 32 pixels stand in for CIFAR-10, which is not supplied. "


def handwritten(folder: Path | None, train: bool = True) -> tuple[Tensor, Tensor, str]:
    """Digits (N, 1, 28, 28) from 0 to 1, their classes, and what they are: MNIST from its files,
    or the digits that come with the library, placed in the middle as those of MNIST are."""
    if folder is not None:
        files = datasets.MNIST(folder, train=train)
        return files.images.float() / 255, files.targets, ""
    x, y = datasets.embedded("digits").tensors()
    small = x.float().reshape(-1, 1, 8, 8) / 16
    images = transforms.Pad(4)(transforms.Resize(20)(small))
    part = slice(0, 1500) if train else slice(1500, None)
    return images[part], y[part], DIGITS_STAND_IN


def painted(count: int) -> tuple[Tensor, Tensor]:
    """Shapes of ten kinds as bytes (N, 3, 32, 32), each of its own color, size and place."""
    labels = chainrule.arange(count) % len(KINDS)
    line = chainrule.linspace(-1, 1, 32)
    size = 0.45 + 0.25 * chainrule.rand(count, 1, 1)
    x = ((line + 0.5 * chainrule.rand(count, 1, 1) - 0.25) / size).expand(count, 32, 32)
    y = (line.reshape(-1, 1) + 0.5 * chainrule.rand(count, 1, 1) - 0.25) / size
    y = y.expand(count, 32, 32)
    across, along, far = x.abs(), y.abs(), x * x + y * y
    most, least = chainrule.maximum(across, along), chainrule.minimum(across, along)
    shapes = chainrule.stack(
        [
            far < 1,
            most < 0.9,
            across + along < 1.2,
            (far > 0.4) & (far < 1.1),
            (least < 0.3) & (most < 1),
            (along < 0.35) & (across < 1.2),
            (across < 0.35) & (along < 1.2),
            (along < 0.9) & (across < 0.5 * (y + 0.9)),
            (most < 1) & ((5 * x).sin() * (5 * y).sin() > 0),
            (most > 0.6) & (most < 1),
        ]
    )
    inside = shapes[labels, chainrule.arange(count)].float().unsqueeze(1)
    paint, ground = chainrule.rand(2, count, 3, 1, 1)
    colors = inside * (0.5 + 0.5 * paint) + (1 - inside) * 0.45 * ground
    noisy = colors + 0.03 * chainrule.randn(count, 3, 32, 32)
    return (255 * noisy.clamp(0, 1)).to(chainrule.uint8), labels


def colored(folder: Path | None, count: int = 200) -> tuple[datasets.CIFAR10, tuple[str, ...], str]:
    """The test images of CIFAR-10 if their files are there, else shapes in files of its format;
    with the names of the classes, and what they are."""
    if folder is not None:
        try:
            return datasets.CIFAR10(folder, train=False), tuple(datasets.CIFAR10.classes), ""
        except FileNotFoundError:
            pass
    images, labels = painted(count)
    records = chainrule.cat([labels.to(chainrule.uint8).unsqueeze(1), images.flatten(1)], 1)
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "test_batch.bin").write_bytes(records.numpy().tobytes())
        return datasets.CIFAR10(made, train=False), KINDS, COLORS_STAND_IN


def rows_of(ax: Any, sheet: inspect.DataSheet) -> None:
    """Draws a sheet as one picture, with a row for each class and its name beside it."""
    each = len(sheet.samples) // len(sheet.counts)
    grid = datasets.make_grid(sheet.samples, nrow=each, padding=2, normalize=True, pad_value=1.0)
    high = (grid.shape[1] - 2) / len(sheet.counts)
    ax.imshow(grid.permute(1, 2, 0).numpy(), interpolation="nearest")
    ax.set_yticks([1 + high * (k + 0.5) for k in range(len(sheet.counts))], [*sheet.counts])
    ax.set_xticks([])
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)


@entry(
    "V34",
    course="000",
    printed="example 6",
    title="A batch as one picture, with its classes",
    claims=[
        Statement(
            "largest error of a pixel after img / 2 + 0.5",
            "this undoes the normalization by 0.5 and 0.5",
            at_most=1e-6,
        ),
        Statement("least and largest normalized pixel", "from -1 to 1", -1.0, 1.0),
        Number("channels, rows and columns of four images in a grid", (3, 36, 138), tolerance=0.5),
    ],
)
def grid_of_a_batch(data: Path | None = None) -> Outcome:
    """Look at a batch as the network gets it, before anything is trained.

    Images were normalized to the range from -1 to 1, so they are brought back to 0 to 1, put side
    by side with a border of two pixels, and their classes are written beside them. A wrong order
    of channels or shuffled classes are seen at once.
    """
    files, names, note = colored(data)
    images, labels = files.images[:4].float() / 255, files.targets[:4].tolist()
    batch = transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))(images)
    grid = datasets.make_grid(batch)
    ax = charts.axes_for(None, (6.4, 2.3))
    datasets.imshow(grid, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), ax=ax)
    for place, label in enumerate(labels):
        ax.text(18 + 34 * place, grid.shape[1] + 1, names[label], ha="center", va="top")
    ax.set_title("A batch of four images")
    return Outcome(
        {
            "largest error of a pixel after img / 2 + 0.5": float(
                (batch / 2 + 0.5 - images).abs().max()
            ),
            "least and largest normalized pixel": (float(batch.min()), float(batch.max())),
            "channels, rows and columns of four images in a grid": grid.shape,
        },
        [ax],
        note=note,
    )


@entry(
    "V35",
    course="004",
    printed="fig. D.1-D.2",
    title="Samples of MNIST and of CIFAR-10",
    claims=[
        Number("rows and columns of a digit", (28, 28), tolerance=0.5),
        Number("channels, rows and columns of a color image", (3, 32, 32), tolerance=0.5),
        Number("classes of both", (10, 10), tolerance=0.5),
        Statement("least examples of a class on the sheets", "each class is shown", at_least=10),
    ],
    data=("mnist",),
)
def sample_sheets(data: Path | None = None) -> Outcome:
    """A few examples of each class: digits in shades of gray, and small color images.

    A sheet like this tells more of a task than a table: how much writers differ, which classes
    are alike, what is hard to see even for us. Both sets have ten classes.
    """
    images, labels, note = handwritten(data)
    digits = inspect.data_sheet(images, labels, per_class=10)
    files, names, other = colored(data)
    colors = inspect.data_sheet(files.images, files.targets, classes=names, per_class=10)
    shown = [s.labels.count(name) for s in (digits, colors) for name in s.counts]
    axes = charts.grid_of_axes(None, 2, 2, (3.7, 3.6))
    for ax, sheet, what in zip(axes, (digits, colors), ("Digits", "Color images"), strict=True):
        rows_of(ax, sheet)
        ax.set_title(f"{what}, {' x '.join(map(str, sheet.samples.shape[1:]))}")
    return Outcome(
        {
            "rows and columns of a digit": images.shape[2:],
            "channels, rows and columns of a color image": files.images.shape[1:],
            "classes of both": (len(digits.counts), len(colors.counts)),
            "least examples of a class on the sheets": min(shown),
        },
        [axes],
        note=note + other,
    )
