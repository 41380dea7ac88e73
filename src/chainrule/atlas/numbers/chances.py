"""Counts of arrangements, and how estimates spread around the truth."""

from __future__ import annotations

import math

import chainrule
from chainrule import Tensor, charts, information
from chainrule.atlas import Number, Outcome, Statement, entry

FREQUENCIES = (0.2, 0.3, 0.5)


@entry(
    "H03",
    course="003",
    printed="example of Shannon's entropy",
    title="Entropy counts arrangements of channels",
    claims=[
        Number(
            "entropy to base 3 of (0.2, 0.3, 0.5)",
            0.9372,
            tolerance=5e-5,
            unprinted="the definition",
        ),
        Number(
            "ln N_Q / (N ln b) for 600 channels", 0.9274, tolerance=5e-5, unprinted="by factorials"
        ),
        Statement(
            "distance from the entropy for 600,000 channels", "both tend together", 0.0, 3e-5
        ),
    ],
)
def channel_arrangements() -> Outcome:
    """In how many ways can N channels get their conductivities, if each value has a fixed share?

    N! over the factorials of how often each value occurs. That number grows like b to the power of
    N H: its logarithm, for each channel and to base b, tends to the entropy of the shares. For 600
    channels it is still a hundredth below, for the sake of the square roots in Stirling's formula.
    """
    h = float(information.entropy(chainrule.tensor(FREQUENCIES), base=3))
    sizes = [10 * 2**k for k in range(17)]

    def rate(n: int) -> float:
        return information.multiplicity_entropy([round(n * f) for f in FREQUENCIES])

    ax = charts.axes_for(None)
    ax.semilogx(sizes, [rate(n) for n in sizes], "o-", color=charts.COLORS[0], label="ln N_Q / N")
    ax.axhline(h, color=charts.COLORS[1], linestyle="--", label="entropy of the shares")
    ax.set(title="Arrangements of channels", xlabel="channels N", ylabel="base 3, for each channel")
    ax.minorticks_off()
    ax.legend(loc="lower right")
    return Outcome(
        {
            "entropy to base 3 of (0.2, 0.3, 0.5)": h,
            "ln N_Q / (N ln b) for 600 channels": rate(600),
            "distance from the entropy for 600,000 channels": h - rate(600_000),
        },
        [ax],
    )


@entry(
    "H14",
    course="003",
    printed="theorem on the convergence of the MLE",
    title="Estimates of the largest likelihood become normal",
    claims=[
        Number(
            "variance of sqrt(N) (estimate - truth)", 0.21, tolerance=0.006, unprinted="p (1 - p)"
        ),
        Number(
            "inverse information of one observation", 0.21, tolerance=1e-6, unprinted="p (1 - p)"
        ),
        Statement("distance from the normal law", "the law becomes normal", at_most=0.05),
    ],
    full={"trials": 50_000},
)
def normal_estimates(n: int = 400, trials: int = 8000) -> Outcome:
    """A coin that shows 1 in three of ten throws, and the share of ones as an estimate of that.

    Its error times the root of the number of throws has, in the long run, a normal law whose
    variance is one over the information of a single throw: 0.21. With the information of the whole
    sample, as it is printed, it would be 0.21 / N.
    """

    def log_prob(p: Tensor, x: Tensor) -> Tensor:
        return x * p.log() + (1 - x) * (1 - p).log()

    def draw(*shape: int) -> Tensor:
        return (chainrule.rand(*shape) < 0.3).double()

    zero_one = chainrule.tensor([0.0, 1.0])
    info = float(information.fisher_information(log_prob, chainrule.tensor(0.3), zero_one))
    found = information.asymptotic_normality(draw, lambda x: x.mean(1), 0.3, info, n, trials)
    ax = charts.axes_for(None)
    # A share is k / N: bars between the multiples of 1 / sqrt(N), or some would count two.
    step = 2 / math.sqrt(n)
    edges = [(k + 0.25) * step for k in range(-19, 19)]
    ax.hist(found.scaled.numpy(), edges, density=True, color=charts.COLORS[0], label="estimates")
    x = chainrule.linspace(-1.8, 1.8, 201)
    density = (-x * x / (2 * 0.21)).exp() / math.sqrt(2 * math.pi * 0.21)
    ax.plot(x.numpy(), density.numpy(), color=charts.COLORS[1], label="normal, variance 0.21")
    ax.set(title=f"{trials} samples of {n} throws", ylabel="density")
    ax.set(xlabel="sqrt(N) (estimate - 0.3)")
    ax.legend(loc="upper right")
    ax.set_ylim(0, 1.25)
    return Outcome(
        {
            "variance of sqrt(N) (estimate - truth)": found.variance,
            "inverse information of one observation": 1 / info,
            "distance from the normal law": found.distance,
        },
        [ax],
    )
