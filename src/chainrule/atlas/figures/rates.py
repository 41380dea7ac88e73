"""How fast descent is: what the learning rate does, and what the scale of the inputs does."""

from __future__ import annotations

import itertools
import functools
import math
from collections.abc import Callable
from typing import Any

import chainrule
from chainrule import Generator, Tensor, charts, inspect, nn, optim, problems
from chainrule.atlas import Number, Outcome, Spread, Statement, entry

CURVATURE = 2.0  # of the parabola; the best rate is one over it
RATES = {"too small": 0.2, "best": 1.0, "too large": 1.8, "divergent": 2.1}  # in best rates


def descent(rate: float, steps: int, start: float = 1.0) -> list[float]:
    """Where gradient descent goes on the parabola CURVATURE w^2 / 2."""
    w = nn.Parameter(chainrule.tensor(start, dtype=chainrule.float64))
    optimizer = optim.SGD([w], lr=rate)
    path = [w.item()]
    for _ in range(steps):
        optimizer.zero_grad()
        (CURVATURE / 2 * w * w).backward()
        optimizer.step()
        path.append(w.item())
    return path


def largest_stable(far: Callable[[float], float], low: float, high: float) -> float:
    """The largest rate after which a run is no farther away than at its start, by bisection."""
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if far(middle) <= 1.0 else (low, middle)
    return low


def draw_descent(ax: Any, name: str, path: list[float]) -> None:
    """A parabola with the steps of a descent on it."""
    width = 1.25 * max(map(abs, path))
    w = chainrule.linspace(-width, width, 81, dtype=chainrule.float64)
    ax.plot(w.numpy(), (CURVATURE / 2 * w * w).numpy(), color="gray")
    color = charts.COLORS[[*RATES].index(name) + 1]
    ax.plot(path, [CURVATURE / 2 * p * p for p in path], "-o", color=color, markersize=4)
    ax.plot(path[:1], [CURVATURE / 2 * path[0] ** 2], "s", color="black", markersize=6)
    ax.set(title=f"{name}: {RATES[name]:g} best rates", xlabel="weight", ylabel="loss")


