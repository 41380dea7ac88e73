"""What one unit can learn, and how many of them a hidden layer needs."""

from __future__ import annotations

import itertools
import math

import chainrule
from chainrule import Generator, Tensor, charts, models, optim
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.atlas.figures.neurons import CORNERS, XOR, perceptron_step

DOUBLE = chainrule.float64


def separable(seed: int) -> tuple[Tensor, Tensor, float]:
    """Points in the plane that a line through 0 divides, with labels -1 and 1, and the bound
    (R / margin)^2 for that line. The margin is another one for each seed."""
    generator = Generator().manual_seed(seed)
    margin = 0.02 * 25 ** float(chainrule.rand(1, generator=generator))
    x = chainrule.randn(60, 2, dtype=DOUBLE, generator=generator)
    angle = 6.28 * float(chainrule.rand(1, generator=generator))
    side = chainrule.tensor([angle, angle - 1.5708], dtype=DOUBLE).cos()
    x = x[(x @ side).abs() > margin]
    nearest = float((x @ side).abs().min() / side.norm())
    return x, (x @ side).sign(), (float(x.norm(dim=1).max()) / nearest) ** 2


def updates_so_far(x: Tensor, y: Tensor, passes: int) -> list[int]:
    """The updates of the perceptron after each of many passes, from w = 0."""
    w, counts, count = chainrule.zeros(x.shape[1], dtype=x.dtype), [0], 0
    for _ in range(passes):
        for row, label in zip(x, y.tolist(), strict=True):
            before = w
            w, _, _ = perceptron_step(w, row, label, 1.0)
            count += bool((w != before).any())
        counts.append(count)
    return counts


@entry(
    "M05",
    course="004",
    printed="eq 4.14, 4.17, section 4.2.3",
    title="A perceptron stops where a line can divide, and only there",
    claims=[
        Number("share of 60 separable sets that are solved", 1.0, tolerance=1e-9),
        Statement("updates over (R / margin)^2, largest of 60 sets", "finitely many", 0.0, 1.0),
        Statement("least updates in one of 40 passes over XOR", "it does not stop", at_least=1),
        Number("updates for 30 unit vectors", 30, tolerance=0.5, unprinted="the bound, attained"),
        Number(
            "moved by (4, 4), is there a line: without, with an offset (1: yes)",
            (0, 1),
            tolerance=0.5,
            unprinted="not translation invariant",
        ),
        Number("mistakes with a y = -1 at w = 0", 0.0, tolerance=0.5, unprinted="sign(0) is 0"),
    ],
)
def perceptron(sets: int = 60) -> Outcome:
    """a = sign(w x), and after each mistake the example, times its label, is added to the weights.

    If a line through 0 divides the classes with a margin, the number of updates is at most the
    square of the largest |x| over the margin (Novikoff): a few for a wide gap, many for a narrow
    one. Thirty unit vectors of one class need them all. If no line divides the classes, as in XOR,
    there is an update in every pass, for ever. Points that are moved all alike are divided by a
    line as before, but not by one through 0: that takes an offset. And the rule as it is printed,
    with a y = -1, never leaves w = 0, where a is 0: here 0 counts as a mistake.
    """
    found = [separable(seed) for seed in range(sets)]
    fits = [optim.perceptron(x, y, bias=False) for x, y, _ in found]
    updates, bounds = [f.report.updates or 0 for f in fits], [b for _, _, b in found]
    signs = (2 * XOR - 1).double()
    endless = updates_so_far(CORNERS.double() - 0.5, signs, 40)
    x, y, _ = found[0]
    moved = [optim.separability(x + 4, y, bias=b) == "complete" for b in (False, True)]
    silent = (x @ chainrule.zeros(2, dtype=DOUBLE)).sign() * y == -1
    units = chainrule.eye(30, dtype=DOUBLE)
    tight = optim.perceptron(units, units.sum(1), bias=False).report.updates or 0
    left, right = charts.grid_of_axes(None, 2, 2, (3.8, 3.4))
    left.loglog(bounds, updates, "o", color=charts.COLORS[0], label="60 sets")
    ends = [min(bounds), max(bounds)]
    left.loglog(ends, ends, "--", color=charts.COLORS[1], label="the bound")
    left.loglog([30], [tight], "*", markersize=10, color="black", label="30 unit vectors")
    left.set(title="A line divides them", xlabel="(R / margin)^2", ylabel="updates")
    left.minorticks_off()
    left.legend()
    x, y, _ = found[updates.index(max(updates))]
    right.plot(updates_so_far(x, y, 40), color=charts.COLORS[0], label="hardest of the 60 sets")
    right.plot(endless, color=charts.COLORS[1], label="XOR")
    right.set(title="And if none does", xlabel="pass", ylabel="updates so far")
    right.legend()
    steps = [b - a for a, b in itertools.pairwise(endless)]
    return Outcome(
        {
            "share of 60 separable sets that are solved": sum(f.report.mistakes == 0 for f in fits)
            / sets,
            "updates over (R / margin)^2, largest of 60 sets": max(
                u / b for u, b in zip(updates, bounds, strict=True)
            ),
            "least updates in one of 40 passes over XOR": min(steps),
            "updates for 30 unit vectors": tight,
            "moved by (4, 4), is there a line: without, with an offset (1: yes)": moved,
            "mistakes with a y = -1 at w = 0": int(silent.sum()),
        },
        [[left, right]],
    )


