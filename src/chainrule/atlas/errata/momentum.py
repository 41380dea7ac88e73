"""Descent and momentum of course 000, as they are printed and as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import chainrule
from chainrule import Tensor, charts, func, optim
from chainrule.atlas import Forms, Number, Outcome, Refuted, Statement, Wrong, entry


def path(
    make: Callable[[list[Tensor]], Any], gradients: Sequence[float], start: float = 0.0
) -> tuple[list[float], dict[str, Tensor]]:
    """Where one weight goes under given gradients, and the optimizer's state of it at the end."""
    w = chainrule.tensor(start, dtype=chainrule.float64, requires_grad=True)
    optimizer = make([w])
    places = []
    for g in gradients:
        w.grad = chainrule.tensor(g, dtype=chainrule.float64)
        optimizer.step()
        places.append(w.item())
    return places, optimizer.state[w]


def two_paths(
    title: str, printed: Sequence[float], right: Sequence[float], name: str = "weight"
) -> Any:
    """The path of the printed rule beside that of the right one."""
    ax = charts.axes_for(None)
    ax.plot(printed, "o-", markersize=3, color=charts.COLORS[1], label="as printed")
    ax.plot(right, "o-", markersize=3, color=charts.COLORS[0], label="right")
    ax.set(title=title, xlabel="step", ylabel=name)
    ax.legend()
    return ax


@entry(
    "ERR020",
    course="000",
    printed="definition 1",
    title="A zero gradient does not make a minimum",
    claims=[
        Refuted(
            "x^3 a little below 0, less x^3 at 0",
            "a zero gradient is sufficient: not below",
            (0.0, inf),
            "necessary alone: it may be below",
            (-inf, 0.0),
        ),
        Number("slope of x^3 at 0", 0.0, tolerance=1e-12),
    ],
)
def zero_gradient() -> Outcome:
    """At a minimum of a smooth function the gradient is 0; the other way round is not true.

    x^3 has the slope 0 at 0 and is lower on the left: a saddle. Only if the function is convex, a
    zero gradient suffices. Deep networks have many such points.
    """
    zero = chainrule.tensor(0.0, dtype=chainrule.float64)
    slope = func.grad(lambda x: x**3)(zero)
    ax = charts.axes_for(None)
    grid = chainrule.linspace(-1, 1, 101)
    ax.plot(grid.numpy(), (grid**3).numpy(), color=charts.COLORS[0], label="x^3")
    ax.plot(grid.numpy(), (grid**2).numpy(), color=charts.COLORS[1], label="x^2, convex")
    ax.plot(0, 0, "o", color="black", label="zero gradient")
    ax.set(title="Two points of zero gradient", xlabel="x", ylabel="value")
    ax.legend()
    return Outcome(
        {"x^3 a little below 0, less x^3 at 0": (-0.1) ** 3, "slope of x^3 at 0": float(slope)},
        [ax],
    )


@entry(
    "ERR021",
    course="000",
    printed="eq 65",
    title="Inverse-time decay has no warm-up in it",
    claims=[
        Refuted(
            "largest rate over the first one",
            "a warm-up comes first: the rate rises",
            (1.0 + 1e-9, inf),
            "it falls from the first step on",
            (0.0, 1.0),
        )
    ],
)
def inverse_time_decay(steps: int = 100) -> Outcome:
    """eta_0 / (1 + i eta_d) is largest at i = 0.

    The text describes a warm-up, which begins with small rates, before the decay; the formula has
    none. A warm-up would be a schedule of its own in front of it.
    """
    w = chainrule.ones(1, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.1)
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda i: 1 / (1 + i / 20))
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    ax = charts.axes_for(None)
    ax.plot(rates, color=charts.COLORS[0])
    ax.set(title="eta_0 / (1 + i / 20)", xlabel="step i", ylabel="learning rate")
    return Outcome({"largest rate over the first one": max(rates) / rates[0]}, [ax])


