"""How long a step may be, and what a decay leaves of a weight."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import chainrule
from chainrule import Tensor, charts, optim, problems, regularize
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.atlas.figures.rates import largest_stable
from chainrule.nn import Parameter, ParameterList
from chainrule.optim.lr_scheduler import LambdaLR, robbins_monro
from chainrule.optim.theory import lipschitz_estimate, step_bound

DOUBLE = chainrule.float64


def descent(loss: Callable[[Tensor], Tensor], start: Tensor, rate: float, steps: int) -> Tensor:
    """The places of gradient descent, (steps + 1, ...)."""
    w = Parameter(start.clone())
    optimizer = optim.SGD([w], lr=rate)
    places = [w.detach().clone()]
    for _ in range(steps):
        optimizer.zero_grad()
        loss(w).backward()
        optimizer.step()
        places.append(w.detach().clone())
    return chainrule.stack(places)


def with_rates_1_over_t(loss: Callable[[Tensor], Tensor], dtype: chainrule.dtype) -> list[float]:
    """|x| along descent from 10 with the rates 1, 1/2, 1/3, ..., until the slope overflows."""
    x = Parameter(chainrule.tensor(10.0, dtype=dtype))
    optimizer = optim.SGD([x], lr=1.0)
    schedule = LambdaLR(optimizer, lambda t: 1 / (t + 1))
    sizes = [10.0]
    for _ in range(60):
        optimizer.zero_grad()
        loss(x).backward()
        if x.grad is None or not math.isfinite(x.grad.item()):
            break  # a step with it would be an error
        optimizer.step()
        schedule.step()
        sizes.append(abs(x.item()))
    return sizes


@entry(
    "C02",
    course="002",
    printed="convergence of gradient descent; 001, Robbins-Monro conditions",
    title="Rates 1/t fulfil the two conditions, and overflow on x^4",
    claims=[
        Number("whether 1/t fulfils both conditions (1: yes)", 1, tolerance=0.5),
        Number(
            "whether 1/sqrt(t) and 1/t^2 do",
            (0, 0),
            tolerance=0.5,
            unprinted="sum a^2 = inf; sum a < inf",
        ),
        Number(
            "the step on x^4 from 10 whose slope overflows, 64 bits",
            6,
            0.5,
            unprinted="step by step",
        ),
        Number("the same with 32 bits", 4, tolerance=0.5, unprinted="step by step"),
        Statement("|x| after 60 steps on 0.75 x^2 from 10", "it converges", at_most=0.05),
    ],
)
def overflowing_rates() -> Outcome:
    """The sum of the rates is infinite, so descent can come anywhere, and that of their squares is
    not, so noise dies out. The slides say that this is enough.

    It is where slopes grow no faster than x does. On x^4 the first step goes from 10 to -3990, and
    each one cubes what the last one left: the slope of the sixth is too large for a number of 64
    bits, however small the later rates would have been.
    """

    def fourth(x: Tensor) -> Tensor:
        return x**4

    def parabola(x: Tensor) -> Tensor:
        return 0.75 * x**2

    wild, tame = with_rates_1_over_t(fourth, DOUBLE), with_rates_1_over_t(parabola, DOUBLE)
    first, second = charts.grid_of_axes(None, 2, 2, (3.6, 3.3))
    first.plot([math.log10(v) for v in wild], "o-", color=charts.COLORS[1])
    first.set(title="x^4, rates 1/t", xlabel="step", ylabel="log10 |x|")
    second.plot(tame, "o-", color=charts.COLORS[0], markersize=3)
    second.set(title="0.75 x^2, rates 1/t", xlabel="step", ylabel="|x|")
    others = (lambda t: t**-0.5, lambda t: t**-2.0)
    return Outcome(
        {
            "whether 1/t fulfils both conditions (1: yes)": bool(
                robbins_monro(lambda t: 1 / t).satisfied
            ),
            "whether 1/sqrt(t) and 1/t^2 do": [bool(robbins_monro(f).satisfied) for f in others],
            "the step on x^4 from 10 whose slope overflows, 64 bits": len(wild),
            "the same with 32 bits": len(with_rates_1_over_t(fourth, chainrule.float32)),
            "|x| after 60 steps on 0.75 x^2 from 10": tame[-1],
        },
        [[first, second]],
    )


@entry(
    "T09",
    course="004",
    printed="section 7.4",
    title="On w1^2 + 5 w2^2 descent is stable below a rate of 0.2",
    claims=[
        Number("largest rate that does not diverge", 0.2, tolerance=1e-6, unprinted="2 / 10"),
        Number(
            "what a step leaves of w1 and w2 at 0.19", (0.62, -0.9), 1e-9, unprinted="1 - eta h"
        ),
        Number("the same at 0.2", (0.6, -1.0), tolerance=1e-9, unprinted="1 - eta h"),
        Number("the same at 0.21", (0.58, -1.1), tolerance=1e-9, unprinted="1 - eta h"),
    ],
)
def bowl() -> Outcome:
    """The curvatures are 2 and 10: a step multiplies w1 by 1 - 2 eta, and w2 by 1 - 10 eta.

    At 0.19 w2 changes its side with every step, and comes closer; at 0.2 it jumps to and fro for
    ever; at 0.21 it goes away. The steep direction says how long a step may be, while w1 would have
    stood a rate of 1.
    """
    problem = problems.bowl(dtype=DOUBLE)

    def left(rate: float) -> list[float]:
        places = descent(problem.function, problem.start, rate, 1)
        return (places[1] / places[0]).tolist()

    def far(rate: float) -> float:
        return max(abs(v) for v in left(rate))

    rates = (0.19, 0.2, 0.21)
    axes = charts.grid_of_axes(None, 3, 3, (2.8, 3.0))
    grid = chainrule.linspace(-2.2, 2.2, 61, dtype=DOUBLE)
    a, b = chainrule.meshgrid(grid, grid, indexing="xy")
    values = problem.function(chainrule.stack([a, b]))
    for k, (ax, rate) in enumerate(zip(axes, rates, strict=True)):
        ax.contour(a.numpy(), b.numpy(), values.numpy(), 9, colors="gray", linewidths=0.6)
        places = descent(problem.function, problem.start, rate, 8)
        ax.plot(*places.T.numpy(), "o-", color=charts.COLORS[k], markersize=3)
        ax.set(title=f"rate {rate:g}", xlabel="w1", ylabel="w2", ylim=(-2.2, 2.2))
    return Outcome(
        {
            "largest rate that does not diverge": largest_stable(far, 0.01, 0.5),
            "what a step leaves of w1 and w2 at 0.19": left(0.19),
            "the same at 0.2": left(0.2),
            "the same at 0.21": left(0.21),
        },
        [axes],
    )


def random_bowl(size: int) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """A positive definite matrix H, and the loss w H w / 2."""
    root = chainrule.randn(size, size, dtype=DOUBLE)
    h = root @ root.T / size + 0.1 * chainrule.eye(size, dtype=DOUBLE)
    return h, lambda w: w @ (h @ w) / 2


@entry(
    "O39",
    course="003",
    printed="learning rate; 004 eq 7.27-7.32",
    title="A rate below 2 / beta descends at every step",
    claims=[
        Statement("2 / beta over the largest stable rate, 8 bowls", "2 / beta", 0.999, 1.001),
        Statement(
            "least fall in a step at 0.05 to 0.99 of 2 / beta, over the loss",
            "0 < eta < 2 / beta descends",
            at_least=1e-4,
        ),
        Number("|steepest part| after 50 steps at 2 / beta", 1.0, 1e-6, unprinted="it oscillates"),
        Statement("the same at 1.05 times 2 / beta", "above, it diverges", at_least=50),
        Statement("largest -g (eta g), rates of their own", "at most 0, eq 7.31", at_most=-1e-6),
    ],
)
def guaranteed_steps(bowls: int = 8) -> Outcome:
    """beta is the largest curvature, and the Lipschitz constant of the gradient.

    A step of gradient descent lowers the loss for every rate between 0 and 2 / beta, wherever it
    starts. At 2 / beta the steepest part of the weights changes its sign and nothing else, beyond
    it grows. The slides print an interval that begins at 1 / beta (ERR090). If every weight has a
    positive rate of its own, the way is still downhill, for steps that are short enough.
    """
    off, falls, slopes = [], [], []
    shares = [0.05, 0.2, 0.5, 0.8, 0.99]
    ax = charts.axes_for(None)
    along = [0.02 * k for k in range(66)]
    ends: list[list[float]] = [[], []]
    for n in range(bowls):
        h, loss = random_bowl(2 + n % 5)
        w = Parameter(chainrule.randn(len(h), dtype=DOUBLE))
        bound = step_bound(lipschitz_estimate(functools.partial(loss, w), [w], tolerance=1e-9))
        vectors = chainrule.linalg.eigh(h).eigenvectors
        steepest = vectors[:, -1]

        def growth(rate: float, h: Tensor = h, v: Tensor = steepest) -> float:
            return float((v - rate * (h @ v)).norm())

        off.append(bound / largest_stable(growth, 0.1 * bound, 3 * bound))
        at = w.detach()
        values = [loss(descent(loss, at, s * bound, 1)[1]) / loss(at) for s in shares]
        falls.append(1 - max(float(v) for v in values))
        g = h @ at
        slopes.append(-float(g @ (chainrule.rand(len(h), dtype=DOUBLE) * g)))
        for k, share in enumerate((1.0, 1.05)):
            end = descent(loss, steepest, share * 2 / float(steepest @ h @ steepest), 50)[-1]
            ends[k].append(float((end @ steepest).abs()))
        after = [float(loss(steepest - s * bound * (h @ steepest))) for s in along]
        mixed = [float(loss(at - s * bound * g) / loss(at)) for s in along]
        ax.plot(along, mixed, color=charts.COLORS[0], linewidth=0.8)
        ax.plot(along, [v / float(loss(steepest)) for v in after], color=charts.COLORS[1])
    ax.plot([], [], color=charts.COLORS[0], label="from anywhere, 8 bowls")
    ax.plot([], [], color=charts.COLORS[1], label="from the steepest direction")
    ax.axhline(1, color="gray", linewidth=1)
    ax.axvline(1, color="gray", linestyle="--", label="2 / beta")
    ax.set(title="The loss after one step, over that before", xlabel="rate over 2 / beta")
    ax.set(ylabel="loss, after over before", ylim=(0, 2.4))
    ax.legend(loc="upper left")
    return Outcome(
        {
            "2 / beta over the largest stable rate, 8 bowls": off,
            "least fall in a step at 0.05 to 0.99 of 2 / beta, over the loss": min(falls),
            "|steepest part| after 50 steps at 2 / beta": sum(ends[0]) / bowls,
            "the same at 1.05 times 2 / beta": min(ends[1]),
            "largest -g (eta g), rates of their own": max(slopes),
        },
        [ax],
    )


@entry(
    "R01",
    course="004",
    printed="eq 8.4-8.5; 002; 000 section 3.4.5",
    title="Without data, weight decay leaves (1 - eta lambda)^t of a weight",
    claims=[
        Statement(
            "largest |w - (1 - eta lambda)^t w0|, by the slope of the penalty", "eq 8.5", 0.0, 1e-12
        ),
        Statement("the same by the weight_decay of SGD", "eq 8.5", at_most=1e-12),
        Number("share left after 100 steps, 0.1 and 0.1", 0.36603, 5e-6, unprinted="0.99^100"),
    ],
)
def decaying_weights(steps: int = 100) -> Outcome:
    """The penalty lambda / 2 |w|^2 has the slope lambda w, which takes a share of each weight.

    If nothing else pulls, a step leaves 1 - eta lambda of it, and t steps that to the power of t:
    the weight decays, which is where the name comes from. For plain descent the penalty and the
    option ``weight_decay`` are the same.
    """
    start, rate = chainrule.tensor([1.0, -0.6, 0.3], dtype=DOUBLE), 0.1
    off = {"penalty": 0.0, "option": 0.0}
    left = 0.0
    ax = charts.axes_for(None)
    for k, strength in enumerate((0.1, 0.3, 1.0)):
        weights = {name: Parameter(start.clone()) for name in off}
        penalty, held = regularize.L2(strength, where="*"), ParameterList([weights["penalty"]])
        optimizers = {
            "penalty": optim.SGD([weights["penalty"]], lr=rate),
            "option": optim.SGD([weights["option"]], lr=rate, weight_decay=strength),
        }
        paths: dict[str, list[float]] = {name: [1.0] for name in off}
        for t in range(1, steps + 1):
            weights["penalty"].grad = None
            penalty(held).backward()
            weights["option"].grad = chainrule.zeros_like(start)  # there is no loss
            for name, w in weights.items():
                optimizers[name].step()
                formula = (1 - rate * strength) ** t * start
                off[name] = max(off[name], float((w.detach() - formula).abs().max()))
                paths[name].append(w.detach()[0].item())
        left = left or paths["penalty"][-1]
        times, color = range(0, steps + 1, 5), charts.COLORS[k]
        law = [(1 - rate * strength) ** t for t in range(steps + 1)]
        ax.semilogy(law, color=color, label=f"lambda = {strength:g}")
        ax.semilogy(times, paths["penalty"][::5], "o", color=color, markersize=4)
    ax.plot([], [], "o", color="gray", markersize=4, label="steps of descent")
    ax.set(title="A weight without data, rate 0.1", xlabel="step", ylabel="share left")
    ax.legend()
    return Outcome(
        {
            "largest |w - (1 - eta lambda)^t w0|, by the slope of the penalty": off["penalty"],
            "the same by the weight_decay of SGD": off["option"],
            "share left after 100 steps, 0.1 and 0.1": left,
        },
        [ax],
    )
