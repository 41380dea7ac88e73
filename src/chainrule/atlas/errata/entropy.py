"""Information theory of the slides 003, as it is printed and as it is right."""

from __future__ import annotations

import math
from itertools import product
from math import inf

import chainrule
from chainrule import charts, information
from chainrule.atlas import Forms, Number, Outcome, Refuted, Statement, Wrong, entry

DOUBLE = chainrule.float64


@entry(
    "ERR079",
    course="003",
    printed="KL slide",
    title="The entropy of a density may be negative",
    claims=[
        Refuted(
            "entropy of N(0, 0.1^2)",
            "-E ln p >= 0",
            (0.0, inf),
            "true for discrete p alone",
            (-inf, 0.0),
        ),
        Number("its value", -0.8836, tolerance=5e-5, unprinted="ln(0.1 sqrt(2 pi e))"),
    ],
)
def negative_entropy() -> Outcome:
    """Probabilities are at most 1, so their logarithms are not positive; densities can be above 1.

    A narrow normal density is 4 at its middle, and -E ln p is negative. The number depends on the
    unit in which x is measured, which an entropy of probabilities does not.
    """

    def density(x: chainrule.Tensor) -> chainrule.Tensor:
        return (-0.5 * (x / 0.1) ** 2).exp() / (0.1 * math.sqrt(2 * math.pi))

    found = float(information.integrate(lambda x: -density(x) * density(x).log(), -1.0, 1.0))
    return Outcome({"entropy of N(0, 0.1^2)": found, "its value": found})


@entry(
    "ERR080",
    course="003",
    printed="Darcy channels, N_b",
    title="How many compositions there are",
    claims=[
        Wrong(
            "compositions for N = 2, b = 3 and N = 4, b = 3",
            "(N+b-1)! / (b! (N-1)!)",
            "(N+b-1)! / (N! (b-1)!)",
            tolerance=0.5,
        )
    ],
)
def compositions() -> Outcome:
    """N channels take one of b values each; what counts is how many have which value.

    All N-tuples are listed here and sorted; what is left are the compositions: 6 for two channels
    of three values, 15 for four. The printed formula has N and b - 1 changed.
    """

    def listed(n: int, b: int) -> int:
        return len({tuple(sorted(t)) for t in product(range(b), repeat=n)})

    f = math.factorial
    cases = ((2, 3), (4, 3))
    printed = [f(n + b - 1) / (f(b) * f(n - 1)) for n, b in cases]
    right = [f(n + b - 1) / (f(n) * f(b - 1)) for n, b in cases]
    truth = [listed(n, b) for n, b in cases]
    name = "compositions for N = 2, b = 3 and N = 4, b = 3"
    return Outcome({name: Forms(printed, right, truth)})


@entry(
    "ERR081",
    course="003",
    printed="Darcy channels, N_Q",
    title="Stirling's approximation of a multiplicity",
    claims=[
        Wrong(
            "ln N_Q for N = 600, f = (0.2, 0.3, 0.5)",
            "e^H / sqrt((2 pi N)^(N-1) prod f)",
            "e^(N H) / sqrt((2 pi N)^(b-1) prod f)",
            tolerance=0.01,
        )
    ],
)
def multiplicity(channels: int = 600) -> Outcome:
    """The number of ways to a composition grows like e^(N H): its exponent has an N in it.

    And the root has one factor for each of the b values but one, not for each channel. For 600
    channels the logarithm is 611.3; the printed form is negative, less than one way.
    """
    shares = (0.2, 0.3, 0.5)
    entropy = -math.fsum(f * math.log(f) for f in shares)
    product_ = math.log(math.prod(shares))

    def approximate(n: int, in_exponent: float, factors: int) -> float:
        return in_exponent * entropy - 0.5 * (factors * math.log(2 * math.pi * n) + product_)

    def exact(n: int) -> float:
        return math.lgamma(n + 1) - math.fsum(math.lgamma(n * f + 1) for f in shares)

    sizes = [*range(10, channels + 1, 10)]
    ax = charts.axes_for(None)
    ax.plot(sizes, [exact(n) for n in sizes], color="black", label="exact")
    right = [approximate(n, n, 2) for n in sizes]
    ax.plot(sizes, right, "--", color=charts.COLORS[0], label="right")
    printed = [approximate(n, 1, n - 1) for n in sizes]
    ax.plot(sizes, printed, color=charts.COLORS[1], label="as printed")
    ax.set(title="Ways to a composition", xlabel="channels N", ylabel="ln N_Q")
    ax.legend()
    forms = Forms(printed[-1], right[-1], exact(channels))
    return Outcome({"ln N_Q for N = 600, f = (0.2, 0.3, 0.5)": forms}, [ax])