@entry(
    "ERR022",
    course="000",
    printed="alg. 3-6; 003",
    title="Dampening weakens the gradient by 1 - tau",
    claims=[
        Wrong("path under gradient 1", "factor 1 - <tau - 1>_+", "factor 1 - tau", 1e-9),
        Number(
            "path under gradient 1, as PyTorch has it",
            (-1.0, -2.1, -3.27),
            tolerance=5e-3,
            unprinted="PyTorch's steps",
        ),
    ],
)
def dampening() -> Outcome:
    """With tau = 0.6 a new gradient enters the velocity with the weight 0.4.

    The printed factor is 1 for every tau below 1, so it would dampen nothing in the course's own
    example. Libraries leave the first gradient whole, which starts the velocity.
    """
    gamma, tau = 0.7, 0.6

    def run(factor: float) -> list[float]:
        theta, v, places = 0.0, 1.0, []
        for i in range(3):
            v = gamma * v + factor if i else 1.0
            theta -= v
            places.append(theta)
        return places

    truth, _ = path(lambda p: optim.SGD(p, lr=1.0, momentum=gamma, dampening=tau), [1.0] * 3)
    printed, right = run(1 - max(tau - 1, 0.0)), run(1 - tau)
    return Outcome(
        {
            "path under gradient 1": Forms(printed, right, truth),
            "path under gradient 1, as PyTorch has it": truth,
        }
    )


@entry(
    "ERR023",
    course="000",
    printed="alg. 4 line 12",
    title="The learning rate is applied once",
    claims=[Wrong("first step, eta = 0.1, g = 1", "eta in v and in the update", "eta once", 1e-9)],
)
def rate_applied_once() -> Outcome:
    """The velocity holds eta g already; multiplying the update by eta again gives eta^2 g.

    With eta = 0.1 the printed step is ten times too short, and with eta = 0.001 a thousand times.
    """
    eta, g = 0.1, 1.0
    v = 0.9 * 0.0 + eta * g
    (truth,), _ = path(lambda p: optim.SGD(p, lr=eta, momentum=0.9), [g])
    return Outcome({"first step, eta = 0.1, g = 1": Forms(-eta * v, -v, truth)})


def parabola(rule: Callable[[float, float], tuple[float, float]], steps: int) -> list[float]:
    """The places of a rule (theta, v) -> (theta, v) on x^2 / 2, from 1."""
    theta, v = 1.0, 0.0
    places = [theta]
    for _ in range(steps):
        theta, v = rule(theta, v)
        places.append(theta)
    return places


def nesterov(theta: float, v: float) -> tuple[float, float]:
    """The right rule with gamma = 0.9 and eta = 0.1: the gradient of x^2 / 2 is x."""
    v = 0.9 * v + 0.1 * (theta - 0.9 * v)
    return theta - v, v


def nesterov_of_the_library(steps: int) -> float:
    """Where ``optim.SGD(nesterov=True)`` is; it keeps the point that it looks ahead to."""
    w = chainrule.tensor(1.0, dtype=chainrule.float64, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.1, momentum=0.9, nesterov=True)
    for _ in range(steps):
        w.grad = w.detach().clone()
        optimizer.step()
    return w.item() + 0.9 * 0.1 * optimizer.state[w]["momentum_buffer"].item()


@entry(
    "ERR024",
    course="000",
    printed="alg. 5 line 8",
    title="Nesterov steps from the last point with the new velocity",
    claims=[
        Wrong(
            "place after 50 steps on x^2 / 2",
            "theta^(i+1) - v^(i)",
            "theta^(i) - v^(i+1)",
            tolerance=1e-7,
        ),
        Number(
            "right place after 50 steps",
            -0.0052,
            tolerance=5e-5,
            unprinted="the right form, step by step",
        ),
    ],
)
def nesterov_update(steps: int = 50) -> Outcome:
    """Look ahead along the velocity, take the gradient there, and step from where you stand.

    The printed line steps from the point that it is about to compute, with the old velocity. Read
    so that it can be run, from the point at hand, it is always one velocity behind, and the path
    swings wider.
    """

    def as_printed(theta: float, v: float) -> tuple[float, float]:
        return theta - v, 0.9 * v + 0.1 * (theta - 0.9 * v)

    printed, right = parabola(as_printed, steps), parabola(nesterov, steps)
    truth = nesterov_of_the_library(steps)
    return Outcome(
        {
            "place after 50 steps on x^2 / 2": Forms(printed[-1], right[-1], truth),
            "right place after 50 steps": right[-1],
        },
        [two_paths("Nesterov's momentum on x^2 / 2", printed, right)],
    )


