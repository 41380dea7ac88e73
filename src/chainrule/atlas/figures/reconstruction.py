"""Autoencoders: pictures through a narrow middle and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chainrule
from chainrule import Tensor, charts, inspect, models, nn, train
from chainrule.atlas import Outcome, Spread, Statement, entry
from chainrule.atlas.figures.samples import handwritten
from chainrule.data import make_grid


def fitted(x: Tensor, updates: int, seeds: int) -> list[nn.Module]:
    """Autoencoders with 50 units in the middle, each from its own start, after some updates."""
    batch = min(30, len(x))
    fits = train.fit_many(
        lambda: models.Autoencoder(784, [128], 50),
        (x, x),
        "mse",
        "adam",
        seeds=range(seeds),
        lr=4e-3,
        epochs=-(-updates * batch // len(x)),
        batch_size=batch,
    )
    return fits.models


def errors(nets: list[nn.Module], x: Tensor) -> list[float]:
    """The mean squared error of each network, over that of the mean picture."""
    found = [inspect.reconstructions(net, x) for net in nets]
    return [sum(f.errors) / len(f.errors) / f.baseline for f in found]


def draw_rows(ax: Any, net: nn.Module, x: Tensor, title: str) -> None:
    """Pictures over what a network makes of them."""
    seen = inspect.reconstructions(net, x)
    both = chainrule.cat([seen.originals, seen.reconstructed]).clamp(0, 1)
    ax.imshow(make_grid(both, nrow=len(x), padding=1).permute(1, 2, 0).numpy())
    ax.set_title(title, fontsize=10)
    ax.set_yticks([14, 43], ["original", "made"])
    ax.set_xticks([])
    ax.tick_params(length=0)


@entry(
    "V37",
    course="002",
    printed="autoencoder on MNIST, 50 bottleneck nodes",
    title="Digits and their reconstructions",
    claims=[
        Statement(
            "error on new digits, over that of the mean digit",
            "50 numbers hold a digit of 784 pixels",
            at_most=0.3,
        ),
        Statement(
            "error on new over known digits, few known", "a low error does not carry over", 2.0
        ),
        Statement(
            "error on new digits, few known over all known", "overfitting harms new digits", 1.5
        ),
    ],
    full={"few": 200, "updates": 3000, "seeds": 5},
    data=("mnist",),
)
def autoencoder(
    few: int = 60, updates: int = 200, seeds: int = 3, data: Path | None = None
) -> Outcome:
    """A network that is to put out its input, and has only 50 units in the middle for it.

    Trained with all digits it reproduces new ones nearly as well as those that it knows. Trained
    with a few only, as long as before, it reproduces these, and makes something like them of all
    others: a low error on the training set says nothing of new pictures.
    """
    x, _, note = handwritten(data)
    new = handwritten(data, train=False)[0].flatten(1)[:1000]
    x = x.flatten(1)
    whole, sampled = fitted(x, updates, seeds), fitted(x[:few], updates, seeds)
    new_whole, new_few, known_few = (
        errors(whole, new),
        errors(sampled, new),
        errors(sampled, x[:few]),
    )
    axes = charts.grid_of_axes(None, 4, 1, (6.0, 1.65))
    for ax, (name, net, pictures) in zip(
        axes,
        [
            (f"{len(x)} known digits, known ones", whole[0], x[:10]),
            (f"{len(x)} known digits, new ones", whole[0], new[:10]),
            (f"{few} known digits, known ones", sampled[0], x[:10]),
            (f"{few} known digits, new ones", sampled[0], new[:10]),
        ],
        strict=True,
    ):
        draw_rows(ax, net, pictures, name)
    return Outcome(
        {
            "error on new digits, over that of the mean digit": Spread(tuple(new_whole)),
            "error on new over known digits, few known": ratio(new_few, known_few),
            "error on new digits, few known over all known": ratio(new_few, new_whole),
        },
        [axes],
        note=note,
    )


def ratio(above: list[float], below: list[float]) -> Spread:
    """The quotients of the numbers of each seed."""
    return Spread(tuple(a / b for a, b in zip(above, below, strict=True)))