@entry(
    "ERR082",
    course="003",
    printed="Darcy channels, p(Q)",
    title="The likeliest composition becomes unlikely",
    claims=[
        Refuted("p(Q) at f = p, N = 600", "tends to 1", (0.5, 1.0), "tends to 0", (0.0, 0.01)),
        Number(
            "p(Q) at N = 60 and N = 600",
            (0.0151, 0.0015),
            tolerance=5e-5,
            unprinted="by factorials",
        ),
        Statement("power of N", "like N^(-(b-1)/2) = N^-1", at_least=-1.02, at_most=-0.98),
    ],
)
def likeliest() -> Outcome:
    """Of 600 channels exactly the expected numbers have each value: this is rarer than for 60.

    There are ever more compositions, and each has its share. What tends to 0 is ln p / N, and this
    is all that the argument for entropy needs.
    """
    shares = (0.2, 0.3, 0.5)

    def probability(n: int) -> float:
        counts = [round(n * f) for f in shares]
        logs = math.lgamma(n + 1) - math.fsum(math.lgamma(c + 1) for c in counts)
        return math.exp(
            logs + math.fsum(c * math.log(f) for c, f in zip(counts, shares, strict=True))
        )

    sizes = [10 * 2**k for k in range(10)]
    values = [probability(n) for n in sizes]
    ax = charts.axes_for(None)
    ax.loglog(sizes, values, "o-", color=charts.COLORS[0])
    ax.set(title="Chance of the likeliest composition", xlabel="channels N", ylabel="p(Q)")
    power = math.log(values[-1] / values[-3]) / math.log(sizes[-1] / sizes[-3])
    found = [probability(60), probability(600)]
    return Outcome(
        {
            "p(Q) at f = p, N = 600": found[1],
            "p(Q) at N = 60 and N = 600": found,
            "power of N": power,
        },
        [ax],
    )


@entry(
    "ERR083",
    course="003",
    printed="Gaussian entropy",
    title="The entropy of a normal density",
    claims=[
        Wrong(
            "entropy of N(0, 4)",
            "d/2 ln 2pi + Tr Sigma / 2",
            "d/2 (1 + ln 2pi) + ln det Sigma / 2",
            tolerance=1e-6,
        ),
        Number("entropy of N(0, 1)", 1.418938533204673, tolerance=1e-9),
    ],
)
def gaussian_entropy() -> Outcome:
    """Twice as wide a normal density has ln 2 more entropy: it is the determinant that counts.

    The printed trace agrees for the variance 1 alone, which is the case whose number is quoted.
    The truth is a quadrature of -p ln p.
    """

    def found(variance: float) -> float:
        def term(x: chainrule.Tensor) -> chainrule.Tensor:
            log = -x * x / (2 * variance) - 0.5 * math.log(2 * math.pi * variance)
            return -log.exp() * log

        return float(information.integrate(term, -40.0, 40.0))

    printed = 0.5 * math.log(2 * math.pi) + 0.5 * 4
    right = 0.5 * (1 + math.log(2 * math.pi)) + 0.5 * math.log(4)
    forms = Forms(printed, right, found(4.0))
    return Outcome({"entropy of N(0, 4)": forms, "entropy of N(0, 1)": found(1.0)})


JOINT = chainrule.tensor([[0.3, 0.1], [0.2, 0.4]], dtype=DOUBLE)