@entry(
    "V39",
    course="001",
    printed="how about the learning rate?",
    title="Learning rates: too small, best, too large, divergent",
    claims=[
        Number("steps that the best rate needs on a parabola", 1, tolerance=0.5),
        Number("largest rate that converges, in best rates", 2.0, tolerance=1e-3),
        Statement(
            "steps to a thousandth at a fifth of the best rate",
            "with a small rate it converges very slowly",
            at_least=10,
        ),
        Statement(
            "share of steps that change the side at 1.8 times the best rate",
            "with a rate above the best one it swings",
            at_least=1.0,
        ),
        Statement(
            "distance after 20 steps at 2.1 times the best rate", "it may even diverge", at_least=2
        ),
        Statement(
            "best rate over the largest that converges, on a long bowl",
            "the best rate is close to the largest that does not diverge",
            at_least=0.75,
            at_most=1.0,
        ),
    ],
)
def learning_rates(steps: int = 40) -> Outcome:
    """One parabola, four rates. The gradient says where to go, the rate how far.

    The best rate is one over the curvature: it jumps to the minimum in one step. A smaller one
    creeps, a larger one lands on the other side, and from twice the best rate on each step ends
    higher than it began. With several weights the steepest direction sets the limit, and the
    flattest one the pace: on a long bowl the best rate for all is just below the limit. The second
    picture is such a bowl, five times as steep in one direction as in the other.
    """
    best = 1 / CURVATURE
    paths = {name: descent(r * best, 20 if r > 2 else 12) for name, r in RATES.items()}
    slow = descent(RATES["too small"] * best, 100)
    limit = largest_stable(lambda r: abs(descent(r, 100)[-1]), best, 3 * best)
    swings = [a * b < 0 for a, b in itertools.pairwise(paths["too large"])]
    axes = charts.grid_of_axes(None, 4, 2, (3.4, 2.7))
    for ax, (name, path) in zip(axes, paths.items(), strict=True):
        draw_descent(ax, name, path[:13])

    bowl = problems.bowl(dtype=chainrule.float64)

    def followed(rates: dict[str, float]) -> inspect.OptimizerPaths:
        made = {n: lambda p, lr=lr: optim.SGD(p, lr=lr) for n, lr in rates.items()}
        return inspect.optimizer_paths(bowl.function, made, bowl.start, steps=steps, points=31)

    tried = [0.01 * k for k in range(2, 25)]
    values = [*followed({f"{lr:.2f}": lr for lr in tried}).values.values()]
    last = [v[-1] for v in values]
    # It converges if it still falls in the second half.
    stable = max(lr for lr, v in zip(tried, values, strict=True) if v[-1] < 0.9 * v[steps // 2])
    fastest = tried[last.index(min(last))]
    shown = {"too small": 0.01, "best": fastest, "too large": 0.195, "divergent": 0.205}
    below = followed(shown).plot(charts.grid_of_axes(None, 2, 1, (5.2, 3.6)))
    return Outcome(
        {
            "steps that the best rate needs on a parabola": next(
                k for k, w in enumerate(paths["best"]) if abs(w) < 1e-9
            ),
            "largest rate that converges, in best rates": limit / best,
            "steps to a thousandth at a fifth of the best rate": next(
                k for k, w in enumerate(slow) if abs(w) < 1e-3
            ),
            "share of steps that change the side at 1.8 times the best rate": (
                sum(swings) / len(swings)
            ),
            "distance after 20 steps at 2.1 times the best rate": abs(paths["divergent"][-1]),
            "best rate over the largest that converges, on a long bowl": fastest / stable,
        },
        [axes, below],
    )


def hessian_of_line(x: Tensor) -> Tensor:
    """The second derivatives of the mean squared error by (offset, slope), for data (..., n)."""
    one, mean, square = chainrule.ones_like(x[..., 0]), x.mean(-1), (x * x).mean(-1)
    return 2 * chainrule.stack(
        [chainrule.stack([one, mean], -1), chainrule.stack([mean, square], -1)], -2
    )


def steps_needed(x: Tensor, y: Tensor, to: float = 1e-6) -> tuple[int, float]:
    """How many steps descent at its best rate takes until what can be lost is ``to`` times that
    at the start; and the condition number."""
    low, high = chainrule.linalg.eigvalsh(hessian_of_line(x)).tolist()
    inputs = chainrule.stack([chainrule.ones_like(x), x], -1)
    best = chainrule.linalg.lstsq(inputs, y).solution
    least = float(((inputs @ best - y) ** 2).mean())
    theta = chainrule.tensor([10.0, 5.0], dtype=x.dtype)
    first = math.inf
    for step in range(10_000):
        error = inputs @ theta - y
        excess = float((error * error).mean()) - least
        first = excess if step == 0 else first
        if excess <= to * first:
            return step, high / low
        theta = theta - 2 / (low + high) * (2 * inputs.mT @ error / len(x))
    raise RuntimeError("steps_needed: descent did not converge")


def standardized(x: Tensor) -> Tensor:
    """With mean 0 and standard deviation 1."""
    return (x - x.mean()) / x.std(correction=0)


POWERS = [2.0**k for k in range(-6, 5)]
MOMENTA = (0.2, 0.4, 0.6, 0.8)
# Every method with all its settings that are tried.
METHODS: dict[str, list[Callable[[list[Tensor]], optim.Optimizer]]] = {
    "SGD": [functools.partial(optim.SGD, lr=r) for r in POWERS],
    "momentum": [functools.partial(optim.SGD, lr=r, momentum=m) for r in POWERS for m in MOMENTA],
    "Nesterov": [
        functools.partial(optim.SGD, lr=r, momentum=m, nesterov=True)
        for r in POWERS
        for m in MOMENTA
    ],
    "AdaGrad": [functools.partial(optim.Adagrad, lr=r) for r in POWERS],
    "RMSprop": [functools.partial(optim.RMSprop, lr=r) for r in POWERS],
    "Adam": [functools.partial(optim.Adam, lr=r) for r in POWERS],
}


def fewest_steps(
    settings: list[Callable[[list[Tensor]], optim.Optimizer]],
    x: Tensor,
    y: Tensor,
    to: float = 1e-3,
    limit: int = 200,
) -> float:
    """The steps, at the best setting for each data set (sets, n), until what can be lost is ``to``
    times that at the start: mean over the sets."""
    inputs = chainrule.stack([chainrule.ones_like(x), x], -1)
    best = chainrule.linalg.lstsq(inputs, y.unsqueeze(-1)).solution[..., 0]
    hessian = hessian_of_line(x)
    start = chainrule.tensor([10.0, 5.0], dtype=x.dtype).expand(len(x), 2)
    fewest = chainrule.full((len(x),), float(limit), dtype=x.dtype)
    for make in settings:
        theta = start.clone().requires_grad_()
        optimizer = make([theta])
        arrived, first = chainrule.full_like(fewest, float(limit)), fewest
        for step in range(limit):
            away = theta.detach() - best
            slope = (hessian @ away.unsqueeze(-1))[..., 0]
            excess = (slope * away).sum(-1)
            first = excess if step == 0 else first
            now = chainrule.where(excess <= to * first, float(step), float(limit))
            arrived = chainrule.minimum(arrived, now)
            if float(arrived.max()) <= step or float(excess.max()) > 1e6 * float(first.max()):
                break
            theta.grad = slope
            optimizer.step()
        fewest = chainrule.minimum(fewest, arrived)
    return float(fewest.mean())


def draw_contours(ax: Any, x: Tensor, y: Tensor, title: str) -> None:
    """The loss of a line over slope and offset, with the path of a descent at its best rate."""
    net = nn.Linear(1, 1).double()
    weight, bias, _ = optim.least_squares(x.reshape(-1, 1), y.reshape(-1, 1))
    goal = chainrule.stack([weight.reshape(()), bias.reshape(())])
    curvatures = chainrule.linalg.eigvalsh(hessian_of_line(x))
    path = inspect.WeightPath()
    net.weight.data.fill_(float(goal[0]) + 5.0)
    net.bias.data.fill_(float(goal[1]) + 5.0)
    optimizer = optim.SGD(net.parameters(), lr=float(2 / curvatures.sum()))
    data = (x.reshape(-1, 1), y.reshape(-1, 1))
    for _ in range(60):
        path.record(net)
        optimizer.zero_grad()
        nn.functional.mse_loss(net(data[0]), data[1]).backward()
        optimizer.step()
    net.weight.data.copy_(weight)
    net.bias.data.copy_(bias)
    ways = chainrule.eye(2, dtype=chainrule.float64)
    seen = inspect.landscape(
        net,
        nn.functional.mse_loss,
        data,
        path=path,
        directions=(ways[0], ways[1]),
        span=6,
        points=31,
    )
    seen.labels = "slope, from the best", "offset, from the best"
    seen.title = title
    seen.plot(ax, levels=14)
    ax.set(xlim=(-6, 6), ylim=(-6, 6), aspect="equal")


@entry(
    "V40",
    course="001",
    printed="the effect of standardization",
    title="Standardized inputs make round contours",
    claims=[
        Statement("condition number before", "the contours are ellipses", at_least=1.5),
        Number("condition number after", 1.0, tolerance=1e-9),
        Statement(
            "steps before over steps after",
            "all gradient methods converge faster if the data are normalized",
            at_least=1.5,
        ),
        Statement(
            f"the same with the best settings of {', '.join(METHODS)}",
            "all gradient methods converge faster if the data are normalized",
            at_least=1.0,
        ),
    ],
    full={"data_sets": 1000},
)
def standardization(data_sets: int = 60) -> Outcome:
    """The squared error of a line y = slope x + offset, seen from above, before and after.

    Where inputs are not centered, a change of the slope can be made up for by the offset: the
    contours are long, slanted ellipses, the rate has to be small for their steep side, and on the
    flat side the descent creeps. Inputs with mean 0 and standard deviation 1 make circles, and the
    gradient points to the minimum from everywhere: at the best rate one step leads there. The
    data are the course's y = 3 x + 2 with noise in (-0.1, 0.1), thirty points each. That *all*
    methods gain does not hold: AdaGrad, RMSprop and Adam scale every direction by themselves, and
    need as many steps after as before.
    """
    generator = Generator().manual_seed(0)
    found: dict[str, list[tuple[int, float]]] = {"before": [], "after": []}
    inputs, targets = [], []
    for _ in range(data_sets):
        p = problems.line(generator=generator, dtype=chainrule.float64)
        x, y = p.inputs[:, 0], p.targets[:, 0]
        inputs.append(x)
        targets.append(y)
        found["before"].append(steps_needed(x, y))
        found["after"].append(steps_needed(standardized(x), y))
    axes = charts.grid_of_axes(None, 3, 1, (4.6, 3.5))
    draw_contours(axes[0], x + 1, y, "x between 0 and 2")
    draw_contours(axes[1], x, y, "x between -1 and 1")
    draw_contours(axes[2], standardized(x), y, "x standardized")
    pairs = zip(found["before"], found["after"], strict=True)
    all_x, all_y = chainrule.stack(inputs), chainrule.stack(targets)
    after = chainrule.stack([standardized(x) for x in inputs])
    gains = [
        fewest_steps(settings, all_x, all_y) / fewest_steps(settings, after, all_y)
        for settings in METHODS.values()
    ]
    return Outcome(
        {
            "condition number before": Spread(tuple(c for _, c in found["before"])),
            "condition number after": Spread(tuple(c for _, c in found["after"])),
            "steps before over steps after": Spread(tuple(a / b for (a, _), (b, _) in pairs)),
            f"the same with the best settings of {', '.join(METHODS)}": gains,
        },
        [axes],
        note=f"{data_sets} data sets. The course does not say where x lies: between -1 and 1 here, "
        "which gives the numbers that it prints for such data (X01); in the first picture moved. "
        f"Each method has the best of {len(POWERS)} rates, and of {len(MOMENTA)} momenta, for each "
        "data set, and goes to a thousandth of the loss.",
    )
