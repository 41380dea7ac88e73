"""AlexNet: its size, and its errors on images that stand in for ImageNet."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import chainrule
from chainrule import Tensor, charts, data, metrics, models, nn, optim
from chainrule.atlas import Number, Outcome, Statement, Unchecked, entry

SIDE = 227
WHY = (
    "the 1.2 million images of ImageNet cannot be had without an account; the same program runs on "
    "a stand-in, and on the images, if data.ImageNet is given their folder"
)
NOTE = (
    "ImageNet is not at hand: images of colored gratings, of 227 by 227 pixels and in its folders, "
    "stand in for it, and an AlexNet with a sixteenth of the channels learns them."
)


def grating(kind: int, classes: int) -> Tensor:
    """An image of stripes: the class decides their angle and color, chance the width and phase."""
    angle = math.pi * (kind // 3) / math.ceil(classes / 3)
    place = chainrule.linspace(-1, 1, SIDE)
    along = math.cos(angle) * place + math.sin(angle) * place[:, None]
    width, phase = 4 + 4 * float(chainrule.rand(())), 6 * float(chainrule.rand(()))
    color = 0.5 * chainrule.rand(3, 1, 1)
    color[kind % 3] = 1.0
    stripes = 0.5 + 0.5 * (math.pi * width * along + phase).sin()
    noisy = color * stripes + 0.1 * chainrule.rand(3, SIDE, SIDE)
    return data.to_uint8(noisy.clamp(0, 1))


def write_stand_in(root: Path, classes: int, count: int) -> None:
    """Images in the folders of ImageNet: root/train/n00000000/0.tif, ..."""
    for split, images in (("train", count), ("val", max(2, count // 4))):
        for kind in range(classes):
            folder = root / split / f"n{kind:08}"
            folder.mkdir(parents=True)
            for i in range(images):
                data.write_image(grating(kind, classes), folder / f"{i}.tif")


def read(root: Path, split: str) -> tuple[Tensor, Tensor]:
    """All images of a part, from -1 to 1, and their classes."""
    found = data.ImageNet(root, split)
    images, labels = zip(*(found[i] for i in range(len(found))), strict=True)
    return 2 * data.to_float(chainrule.stack(list(images))) - 1, chainrule.tensor(labels)


def train(net: nn.Module, x: Tensor, y: Tensor, epochs: int) -> list[float]:
    """The loss of each epoch; momentum and weight decay are those of 2012."""
    optimizer = optim.SGD(net.parameters(), lr=0.004, momentum=0.9, weight_decay=5e-4)
    losses = []
    for _ in range(epochs):
        total = 0.0
        for i in chainrule.randperm(len(y)).split(8):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x[i]), y[i])
            loss.backward()
            optimizer.step()
            total += float(loss) * len(i)
        losses.append(total / len(y))
    return losses


def picture(x: Tensor, losses: list[float]) -> Any:
    """Some images, and the loss."""
    axes = charts.grid_of_axes(None, 2, 2, (3.2, 3.0))
    grid = data.make_grid((x[:: max(1, len(x) // 9)][:9] + 1) / 2, nrow=3, padding=6)
    axes[0].imshow(grid.permute(1, 2, 0).numpy())
    axes[0].set_axis_off()
    axes[0].set_title("images of the stand-in")
    axes[1].plot(range(1, len(losses) + 1), losses, "o-", color=charts.COLORS[0])
    axes[1].set(title="training", xlabel="epoch", ylabel="cross entropy")
    return axes


@entry(
    "X16",
    course="000",
    printed="section 2.5",
    title="AlexNet: error and size",
    claims=[
        Number("millions of parameters", 60.0, tolerance=1.0),
        Unchecked("top-1 and top-5 error on ImageNet", "37.5 % and 17.0 %", WHY),
        Statement("stand-in: top-1 error over that of a guess", "it learns classes", at_most=0.5),
    ],
    full={"classes": 12, "count": 60, "epochs": 20},
)
def alexnet_errors(classes: int = 6, count: int = 8, epochs: int = 8) -> Outcome:
    """The network that brought convolutions back: five of them, and three dense layers.

    Its errors on ImageNet, 37.5 % for the first guess and 17.0 % for the first five, take 1.2
    million images and days of training. Here the whole way is gone on images that stand in for
    them: read from the folders of ImageNet, trained with the momentum and weight
    decay of 2012, and judged by both errors.
    """
    size = sum(p.numel() for p in nn.utils.skip_init(models.AlexNet).parameters())
    with tempfile.TemporaryDirectory() as folder:
        write_stand_in(Path(folder), classes, count)
        x, y = read(Path(folder), "train")
        held = read(Path(folder), "val")
    net = models.AlexNet(classes, dropout=0.0, shrink=16)
    for layer in net.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    losses = train(net, x, y, epochs)
    with chainrule.no_grad():
        scores = net.eval()(held[0])
    errors = [metrics.top_k_error(scores, held[1], k) for k in (1, 5)]
    return Outcome(
        {
            "millions of parameters": size / 1e6,
            "stand-in: top-1 error over that of a guess": errors[0] / (1 - 1 / classes),
        },
        [picture(x, losses)],
        note=f"{NOTE} Its errors there: {100 * errors[0]:.0f} % and {100 * errors[1]:.0f} %.",
    )