@entry(
    "M46",
    course="000",
    printed="eq 15, 31; 003 eq 1",
    title="What a tenth of the error costs in hidden units",
    claims=[
        Number(
            "units, times, for d = 2, 3, 5 inputs and k = 2 derivatives",
            (10**0.5, 10, 100),
            tolerance=1e-9,
            unprinted="10^((d - 1) / 2)",
        ),
        Number(
            "units, times, for d = 5 and k = 1, 2, 4",
            (10_000, 100, 10),
            tolerance=1e-6,
            unprinted="10^((d - 1) / k)",
        ),
        Statement("largest |d ln N / d ln e - (1 - d) / k|", "N ~ e^((1 - d) / k)", at_most=1e-9),
    ],
)
def capacities() -> Outcome:
    """N = e^((1 - d) / k): how many units one hidden layer needs for an error e.

    d is the number of inputs and k says how smooth the function is: how many derivatives it has. A
    tenth of the error takes 10^((d - 1) / k) times as many units. Every input more makes that worse
    and every derivative better. Axes that show powers of ten turn the law into lines; how steep
    they are is what matters, for the law is one of orders and leaves a factor open.
    """

    def times(d: int, k: int) -> float:
        return models.capacity(0.001, d, k) / models.capacity(0.01, d, k)

    off = 0.0
    errors = [10 ** (-m / 4) for m in range(1, 13)]
    ax = charts.axes_for(None)
    for n, (d, k) in enumerate([(2, 2), (3, 2), (5, 2), (5, 4)]):
        needed = [models.capacity(e, d, k) for e in errors]
        label = f"d = {d}, k = {k}: times {times(d, k):.3g}"
        style = "o" if n == 3 else "o-"  # it lies on another line
        ax.loglog(errors, needed, style, color=charts.COLORS[n], label=label)
    for d in (1, 2, 3, 5, 10):
        for k in (1, 2, 4):
            slope = math.log(times(d, k)) / math.log(0.1)
            off = max(off, abs(slope - (1 - d) / k))
    ax.invert_xaxis()
    ax.set(title="One hidden layer", xlabel="error", ylabel="units (order of magnitude)")
    ax.minorticks_off()
    ax.legend(title="a tenth of the error")
    return Outcome(
        {
            "units, times, for d = 2, 3, 5 inputs and k = 2 derivatives": [
                times(d, 2) for d in (2, 3, 5)
            ],
            "units, times, for d = 5 and k = 1, 2, 4": [times(5, k) for k in (1, 2, 4)],
            "largest |d ln N / d ln e - (1 - d) / k|": off,
        },
        [ax],
    )
