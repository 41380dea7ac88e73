"""The noise of small batches as a temperature."""

from __future__ import annotations

import math

import chainrule
from chainrule import Tensor, charts, optim
from chainrule.atlas import Number, Outcome, Spread, entry
from chainrule.atlas.numbers.closed_forms import lowest
from chainrule.nn import Parameter
from chainrule.optim.theory import noise_scale

DOUBLE = chainrule.float64
SAMPLES, CHAINS, GROUPS, RATE = 40, 1000, 20, 0.05


def chains(batch: int, replacement: bool, steps: int = 150, kept: int = 100) -> Tensor:
    """Weights of many runs of SGD in the last steps, (kept, CHAINS), on the mean of
    (w - a_n)^2 / 2, with a_n of mean 0 and variance 1."""
    a = chainrule.randn(SAMPLES, dtype=DOUBLE)
    a = (a - a.mean()) / a.std(correction=0)
    w = Parameter(chainrule.zeros(CHAINS, dtype=DOUBLE))
    optimizer = optim.SGD([w], lr=RATE)
    places = []
    for step in range(steps):
        if replacement:
            drawn = chainrule.randint(SAMPLES, (CHAINS, batch))
        else:
            drawn = chainrule.rand(CHAINS, SAMPLES).argsort(1)[:, :batch]
        w.grad = w.detach() - a[drawn].mean(1)
        optimizer.step()
        if step >= steps - kept:
            places.append(w.detach().clone())
    return chainrule.stack(places)


def variances(places: Tensor) -> Spread:
    """The mean square of the weights, in groups of chains."""
    return Spread(tuple((places**2).mean(0).reshape(GROUPS, -1).mean(1).tolist()))


def over(spread: Spread, temperature: float) -> Spread:
    """The same in units of a temperature."""
    return Spread(tuple(v / temperature for v in spread.values))


@entry(
    "O40",
    course="004",
    printed="eq 8.48",
    title="Small batches shake the weights: a temperature of eta / (2 b)",
    claims=[
        Number(
            "variance over eta / (2 b), b = 2", 1.0, tolerance=0.06, unprinted="of (w - a)^2 / 2"
        ),
        Number("the same, b = 8", 1.0, tolerance=0.06, unprinted="of (w - a)^2 / 2"),
        Number(
            "b = 8 of 40 without replacement, likewise", 0.8, tolerance=0.06, unprinted="1 - b / N"
        ),
        Number(
            "variance that minimizes E[loss] - T H, over T",
            1.0,
            tolerance=1e-6,
            unprinted="eq 8.48 for a normal law",
        ),
    ],
)
def temperature() -> Outcome:
    """Descent with batches does not come to rest. It ends in a law of weights which minimizes the
    mean loss less T times the entropy: the loss draws the weights together, noise spreads them.

    For a parabola of curvature 1, and gradients whose noise has the variance 1, that is a normal
    law with the variance T = eta / (2 b): long steps and small batches are hot. If a batch is drawn
    without replacement, its mean is nearer to that of the data, and T is 1 - b / N times as large.
    Both hold for small rates: here, with 0.05 and 40 samples, each is 2.5 % too low. A thousand
    runs, in twenty groups, are measured after they have forgotten where they began.
    """
    small, large = chains(2, True), chains(8, True)
    hot, cold = noise_scale(RATE, 2), noise_scale(RATE, 8)

    def free_energy(v: Tensor) -> Tensor:
        """E[w^2 / 2] - T H of a normal law with the variance v, in units of T = 1."""
        return v / 2 - (2 * math.pi * math.e * v).log() / 2

    best, _ = lowest(free_energy, 0.2, 5.0)
    ax = charts.axes_for(None)
    w = chainrule.linspace(-0.4, 0.4, 201, dtype=DOUBLE)
    for k, (batch, places, t) in enumerate(((2, small, hot), (8, large, cold))):
        color = charts.COLORS[k]
        values = places[-1].numpy()
        ax.hist(values, 30, density=True, color=color, alpha=0.4, label=f"b = {batch}: 1000 runs")
        density = (-w * w / (2 * t)).exp() / math.sqrt(2 * math.pi * t)
        label = f"normal, variance {RATE} / {2 * batch}"
        ax.plot(w.numpy(), density.numpy(), color=color, label=label)
    ax.set(title="Where SGD ends on a parabola", xlabel="weight", ylabel="density")
    ax.legend(fontsize=9)
    return Outcome(
        {
            "variance over eta / (2 b), b = 2": over(variances(small), hot),
            "the same, b = 8": over(variances(large), cold),
            "b = 8 of 40 without replacement, likewise": over(variances(chains(8, False)), cold),
            "variance that minimizes E[loss] - T H, over T": best,
        },
        [ax],
    )
