"""Batch normalization against self-normalization in deep dense networks."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import chainrule
from chainrule import Tensor, charts, nn, train
from chainrule.atlas import Outcome, Statement, entry
from chainrule.atlas.figures.samples import colored, handwritten

DEPTHS = (8, 16, 32)
SCALE = 512 * 1e-5  # width times rate: what a step changes in the output of a layer


def deep(kind: str, depth: int, width: int, inputs: int) -> nn.Sequential:
    """Dense layers with batch normalization and ReLU, or with SELU; ten classes."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise([inputs, *[width] * depth]):
        layer = nn.Linear(before, after)
        gain = 2.0 if kind == "BatchNorm" else 1.0
        nn.init.normal_(layer.weight, 0.0, (gain / before) ** 0.5)
        nn.init.zeros_(layer.bias)
        behind = [nn.BatchNorm1d(after), nn.ReLU()] if kind == "BatchNorm" else [nn.SELU()]
        layers += [layer, *behind]
    last = nn.Linear(width, 10)
    nn.init.normal_(last.weight, 0.0, width**-0.5)
    nn.init.zeros_(last.bias)
    return nn.Sequential(*layers, last)


def log_errors(
    kind: str, depth: int, width: int, x: Tensor, y: Tensor, epochs: int, starts: int, orders: int
) -> Tensor:
    """ln of the training error (starts, orders, epochs): each start is trained several times, with
    samples in different order."""
    nets: list[nn.Module] = []
    for seed in range(starts):
        chainrule.manual_seed(seed)
        net = deep(kind, depth, width, x.shape[1])
        nets += [copy.deepcopy(net) for _ in range(orders)]
    fits = train.fit_many(
        nets,
        (x, y),
        "cross_entropy",
        "sgd",
        seeds=range(len(nets)),
        lr=SCALE / width,
        epochs=epochs,
        batch_size=len(x) // 8,
    )
    rows = [history["loss"] for history in fits.histories]
    return chainrule.tensor(rows).log().reshape(starts, orders, epochs)


def draw_bands(ax: Any, depth: int, found: dict[str, Tensor]) -> None:
    """The change of ln of the error since the first epoch: each run, in a band over the orders."""
    for k, (kind, logs) in enumerate(found.items()):
        epochs = range(1, logs.shape[2] + 1)
        updates = [8 * e for e in epochs]
        changes = logs - logs[..., :1].mean(1, keepdim=True)
        color = charts.COLORS[1 - k]
        for start, each in enumerate(changes):
            low, high = each.amin(0).numpy(), each.amax(0).numpy()
            ax.fill_between(updates, low, high, color=color, alpha=0.3)
            ax.plot(updates, each.mean(0).numpy(), color=color, label=None if start else kind)
    ax.set_title(f"{depth} layers", fontsize=10)
    ax.set_xlabel("updates")


ORDERS = "deviation over orders of samples, BatchNorm over SELU, at 8, 16, 32 layers"
STARTS = "deviation over starts, BatchNorm over SELU, at 8, 16, 32 layers"
FALL = "fall of ln of the error, SELU less BatchNorm, at 8, 16, 32 layers"
COLORED = "color images: "


def measured(axes: list[Any], x: Tensor, y: Tensor, width: int, **settings: int) -> dict[str, Any]:
    """What the claims are about at each depth, drawn in a row of axes."""
    x = x.flatten(1)
    x = (x - x.mean()) / x.std()
    values: dict[str, list[float]] = {ORDERS: [], STARTS: [], FALL: []}
    for ax, depth in zip(axes, DEPTHS, strict=True):
        found = {
            kind: log_errors(kind, depth, width, x, y, **settings) for kind in ("BatchNorm", "SELU")
        }
        draw_bands(ax, depth, found)
        batch, own = found["BatchNorm"], found["SELU"]
        values[ORDERS].append(float(batch.std(1).mean() / own.std(1).mean()))
        values[STARTS].append(float(batch.mean(1).std(0).mean() / own.mean(1).std(0).mean()))
        falls = (own[..., 0] - own[..., -1]) - (batch[..., 0] - batch[..., -1])
        values[FALL].append(float(falls.mean()))
    return values


CLAIMS = [
    Statement(
        ORDERS,
        "batch normalization exhibits high variance due to perturbations",
        at_least=2.0,
    ),
    Statement(STARTS, "batch normalization exhibits high variance, SELU does not", at_least=1.0),
    Statement(FALL, "self-normalizing networks learn faster", at_least=0.0),
]


@entry(
    "V24",
    course="004",
    printed="fig. 10.4",
    title="Training errors with batch normalization and with SELU",
    claims=[
        *CLAIMS,
        *[Statement(COLORED + c.name, c.text, at_least=c.at_least) for c in CLAIMS],
    ],
    full={"images": 4000, "width": 512, "epochs": 12},
    data=("mnist",),
)
def bands(
    images: int = 320,
    width: int = 48,
    epochs: int = 4,
    starts: int = 8,
    orders: int = 2,
    data: Path | None = None,
) -> Outcome:
    """The same start, trained several times with samples in different order: does that matter?

    With batch normalization a sample is scaled by the others of its batch, so every order perturbs
    the training in its own way, and the errors scatter. SELU scales nothing by others: runs lie on
    each other, and at this small rate they come down faster. "Variance" may also mean how much
    runs from different starts differ, and there it is the other way around at all depths: errors
    of SELU networks begin further apart. And it takes the small rate: with one ten times as large
    runs of 32 layers with SELU scattered more over orders, too. At quick settings layers are
    narrower, and the rate is larger by as much. The upper row has the digits of the figure's left
    panel, the lower one the color images of its right one.
    """
    x, y, note = handwritten(data)
    files, _, colored_note = colored(data, images)
    axes = charts.grid_of_axes(None, 2 * len(DEPTHS), len(DEPTHS), (2.4, 2.5))
    rows = axes[: len(DEPTHS)], axes[len(DEPTHS) :]
    settings = {"width": width, "epochs": epochs, "starts": starts, "orders": orders}
    found = measured(rows[0], x[:images], y[:images], **settings)
    lower = measured(rows[1], files.images[:images].float(), files.targets[:images], **settings)
    found |= {COLORED + name: values for name, values in lower.items()}
    for row, what in zip(rows, ("digits", "color images"), strict=True):
        row[0].set_ylabel(f"{what}:\nchange of ln(training error)", fontsize=8)
    for ax in rows[0]:
        ax.set_xlabel("")
    axes[0].legend(fontsize=8, loc="lower left", frameon=False)
    axes[0].figure.suptitle(f"{starts} starts, bands over {orders} orders of the samples")
    note += f"{colored_note}Layers of {width} units, rate {SCALE / width:.2g}."
    return Outcome(found, [axes], note=note)
