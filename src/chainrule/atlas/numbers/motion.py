"""Momentum as a sum of gradients, and as the motion of a body."""

from __future__ import annotations

import math
from itertools import pairwise

import chainrule
from chainrule import charts, optim
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.atlas.errata.momentum import path
from chainrule.optim.theory import damped_motion, free_decay

DOUBLE = chainrule.float64


def averaged_path(mu: float, lr: float, gradients: list[float]) -> list[float]:
    """Where averaged momentum takes a weight from 0 under given gradients."""
    return path(lambda p: optim.AveragedMomentum(p, lr=lr, momentum=mu), gradients)[0]


def velocities(mu: float, n: int) -> list[float]:
    """The steps of SGD with momentum: a push of 1, and n steps more without a gradient."""
    places, _ = path(lambda p: optim.SGD(p, lr=1.0, momentum=mu), [-1.0] + [0.0] * n)
    return [after - before for before, after in pairwise([0.0, *places])]


@entry(
    "O06",
    course="004",
    printed="eq 7.5-7.11",
    title="Averaged momentum is a sum of all gradients so far",
    claims=[
        Statement(
            "largest |m - (1 - mu) sum mu^(t - i) g_i|, 40 gradients, mu = 0, 0.5, 0.9, 0.99",
            "eq 7.9",
            at_most=1e-12,
        ),
        Statement("largest |w - w0 + eta sum m|, likewise", "eq 7.5", at_most=1e-12),
        Number("m after two gradients of 1, mu = 0.9", 0.19, 1e-12, unprinted="0.1 (0.9 + 1)"),
        Number("m after 40 gradients of 1, mu = 0.9", 0.98522, 5e-6, unprinted="1 - 0.9^40"),
    ],
)
def averaged(steps: int = 40) -> Outcome:
    """m <- mu m + (1 - mu) g keeps one number, and has all gradients in it.

    The last one counts 1 - mu, the one before mu times as much, and so on: (1 - mu) times the sum
    of mu^(t - i) g_i. For mu = 0.9 most of it are the last ten or twenty. The weights add up to
    1 - mu^t and not to 1, so at first m is too small.
    """

    def last(mu: float, g: list[float]) -> tuple[list[float], list[float]]:
        """m after each step as the optimizer has it, from its steps, and as the sum."""
        places = averaged_path(mu, 1.0, g)
        moved = [before - after for before, after in pairwise([0.0, *places])]
        sums = [
            (1 - mu) * math.fsum(mu ** (t - i) * g[i] for i in range(t + 1)) for t in range(len(g))
        ]
        return moved, sums

    gradients = chainrule.randn(steps, dtype=DOUBLE).add(0.5).tolist()
    off = off_weight = 0.0
    for mu in (0.0, 0.5, 0.9, 0.99):
        moved, sums = last(mu, gradients)
        off = max(off, *(abs(a - b) for a, b in zip(moved, sums, strict=True)))
        w = averaged_path(mu, 0.3, gradients)
        off_weight = max(off_weight, abs(w[-1] + 0.3 * math.fsum(sums)))
    moved, sums = last(0.9, gradients)
    first, second = charts.grid_of_axes(None, 2, 2, (3.8, 3.3))
    shares = [0.1 * 0.9 ** (steps - 1 - i) for i in range(steps)]
    first.bar(range(1, steps + 1), shares, color=charts.COLORS[0])
    first.set(title="What each gradient counts, mu = 0.9", xlabel="step", ylabel="weight in m")
    times = range(1, steps + 1)
    second.plot(times, gradients, ".", color="gray", label="gradients")
    second.plot(times, sums, color=charts.COLORS[0], label="the sum")
    second.plot(times, moved, "o", color=charts.COLORS[1], markersize=3, label="m of the optimizer")
    second.set(title="m and the sum, mu = 0.9", xlabel="step", ylabel="value")
    second.set_ylim(min(gradients) - 0.3, max(gradients) + 2.5)
    second.legend(loc="upper left")
    ones, _ = last(0.9, [1.0] * steps)
    return Outcome(
        {
            "largest |m - (1 - mu) sum mu^(t - i) g_i|, 40 gradients, mu = 0, 0.5, 0.9, 0.99": off,
            "largest |w - w0 + eta sum m|, likewise": off_weight,
            "m after two gradients of 1, mu = 0.9": ones[1],
            "m after 40 gradients of 1, mu = 0.9": ones[-1],
        },
        [[first, second]],
    )


