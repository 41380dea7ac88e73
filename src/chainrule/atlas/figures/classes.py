"""What classifiers answer over the plane: linear, simple and deep."""

from __future__ import annotations

from functools import partial

import chainrule
from chainrule import Tensor, charts, inspect, models, problems, train
from chainrule.atlas import Outcome, Spread, Statement, entry

Parts = tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]


def binary_sets(seeds: int, n: int, held: int) -> list[Parts]:
    """Two overlapping clouds for each seed: a few samples to learn, many to test."""
    found = []
    for seed in range(seeds):
        generator = chainrule.Generator().manual_seed(seed)
        made = problems.blobs(n + held, classes=2, noise=0.9, generator=generator)
        found.append(((made.inputs[:n], made.targets[:n]), (made.inputs[n:], made.targets[n:])))
    return found


def spiral_sets(seeds: int, n: int, held: int) -> list[Parts]:
    """Three arms that wind around each other."""
    found = []
    for seed in range(seeds):
        generator = chainrule.Generator().manual_seed(seed)
        made = problems.spirals(n + held, noise=0.06, generator=generator)
        found.append(((made.inputs[:n], made.targets[:n]), (made.inputs[n:], made.targets[n:])))
    return found


def trained(sets: list[Parts], hidden: list[int], classes: int, epochs: int) -> train.ManyFits:
    """A network of tanh units for each data set, all trained together."""
    return train.fit_many(
        partial(models.MLP, 2, hidden, classes, "tanh"),
        [learned for learned, _ in sets],
        "cross_entropy",
        "adam",
        seeds=range(len(sets)),
        lr=0.02,
        validation=[held for _, held in sets],
        metrics=["accuracy"],
        epochs=epochs,
        batch_size=len(sets[0][0][1]),
    )


def linear_gap(parts: Parts) -> tuple[models.SoftmaxRegression, float, float]:
    """A linear model of two classes, and its accuracies on the samples learned and held out."""
    model = models.SoftmaxRegression(2, 2)
    (x, y), (x_test, y_test) = parts
    model.fit(x, y)
    right = [float((model.predict(a) == b).double().mean()) for a, b in ((x, y), (x_test, y_test))]
    return model, right[0], right[1]


def less(one: list[float], other: list[float]) -> list[float]:
    """The differences of two lists."""
    return [a - b for a, b in zip(one, other, strict=True)]


@entry(
    "V05",
    course="002",
    printed="a binary 2D example; multiclass, simple and deep network",
    title="Regions of linear, simple and deep classifiers",
    claims=[
        Statement(
            "overfit of the network, less that of the linear model",
            "much more dramatic than for linear logistic regression",
            at_least=0.1,
        ),
        Statement(
            "accuracy on three arms: deep less simple, training",
            "the deep network follows the classes",
            at_least=0.05,
        ),
    ],
    full={"seeds": 20, "epochs": 1000},
)
def classifiers(seeds: int = 5, epochs: int = 200) -> Outcome:
    """Colors show which class a model answers where, and how sure it is.

    On top two classes overlap: no border is right everywhere. A linear model draws a line. A
    network that is large for sixty samples winds its border around single ones: it knows its own
    samples better and new ones worse, which is overfitting. Overfit is measured as the accuracy on
    the samples learned less that on new ones. Below, three classes wind around each other: a small
    network has too few bends, a deep one follows the arms.
    """
    two, three = binary_sets(seeds, 60, 400), spiral_sets(seeds, 150, 300)
    linear = [linear_gap(parts) for parts in two]
    large = trained(two, [50, 50], 2, epochs)
    simple, deep = trained(three, [4], 3, epochs), trained(three, [24, 24, 24], 3, epochs)
    overfit = [learned - held for _, learned, held in linear]
    larger = less(large.last("accuracy"), large.last("val_accuracy"))
    axes = charts.grid_of_axes(None, 4, 2, (3.6, 3.2))
    shown = (
        (linear[0][0], two[0][0], "Linear", linear[0][2]),
        (large.models[0], two[0][0], "2 x 50 units", large.last("val_accuracy")[0]),
        (simple.models[0], three[0][0], "1 x 4 units", simple.last("val_accuracy")[0]),
        (deep.models[0], three[0][0], "3 x 24 units", deep.last("val_accuracy")[0]),
    )
    for ax, (model, (x, y), name, held) in zip(axes, shown, strict=True):
        seen = inspect.regions(model, x, y, points=90)
        seen.plot(ax)
        ax.set_title(f"{name}: {seen.accuracy:.0%}, on new ones {held:.0%}", fontsize=11)
    spread = charts.axes_for(None, (6.4, 3.2))
    columns = {
        "linear": overfit,
        "2 x 50": larger,
        "1 x 4": less(simple.last("accuracy"), simple.last("val_accuracy")),
        "3 x 24": less(deep.last("accuracy"), deep.last("val_accuracy")),
    }
    for k, (name, values) in enumerate(columns.items()):
        spread.plot([name] * seeds, values, "o", color=charts.COLORS[k], alpha=0.7)
    spread.axhline(0, color="gray", linewidth=1)
    spread.set(title=f"Overfit over {seeds} seeds", ylabel="accuracy learned less new")
    return Outcome(
        {
            "overfit of the network, less that of the linear model": Spread(
                tuple(less(larger, overfit))
            ),
            "accuracy on three arms: deep less simple, training": Spread(
                tuple(less(deep.last("accuracy"), simple.last("accuracy")))
            ),
        },
        [axes, spread],
        note=f"The course does not say which data it drew; these are the library's, {seeds} seeds.",
    )
