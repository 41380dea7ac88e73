"""The errors of networks on handwritten digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chainrule import charts
from chainrule.atlas import NOT_KEPT, Keep, Outcome, Spread, Statement, entry
from chainrule.atlas.course.x05_mnist import (
    EPOCHS,
    MANY,
    PRINTED,
    Parts,
    errors_of,
    read,
    stand_in,
)

FILES = "the files of MNIST"
LABELS = {
    "linear": "linear",
    "tanh512": "tanh 512x3",
    "relu512": "ReLU 512x3",
    "relu1024": "ReLU 1024x4",
    "convnet": "convolutional",
}
NARROW = LABELS | {"tanh512": "tanh 64x3", "relu512": "ReLU 64x3", "relu1024": "ReLU 128x4"}
NOTE = (
    "The digits that come with the package stand in for MNIST here: 900 images of 8 by 8 pixels, "
    "enlarged to 28 by 28, and networks of an eighth of the width. --full --data DIR trains the "
    "networks of the course on MNIST."
)
STAND_IN = "Small digits in place of MNIST"
Errors = dict[str, dict[str, list[tuple[float, float]]]]


def table(
    parts: Parts,
    seeds: int,
    epochs: int | None,
    names: tuple[str, ...],
    keep: Keep,
) -> Errors:
    """Errors of all cells of these networks: as many epochs as each needs, or on the stand-in."""
    found: Errors = {}
    for name in names:
        found[name] = {}
        for regularizer in PRINTED[name]:
            long = epochs or EPOCHS[name][regularizer]
            count = seeds if long <= MANY else 2
            shrink = 8 if epochs else 1
            cell = f"mnist-{name}-{regularizer}-{long}-epochs-{count}-seeds"
            args = (name, regularizer, parts, long, count, shrink, keep.device)
            found[name][regularizer] = keep(cell, errors_of, *args)
    return found


def mean(pairs: list[tuple[float, float]], place: int = 0) -> float:
    """The mean over seeds of the error of the chosen epoch, or of the best one."""
    return sum(pair[place] for pair in pairs) / len(pairs)


def told(errors: Errors, labels: dict[str, str]) -> str:
    """Mean and spread over the seeds of every cell, in words."""
    cells = []
    for name, rows in errors.items():
        for regularizer, pairs in rows.items():
            chosen = Spread(tuple(pair[0] for pair in pairs))
            found = f"{chosen.mean:.2f} ± {chosen.deviation:.2f} ({len(pairs)})"
            cells.append(f"{labels[name]}, {regularizer}: {found}")
    return f" Test errors in percent, mean ± deviation (seeds): {'; '.join(cells)}."


def excess(errors: Errors, name: str, place: int = 0) -> list[float]:
    """How far the mean errors of a network are above the printed ones."""
    return [mean(pairs, place) - PRINTED[name][r][place] for r, pairs in errors[name].items()]


def draw(errors: Errors, title: str, printed: bool) -> Any:
    """Every seed as a dot, cell by cell, beside what is printed."""
    rows = [(name, r) for name, cells in errors.items() for r in cells]
    ax = charts.axes_for(None, (6.4, 1.2 + 0.27 * len(rows)))
    labels = LABELS if printed else NARROW
    for row, (name, regularizer) in enumerate(rows):
        color = charts.COLORS[[*LABELS].index(name)]
        chosen = [pair[0] for pair in errors[name][regularizer]]
        ax.plot(chosen, [row] * len(chosen), "o", color=color)
        ax.plot(mean(errors[name][regularizer]), row, "|", color=color, markersize=16)
        if printed:
            ax.plot(PRINTED[name][regularizer][0], row, "*", color="black", markersize=10)
    ax.plot([], [], "o", color="gray", label="a seed")
    ax.plot([], [], "|", color="gray", markersize=12, label="mean")
    if printed:
        ax.plot([], [], "*", color="black", label="printed")
    ax.set_yticks(range(len(rows)), [f"{labels[name]}, {r}" for name, r in rows])
    ax.invert_yaxis()
    ax.set(title=title, xlabel="test error, %")
    right = max(pair[0] for cells in errors.values() for pairs in cells.values() for pair in pairs)
    ax.set_xlim(0, 1.35 * right)
    ax.legend(loc="lower right")
    return ax


def _claims() -> list[Statement]:
    claims = []
    for name, cells in PRINTED.items():
        text = ", ".join(f"{chosen:g} %" for chosen, _ in cells.values())
        claims.append(
            Statement(f"{LABELS[name]}: error above {text}", text, at_most=0.05, needs=FILES)
        )
    brackets = "brackets: least error of all epochs above the printed"
    claims.append(Statement(brackets, "1.8 % ... 0.8 %", at_most=0.05, needs=FILES))
    claims.append(
        Statement(
            "least error of dense networks over the convolutional one's",
            "convolutions are best",
            at_least=1.0,
            needs=FILES,
        )
    )
    claims.append(
        Statement(
            "error of the linear classifier over the best network's",
            "hidden layers help",
            at_least=1.0,
        )
    )
    return claims


@entry(
    "X05",
    course="002",
    printed="MNIST, error rates for neural networks",
    title="The table of MNIST errors",
    claims=_claims(),
    full={"seeds": 5, "epochs": None},
    data=("mnist",),
)
def mnist_table(
    seeds: int = 2, epochs: int | None = 5, data: Path | None = None, keep: Keep = NOT_KEPT
) -> Outcome:
    """Thirteen networks learn to read digits: without regularizer, with weight decay, with dropout.

    Each is trained on nine tenths of the training images; the epoch is chosen by its error on the
    last tenth, and the error on the test images is reported. Hidden layers bring the error from
    7.6 % to below 2, convolutions to 1. One run is one draw: dots are seeds, and differences
    between cells of a tenth of a percent are as small as those between seeds.
    """
    real = epochs is None
    parts = read(data) if real else stand_in()
    errors = table(parts, seeds, epochs, tuple(PRINTED), keep)
    means = {name: [mean(pairs) for pairs in cells.values()] for name, cells in errors.items()}
    obtained: dict[str, Any] = {
        "error of the linear classifier over the best network's": means["linear"][0]
        / min(min(v) for k, v in means.items() if k != "linear")
    }
    if real:
        for claim, name in zip(_claims(), PRINTED, strict=False):
            obtained[claim.name] = excess(errors, name)
        best = [e for name in PRINTED if name != "linear" for e in excess(errors, name, 1)]
        obtained["brackets: least error of all epochs above the printed"] = best
        dense = min(min(means[name]) for name in ("tanh512", "relu512", "relu1024"))
        name = "least error of dense networks over the convolutional one's"
        obtained[name] = dense / min(means["convnet"])
    title = f"MNIST, {seeds} seeds (2 for long rows)" if real else f"{STAND_IN}, {seeds} seeds"
    note = "Trained on the files of MNIST." if real else NOTE
    note += told(errors, LABELS if real else NARROW)
    return Outcome(obtained, [draw(errors, title, real)], note=note)
