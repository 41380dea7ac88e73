"""One hidden layer is enough: sigmoids make bumps, and bumps make any function."""

from __future__ import annotations

import itertools
import math
from typing import Any

import chainrule
from chainrule import Tensor, charts, inspect, nn
from chainrule.atlas import Outcome, Statement, entry

SIZES = (5, 10, 20, 40, 80, 160)  # bumps in [0, 1]
BEYOND = 8


def one_layer(weight: Tensor, bias: Tensor, outgoing: Tensor) -> nn.Module:
    """A network of one hidden layer of sigmoids with these weights, and a sum of them."""
    net = nn.Sequential(
        nn.Linear(weight.shape[1], len(weight)), nn.Sigmoid(), nn.Linear(len(weight), 1, bias=False)
    ).double()
    net.load_state_dict({"0.weight": weight, "0.bias": bias, "2.weight": outgoing.reshape(1, -1)})
    return net.requires_grad_(False)


def bump_network(half: float, slope: float) -> nn.Module:
    """s(slope (x + half)) - s(slope (x - half)), with 1 as its largest value."""
    top = 2 / (1 + math.exp(-slope * half)) - 1
    return one_layer(
        chainrule.tensor([[slope], [slope]], dtype=chainrule.float64),
        chainrule.tensor([slope * half, -slope * half], dtype=chainrule.float64),
        chainrule.tensor([1.0, -1.0], dtype=chainrule.float64) / top,
    )


def target(x: Tensor) -> Tensor:
    """A function that is to be approximated on [0, 1]."""
    return (2 * math.pi * x).sin() + 0.5 * x * (15 * x).cos()


def step_network(bumps: int) -> nn.Module:
    """As many bumps side by side as asked for, each as high as the target in its middle.

    Where a bump ends the next begins: of both sigmoids there one is left, with the difference of
    the heights as its weight.
    """
    # Bumps are soft: beyond either end of [0, 1] are some more, so that none is missing there.
    beyond = BEYOND / bumps
    edges = chainrule.linspace(-beyond, 1 + beyond, bumps + 2 * BEYOND + 1, dtype=chainrule.float64)
    heights = target((edges[:-1] + edges[1:]) / 2)
    padded = chainrule.cat([heights.new_zeros(1), heights, heights.new_zeros(1)])
    slope = 2.5 * bumps
    return one_layer(
        chainrule.full((len(edges), 1), slope, dtype=chainrule.float64),
        -slope * edges,
        padded[1:] - padded[:-1],
    )


def radial_network(directions: int = 12, half: float = 0.25) -> nn.Module:
    """A Gaussian of the plane from bumps along lines in many directions.

    A bump of a.x is a wall. Walls in all directions, with heights that depend on their distance
    from 0 alone, add up to something round; the heights are found by least squares.
    """
    angles = math.pi * chainrule.arange(directions, dtype=chainrule.float64) / directions
    ways = chainrule.stack([angles.cos(), angles.sin()], 1)
    slope = 3 / half
    offsets = chainrule.arange(0, 6.01, 2 * half, dtype=chainrule.float64)
    # For each direction and distance two walls of two sigmoids each.
    edges = chainrule.stack([offsets - half, offsets + half, half - offsets, -offsets - half], 1)
    signs = chainrule.tensor([1.0, -1.0, -1.0, 1.0], dtype=chainrule.float64)

    grid = chainrule.linspace(-4, 4, 25, dtype=chainrule.float64)
    points = chainrule.stack([g.reshape(-1) for g in chainrule.meshgrid(grid, grid)], 1)
    places = (points @ ways.mT)[:, :, None, None]
    walls = ((slope * (places - edges)).sigmoid() * signs).sum((1, 3))
    heights = chainrule.linalg.lstsq(walls, gaussian(points).unsqueeze(1)).solution

    count = edges.numel()
    return one_layer(
        slope * ways.repeat_interleave(count, 0),
        -slope * edges.reshape(-1).repeat(directions),
        (heights * signs).reshape(-1).repeat(directions),
    )


def gaussian(points: Tensor) -> Tensor:
    """exp(-|x|^2 / 2)."""
    return (-(points * points).sum(-1) / 2).exp()


def closest_bump(t: Tensor) -> tuple[float, nn.Module]:
    """The difference of sigmoids that is closest to a Gaussian, and how far it is from it."""
    tried = []
    for half, slope in itertools.product((0.5, 0.7, 0.9, 1.1, 1.3), (1.5, 2.0, 2.5, 3.0, 4.0)):
        net = bump_network(half, slope)
        tried.append((float((net(t)[:, 0] - gaussian(t)).abs().max()), net))
    return min(tried, key=lambda found: found[0])


