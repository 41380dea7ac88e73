"""MNIST: its classes, its convolutional network, and what others reached on it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import chainrule
from chainrule import charts, data as datasets, inspect, models
from chainrule.atlas import NOT_KEPT, Keep, Number, Outcome, Refuted, Statement, entry
from chainrule.atlas.course.x05_mnist import Parts, errors_of, read, stand_in
from chainrule.atlas.errata.images004 import counted
from chainrule.atlas.experiments.mnist import (
    FILES,
    LABELS,
    NARROW,
    NOTE,
    STAND_IN,
    draw,
    excess,
    mean,
    table,
    told,
)


@entry(
    "T01",
    course="004",
    printed="appendix D.1",
    title="The classes of MNIST",
    claims=[
        Number("images to train and to test", (60_000, 10_000), tolerance=0.5),
        Number("classes", 10, tolerance=0.5),
        Refuted(
            "most and fewest images of a class, to train, over 6,000",
            "even: 6,000 each",
            (1.0, 1.0),
            "uneven: 5,421 to 6,742",
            (0.9, 1.13),
        ),
        Number("pixels of an image", (28, 28), tolerance=0.5, needs=FILES),
        Statement("levels of gray", "256 levels, not black and white", at_least=256, needs=FILES),
    ],
    data=("mnist",),
)
def mnist_classes(data: Path | None = None) -> Outcome:
    """Seventy thousand handwritten digits: how many there are of each.

    The notes say 6,000 and 1,000 of each. There are 5,421 fives and 6,742 ones to train with, which
    matters little for learning and much for a guess: who always says "1" is right in 11 % of cases.
    """
    train, test, note = counted(data)
    obtained: dict[str, Any] = {
        "images to train and to test": (sum(train), sum(test)),
        "classes": len(train),
        "most and fewest images of a class, to train, over 6,000": (
            max(train) / 6000,
            min(train) / 6000,
        ),
    }
    if data is not None:
        images = datasets.MNIST(data).data
        obtained["pixels of an image"] = images.shape[1:]
        obtained["levels of gray"] = len(images[:2000].unique())
    ax = charts.axes_for(None)
    ax.bar(range(10), train, color=charts.COLORS[0], label="to train")
    ax.bar(range(10), test, width=0.5, color=charts.COLORS[1], label="to test")
    ax.axhline(6000, color="black", linestyle="--", linewidth=1, label="as printed: 6,000, 1,000")
    ax.axhline(1000, color="black", linestyle="--", linewidth=1)
    ax.set_xticks(range(10))
    ax.set(title="Images of MNIST", xlabel="digit", ylabel="images", ylim=(0, 8800))
    ax.legend(loc="upper center", ncols=3)
    return Outcome(obtained, [ax], note=note)


@entry(
    "M24",
    course="002",
    printed="MNIST, error rates for neural networks (last table)",
    title="The convolutional network for MNIST",
    claims=[
        Number("layers: convolutions, poolings, dense", (2, 2, 2), tolerance=0.5),
        Statement(
            "error above 1.1 %, 1.1 %, 0.9 %", "1.1 %, 1.1 %, 0.9 %", at_most=0.05, needs=FILES
        ),
        Statement(
            "least error above 1.0 %, 1.0 %, 0.8 %",
            "[1.0 %], [1.0 %], [0.8 %]",
            at_most=0.05,
            needs=FILES,
        ),
        Statement("error over that of a linear classifier", "it learns more", at_most=1.0),
    ],
    full={"seeds": 5, "epochs": None},
    data=("mnist",),
)
def mnist_convnet(
    seeds: int = 2, epochs: int | None = 5, data: Path | None = None, keep: Keep = NOT_KEPT
) -> Outcome:
    """Convolution, pooling, convolution, pooling, two dense layers: ReLU throughout.

    The kernels see strokes wherever they lie, and pooling forgives small shifts. That halves the
    error of dense networks of many more weights.
    """
    real = epochs is None
    parts = read(data) if real else stand_in()
    errors = table(parts, seeds, epochs, ("linear", "convnet"), keep)
    net = models.MnistConvNet()
    kinds = [type(m).__name__ for m in net]
    cells = [mean(pairs) for pairs in errors["convnet"].values()]
    obtained: dict[str, Any] = {
        "layers: convolutions, poolings, dense": [
            kinds.count(k) for k in ("Conv2d", "MaxPool2d", "Linear")
        ],
        "error over that of a linear classifier": min(cells) / mean(errors["linear"]["none"]),
    }
    if real:
        obtained["error above 1.1 %, 1.1 %, 0.9 %"] = excess(errors, "convnet")
        obtained["least error above 1.0 %, 1.0 %, 0.8 %"] = excess(errors, "convnet", 1)
    drawn = inspect.draw(net, chainrule.zeros(1, 1, 28, 28))
    title = f"{'MNIST' if real else STAND_IN}, {seeds} seeds"
    note = "Trained on the files of MNIST." if real else NOTE
    note += told(errors, LABELS if real else NARROW)
    return Outcome(obtained, [draw(errors, title, real), drawn], note=note)


def nearest_neighbors(parts: Parts, k: int = 3) -> float:
    """The test error in percent of a vote of the k nearest training images."""
    (x, y), _, (x_test, y_test) = parts
    wrong = 0
    for rows, labels in zip(x_test.split(500), y_test.split(500), strict=True):
        # |a - b|^2 without |a|^2, which is the same for all neighbors of a.
        distances = (x * x).sum(1) - 2 * rows @ x.T
        near = y[distances.topk(k, largest=False).indices]
        votes = chainrule.nn.functional.one_hot(near, 10).sum(1)
        wrong += int((votes.argmax(1) != labels).sum())
    return 100 * wrong / len(y_test)


@entry(
    "T16",
    course="004",
    printed="tables D.1, D.3-D.5",
    title="What others reached",
    claims=[
        Number("error of a linear classifier on MNIST", 7.60, tolerance=0.5, needs=FILES),
        Statement(
            "nearest neighbors over linear classifier", "0.52 %, not 7.60 %: less", at_most=1.0
        ),
        Statement("network over linear classifier", "0.35 %, not 7.60 %: less", at_most=1.0),
        Statement("least step from rank to rank, all tables", "they are in order", at_least=0.0),
        Statement("least top-5 less top-1 accuracy", "five guesses are better", at_least=0.0),
    ],
    full={"epochs": None},
    data=("mnist",),
)
def published(epochs: int | None = 8, data: Path | None = None) -> Outcome:
    """Error rates and accuracies that others have reported, and three of their methods tried.

    Results of others are not computed here, but methods can be compared: a linear classifier, a
    vote of the nearest neighbors and a network of ReLU units get the same images, and both of the
    others beat the linear one, as in the table. ``data.PUBLISHED`` has all tables.
    """
    real = epochs is None
    parts = read(data) if real else stand_in()
    shrink = 1 if real else 8
    found = {
        name: errors_of(name, "none", parts, epochs or 12, 1, shrink)[0][0]
        for name in ("linear", "relu512")
    }
    neighbors = nearest_neighbors(parts)
    tables = datasets.PUBLISHED
    steps = []
    for one in tables.values():  # both errors and accuracies fall from row to row
        steps += [a - b for a, b in itertools.pairwise(r.values[0] for r in one.results)]
    five = [r.values[1] - r.values[0] for r in tables["imagenet"].results]
    obtained: dict[str, Any] = {
        "nearest neighbors over linear classifier": neighbors / found["linear"],
        "network over linear classifier": found["relu512"] / found["linear"],
        "least step from rank to rank, all tables": min(steps),
        "least top-5 less top-1 accuracy": min(five),
    }
    if real:
        obtained["error of a linear classifier on MNIST"] = found["linear"]
    ax = charts.axes_for(None, (6.4, 4.2))
    names = [r.method for r in tables["mnist"].results]
    ax.barh(
        names, [r.values[0] for r in tables["mnist"].results], color="silver", label="published"
    )
    own = {
        "Linear Classifier": found["linear"],
        "K-Nearest Neighbors": neighbors,
        "Neural Nets": found["relu512"],
    }
    label = "on MNIST" if real else "on the stand-in"
    ax.plot(
        [*own.values()], [names.index(n) for n in own], "o", color=charts.COLORS[1], label=label
    )
    ax.invert_yaxis()
    ax.set(title="Published errors on MNIST (table D.1)", xlabel="error, %")
    ax.legend(loc="lower right")
    note = "Trained on the files of MNIST." if real else NOTE
    return Outcome(obtained, [ax], note=note)
