"""The geometry of a step: steepest descent, momentum, and the parabola that a surface hides."""

from __future__ import annotations

import itertools
import math
from typing import Any

import chainrule
from chainrule import Tensor, charts, inspect, nn, optim
from chainrule.atlas import Number, Outcome, Statement, entry

# --- V14 ------------------------------------------------------------------------------------------


def hills(w: Tensor) -> Tensor:
    """A surface of two hollows, over the last dimension."""
    x, y = w[..., 0], w[..., 1]
    return 0.1 * (x**2 + y**2) - chainrule.exp(-((x - 1) ** 2) - (y - 0.5) ** 2)


def valley(w: Tensor) -> Tensor:
    """Steep across, flat along."""
    return 0.5 * (w[0] ** 2 + 40 * w[1] ** 2)


def plateau(w: Tensor) -> Tensor:
    """A hollow in flat land."""
    return 1 - chainrule.exp(-0.25 * (w**2).sum())


def slopes_of(points: Tensor) -> Tensor:
    """The gradients of the hills at many points."""
    return chainrule.func.vmap(chainrule.func.grad(hills))(points)


def steepest_angle(points: Tensor) -> float:
    """The largest angle in degrees between the negative gradient and the direction, of 3600, in
    which a short step leads down most."""
    angles = chainrule.arange(3600, dtype=points.dtype) * (math.pi / 1800)
    ways = chainrule.stack([angles.cos(), angles.sin()], 1)
    falls = hills(points.unsqueeze(1) + 1e-6 * ways)
    best = ways[falls.argmin(1)]
    down = -slopes_of(points)
    cosines = (best * down).sum(1) / down.norm(dim=1)
    return math.degrees(math.acos(min(1.0, float(cosines.min()))))


def draw_gradients() -> list[Any]:
    """The tangent of a curve, and arrows downhill on a surface (figures 7.1 and 7.2)."""
    curve, field = charts.grid_of_axes(None, 2, 2, (3.6, 3.2))
    x = chainrule.linspace(-3, 3, 121, dtype=chainrule.float64)
    heights = hills(chainrule.stack([x, 0.5 + 0 * x], 1))
    curve.plot(x.numpy(), heights.numpy(), color=charts.COLORS[0], label="R(w)")
    at = chainrule.tensor([[2.0, 0.5]], dtype=chainrule.float64)
    g, height = float(slopes_of(at)[0, 0]), float(hills(at)[0])
    ends = [1.2, 2.8]
    tangent = [height + g * (e - 2) for e in ends]
    curve.plot(ends, tangent, "--", color=charts.COLORS[2], label="tangent")
    arrow = {"color": charts.COLORS[1], "width": 1.5, "headwidth": 7}
    curve.annotate("", (2 - g, height), (2.0, height), arrowprops=arrow)
    curve.plot([], [], color=charts.COLORS[1], label="-g")
    curve.plot([2], [height], "o", color="black")
    curve.set(title="The slope at one place", xlabel="w", ylabel="R")
    curve.legend(loc="upper center")
    grid = chainrule.linspace(-3, 3, 61, dtype=chainrule.float64)
    xs, ys = chainrule.meshgrid(grid, grid, indexing="xy")
    values = hills(chainrule.stack([xs, ys], 2)).numpy()
    field.contourf(grid.numpy(), grid.numpy(), values, 15, cmap="Greys", alpha=0.6)
    few = chainrule.linspace(-2.5, 2.5, 9, dtype=chainrule.float64)
    points = chainrule.cartesian_prod(few, few)
    down = -slopes_of(points)
    field.quiver(*points.T.numpy(), *down.T.numpy(), color=charts.COLORS[1], angles="xy")
    field.set(title="Minus the gradient everywhere", xlabel="w1", ylabel="w2")
    return [curve, field]


def turns(path: list[tuple[float, float]]) -> int:
    """How often a path crosses the bottom of the valley."""
    return sum(a[1] * b[1] < 0 for a, b in itertools.pairwise(path))


def swings(path: list[tuple[float, float]]) -> float:
    """The mean distance of a path from the bottom of the valley."""
    return math.fsum(abs(b) for _, b in path) / len(path)


def steps_to(values: list[float], share: float) -> int:
    """Steps until the value is this share of the first; all of them if it never is."""
    return next((i for i, v in enumerate(values) if v <= share * values[0]), len(values))


