"""Losses and accuracies over the epochs of a training, with the spread of many seeds."""

from __future__ import annotations

from functools import partial
from typing import Any

import chainrule
from chainrule import Generator, Tensor, charts, data, models, optim, problems, train
from chainrule.atlas import Number, Outcome, Spread, Statement, entry
from chainrule.atlas.course.ex18_x09_iris import split
from chainrule.atlas.experiments.radial import ratios_of
from chainrule.optim import lr_scheduler

Pair = tuple[Tensor, Tensor]
TRAIN, TEST = "loss", "val_loss"


def column(fits: train.ManyFits, name: str) -> Tensor:
    """A curve of all networks: (epochs, networks)."""
    return chainrule.tensor([history[name] for history in fits.histories]).double().T


def draw_band(ax: Any, curves: Tensor, color: str, label: str, first: int = 1) -> None:
    """The median of many curves, and the band from the lowest to the highest."""
    epochs = range(first, first + len(curves))
    ax.plot(epochs, curves.median(1).values.numpy(), color=color, label=label)
    low, high = curves.amin(1).numpy(), curves.amax(1).numpy()
    ax.fill_between(epochs, low, high, color=color, alpha=0.2, linewidth=0)


# --- V16 ------------------------------------------------------------------------------------------


def digits() -> tuple[Pair, Pair]:
    """1797 pictures of digits, two thirds to learn."""
    x, y = data.embedded("digits").tensors()
    order = chainrule.randperm(len(x), generator=Generator().manual_seed(0))
    x, y = x[order] / 16, y[order]
    return (x[:1200], y[:1200]), (x[1200:], y[1200:])


def overlapping() -> tuple[Pair, Pair]:
    """Five classes that no network can tell apart entirely."""
    made = problems.blobs(1800, classes=5, noise=0.5, generator=Generator().manual_seed(0))
    x, y = made.inputs, made.targets
    return (x[:1200], y[:1200]), (x[1200:], y[1200:])


