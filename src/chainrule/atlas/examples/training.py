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

# What is said of a run, as numbers of it and their bounds.
AT_MINIMUM = "share of starts at the minimum"
LAST_STEP = "last step"
OFF_CENTER = "center of the last 100 places, off by, over their distance"
AWAY_SGD, AWAY_ADAM = "distance less that of SGD", "distance less that of Adam"
SAID: dict[str, list[tuple[str, float, float]]] = {
    "reaches it": [(AT_MINIMUM, 0.5, 1.0)],
    "does not": [(AT_MINIMUM, 0.0, 0.5)],
    "local minima": [(AT_MINIMUM, 0.0, 0.5)],
    "misses it": [(AT_MINIMUM, 0.0, 0.5)],
    "fails": [(AT_MINIMUM, 0.0, 0.5)],
    "unstable": [(LAST_STEP, 1.0, math.inf)],
    "ranges around it": [(LAST_STEP, 1.0, math.inf), (OFF_CENTER, 0.0, 0.5)],
    "stable": [(LAST_STEP, 0.0, 1.0)],
    "nearer than SGD": [(AWAY_SGD, -math.inf, 0.0)],
    "no better than Adam": [(AWAY_ADAM, -1.0, math.inf)],
}


def landscape_claims() -> list[Statement]:
    """The statements for every setting and start of which the document says something."""
    return [
        Statement(label_of(name, j, what), text, at_least=low, at_most=high)
        for name, j, text in said_of_runs()
        for what, low, high in SAID[text]
    ]


def said_of_runs() -> list[tuple[str, int, str]]:
    """What the document says: setting, start, words."""
    return [
        (name, j, text)
        for name, said in CLAIMS.items()
        for j, text in enumerate(said)
        if text is not None
    ]


def label_of(name: str, j: int, what: str) -> str:
    """The name of a claim."""
    return f"{name} from ({STARTS[j][0]:g}, {STARTS[j][1]:g}): {what}"


def landscape_outcome(steps: int, copies: int) -> Outcome:
    """Ten optimizers from two starts, each with copies that are moved by a thousandth."""
    ends = ex16_x06_landscape.run(steps, copies, chainrule.float64)
    values: dict[str, Any] = {}
    for name, j, text in said_of_runs():
        run, away = ends[name, j], ends[name, j]["median distance"]
        numbers = {
            AT_MINIMUM: run["at the minimum"],
            LAST_STEP: run["median last step"],
            OFF_CENTER: run["off center"],
            AWAY_SGD: away - ends["SGD g=.7 t=.6", j]["median distance"],
            AWAY_ADAM: away - ends["Adam", j]["median distance"],
        }
        values |= {label_of(name, j, what): numbers[what] for what, *_ in SAID[text]}
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
    note = f"{steps} steps of {copies} copies of each start; numbers are medians over the copies."
    return Outcome(values, [ax], note=note)


@entry(
    "EX16",
    course="000",
    printed="example 16, figures 34-41",
    title="Ten optimizers on a surface of many valleys",
    claims=landscape_claims(),
)
def landscape(steps: int = 10_000, copies: int = 50) -> Outcome:
    """Which optimizer finds the lowest of many valleys, from a far start and from a near one?

    With a rate of 20 all of them jump from valley to valley, and where they end depends on the last
    digits; so each start is tried many times, moved by a thousandth, for the 10,000 steps of the
    course. SGD, Nesterov's momentum and Adadelta do what is printed of them. That Adam and RMSprop
    reach the minimum is not so: of copies of the near start Adam reaches it with 6 of a hundred,
    RMSprop with none, and its last steps are 15 long where it is called stable.

    In the names g is the momentum and t its dampening, a the share of an average of squares that
    a step keeps, l the weight decay, and lr the rate if it is another one.
    """
    return landscape_outcome(steps, copies)


@entry(
    "EX17",
    course="000",
    printed="example 17",
    title="Gradient descent with autodiff alone",
    claims=[
        Number("(w, b)", (17.1042, 23.7503), tolerance=5e-4, unprinted="least squares"),
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
def irises(seeds: int = 20) -> Outcome:
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
    failed = {k: sum(map(ex19_x10_vanishing.failed, v)) / seeds for k, v in runs.items()}
    return Outcome(
        {
            "tanh: first layer over last, median": median(tanh),
            "ReLU: share of seeds with a gradient in the first layer": alive,
            "ReLU over tanh: first layer over last": median(relu) / median(tanh),
            "tanh: share of seeds that do not learn": failed["tanh"],
            "ReLU: share of seeds that learn": 1 - failed["ReLU"],
        },
        [axes],
        note=f"{seeds} seeds of each network, trained at once for {epochs} epochs; the course has "
        "one of each. To learn is an accuracy of 0.9 in training.",
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
    Statement("tanh: share of seeds that do not learn", "the loss stays", at_least=0.5),
    Statement("ReLU: share of seeds that learn", "the loss goes to 0", at_least=0.5),
]


@entry(
    "EX19",
    course="000",
    printed="example 19, fig. 45",
    title="Ten layers of tanh and of ReLU",
    claims=VANISHING,
)
def vanishing(seeds: int = 40, epochs: int = 300) -> Outcome:
    """How much of the gradient comes through to the first of ten layers?

    With tanh it shrinks from layer to layer. With ReLU it does so as well, and in some networks a
    layer is silent altogether and nothing comes through. After the 300 epochs of the course two
    thirds of the networks have not learned with tanh, and more than half with ReLU: the printed
    contrast is one of seeds.
    """
    return vanishing_outcome(seeds, epochs)
