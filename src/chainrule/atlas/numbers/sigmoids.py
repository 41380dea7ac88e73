"""Two curves that are one, and the loss that belongs to them."""

from __future__ import annotations

import math
from typing import Any

import chainrule
from chainrule import Tensor, charts, func
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.atlas.numbers.closed_forms import DOUBLE, Function, lowest
from chainrule.nn import functional as F


def steepest(function: Function) -> tuple[float, float]:
    """Where a curve is steepest, and its slope there."""
    place, value = lowest(lambda x: -func.grad(lambda s: function(s).sum())(x), -3.0, 3.0)
    return place, -value


def draw_twins(names: tuple[str, str], function: Function, twin: Function, largest: float) -> Any:
    """A curve with points of the other form on it, and its slope with the largest one."""
    x = chainrule.linspace(-5, 5, 201, dtype=DOUBLE)
    slope = func.grad(lambda s: function(s).sum())(x)
    first, second = charts.grid_of_axes(None, 2, 2, (3.6, 3.2))
    first.plot(x.numpy(), function(x).numpy(), color=charts.COLORS[0], label=names[0])
    first.plot(x[::10].numpy(), twin(x[::10]).numpy(), "o", color=charts.COLORS[1], label=names[1])
    first.set(title="The curve, twice", xlabel="x", ylabel="value")
    first.set_ylim(float(function(x[0])) - 0.1, 1.75)
    first.legend(loc="upper left")
    second.plot(x.numpy(), slope.numpy(), color=charts.COLORS[0])
    second.axhline(largest, color="gray", linestyle="--", label=f"{largest:g}")
    second.set(title="Its slope", xlabel="x", ylabel="slope", ylim=(0, 1.3 * largest))
    second.legend(loc="upper left")
    return [first, second]


def apart(one: Function, other: Function) -> float:
    """The largest difference of two functions between -20 and 20."""
    x = chainrule.linspace(-20, 20, 401, dtype=DOUBLE)
    return float((one(x) - other(x)).abs().max())


@entry(
    "A03",
    course="004",
    printed="A.1, A.3, A.4; 000 eq 4; 002",
    title="The sigmoid is a tanh, and a quarter steep at most",
    claims=[
        Number("largest slope", 0.25, tolerance=1e-9),
        Number("where", 0.0, tolerance=1e-6, unprinted="where s = 1 - s"),
        Statement("largest |slope - s (1 - s)|", "the slope is s (1 - s)", at_most=1e-12),
        Statement("largest |s - (tanh(x / 2) + 1) / 2|", "they are one curve", at_most=1e-12),
    ],
)
def sigmoid() -> Outcome:
    """1 / (1 + exp(-x)) turns any number into one between 0 and 1.

    Its slope is s (1 - s), the product of two numbers whose sum is 1: it is largest where both are
    a half, at x = 0, and a quarter there. So each layer of sigmoids takes three quarters of a
    gradient away, or more. The curve is that of tanh, half as wide and half as high.
    """
    place, largest = steepest(chainrule.sigmoid)
    slope = func.grad(lambda x: chainrule.sigmoid(x).sum())

    def product(x: Tensor) -> Tensor:
        return x.sigmoid() * (1 - x.sigmoid())

    def twin(x: Tensor) -> Tensor:
        return ((x / 2).tanh() + 1) / 2

    names = ("sigmoid(x)", "(tanh(x / 2) + 1) / 2")
    return Outcome(
        {
            "largest slope": largest,
            "where": place,
            "largest |slope - s (1 - s)|": apart(slope, product),
            "largest |s - (tanh(x / 2) + 1) / 2|": apart(chainrule.sigmoid, twin),
        },
        [draw_twins(names, chainrule.sigmoid, twin, largest)],
    )