def cut_training(
    parts: tuple[Pair, Pair], classes: int, seeds: int, epochs: int, factor: float
) -> train.ManyFits:
    """Networks whose rate is multiplied by a factor in the middle of the training."""
    inputs = parts[0][0].shape[1]
    return train.fit_many(
        partial(models.MLP, inputs, [32], classes),
        parts[0],
        "cross_entropy",
        partial(optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4),
        seeds=range(seeds),
        validation=parts[1],
        epochs=epochs,
        batch_size=64,
        schedule=lambda o: lr_scheduler.MultiStepLR(o, [epochs // 2], factor),
    )


def values_of(fits: train.ManyFits) -> Any:
    """All losses of a training: (epochs, 2 networks)."""
    return chainrule.cat([column(fits, TRAIN), column(fits, TEST)], 1).numpy()


def drop(curves: Tensor, around: int = 3) -> Spread:
    """The mean of some epochs behind the middle over that of as many before it, by network."""
    middle = len(curves) // 2
    after, before = curves[middle : middle + around], curves[middle - around : middle]
    return Spread(tuple((after.mean(0) / before.mean(0)).tolist()))


def caused(cut: Tensor, plain: Tensor) -> Spread:
    """The mean of all epochs behind the middle with the cut over that without, by network."""
    middle = len(cut) // 2
    return Spread(tuple((cut[middle:].mean(0) / plain[middle:].mean(0)).tolist()))


def radial(seeds: int, points: int, wide: int, epochs: int) -> dict[str, train.ManyFits]:
    """One wide layer and two narrow ones on the radial target, scaled to variance 1."""
    problem = problems.radial_bessel(points)
    (x, y), (x_test, y_test) = problem.split(0.7)
    scale = float(y.std())
    hidden = {f"1 x {wide}": [wide], "2 x 100": [100, 100]}
    return {
        name: train.fit_many(
            partial(models.MLP, 2, sizes, 1),
            (x, y / scale),
            "mse",
            partial(optim.AdamW, lr=2e-3),
            seeds=range(seeds),
            validation=(x_test, y_test / scale),
            epochs=epochs,
            batch_size=len(x),
        )
        for name, sizes in hidden.items()
    }


def draw_radial(fits: dict[str, train.ManyFits], seeds: int) -> Any:
    """Four curves, as in figure 14 of 000."""
    ax = charts.axes_for(None, (6.4, 3.6))
    for k, (name, found) in enumerate(fits.items()):
        draw_band(ax, column(found, TRAIN), charts.COLORS[2 * k], f"{name}, training")
        draw_band(ax, column(found, TEST), charts.COLORS[2 * k + 1], f"{name}, test")
    ax.set(yscale="log", xlabel="epoch", ylabel="error")
    ax.set_title(f"Errors while learning: median and range of {seeds} seeds")
    ax.legend()
    return ax


CUT = "rate cut on {}: {} loss after over before"
CAUSED = "rate cut on {}: {} loss behind it, with over without"
SETS = ("digits", "overlapping classes")


@entry(
    "V16",
    course="000",
    printed="fig. 14, 45; 004 fig. 7.7; 002",
    title="Learning curves",
    claims=[
        Statement("000 fig. 14: training error, one layer over two", "it decreases", at_least=1.0),
        Statement("000 fig. 14: test error, one layer over two", "it decreases", at_least=1.0),
        Statement(
            "000 fig. 14: orders of magnitude between them",
            "one to two orders",
            at_least=1.0,
            at_most=2.5,
        ),
        *(
            claim
            for name in SETS
            for part in ("training", "test")
            for claim in (
                Statement(CUT.format(name, part), "both curves drop", at_most=0.95),
                Statement(CAUSED.format(name, part), "the cut causes it", at_most=1.0),
            )
        ),
    ],
    full={"seeds": 5, "points": 4000, "wide": 10_000, "epochs": 5000, "cut_epochs": 300},
)
def learning_curves(
    seeds: int = 3, points: int = 1000, wide: int = 1000, epochs: int = 1500, cut_epochs: int = 24
) -> Outcome:
    """The loss after each epoch, on the samples that are learned and on others.

    In the first picture two narrow layers learn a target that one wide layer hardly gets hold of;
    at quick settings this has 1000 units instead of 10,000, and 1000 points instead of 4000.
    In the second the rate is divided by ten half way. Steps of a large rate keep the weights moving
    around the bottom; small steps let them settle, and the loss drops by what that motion cost.
    Dotted is the same training without the cut. Where classes overlap, the cut lowers both losses
    by a few percent. Digits can be learned entirely: there the large steps would have brought the
    training loss lower still, and the cut only ends the learning. So neither set shows the drop of
    both curves by the cut that the course prints for images in color.
    """
    fits = radial(seeds, points, wide, epochs)
    ratios = {part: ratios_of(fits, part) for part in (TRAIN, TEST)}
    orders = [chainrule.tensor(r).log10().item() for r in ratios[TEST]]
    values: dict[str, Any] = {
        "000 fig. 14: training error, one layer over two": Spread(ratios[TRAIN]),
        "000 fig. 14: test error, one layer over two": Spread(ratios[TEST]),
        "000 fig. 14: orders of magnitude between them": Spread(tuple(orders)),
    }
    axes = charts.grid_of_axes(None, 2, 2, (3.6, 3.2))
    for ax, name, (parts, classes) in zip(
        axes, SETS, ((digits(), 10), (overlapping(), 5)), strict=True
    ):
        cut, plain = (cut_training(parts, classes, seeds, cut_epochs, f) for f in (0.1, 1.0))
        for k, (part, key) in enumerate((("training", TRAIN), ("test", TEST))):
            curves, others = column(cut, key), column(plain, key)
            values[CUT.format(name, part)] = drop(curves)
            values[CAUSED.format(name, part)] = caused(curves, others)
            draw_band(ax, curves, charts.COLORS[2 * k], part)
            looks: dict[str, Any] = {"color": charts.COLORS[2 * k], "linestyle": ":"}
            ax.plot(range(1, cut_epochs + 1), others.median(1).values.numpy(), **looks)
        ax.plot([], [], color="black", linestyle=":", label="without the cut")
        ax.axvline(cut_epochs // 2 + 0.5, color="gray", linestyle="--", label="rate / 10")
        ax.set(title=f"{name}, {seeds} seeds", xlabel="epoch", ylabel="loss")
        late = values_of(cut)[cut_epochs // 4 :].max()
        ax.set_ylim(0.9 * min(values_of(cut).min(), values_of(plain).min()), 1.5 * late)
        ax.legend(fontsize=8)
    note = (
        "In place of DenseNet on CIFAR, which are not here, small networks on digits and on "
        "overlapping classes, with a cut in the middle of the training as there."
    )
    return Outcome(values, [draw_radial(fits, seeds), axes], note=note)


# --- V17 ------------------------------------------------------------------------------------------


@entry(
    "V17",
    course="000",
    printed="example 18, accuracy over epochs",
    title="Accuracy curves of the irises",
    claims=[
        Number("test accuracy after ten epochs", 0.60, deviations=2),
        Statement("rise of the training accuracy in ten epochs", "it learns", at_least=0.0),
        Statement("rise of the test accuracy in ten epochs", "it learns", at_least=0.0),
    ],
    full={"seeds": 100},
)
def accuracy_curves(seeds: int = 20, epochs: int = 10) -> Outcome:
    """The share of right answers after each epoch, on the flowers learned and on those held out.

    Ten epochs of small steps are few: a typical network has just begun to tell the third species
    from the second, and how far it came depends on its start and on the split. The band from the
    lowest to the highest seed is wide; the run of the course is one of them. Accuracies move in
    steps, because they count flowers: the loss says earlier whether a network learns.
    """
    parts = [split(seed) for seed in range(seeds)]
    fits = train.fit_many(
        partial(models.MLP, 4, [8], 3),
        [(x, y.argmax(1)) for x, _, y, _ in parts],
        "cross_entropy",
        partial(optim.Adam, lr=0.001),
        seeds=range(seeds),
        validation=[(x, y.argmax(1)) for _, x, _, y in parts],
        metrics=["accuracy"],
        epochs=epochs,
        batch_size=5,
        shuffle=False,
    )
    axes = charts.grid_of_axes(None, 2, 2, (3.6, 3.2))
    rises = {}
    for ax, name in zip(axes, ("accuracy", "loss"), strict=True):
        for k, (key, label) in enumerate(((name, "training"), (f"val_{name}", "test"))):
            curves = column(fits, key)
            rises[key] = (curves[-1] - curves[0]).tolist()
            draw_band(ax, curves, charts.COLORS[k], label)
        ax.set(title=f"{seeds} seeds: {name}", xlabel="epoch", ylabel=name)
        ax.legend()
    axes[0].set_ylim(0, 1)
    return Outcome(
        {
            "test accuracy after ten epochs": Spread(tuple(fits.last("val_accuracy"))),
            "rise of the training accuracy in ten epochs": Spread(tuple(rises["accuracy"])),
            "rise of the test accuracy in ten epochs": Spread(tuple(rises["val_accuracy"])),
        },
        [axes],
    )
