"""Pictures that are changed so that their class stays, and those of which it does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import chainrule
from chainrule import Tensor, charts, inspect
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.atlas.figures.features import samples, trained
from chainrule.atlas.figures.samples import colored
from chainrule.data import transforms

SHEET: dict[str, Callable[[Tensor], Tensor]] = {
    "rotation": transforms.RandomRotation(30, interpolation="bilinear"),
    "translation": transforms.RandomAffine(0, translate=(0.25, 0.25)),
    "cropping": transforms.RandomCrop(32, padding=4, padding_mode="reflect"),
    "brightness": transforms.ColorJitter(brightness=0.7),
    "colors": transforms.ColorJitter(saturation=0.8, hue=0.3),
    "shearing": transforms.RandomAffine(0, shear=30, interpolation="bilinear"),
    "mirroring": transforms.RandomHorizontalFlip(1.0),
}
SMALL: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda x: x,
    "rotation": transforms.RandomRotation(8, interpolation="bilinear"),
    "translation": transforms.RandomAffine(0, translate=(0.04, 0.04)),
    "shearing": transforms.RandomAffine(0, shear=8, interpolation="bilinear"),
    "brightness": transforms.ColorJitter(brightness=0.3),
}
MIRRORED = {"mirrored": transforms.RandomHorizontalFlip(1.0)}


@entry(
    "V36",
    course="004",
    printed="fig. 8.4, section 8.10",
    title="Augmented pictures, and labels that stay right",
    claims=[
        Number("least and largest side of a changed picture", (32, 32), tolerance=0.5),
        Statement("least mean change of a pixel, of 1", "every transform changes it", 0.01),
        Statement(
            "accuracy on digits changed a little over that on digits, least",
            "the label is still correct",
            at_least=0.9,
        ),
        Statement(
            "accuracy on mirrored digits over that on digits",
            "flipped letters can have wrong labels",
            at_most=0.7,
        ),
    ],
    full={"images": 60_000, "epochs": 2},
    data=("mnist",),
)
def augmented(images: int = 1500, epochs: int = 4, data: Path | None = None) -> Outcome:
    """One picture, and what random transforms make of it: more pictures of the same class.

    Which transforms keep the class depends on the pictures. A network that has seen no changed
    digit still names those that are turned, shifted or sheared a little; mirrored ones it takes
    for others, as a mirrored b is a d. So mirroring serves for animals and not for letters.
    """
    net = trained(images, epochs, data)
    x, labels, note = samples(data)
    files, _, other = colored(data)
    sheet = inspect.augmentation_sheet(files.images[8].float() / 255, SHEET, copies=6)
    sides = [side for p in sheet.changed.values() for side in p.shape[2:]]
    rates = {}
    with chainrule.no_grad():
        for name, change in (SMALL | MIRRORED).items():
            rates[name] = float((net(change(x)).argmax(1) == labels).float().mean())
    kept = [rates[name] / rates["none"] for name in SMALL if name != "none"]
    return Outcome(
        {
            "least and largest side of a changed picture": (min(sides), max(sides)),
            "least mean change of a pixel, of 1": min(sheet.change.values()),
            "accuracy on digits changed a little over that on digits, least": min(kept),
            "accuracy on mirrored digits over that on digits": rates["mirrored"] / rates["none"],
        },
        [drawn(sheet), bars(rates)],
        note=note + other,
    )


def drawn(sheet: inspect.AugmentationSheet) -> object:
    """A row for each transform; the original is at the left."""
    rows = []
    for pictures in sheet.changed.values():
        bordered = chainrule.nn.functional.pad(
            chainrule.cat([sheet.original.unsqueeze(0), pictures]), (1, 1, 1, 1), value=1.0
        )
        rows.append(chainrule.cat(list(bordered), 2))
    ax = charts.axes_for(None, (5.6, 4.9))
    ax.imshow(chainrule.cat(rows, 1).permute(1, 2, 0).clamp(0, 1).numpy())
    high = rows[0].shape[1]
    ax.set_yticks([high * (k + 0.5) for k in range(len(rows))], [*sheet.changed])
    ax.set_xticks([high / 2], ["original"])
    ax.tick_params(length=0)
    ax.set_title("Random changes of one picture")
    return ax


def bars(rates: dict[str, float]) -> object:
    """The accuracy on digits, by how they were changed."""
    ax = charts.axes_for(None, (5.6, 2.4))
    colors = [charts.COLORS[name == "mirrored"] for name in rates]
    ax.barh([*rates][::-1], [*rates.values()][::-1], color=colors[::-1])
    ax.set(title="A network that saw no changed digits", xlabel="accuracy", xlim=(0, 1))
    return ax