@entry(
    "A04",
    course="004",
    printed="A.2, A.5; 000 eq 5; 002",
    title="tanh is a sigmoid, and as steep as 1",
    claims=[
        Number("largest slope", 1.0, tolerance=1e-9),
        Number("where", 0.0, tolerance=1e-6, unprinted="where tanh is 0"),
        Statement("largest |slope - (1 - tanh^2)|", "the slope is 1 - tanh^2", at_most=1e-12),
        Statement("largest |tanh - (2 sigmoid(2 x) - 1)|", "they are one curve", at_most=1e-12),
        Statement("largest |tanh - (e^2x - 1) / (e^2x + 1)|", "its definition", at_most=1e-12),
    ],
)
def tanh() -> Outcome:
    """(e^2x - 1) / (e^2x + 1) lies between -1 and 1, and goes through 0.

    Near 0 it is the identity: its slope, 1 - tanh^2, is 1 there and less everywhere else. A sigmoid
    that is stretched to twice its height and moved down by 1, of an input twice as large, is the
    same curve; so networks of the one kind can be rewritten as networks of the other.
    """
    place, largest = steepest(chainrule.tanh)
    slope = func.grad(lambda x: chainrule.tanh(x).sum())

    def twin(x: Tensor) -> Tensor:
        return 2 * (2 * x).sigmoid() - 1

    def definition(x: Tensor) -> Tensor:
        return ((2 * x).exp() - 1) / ((2 * x).exp() + 1)

    names = ("tanh(x)", "2 sigmoid(2 x) - 1")
    return Outcome(
        {
            "largest slope": largest,
            "where": place,
            "largest |slope - (1 - tanh^2)|": apart(slope, lambda x: 1 - x.tanh() ** 2),
            "largest |tanh - (2 sigmoid(2 x) - 1)|": apart(chainrule.tanh, twin),
            "largest |tanh - (e^2x - 1) / (e^2x + 1)|": apart(chainrule.tanh, definition),
        },
        [draw_twins(names, chainrule.tanh, twin, largest)],
    )


@entry(
    "S06",
    course="004",
    printed="C.5; 002, slide 22",
    title="The logistic loss is the binary cross-entropy",
    claims=[
        Statement("largest difference of the losses", "they are equal", at_most=1e-11),
        Statement("largest difference of their slopes", "they are equal", at_most=1e-12),
        Number("loss at a score of 0", math.log(2), tolerance=1e-12, unprinted="ln 2"),
    ],
)
def logistic_loss() -> Outcome:
    """log(1 + exp(-z s)) is for labels z of -1 and 1, -(y log a + (1 - y) log(1 - a)) for 0 and 1.

    With a = sigmoid(s) and y = (z + 1) / 2 they are the same number for every score s, and so are
    their slopes. A score of 0 is a guess, which costs ln 2; one that is right and far out costs
    nearly nothing, and one that is wrong costs about its own size.
    """
    s = chainrule.linspace(-10, 10, 201, dtype=DOUBLE)

    def signed(s: Tensor, z: float) -> Tensor:
        return F.soft_margin_loss(s, chainrule.full_like(s, z), reduction="none")

    def counted(s: Tensor, z: float) -> Tensor:
        y = chainrule.full_like(s, (z + 1) / 2)
        return F.binary_cross_entropy(s.sigmoid(), y, reduction="none")

    off, off_slopes = [], []
    ax = charts.axes_for(None)
    near = s[30:171]  # from -7 to 7
    for k, z in enumerate((1.0, -1.0)):
        off.append(float((signed(s, z) - counted(s, z)).abs().max()))
        slopes = [func.grad(lambda s, f=f, z=z: f(s, z).sum())(s) for f in (signed, counted)]
        off_slopes.append(float((slopes[0] - slopes[1]).abs().max()))
        color = charts.COLORS[k]
        ax.plot(near.numpy(), signed(near, z).numpy(), color=color, label=f"logistic, z = {z:+g}")
        label = f"cross-entropy, y = {(z + 1) / 2:g}"
        ax.plot(near[::7].numpy(), counted(near[::7], z).numpy(), "o", color=color, label=label)
    ax.set(title="Two names of one loss", xlabel="score s", ylabel="loss", ylim=(-0.3, 9.5))
    ax.legend(loc="upper center", ncols=2)
    return Outcome(
        {
            "largest difference of the losses": max(off),
            "largest difference of their slopes": max(off_slopes),
            "loss at a score of 0": float(signed(chainrule.zeros(1, dtype=DOUBLE), 1.0)),
        },
        [ax],
    )