def swing_ratio(lr: float, momentum: float, steps: int) -> float:
    """The mean distance from the bottom of the valley with momentum over that without."""

    def mean(mu: float) -> float:
        w, v, seen = 1.0, 0.0, [1.0]
        for _ in range(steps):
            v = mu * v + 40 * w
            w -= lr * v
            seen.append(abs(w))
        return math.fsum(seen) / len(seen)

    return mean(momentum) / mean(0.0)


def draw_swings(steps: int) -> tuple[Any, str]:
    """Which momenta reduce the swings across the valley, at three rates, and that in words."""
    ax = charts.axes_for(None, (6.4, 3.2))
    momenta = [i / 20 for i in range(20)]
    told = []
    for k, lr in enumerate((0.03, 0.045, 0.048)):
        ratios = [swing_ratio(lr, mu, steps) for mu in momenta]
        ax.plot(momenta, ratios, "o-", color=charts.COLORS[k], label=f"rate {lr:g}", markersize=4)
        less = sum(r < 1 for r in ratios[1:])
        told.append(f"{less} of {len(momenta) - 1} momenta at the rate {lr:g}")
    ax.axhline(1, color="gray", linestyle="--", label="as without momentum")
    ax.set(title="Width of the swings, with momentum over without", xlabel="momentum")
    ax.set(yscale="log", ylabel="ratio")
    ax.legend()
    return ax, "The course prints no settings. Swings are narrower with " + ", ".join(told) + "."


@entry(
    "V14",
    course="004",
    printed="fig. 7.1-7.6",
    title="Steepest descent, and what momentum does to it",
    claims=[
        Statement("degrees between -g and the steepest way", "steepest descent", at_most=0.11),
        Number("fig. 7.3: share of steps across the valley", 1.0, tolerance=1e-9),
        Statement("fig. 7.4: crossings, momentum over gradient", "it is reduced", at_most=0.99),
        Statement("fig. 7.4: width of the swings, likewise", "it is reduced", at_most=0.99),
        Statement("fig. 7.4: steps, gradient over momentum", "found faster", at_least=1.0),
        Statement("fig. 7.5: fall on the plateau in 60 steps", "very slowly", at_most=0.1),
        Statement("fig. 7.6: steps, gradient over momentum", "found faster", at_least=2.0),
    ],
)
def momentum_geometry(steps: int = 60) -> Outcome:
    """The negative gradient leads down most steeply, but that is not always the way to the bottom.

    In a valley it points across: descent swings from slope to slope. Momentum adds up the steps so
    far: those across cancel each other, those along add. Whether the swings become narrower depends
    on rate and momentum, as the last picture shows: descent that swings little without momentum
    swings more with it, and the rate of figure 7.3 is chosen near the largest one. On a plateau
    the gradient is so small that descent hardly moves; here all steps have one direction, and
    momentum gathers speed.
    """
    points = chainrule.cartesian_prod(*[chainrule.linspace(-2.5, 2.5, 9).double()] * 2)
    made = {
        "gradient": lambda p: optim.SGD(p, lr=0.048),
        "momentum 0.5": lambda p: optim.SGD(p, lr=0.048, momentum=0.5),
    }
    across = inspect.optimizer_paths(
        valley, made, chainrule.tensor([5.0, 1.0]), steps=steps, points=31
    )
    slow = {
        "gradient": lambda p: optim.SGD(p, lr=0.1),
        "momentum 0.9": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    }
    flat = inspect.optimizer_paths(
        plateau, slow, chainrule.tensor([3.6, 1.0]), steps=steps * 4, points=31
    )
    plain, heavy = across.points.values()
    fall, fast = flat.values.values()
    first, second = (charts.grid_of_axes(None, 2, 2, (3.8, 3.4)) for _ in range(2))
    across.plot(first)[0].set_title("Across a valley")
    flat.plot(second)[0].set_title("Over a plateau")
    sweep, note = draw_swings(steps)
    of_valley = [steps_to(v, 0.01) for v in across.values.values()]
    return Outcome(
        {
            "degrees between -g and the steepest way": steepest_angle(points),
            "fig. 7.3: share of steps across the valley": turns(plain) / steps,
            "fig. 7.4: crossings, momentum over gradient": turns(heavy) / turns(plain),
            "fig. 7.4: width of the swings, likewise": swings(heavy) / swings(plain),
            "fig. 7.4: steps, gradient over momentum": of_valley[0] / of_valley[1],
            "fig. 7.5: fall on the plateau in 60 steps": 1 - fall[60] / fall[0],
            "fig. 7.6: steps, gradient over momentum": steps_to(fall, 0.01) / steps_to(fast, 0.01),
        },
        [draw_gradients(), first, second, sweep],
        note=note,
    )


