"""Three ways to descend on the same line."""

from __future__ import annotations

import chainrule
from chainrule import Generator, charts
from chainrule.atlas import Number, Outcome, Spread, entry
from chainrule.atlas.course.x01_x03_line import RATE, data, descend

PRINTED = {"X01": (1.9882, 2.9975), "X02": (1.9837, 2.9933), "X03": (1.9738, 2.9914)}


def line_outcome(id: str, seeds: int, steps: int, momentum: float, nesterov: bool) -> Outcome:
    """Offset and slope of many data sets, as a cloud of points around what is printed."""
    generator = Generator().manual_seed(0)
    x, y = data(-1.0, 1.0, seeds, generator)
    index = chainrule.randint(0, 30, (steps, seeds), generator=generator)
    offset, slope = descend(x, y, index, momentum, nesterov)
    ax = charts.axes_for(None)
    ax.plot(offset.numpy(), slope.numpy(), ".", color=charts.COLORS[0], label=f"{seeds} data sets")
    ax.plot(*PRINTED[id], "*", color=charts.COLORS[1], markersize=14, label="printed")
    ax.plot(2, 3, "+", color="black", markersize=12, label="the line that made the data")
    ax.set(
        title=f"{steps} steps of rate {RATE}, momentum {momentum:g}",
        xlabel="offset",
        ylabel="slope",
    )
    ax.legend()
    values = {"offset": Spread(tuple(offset.tolist())), "slope": Spread(tuple(slope.tolist()))}
    return Outcome(
        values, [ax], note="x lies in [-1, 1] and a step sees one point: the course says neither."
    )


def claims_of(id: str) -> list[Number]:
    """The two printed numbers, within two standard deviations of what data sets give."""
    offset, slope = PRINTED[id]
    return [Number("offset", offset, deviations=2), Number("slope", slope, deviations=2)]


@entry(
    "X01",
    course="001",
    printed="gradient descent, example",
    title="Stochastic gradient descent finds a line",
    claims=claims_of("X01"),
    full={"seeds": 1000},
)
def sgd_on_a_line(seeds: int = 200, steps: int = 1000) -> Outcome:
    """Thirty noisy points of y = 2 + 3 x, and steps against the gradient of one point at a time.

    From (10, 5) a thousand steps lead to the line that made the data, but not exactly: the noise
    of the points and of the choice of points is left. The cloud shows where other data sets end;
    the printed numbers are one draw from it.
    """
    return line_outcome("X01", seeds, steps, 0.0, False)


@entry(
    "X02",
    course="001",
    printed="momentum, example",
    title="Momentum on the same line",
    claims=claims_of("X02"),
    full={"seeds": 1000},
)
def momentum_on_a_line(seeds: int = 200, steps: int = 1000) -> Outcome:
    """The same descent with a velocity that keeps 0.6 of itself in every step.

    Steps in one direction add up to 1 / (1 - 0.6) = 2.5 times their length: it comes faster to the
    goal, and swings more around it, so the cloud of ends is wider than without momentum.
    """
    return line_outcome("X02", seeds, steps, 0.6, False)


@entry(
    "X03",
    course="001",
    printed="Nesterov momentum, example",
    title="Nesterov's momentum on the same line",
    claims=claims_of("X03"),
    full={"seeds": 1000},
)
def nesterov_on_a_line(seeds: int = 200, steps: int = 1000) -> Outcome:
    """Momentum 0.8, with the gradient taken where the velocity alone would lead.

    Looking ahead brakes before the goal instead of behind it. What is left of the noise grows with
    the momentum: this cloud is the widest of the three.
    """
    return line_outcome("X03", seeds, steps, 0.8, True)
