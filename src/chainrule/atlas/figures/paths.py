"""Paths of optimizers over contours, with values beside them, and the noise of small batches."""

from __future__ import annotations

import itertools
import math
from typing import Any

import chainrule
from chainrule import Generator, Tensor, charts, inspect, optim, problems
from chainrule.atlas import Outcome, Spread, Statement, entry
from chainrule.atlas.course import ex16_x06_landscape
from chainrule.atlas.course.ex16_x06_landscape import SETTINGS, STARTS
from chainrule.atlas.examples.training import (
    AT_MINIMUM,
    AWAY_ADAM,
    AWAY_SGD,
    LAST_STEP,
    OFF_CENTER,
    SAID,
    said_of_runs,
)

# --- V11 ------------------------------------------------------------------------------------------

PRINTED = {
    "SGD g=.7 t=.6": "34",
    "Adadelta a=.9": "35",
    "Adam": "36",
    "SGD g=0 t=.5": "37a",
    "SGD g=.9 t=.5": "37b",
    "Nesterov g=.3": "38",
    "RMSprop g=.1 a=.9": "39a",
    "RMSprop g=.5 a=.5": "39b",
    "RMSprop a=.9 lr=12": "40",
    "AdamW l=1e-5": "41",
}
TURNS = "fig. 7.8, high rate: share of steps across the valley"
SLOW = "fig. 7.8: steps with a low rate over steps with two rates"
SMOOTH = "fig. 7.8, two rates: steps across the valley"


def said() -> list[tuple[str, str, int, Statement]]:
    """What 000 says of each figure: setting, number that decides, start, claim."""
    found = []
    order = [*PRINTED]
    for name, j, text in sorted(said_of_runs(), key=lambda said: order.index(said[0])):
        for what, low, high in SAID[text]:
            start = f"({STARTS[j][0]:g}, {STARTS[j][1]:g})"
            number = "at the minimum" if what == AT_MINIMUM else what
            label = f"fig. {PRINTED[name]}, {name} from {start}: {number}"
            found.append((name, what, j, Statement(label, text, at_least=low, at_most=high)))
    return found


class Followed(ex16_x06_landscape.Runs):
    """Both starts with all settings, and where they were after every step."""

    def __init__(self) -> None:
        super().__init__(1, chainrule.float64)
        self.places = [self._now()]

    def _now(self) -> Tensor:
        return chainrule.stack([p.detach().clone() for p in self.points])[..., 0]

    def step(self) -> None:
        super().step()
        self.places.append(self._now())

    def numbers(self) -> dict[str, Tensor]:
        """What decides the claims, by setting and start."""
        away = self.distance()[..., 0]
        names = [*SETTINGS]
        return {
            AT_MINIMUM: (away < 1).double(),
            LAST_STEP: self.last_step[..., 0],
            OFF_CENTER: self.off_center()[..., 0],
            AWAY_SGD: away - away[names.index("SGD g=.7 t=.6")],
            AWAY_ADAM: away - away[names.index("Adam")],
        }


def draw_paths(runs: Followed, steps: int, drawn: int) -> list[Any]:
    """A panel for each setting: the first steps of both paths on the surface, and their ends."""
    grid = chainrule.linspace(0, 150, 76, dtype=chainrule.float64)
    x, y = chainrule.meshgrid(grid, grid, indexing="xy")
    surface = runs.problem.function(chainrule.stack([x, y])).numpy()
    places = chainrule.stack(runs.places).numpy()
    axes = charts.grid_of_axes(None, len(PRINTED), 2, (3.4, 3.0))
    for ax, (name, figure) in zip(axes, PRINTED.items(), strict=True):
        looks: dict[str, Any] = {"extent": (0, 150, 0, 150), "origin": "lower", "aspect": "auto"}
        ax.imshow(surface, cmap="Greys", alpha=0.55, **looks)
        for j in range(2):
            path = places[:, [*SETTINGS].index(name), :, j]
            color = charts.COLORS[1 - j]
            ax.plot(*path[: drawn + 1].T, color=color, linewidth=0.8, rasterized=True)
            ax.plot(*path[0], "s", color=color, markersize=6, label="start")
            ax.plot(*path[-1], "o", color=color, markeredgecolor="black", label="end")
        ax.plot(*runs.problem.minimizer.tolist(), "*", color="black", markersize=11)
        ax.set(title=f"Fig. {figure}: {name}", xlim=(0, 150), ylim=(0, 150))
    for ax in axes[-2:]:
        ax.set_xlabel("parameter 1")
    for ax in axes[::2]:
        ax.set_ylabel("parameter 2")
    words = f"The first {drawn} steps; square: start, circle: after {steps} steps, star: minimum"
    axes[0].figure.suptitle(words)
    return axes


