"""What an outcome tells: how surprising it is, and which way it moves the parameters."""

from __future__ import annotations

import math
from collections.abc import Callable

import chainrule
from chainrule import Tensor, charts, information
from chainrule.atlas import Number, Outcome, Spread, Statement, entry
from chainrule.curvature import score

DOUBLE = chainrule.float64


@entry(
    "H01",
    course="003",
    printed="Shannon's approach",
    title="Surprise: nothing for what is certain, a sum for what is independent",
    claims=[
        Number("bits at P = 1", 0.0, tolerance=1e-15),
        Statement("whether it is infinite at P = 0 (1: yes)", "infinite", at_least=1.0),
        Statement(
            "largest |I(both) - I(one) - I(other)|, independent events",
            "I adds up",
            at_most=1e-12,
        ),
        Statement("least I", "not negative", at_least=0.0),
        Number("bits of 1, 2 and 3 coins", (1, 2, 3), tolerance=1e-12, unprinted="-log2 of 2^-n"),
    ],
)
def self_information() -> Outcome:
    """I = -log_b P says how surprised one is at an event of probability P.

    What has to happen is no surprise, and what cannot happen an infinite one. Probabilities of
    independent events are multiplied, so their surprises are added: three coins that all fall as
    one has said are three bits, each of them one.
    """

    def bits(p: float) -> float:
        return float(information.self_information(chainrule.tensor(p, dtype=DOUBLE), base=2))

    p = chainrule.linspace(0.01, 1, 100, dtype=DOUBLE)
    surprise = information.self_information(p, base=2)
    both = information.self_information(p[:, None] * p, base=2)
    ax = charts.axes_for(None)
    ax.plot(p.numpy(), surprise.numpy(), color=charts.COLORS[0])
    named = {"certain": 1, "a coin": 1 / 2, "two coins": 1 / 4, "three coins": 1 / 8}
    for name, at in named.items():
        ax.plot([at], [bits(at)], "o", color=charts.COLORS[1])
        ax.annotate(f"{name}: {bits(at):g}", (at, bits(at) + 0.2), ha="left")
    ax.set(title="-log2 P", xlabel="probability P", ylabel="bits", xlim=(0, 1.3))
    return Outcome(
        {
            "bits at P = 1": bits(1.0),
            "whether it is infinite at P = 0 (1: yes)": math.isinf(bits(0.0)),
            "largest |I(both) - I(one) - I(other)|, independent events": float(
                (both - surprise[:, None] - surprise).abs().max()
            ),
            "least I": float(surprise.min()),
            "bits of 1, 2 and 3 coins": [bits(2.0**-n) for n in (1, 2, 3)],
        },
        [ax],
    )


def log_coin(p: Tensor, x: Tensor) -> Tensor:
    """ln P of a coin that shows 1 with the probability p."""
    return x * p.log() + (1 - x) * (1 - p).log()


def log_classes(scores: Tensor, x: Tensor) -> Tensor:
    """ln P of a class, (K,) with a single 1, by softmax of scores."""
    return (x * scores.log_softmax(0)).sum()


def log_normal(params: Tensor, x: Tensor) -> Tensor:
    """ln p of a normal number, by its mean and the logarithm of its deviation."""
    return -((x - params[0]) ** 2) / (2 * (2 * params[1]).exp()) - params[1]


def mean_score(log_prob: Callable[..., Tensor], at: Tensor, x: Tensor, weights: Tensor) -> Tensor:
    """The mean of the score at these parameters, of outcomes with these probabilities."""
    return weights @ score(log_prob, at, x)


@entry(
    "D16",
    course="003",
    printed="score; unbiased score",
    title="The score has the mean 0",
    claims=[
        Statement(
            "largest |E[score]|: a coin, four classes, a normal law",
            "E[s] = 0",
            at_most=1e-9,
        ),
        Statement(
            "E[score] at p = 0.2 and, negative, at 0.4 of a coin with 0.3",
            "away from the truth it points there",
            at_least=0.1,
        ),
        Number("mean score of 500 throws, in standard errors", 0.0, tolerance=0.1),
        Number("deviation of that, over 1000 samples", 1.0, tolerance=0.08, unprinted="I = E[s^2]"),
    ],
)
def mean_scores(throws: int = 500, samples: int = 1000) -> Outcome:
    """The score is the slope of ln p by the parameters: which way an outcome pulls them.

    Each outcome pulls somewhere. But outcomes of the law itself cancel each other in the mean, so
    that the law stays where it is: the true parameters are a maximum of the mean likelihood. With
    parameters that are too small the mean pull is upward, with too large ones downward. In finitely
    many throws it is 0 up to its standard error, the root of the information over their number.
    """
    coin = chainrule.tensor([0.0, 1.0], dtype=DOUBLE)
    truth = chainrule.tensor(0.3, dtype=DOUBLE)
    chances = chainrule.stack([1 - truth, truth])
    classes = chainrule.tensor([0.5, -1.0, 2.0, 0.0], dtype=DOUBLE)
    law = chainrule.tensor([0.7, -0.4], dtype=DOUBLE)
    x = chainrule.linspace(-8, 9.4, 1001, dtype=DOUBLE)
    density = log_normal(law, x).exp()
    exact = [
        mean_score(log_coin, truth, coin, chances),
        mean_score(log_classes, classes, chainrule.eye(4, dtype=DOUBLE), classes.softmax(0)),
        mean_score(log_normal, law, x, density / density.sum()),
    ]
    places = chainrule.linspace(0.1, 0.6, 51, dtype=DOUBLE)
    pulls = [float(mean_score(log_coin, p, coin, chances)) for p in places]
    ones = (chainrule.rand(samples, throws, dtype=DOUBLE) < truth).double().mean(1)
    of_zero, of_one = score(log_coin, truth, coin)[:, 0].tolist()
    error = (0.3 * 0.7 * throws) ** -0.5  # the information of a throw is 1 / (p (1 - p))
    drawn = ((1 - ones) * of_zero + ones * of_one) / error
    left, right = charts.grid_of_axes(None, 2, 2, (3.7, 3.3))
    left.plot(places.numpy(), pulls, color=charts.COLORS[0])
    left.axhline(0, color="gray", linewidth=1)
    left.plot([0.3], [0], "o", color=charts.COLORS[1], label="the truth")
    left.set(title="Mean score of a coin with p = 0.3", xlabel="p of the model", ylabel="E[score]")
    left.legend()
    # A share is k / N: bars between the multiples of 1 / N, or some would count more than others.
    edges = [(4 * k + 0.5) / throws / (0.3 * 0.7 / throws) ** 0.5 for k in range(-9, 10)]
    right.hist(drawn.numpy(), edges, density=True, color=charts.COLORS[0])
    z = chainrule.linspace(-3.5, 3.5, 101, dtype=DOUBLE)
    bell = (-z * z / 2).exp() / math.sqrt(2 * math.pi)
    right.plot(z.numpy(), bell.numpy(), color=charts.COLORS[1])
    right.set(title=f"{samples} samples of {throws} throws", xlabel="mean score in standard errors")
    right.set_ylabel("density")
    spread = Spread(tuple(drawn.tolist()))
    return Outcome(
        {
            "largest |E[score]|: a coin, four classes, a normal law": max(
                float(s.abs().max()) for s in exact
            ),
            "E[score] at p = 0.2 and, negative, at 0.4 of a coin with 0.3": (
                pulls[10],
                -pulls[30],
            ),
            "mean score of 500 throws, in standard errors": spread,
            "deviation of that, over 1000 samples": spread.deviation,
        },
        [[left, right]],
    )