@entry(
    "V50",
    course="001",
    printed="universal approximators",
    title="Sigmoids make bumps, bumps make functions",
    claims=[
        Statement(
            "largest distance of a difference of sigmoids from a Gaussian",
            "sigmoids combine to Gaussian kernels",
            at_most=0.05,
        ),
        Statement(
            "largest distance of one layer of the plane from a radial Gaussian",
            "differences of sigmoids, weighted, give RBF kernels",
            at_most=0.05,
        ),
        Statement(
            "error with twice the bumps over that before, largest",
            "any well-behaved function can be approximated arbitrarily well",
            at_most=0.75,
        ),
        Statement(
            "error with 160 bumps over the range of the function",
            "by one hidden layer",
            at_most=0.02,
        ),
    ],
    full={"points": 81},
)
def universal_approximation(points: int = 41) -> Outcome:
    """A network of one hidden layer, put together by hand, comes as close to a function as wanted.

    A sigmoid is a step. One step up less the next one is a bump, almost a Gaussian if its sides are
    as soft as it is wide. Bumps side by side, each as high as the function is there, follow the
    function; narrower bumps follow it more closely, and each doubling cuts the error to less than
    half. In the plane a difference of sigmoids is a wall that never ends; walls in twelve
    directions make a round hill, a radial basis function. The price is the number of units: 624 for
    this one hill.
    """
    t = chainrule.linspace(-5, 5, 401, dtype=chainrule.float64).reshape(-1, 1)
    distance, bump = closest_bump(t)
    x = chainrule.linspace(0, 1, 1001, dtype=chainrule.float64).reshape(-1, 1)
    truth = target(x)
    answers = {n: step_network(n)(x) for n in SIZES}
    errors = [float((answers[n] - truth).abs().max()) for n in SIZES]
    hill = radial_network()
    grid = chainrule.linspace(-4, 4, points, dtype=chainrule.float64)
    plane = chainrule.stack([g.reshape(-1) for g in chainrule.meshgrid(grid, grid)], 1)
    seen = inspect.surface(
        lambda w: hill(w.double().reshape(1, 2))[0, 0], (-4, 4), (-4, 4), points=points
    )
    seen.title, seen.labels = "A radial kernel from 624 sigmoids", ("x1", "x2")
    raised = seen.plot(kind="surface", rcount=points, ccount=points)
    raised.set_zlabel("output")
    axes = charts.grid_of_axes(None, 4, 2, (3.4, 2.8))
    draw_bump(axes[0], axes[1], t, bump)
    axes[2].plot(x.numpy(), truth.numpy(), color="black", label="function")
    for k, n in enumerate((10, 40)):
        axes[2].plot(x.numpy(), answers[n].numpy(), color=charts.COLORS[k], label=f"{n} bumps")
    axes[2].set(title="Bumps side by side", xlabel="x", ylabel="output")
    axes[3].loglog(SIZES, errors, "o-", color=charts.COLORS[0])
    axes[3].set(title="Largest error", xlabel="bumps", ylabel="error")
    axes[3].set_xticks(SIZES, [str(n) for n in SIZES])
    axes[3].minorticks_off()
    axes[2].legend()
    return Outcome(
        {
            "largest distance of a difference of sigmoids from a Gaussian": distance,
            "largest distance of one layer of the plane from a radial Gaussian": float(
                (hill(plane)[:, 0] - gaussian(plane)).abs().max()
            ),
            "error with twice the bumps over that before, largest": max(
                b / a for a, b in itertools.pairwise(errors)
            ),
            "error with 160 bumps over the range of the function": (
                errors[-1] / float(truth.max() - truth.min())
            ),
        },
        [axes, raised],
    )


def draw_bump(left: Any, right: Any, t: Tensor, bump: nn.Module) -> None:
    """Two sigmoids and their difference; the difference and a Gaussian."""
    across = t[:, 0].numpy()
    hidden = bump[:2](t)  # type: ignore[index]
    left.plot(across, hidden[:, 0].numpy(), color=charts.COLORS[2], label="one")
    left.plot(across, hidden[:, 1].numpy(), color=charts.COLORS[3], label="other")
    left.plot(across, (hidden[:, 0] - hidden[:, 1]).numpy(), color="black", label="difference")
    left.set(title="Two sigmoids", xlabel="x", ylabel="output")
    right.plot(across, bump(t)[:, 0].numpy(), color="black", label="difference")
    right.plot(across, gaussian(t).numpy(), "--", color=charts.COLORS[1], label="Gaussian")
    right.set(title="A bump, scaled", xlabel="x", ylabel="output")
    left.legend(fontsize=8)
    right.legend(fontsize=8)