def two_rates(p: list[Any]) -> optim.Optimizer:
    """Descent with a rate of its own for each of two parameters, by scaling the gradient."""
    p[0].register_hook(lambda g: g * chainrule.tensor([0.3, 0.06]))
    return optim.SGD(p, lr=1.0)


def valley_paths(steps: int = 80) -> tuple[list[Any], dict[str, float]]:
    """w1^2 + 5 w2^2 with a high, a low, and two rates: the picture, and what is said of it."""
    bowl = problems.bowl()
    made = {
        "high rate, 0.185": lambda p: optim.SGD(p, lr=0.185),
        "low rate, 0.02": lambda p: optim.SGD(p, lr=0.02),
        "two rates, 0.3 and 0.06": two_rates,
    }
    seen = inspect.optimizer_paths(bowl.function, made, bowl.start, steps=steps, points=31)
    high, low, both = seen.points.values()

    def turns(path: list[tuple[float, float]]) -> int:
        seen = [b for _, b in path if abs(b) > 1e-6]  # below, rounding has signs of its own
        return sum(a * b < 0 for a, b in itertools.pairwise(seen))

    def needed(path: list[tuple[float, float]]) -> int:
        return next((i for i, (a, _) in enumerate(path) if abs(a) < 0.05), steps)

    axes = seen.plot(charts.grid_of_axes(None, 2, 2, (3.8, 3.4)))
    axes[0].set_title("Three rates (fig. 7.8)")
    axes[1].set(yscale="log", ylim=(1e-6, 1e3))
    axes[1].legend(loc="upper right")
    return axes, {
        TURNS: turns(high) / (len(high) - 1),
        SLOW: needed(low) / needed(both),
        SMOOTH: turns(both),
    }


@entry(
    "V11",
    course="000",
    printed="fig. 34-41; 004 fig. 7.8; 001",
    title="Paths of optimizers over contours",
    claims=[
        *(claim for *_, claim in said()),
        Statement(TURNS, "a high rate causes oscillations", at_least=0.99),
        Statement(SLOW, "a low rate takes many steps", at_least=2.0),
        Statement(SMOOTH, "two rates avoid oscillations", at_most=0),
    ],
)
def optimizer_paths(steps: int = 10_000, drawn: int = 400) -> Outcome:
    """Where optimizers go on a surface of many valleys, and why one rate may not suit all.

    Above, ten settings with a rate of 20 (12 for one) start at two places. What is printed of them
    is tried on these very starts; entry X06 tries copies that are moved by a thousandth, because
    such paths are chaotic. Adam and RMSprop do not reach the minimum as printed, here and there.
    Below, a valley that is steep in one direction and flat in the other: a
    rate that is good for the flat one throws the path from slope to slope, one that is good for
    the steep one crawls. A rate for each direction does neither.

    In the names g is the momentum and t its dampening, a the share of an average of squares that
    a step keeps, l the weight decay, and lr the rate if it is another one.
    """
    runs = Followed()
    for _ in range(steps):
        runs.step()
    numbers = runs.numbers()
    values = {
        claim.name: float(numbers[what][[*SETTINGS].index(name), j])
        for name, what, j, claim in said()
    }
    axes, of_valley = valley_paths()
    return Outcome({**values, **of_valley}, [draw_paths(runs, steps, drawn), axes])


# --- V12 and V13 ----------------------------------------------------------------------------------


def lines(low: float, high: float, seeds: int) -> list[problems.Problem]:
    """Thirty noisy points of a line for each seed."""
    return [
        problems.line(30, low, high, generator=Generator().manual_seed(s), dtype=chainrule.float64)
        for s in range(seeds)
    ]