@entry(
    "ERR084",
    course="003",
    printed="conditional entropy",
    title="A conditional entropy is a mean of entropies",
    claims=[Wrong("H(Y|X) of a table", "-E_x[H(Y|x)]", "+E_x[H(Y|x)]", tolerance=1e-9)],
)
def conditional() -> Outcome:
    """What is left to learn of Y when X is known, in the mean over X.

    Entropies of probabilities are not negative, and neither is their mean: the printed minus sign
    cannot stand. The truth is the chain rule, H(X, Y) - H(X).
    """
    x = JOINT.sum(1)
    mean = sum(
        float(p) * float(information.entropy(row / p)) for p, row in zip(x, JOINT, strict=True)
    )
    truth = float(information.entropy(JOINT.flatten()) - information.entropy(x))
    return Outcome({"H(Y|X) of a table": Forms(-mean, mean, truth)})


@entry(
    "ERR085",
    course="003",
    printed="KL = 0",
    title="When a divergence is zero, and when it is finite",
    claims=[
        Refuted(
            "D_KL of two densities whose supports meet",
            "0: p = q if supports intersect",
            (0.0, 1e-9),
            "0 only if p = q",
            (0.01, inf),
        ),
        Statement("D_KL of a density from itself", "0 if p = q", at_least=0.0, at_most=1e-12),
        Statement("exp(-D_KL) where q is 0 and p is not", "infinite divergence", 0.0, 0.0),
    ],
)
def divergence() -> Outcome:
    """The divergence is 0 if and only if both distributions are the same (almost everywhere).

    Supports that meet are far from enough. They decide something else: where p puts weight and q
    none, the divergence is infinite.
    """
    p = chainrule.tensor([0.5, 0.5, 0.0], dtype=DOUBLE)
    q = chainrule.tensor([0.2, 0.5, 0.3], dtype=DOUBLE)
    return Outcome(
        {
            "D_KL of two densities whose supports meet": float(information.kl_divergence(p, q)),
            "D_KL of a density from itself": float(information.kl_divergence(q, q)),
            "exp(-D_KL) where q is 0 and p is not": math.exp(
                -float(information.kl_divergence(q, p))
            ),
        }
    )


@entry(
    "ERR086",
    course="003",
    printed="sup of the mutual information",
    title="Mutual information is largest when one variable tells the other",
    claims=[
        Wrong("I(X; Y) of a table", "H(X) - H(Y|X)", "H(X) - H(X|Y)", tolerance=1e-9),
        Refuted(
            "largest information over tables", "tends to 0", (0.0, 0.01), "H(X)", (0.69, 0.6932)
        ),
        Statement("information of independent variables", "0 is the least", 0.0, 1e-12),
    ],
)
def mutual_information() -> Outcome:
    """What Y tells of X: the entropy of X less what is left of it when Y is known.

    The printed line subtracts H(Y|X), which is another number unless both have one entropy, and
    says that the largest value tends to 0. It is H(X), reached if Y determines X; 0 is the least,
    for independent variables.
    """

    def entropies(joint: chainrule.Tensor) -> tuple[float, float, float]:
        parts = (joint.sum(1), joint.sum(0), joint.flatten())
        x, y, both = (float(information.entropy(p)) for p in parts)
        return x, both - x, both - y  # H(X), H(Y|X), H(X|Y)

    h_x, y_given_x, x_given_y = entropies(JOINT)
    truth = float(information.mutual_information(JOINT))
    shares = [k / 100 for k in range(51)]
    found = []
    for s in shares:
        joint = chainrule.tensor([[0.5 - s / 2, s / 2], [s / 2, 0.5 - s / 2]], dtype=DOUBLE)
        found.append(float(information.mutual_information(joint)))
    ax = charts.axes_for(None)
    ax.plot(shares, found, color=charts.COLORS[0])
    ax.axhline(math.log(2), color="gray", linestyle="--", label="H(X) = ln 2")
    ax.set(title="A channel that errs", xlabel="chance of an error", ylabel="I(X; Y) in nats")
    ax.legend()
    return Outcome(
        {
            "I(X; Y) of a table": Forms(h_x - y_given_x, h_x - x_given_y, truth),
            "largest information over tables": max(found),
            "information of independent variables": abs(found[-1]),
        },
        [ax],
    )