@entry(
    "ERR025",
    course="000",
    printed="alg. 6 line 12",
    title="Nesterov's update uses the velocity",
    claims=[
        Wrong("place after 50 steps on x^2 / 2", "theta - eta g", "theta - v^(i+1)", 1e-7),
    ],
)
def nesterov_velocity(steps: int = 50) -> Outcome:
    """An update by the gradient alone never uses the velocity that was computed before.

    What is left is a gradient descent with a gradient from elsewhere: it creeps where the right
    rule has long arrived.
    """

    def as_printed(theta: float, v: float) -> tuple[float, float]:
        g = theta - 0.9 * v
        return theta - 0.1 * g, 0.9 * v + 0.1 * g

    printed, right = parabola(as_printed, steps), parabola(nesterov, steps)
    forms = Forms(printed[-1], right[-1], nesterov_of_the_library(steps))
    picture = two_paths("Nesterov's momentum on x^2 / 2", printed, right)
    return Outcome({"place after 50 steps on x^2 / 2": forms}, [picture])


def best_rate(momentum: float, rates: int) -> float:
    """The fastest convergence over many learning rates, with curvatures 1 and 100."""
    curvature = chainrule.tensor([1.0, 100.0], dtype=chainrule.float64)
    lr = chainrule.linspace(0.001, 0.04, rates, dtype=chainrule.float64).reshape(-1, 1)
    # A step of the heavy ball is linear: its rate is the largest eigenvalue of a 2 x 2 matrix.
    trace, det = 1 + momentum - lr * curvature, momentum
    discriminant = trace**2 - 4 * det
    real = (trace.abs() + discriminant.clamp(0).sqrt()) / 2
    size = chainrule.where(discriminant < 0, chainrule.full_like(real, math.sqrt(det)), real)
    return float(size.amax(1).min())


@entry(
    "ERR026",
    course="000",
    printed="section 3.2",
    title="The best momentum for a condition number",
    claims=[
        Wrong(
            "momentum that converges fastest, kappa = 100",
            "sqrt(1/kappa) / (sqrt(kappa) + 1)",
            "((sqrt(kappa) - 1) / (sqrt(kappa) + 1))^2",
            tolerance=0.01,
        ),
        Statement(
            "steps with the right momentum over steps without",
            "momentum speeds up a narrow valley",
            at_most=0.2,
        ),
        Refuted(
            "steps with the printed momentum over steps without",
            "this is the best momentum",
            (0.0, 0.5),
            "it changes next to nothing",
            (0.9, 1.1),
        ),
    ],
    full={"rates": 4000},
)
def best_momentum(rates: int = 400) -> Outcome:
    """How much velocity to keep on a valley that is 100 times as steep across as along.

    With the best momentum, ((sqrt(kappa) - 1) / (sqrt(kappa) + 1))^2 = 0.669 for the heavy ball,
    the error falls by 17.5 % a step instead of 2 %. The printed number is 0.009, which is no gain
    at all over none. The truth is the momentum of a fine grid that converges fastest.
    """
    root = math.sqrt(100.0)
    forms = {"printed": 0.1 / (root + 1), "root": (root - 1) / (root + 1)}
    grid = [k / 200 for k in range(200)]
    found = [best_rate(g, rates) for g in grid]
    truth = grid[found.index(min(found))]

    def steps(momentum: float) -> float:
        return math.log(best_rate(0.0, rates)) / math.log(best_rate(momentum, rates))

    ax = charts.axes_for(None)
    ax.plot(grid, found, color=charts.COLORS[0], label="best over learning rates")
    named = (("printed", forms["printed"]), ("root", forms["root"]), ("square", forms["root"] ** 2))
    for k, (name, momentum) in enumerate(named):
        ax.plot(momentum, best_rate(momentum, rates), "o", color=charts.COLORS[k + 1], label=name)
    ax.set(title="Heavy ball, kappa = 100", xlabel="momentum", ylabel="error after a step")
    ax.legend()
    return Outcome(
        {
            "momentum that converges fastest, kappa = 100": Forms(
                forms["printed"], forms["root"] ** 2, truth
            ),
            "steps with the right momentum over steps without": steps(forms["root"] ** 2),
            "steps with the printed momentum over steps without": steps(forms["printed"]),
        },
        [ax],
    )