def followed(
    sets: list[problems.Problem], steps: int, batch: int, **options: Any
) -> tuple[Tensor, Tensor]:
    """Offset and slope of all data sets after every step, (steps + 1, seeds, 2), and the errors
    over all points. A step sees ``batch`` points, drawn anew, or all."""
    x, y = (chainrule.stack([getattr(p, n)[:, 0] for p in sets]) for n in ("inputs", "targets"))
    theta = sets[0].start.repeat(len(sets), 1).requires_grad_()
    optimizer = optim.SGD([theta], **options)
    generator = Generator().manual_seed(0)
    places = [theta.detach().clone()]
    for _ in range(steps):
        some = x, y
        if batch < x.shape[1]:
            chosen = chainrule.randint(0, x.shape[1], (len(sets), batch), generator=generator)
            some = x.gather(1, chosen), y.gather(1, chosen)
        optimizer.zero_grad()
        # The sum over data sets keeps them apart.
        ((some[1] - theta[:, :1] - theta[:, 1:] * some[0]) ** 2).mean(1).sum().backward()
        optimizer.step()
        places.append(theta.detach().clone())
    path = chainrule.stack(places)
    rest = y - path[..., :1] - path[..., 1:] * x
    return path, (rest**2).mean(2)


def seen_paths(problem: problems.Problem, runs: dict[str, tuple[Tensor, Tensor]]) -> Any:
    """The paths of the first data set, as the instrument draws them."""
    points = {n: [(a, b) for a, b in path[:, 0].tolist()] for n, (path, _) in runs.items()}
    values = {n: errors[:, 0].tolist() for n, (_, errors) in runs.items()}
    sizes = {n: [math.dist(a, b) for a, b in itertools.pairwise(p)] for n, p in points.items()}
    every = [at for path in points.values() for at in path]
    x, y = ((min(v) - 0.5, max(v) + 0.5) for v in zip(*every, strict=True))
    background = inspect.surface(problem.function, x, y, points=31, title="Paths")
    background.labels = ("offset", "slope")
    return inspect.OptimizerPaths(points, values, sizes, background)


def draw_spread(runs: dict[str, tuple[Tensor, Tensor]]) -> Any:
    """The errors of all data sets, as bands."""
    ax = charts.axes_for(None, (6.4, 3.2))
    for k, (name, (path, errors)) in enumerate(runs.items()):
        low, middle, high = (errors.quantile(q, dim=1).numpy() for q in (0.1, 0.5, 0.9))
        color = charts.COLORS[k + 1]
        ax.plot(middle, color=color, label=name)
        ax.fill_between(range(len(errors)), low, high, color=color, alpha=0.25)
        ax.set_title(f"Median of {path.shape[1]} data sets, with 10 and 90 %")
    ax.set(yscale="log", xlabel="step", ylabel="error")
    ax.legend()
    return ax


def opposed(path: Tensor) -> list[float]:
    """The share of steps that lead back against the step before, by seed."""
    steps = path.diff(dim=0)
    return ((steps[1:] * steps[:-1]).sum(2) < 0).double().mean(0).tolist()


def needed(errors: Tensor) -> list[float]:
    """Steps until the error is a hundredth of that of the start, by seed."""
    small = (errors <= 0.01 * errors[:1]).long()
    return [float(n) for n in small.argmax(0).tolist()]


FASTER = "steps to a hundredth of the error: SGD over {}"
DAMPED = "share of steps that turn back: {} less SGD"