@entry(
    "O08",
    course="004",
    printed="eq 7.15-7.21",
    title="Momentum without a gradient is a body that slows down",
    claims=[
        Statement(
            "largest |velocity - exp(-(1 - mu) (t - t0))|, mu = 0.5, 0.9, 0.99",
            "eq 7.17, from t0 on",
            at_most=1e-8,
        ),
        Number("velocity 10 after t0, mu = 0.9", 0.36788, tolerance=5e-6, unprinted="exp(-1)"),
        Number(
            "velocity of the optimizer for mu = 1, after 1 and 50 steps",
            (1.0, 1.0),
            tolerance=1e-12,
        ),
        Number(
            "the optimizer's velocity after 10 steps, mu = 0.9", 0.34868, 5e-6, unprinted="0.9^10"
        ),
        Statement(
            "distance from the motion, a friction of 0.1 over one of 0.05",
            "for short steps the one becomes the other",
            1.8,
            2.2,
        ),
    ],
)
def free_motion() -> Outcome:
    """w'' = -(1 - mu) w' - eta' g is a body with friction in a landscape; here the ground is flat.

    Then only the friction is left, and the velocity decays like exp(-(1 - mu) (t - t0)) from where
    it began. The optimizer goes by steps: its velocity is mu^n after n of them, which is a little
    less. With half the friction, and twice the time, the difference is half as large. With mu = 1
    there is no friction, and the body goes on for ever.
    """
    start = 5.0
    off, ends = 0.0, {}
    ax = charts.axes_for(None)
    for k, mu in enumerate((0.5, 0.9, 0.99)):
        rest = chainrule.zeros(1, dtype=DOUBLE)
        motion = damped_motion(
            chainrule.zeros_like, rest, rest + 1, lr=1.0, momentum=mu, duration=30.0, steps=600
        )
        times, velocity = motion.times + start, motion.velocities[:, 0]
        exact = free_decay(1.0, mu, times, t0=start)
        off = max(off, float((velocity - exact).abs().max()))
        ends[mu] = float(velocity[200])  # at t0 + 10
        steps = velocities(mu, 30)
        color = charts.COLORS[k]
        ax.plot(times.numpy(), velocity.numpy(), color=color, label=f"motion, mu = {mu:g}")
        ax.plot([start + n for n in range(31)], steps, "o", color=color, markersize=3)
    ax.plot([], [], "o", color="gray", markersize=3, label="the optimizer's steps")
    ax.set(title="Free motion from t0 = 5", xlabel="time", ylabel="velocity", ylim=(-0.05, 1.45))
    ax.legend(loc="upper right", ncols=2)

    def gap(mu: float) -> float:
        """At the time when the motion has come down to 1 / e."""
        n = round(1 / (1 - mu))
        return free_decay(1.0, mu, float(n)) - velocities(mu, n)[-1]

    return Outcome(
        {
            "largest |velocity - exp(-(1 - mu) (t - t0))|, mu = 0.5, 0.9, 0.99": off,
            "velocity 10 after t0, mu = 0.9": ends[0.9],
            "velocity of the optimizer for mu = 1, after 1 and 50 steps": [
                velocities(1.0, n)[-1] for n in (1, 50)
            ],
            "the optimizer's velocity after 10 steps, mu = 0.9": velocities(0.9, 10)[-1],
            "distance from the motion, a friction of 0.1 over one of 0.05": gap(0.9) / gap(0.95),
        },
        [ax],
    )