# --- V15 ------------------------------------------------------------------------------------------


def error_of_one_weight(w: Tensor) -> Tensor:
    """The error of a neuron tanh(w x) over five samples, as a function of its weight."""
    x = chainrule.tensor([-2.0, -0.5, 0.5, 1.0, 3.0], dtype=w.dtype)
    return ((chainrule.tanh(w * x) - chainrule.tanh(1.5 * x)) ** 2).mean()


def parabola(w: Tensor) -> tuple[float, float, float]:
    """Value, slope and curvature of the error at a weight."""
    slope = chainrule.func.grad(error_of_one_weight)
    return (
        float(error_of_one_weight(w)),
        float(slope(w)),
        float(chainrule.func.grad(slope)(w)),
    )


@entry(
    "V15",
    course="004",
    printed="fig. 7.9, eq 7.44",
    title="The parabola that touches the error",
    claims=[
        Number("power of the distance with which the parabola errs", 3.0, tolerance=0.05),
        Statement("distance of -g/g' from the parabola's lowest point", "eq 7.44", at_most=1e-4),
        Statement("error after the step over error before", "nearer the bottom", at_most=1.0),
        Statement("network: parabola against loss, near", "locally approximated", at_most=0.02),
    ],
)
def quadratic_approximation() -> Outcome:
    """Near a point, an error looks like the parabola of the same value, slope and curvature.

    What the parabola leaves out shrinks with the third power of the distance. Its lowest point is
    a step of -g / g' away, and methods such as quickprop jump there: a good step where the error
    is like its parabola, and only there. The second picture has the loss of a network along a line
    through all its weights.
    """
    w0 = chainrule.tensor(1.0, dtype=chainrule.float64)
    value, g, curvature = parabola(w0)

    def model(t: float) -> float:
        return value + g * t + curvature / 2 * t**2

    off = [abs(float(error_of_one_weight(w0 + t)) - model(t)) for t in (0.02, 0.01)]
    step = -g / curvature
    lowest = min((i / 20_000 for i in range(-20_000, 40_001)), key=model)
    ax = charts.axes_for(None, (6.4, 3.6))
    t = chainrule.linspace(-0.9, 1.6, 126, dtype=chainrule.float64)
    heights = [float(error_of_one_weight(w0 + s)) for s in t]
    places = [1 + s for s in t.tolist()]
    ax.plot(places, heights, color=charts.COLORS[0], label="error")
    ax.plot(
        places,
        [model(s) for s in t.tolist()],
        "--",
        color=charts.COLORS[1],
        label="its parabola at w = 1",
    )
    ax.plot([1], [value], "o", color="black", label="w = 1")
    ax.plot([1 + step], [model(step)], "v", color=charts.COLORS[1], label="step of -g / g'")
    ax.set(
        title="An error and its parabola",
        xlabel="w",
        ylabel="error",
        ylim=(-0.1, 1.2 * max(heights)),
    )
    ax.legend()
    seen, near = network_line()
    return Outcome(
        {
            "power of the distance with which the parabola errs": math.log2(off[0] / off[1]),
            "distance of -g/g' from the parabola's lowest point": abs(step - lowest),
            "error after the step over error before": float(error_of_one_weight(w0 + step)) / value,
            "network: parabola against loss, near": near,
        },
        [ax, seen],
    )


def network_line() -> tuple[inspect.LossLine, float]:
    """A network's loss along a line, and how far the parabola is from it within a tenth of the
    line, as a share of the range of the loss there."""
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    x = chainrule.randn(40, 2)
    y = (x[:, :1] * x[:, 1:]).tanh()
    seen = inspect.loss_line(net, nn.functional.mse_loss, (x, y), span=1.0, points=81)
    ((name, losses),) = seen.losses.items()
    close = seen.t.abs() <= 0.1
    part = losses[close]
    off = (seen.parabolas[name][close] - part).abs().max()
    return seen, float(off / (part.max() - part.min()))