@entry(
    "V12",
    course="001",
    printed="SGD, momentum, Nesterov: the path and the value",
    title="Path and value side by side",
    claims=[
        Statement("largest distance of an end from (2, 3)", "all find the line", at_most=0.1),
        Statement(FASTER.format("momentum"), "accelerates", at_least=1.0),
        Statement(FASTER.format("Nesterov"), "accelerates", at_least=1.0),
        Statement(DAMPED.format("momentum"), "dampens the oscillations", at_most=0.0),
        Statement(DAMPED.format("Nesterov"), "dampens the oscillations", at_most=0.0),
    ],
    full={"seeds": 200},
)
def path_and_value(seeds: int = 20, steps: int = 1000) -> Outcome:
    """Descent on the error of a line, seen twice: where it is, and how large the error is there.

    Thirty points of y = 2 + 3 x with noise, a start at (10, 5), a rate of 0.005; a step sees one
    point. Momentum (0.6) and Nesterov's momentum (0.8) come down several times as fast. A step
    against the one before is an oscillation: momentum, which averages over steps, has fewer.
    """
    sets = lines(-3.0, 3.0, seeds)
    runs = {
        "SGD": followed(sets, steps, 1, lr=0.005),
        "momentum": followed(sets, steps, 1, lr=0.005, momentum=0.6),
        "Nesterov": followed(sets, steps, 1, lr=0.005, momentum=0.8, nesterov=True),
    }
    truth = chainrule.tensor([2.0, 3.0], dtype=chainrule.float64)
    ends = [float((path[-1] - truth).norm(dim=1).max()) for path, _ in runs.values()]
    values: dict[str, Any] = {"largest distance of an end from (2, 3)": max(ends)}
    slow, back = needed(runs["SGD"][1]), opposed(runs["SGD"][0])
    for name in ("momentum", "Nesterov"):
        path, errors = runs[name]
        ratios = [a / b for a, b in zip(slow, needed(errors), strict=True)]
        less = [a - b for a, b in zip(opposed(path), back, strict=True)]
        values[FASTER.format(name)] = Spread(tuple(ratios))
        values[DAMPED.format(name)] = Spread(tuple(less))
    axes = seen_paths(sets[0], runs).plot(charts.grid_of_axes(None, 2, 2, (3.8, 3.4)))
    note = "x lies in [-3, 3] and a step sees one point: the course says neither."
    return Outcome(values, [axes, draw_spread(runs)], note=note)


@entry(
    "V13",
    course="003",
    printed="stochastic gradient descent",
    title="The noise of small batches",
    claims=[
        Statement("steps uphill of all samples, share", "descent is smooth", at_most=0.0),
        Statement("steps uphill of one sample, share", "the path is noisy", at_least=0.1),
        Statement("mean gradient of single samples, off by", "they estimate it", at_most=1e-9),
        Statement("end of one sample over end of all, error", "it ends near", at_most=2.0),
    ],
    full={"seeds": 200},
)
def batch_noise(seeds: int = 20, steps: int = 60) -> Outcome:
    """A step along the gradient of all samples, and one along that of a single sample.

    All samples give the direction straight downhill. One sample gives a direction that is right
    only on the average: the path staggers, and some steps lead uphill. But such a step costs a
    thirtieth of the work, and in the end both are at the bottom; the noise is what remains.
    """
    sets = lines(-1.0, 1.0, seeds)
    runs = {
        "all samples": followed(sets, steps, 30, lr=0.2),
        "one sample": followed(sets, steps, 1, lr=0.2),
    }
    uphill = {n: (errors.diff(dim=0) > 0).double().mean(0) for n, (_, errors) in runs.items()}
    ends = {n: errors[-10:].mean(0) for n, (_, errors) in runs.items()}
    seen = seen_paths(sets[0], runs)
    axes = seen.plot(charts.grid_of_axes(None, 2, 2, (3.8, 3.4)))
    return Outcome(
        {
            "steps uphill of all samples, share": Spread(tuple(uphill["all samples"].tolist())),
            "steps uphill of one sample, share": Spread(tuple(uphill["one sample"].tolist())),
            "mean gradient of single samples, off by": mean_gradient_error(sets[0]),
            "end of one sample over end of all, error": Spread(
                tuple((ends["one sample"] / ends["all samples"]).tolist())
            ),
        },
        [axes, draw_spread(runs)],
    )


def mean_gradient_error(problem: problems.Problem) -> float:
    """How far the mean of the gradients of single samples is from the gradient of all."""
    x, y, theta = problem.inputs, problem.targets, problem.start
    if x is None or y is None or theta is None:
        raise ValueError(f"mean_gradient_error: {problem.name} has no data")

    def error(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return ((y - theta[0] - theta[1] * x) ** 2).mean()

    each = chainrule.func.vmap(chainrule.func.grad(error), in_dims=(None, 0, 0))(theta, x, y)
    whole = chainrule.func.grad(problem.function)(theta)
    return float((each.mean(0) - whole).norm())
