"""Examples 16 to 19 of course 000: a landscape, a line, irises."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import chainrule
from chainrule import charts, nn, problems
from chainrule.atlas import Number, Outcome, Spread, Statement, entry
from chainrule.atlas.course import (
    ex16_x06_landscape,
    ex17_x08_gradient_descent,
    ex18_x09_iris,
    ex19_x10_vanishing,
)
from chainrule.atlas.course.ex09_x07_exponential import points
from chainrule.atlas.course.ex16_x06_landscape import CLAIMS, SETTINGS, STARTS

# What is said of a run, as a number of it and the bounds of that number.
SAID: dict[str, tuple[str, float, float]] = {
    "reaches it": ("share of starts at the minimum", 0.5, 1.0),
    "does not": ("share of starts at the minimum", 0.0, 0.5),
    "local minima": ("share of starts at the minimum", 0.0, 0.5),
    "misses it": ("share of starts at the minimum", 0.0, 0.5),
    "fails": ("share of starts at the minimum", 0.0, 0.5),
    "unstable": ("last step", 1.0, math.inf),
    "ranges around it": ("last step", 1.0, math.inf),
    "stable": ("last step", 0.0, 1.0),
    "nearer than SGD": ("distance less that of SGD", -math.inf, 0.0),
    "no better than Adam": ("distance less that of Adam", -1.0, math.inf),
}


def landscape_claims() -> list[Statement]:
    """A statement for every setting and start of which the document says something."""
    found = []
    for name, said in CLAIMS.items():
        for start, text in zip(STARTS, said, strict=True):
            if text is not None:
                what, low, high = SAID[text]
                label = f"{name} from ({start[0]:g}, {start[1]:g}): {what}"
                found.append(Statement(label, text, at_least=low, at_most=high))
    return found


def landscape_outcome(steps: int, copies: int) -> Outcome:
    """Ten optimizers from two starts, each with copies that are moved by a thousandth."""
    ends = ex16_x06_landscape.run(steps, copies, chainrule.float64)
    values: dict[str, Any] = {}
    for name, said in CLAIMS.items():
        for j, (start, text) in enumerate(zip(STARTS, said, strict=True)):
            if text is None:
                continue
            run = ends[name, j]
            numbers = {
                "share of starts at the minimum": run["at the minimum"],
                "last step": run["moving"],
                "distance less that of SGD": run["distance"] - ends["SGD g=.7 t=.6", j]["distance"],
                "distance less that of Adam": run["distance"] - ends["Adam", j]["distance"],
            }
            what = SAID[text][0]
            values[f"{name} from ({start[0]:g}, {start[1]:g}): {what}"] = numbers[what]
    problem = problems.vialle()
    grid = chainrule.linspace(0, 150, 76)
    x, y = chainrule.meshgrid(grid, grid, indexing="xy")
    surface = problem.function(chainrule.stack([x, y]))
    ax = charts.axes_for(None, (6.4, 5.0))
    ax.contourf(x.numpy(), y.numpy(), surface.numpy(), 20, cmap=charts.SEQUENTIAL)
    for j, start in enumerate(STARTS):
        points = [ends[name, j]["end"] for name in SETTINGS]
        label = f"ends from ({start[0]:g}, {start[1]:g})"
        looks = {"markeredgecolor": "black", "linestyle": "none", "markersize": 7}
        ax.plot(
            *zip(*points, strict=True),
            "os"[j],
            color=charts.COLORS[1 + 3 * j],
            label=label,
            **looks,
        )
    ax.plot(*problem.minimizer.tolist(), "*", color="white", markersize=14, label="minimum")
    ax.set(title=f"Ten settings, {steps} steps", xlabel="parameter 1", ylabel="parameter 2")
    ax.legend(loc="upper left")
    return Outcome(values, [ax])


@entry(
    "EX16",
    course="000",
    printed="example 16, figures 34-41",
    title="Ten optimizers on a surface of many valleys",
    claims=landscape_claims(),
    full={"steps": 10_000, "copies": 50},
)
def landscape(steps: int = 400, copies: int = 4) -> Outcome:
    """Which optimizer finds the lowest of many valleys, from a far start and from a near one?

    With a rate of 20 all of them jump from valley to valley, and where they end depends on the last
    digits; so each start is tried several times, moved by a thousandth. Some of what is printed
    holds for most copies, and some does not.
    """
    return landscape_outcome(steps, copies)


@entry(
    "EX17",
    course="000",
    printed="example 17",
    title="Gradient descent with autodiff alone",
    claims=[
        Number("(w, b)", (17.1042, 23.7503), tolerance=5e-4),
        Statement("distance from least squares", "it finds the best line", at_most=1e-3),
    ],
)
def line(epochs: int = 1000) -> Outcome:
    """Tensors that remember how they were computed are enough to learn with.

    The loss of all points is differentiated, the two parameters take a step, the gradients are set
    to zero, a thousand times. What comes out is the line of least squares.
    """
    found = ex17_x08_gradient_descent.main(epochs=epochs)
    x, y = points(10.1842550, 1.0, 0.1)
    w, b = found["found"]
    ax = charts.axes_for(None)
    ax.plot(x[:, 0].numpy(), y[:, 0].numpy(), ".", color=charts.COLORS[0], label="data")
    ends = [0.0, 1.0]
    label = f"{b:.2f} + {w:.2f} x"
    ax.plot(ends, [b + w * e for e in ends], color=charts.COLORS[1], label=label)
    ax.set(title="A line by gradient descent", xlabel="x", ylabel="y")
    ax.legend()
    return Outcome(
        {
            "(w, b)": found["found"],
            "distance from least squares": math.dist(found["found"], found["least squares"]),
        },
        [ax],
    )


@entry(
    "EX18",
    course="000",
    printed="example 18",
    title="A classifier of irises",
    claims=[Number("test accuracy after ten epochs", 0.60, deviations=2)],
    full={"seeds": 100},
)
def irises(seeds: int = 8) -> Outcome:
    """Four measures of a flower go in, three probabilities come out.

    Ten epochs at a rate of 0.001 are 210 small steps: what they reach depends on the start and on
    which flowers are held out, between a third and nine tenths. The printed run is one of them.
    """
    result = ex18_x09_iris.main(seeds=seeds)
    history, _ = ex18_x09_iris.train(seed=0, epochs=60)
    ax = charts.axes_for(None)
    ax.plot(range(1, 61), history, color=charts.COLORS[0], label="one seed, 60 epochs")
    looks = {"color": charts.COLORS[1], "linestyle": "none"}
    ax.plot([10] * seeds, result["last"], marker="o", label=f"{seeds} seeds, 10 epochs", **looks)
    ax.set(title="Test accuracy on irises", xlabel="epoch", ylabel="accuracy", ylim=(0, 1.05))
    ax.legend(loc="lower right")
    return Outcome({"test accuracy after ten epochs": Spread(tuple(result["last"]))}, [ax])


def vanishing_outcome(seeds: int, epochs: int) -> Outcome:
    """Norms of gradients by layer, and losses, for tanh and ReLU, over many seeds."""
    runs = {k: ex19_x10_vanishing.train(a, seeds, epochs) for k, a in ACTIVATIONS.items()}
    axes = charts.grid_of_axes(None, 2, 2, (3.4, 3.2))
    for k, (name, results) in enumerate(runs.items()):
        color = charts.COLORS[k]
        norms = chainrule.tensor([r["first"] for r in results]).clamp(min=1e-9)
        losses = chainrule.tensor([r["losses"] for r in results])
        for ax, values, steps in (
            (axes[0], norms, range(11)),
            (axes[1], losses, range(1, epochs + 1)),
        ):
            low, middle, high = (values.quantile(q, 0).numpy() for q in (0.1, 0.5, 0.9))
            ax.fill_between(steps, low, high, color=color, alpha=0.25)
            ax.plot(steps, middle, "o-" if len(steps) < 30 else "-", color=color, label=name)
    axes[0].set(title="Gradient at the start", xlabel="layer", ylabel="norm", yscale="log")
    axes[0].legend(loc="lower right")
    axes[1].set(title=f"{seeds} seeds: median, 10 to 90 %", xlabel="epoch", ylabel="loss")
    tanh, relu = ([r["first"][0] / max(r["first"][-1], 1e-30) for r in v] for v in runs.values())
    alive = sum(r["first"][0] > 0 for r in runs["ReLU"]) / seeds
    return Outcome(
        {
            "tanh: first layer over last, median": median(tanh),
            "ReLU: share of seeds with a gradient in the first layer": alive,
            "ReLU over tanh: first layer over last": median(relu) / median(tanh),
        },
        [axes],
        note=f"{seeds} seeds of each network, trained at once.",
    )


ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "ReLU": nn.ReLU}
VANISHING = [
    Statement("tanh: first layer over last, median", "gradients vanish with tanh", at_most=0.05),
    Statement(
        "ReLU: share of seeds with a gradient in the first layer",
        "ReLU prevents it at all layers",
        at_least=1.0,
    ),
    Statement("ReLU over tanh: first layer over last", "ReLU keeps them larger", at_least=1.0),
]


@entry(
    "EX19",
    course="000",
    printed="example 19, fig. 45",
    title="Ten layers of tanh and of ReLU",
    claims=VANISHING,
    full={"seeds": 40, "epochs": 300},
)
def vanishing(seeds: int = 20, epochs: int = 10) -> Outcome:
    """How much of the gradient comes through to the first of ten layers?

    With tanh it shrinks from layer to layer. With ReLU it does so as well, and in some networks a
    layer is silent altogether and nothing comes through: the printed contrast is one of seeds.
    """
    return vanishing_outcome(seeds, epochs)
