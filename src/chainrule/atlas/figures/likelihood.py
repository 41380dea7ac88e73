"""Likelihood, information and entropy, drawn: what a parameter can be known to be."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import chainrule
from chainrule import Generator, Tensor, charts, information
from chainrule.atlas import Forms, Number, Outcome, Statement, Wrong, entry

CHANCE = 0.3  # of a one


def nll(theta: Tensor, ones: float, zeros: float) -> Tensor:
    """The negative log-likelihood of so many ones and zeros."""
    return -(ones * theta.log() + zeros * (1 - theta).log())


def lowest(values: Tensor, grid: Tensor) -> float:
    """Where a function of a fine grid is lowest: the vertex of the parabola through the three
    points around the lowest one."""
    i = min(max(int(values.argmin()), 1), len(grid) - 2)
    a, b, c = (float(v) for v in values[i - 1 : i + 2])
    return float(grid[i]) + 0.5 * float(grid[1] - grid[0]) * (a - c) / (a - 2 * b + c)


@entry(
    "V47",
    course="003",
    printed="figure of the Bernoulli distribution",
    title="The likelihood of a coin, and its negative logarithm",
    claims=[
        Statement(
            "estimate minus share of ones, largest of three samples",
            "the estimate maximizes the likelihood",
            at_most=1e-4,
        ),
        Statement(
            "best parameter by expected NLL minus that by divergence",
            "minimizing E[NLL] is minimizing the divergence of Kullback and Leibler",
            at_most=1e-6,
        ),
        Statement("divergence above E[NLL], largest", "E[NLL] is never below it", at_most=0.0),
        Statement(
            "E[NLL] less the divergence less the entropy, largest",
            "what lies between them is the entropy, the same for all parameters",
            at_most=1e-12,
        ),
        Statement(
            "share of estimates within 0.05 for 10, 100, 1000 draws, least rise",
            "estimates converge to the true parameter in probability",
            at_least=0.01,
        ),
        Statement("share of estimates within 0.05 for 1000 draws", "towards 1", at_least=0.99),
    ],
    full={"trials": 20_000},
)
def bernoulli_likelihood(trials: int = 1000) -> Outcome:
    """How probable the observed ones and zeros would be, for every chance of a one.

    The likelihood is a product of many factors and tiny; its negative logarithm is a sum, and has
    its minimum where the likelihood is largest: at the share of ones that was seen. The more draws,
    the narrower the peak, and the nearer it is, as a rule, to the true chance, 0.3. On average over
    all samples the curve is the divergence from the truth plus the entropy of the truth, which no
    choice of the parameter changes. So the least average NLL is the least divergence.
    """
    generator = Generator().manual_seed(3)
    grid = chainrule.linspace(0.001, 0.999, 1997, dtype=chainrule.float64)
    upper, lower = charts.grid_of_axes(None, 2, 1, (5.6, 3.1))
    missed = []
    for k, n in enumerate((10, 50, 250)):
        ones = float((chainrule.rand(n, generator=generator) < CHANCE).sum())
        curve = nll(grid, ones, n - ones)
        missed.append(abs(lowest(curve, grid) - ones / n))
        looks: dict[str, Any] = {"color": charts.COLORS[k], "label": f"{ones:.0f} ones in {n}"}
        upper.plot(grid.numpy(), (curve.min() - curve).exp().numpy(), **looks)
        lower.plot(grid.numpy(), (curve / n).numpy(), **looks)
        lower.plot([ones / n], [float(curve.min()) / n], "o", color=charts.COLORS[k])
    expected = nll(grid, CHANCE, 1 - CHANCE)
    truth = chainrule.tensor([CHANCE, 1 - CHANCE], dtype=chainrule.float64)
    divergence = information.kl_divergence(truth, chainrule.stack([grid, 1 - grid], 1))
    entropy = float(information.entropy(truth))
    for ax in (upper, lower):
        ax.axvline(CHANCE, color="gray", linestyle="--", label="the true chance")
        ax.set_xlabel("parameter: chance of a one")
    lower.plot(grid.numpy(), expected.numpy(), color="black", linewidth=1, label="expected")
    upper.set(title="Likelihood of the sample", ylabel="over its largest value")
    lower.set(title="Negative log-likelihood of the sample", ylabel="for each draw", ylim=(0.3, 2))
    upper.legend()
    lower.legend()
    near = []
    for n in (10, 100, 1000):
        draws = chainrule.rand(trials, n, generator=generator) < CHANCE
        near.append(float(((draws.double().mean(1) - CHANCE).abs() < 0.05).double().mean()))
    return Outcome(
        {
            "estimate minus share of ones, largest of three samples": max(missed),
            "best parameter by expected NLL minus that by divergence": abs(
                lowest(expected, grid) - lowest(divergence, grid)
            ),
            "divergence above E[NLL], largest": float((divergence - expected).max()),
            "E[NLL] less the divergence less the entropy, largest": float(
                (expected - divergence - entropy).abs().max()
            ),
            "share of estimates within 0.05 for 10, 100, 1000 draws, least rise": min(
                b - a for a, b in itertools.pairwise(near)
            ),
            "share of estimates within 0.05 for 1000 draws": near[-1],
        },
        [[upper, lower]],
    )


def log_normal(mean: Tensor, x: Tensor, deviation: float) -> Tensor:
    """ln p of a normal law whose mean is the parameter."""
    z = (x - mean) / deviation
    return -z * z / 2 - math.log(deviation * math.sqrt(2 * math.pi))


def circle_through(peak: float, beside: float, step: float) -> float:
    """The radius of the circle through the top of a curve and the points at either side of it."""
    drop = peak - beside
    return (step * step + drop * drop) / (2 * drop)


def expected_log_likelihood(theta: Tensor, deviation: float) -> Tensor:
    """E[ln p(x; theta)] for each theta, x from the normal law around 0."""
    zero = chainrule.zeros((), dtype=theta.dtype)

    def weighted(t: Tensor, x: Tensor) -> Tensor:
        return log_normal(zero, x, deviation).exp() * log_normal(t, x, deviation)

    width = 12 * deviation
    return chainrule.stack(
        [information.integrate(functools.partial(weighted, t), -width, width) for t in theta]
    )


def draw_circle(ax: Any, grid: Tensor, curve: Tensor, radius: float, title: str) -> None:
    """An expected log-likelihood, its top at 0, with the circle that fits the top."""
    ax.plot(grid.numpy(), (curve - curve.max()).numpy(), color=charts.COLORS[0])
    angle = chainrule.linspace(0, 2 * math.pi, 200)
    x, y = radius * angle.sin(), radius * angle.cos() - radius
    ax.plot(x.numpy(), y.numpy(), color=charts.COLORS[1], label=f"radius {radius:.2f}")
    ax.plot([0], [0], "o", color="black", markersize=4)
    ax.set(title=title, xlabel="parameter", ylabel="expected log-likelihood")
    ax.set(xlim=(-1.6, 1.6), ylim=(-2.2, 0.9), aspect="equal")
    ax.legend(loc="upper right")


def coin_deviation(step: float = 1e-4) -> float:
    """How far the curvature at the top is from the information of a coin, relative, at most."""
    found = []
    for chance in (0.1, 0.3, 0.5, 0.7, 0.9):
        theta = chainrule.tensor([chance, chance - step, chance + step], dtype=chainrule.float64)
        top, left, right = (-nll(theta, chance, 1 - chance)).tolist()
        fisher = information.fisher_information(
            lambda p, x: x * p.log() + (1 - x) * (1 - p).log(),
            theta[0],
            chainrule.tensor([0.0, 1.0], dtype=chainrule.float64),
        )
        found.append(abs(1 / circle_through(top, (left + right) / 2, step) / float(fisher) - 1))
    return max(found)


@entry(
    "V48",
    course="003",
    printed="figure: sketching the Fisher information",
    title="Fisher information is the curvature of the log-likelihood",
    claims=[
        Statement(
            "curvature of the circle over the information, flat peak, deviation from 1",
            "kappa = 1 / r = I_F",
            at_most=1e-4,
        ),
        Statement(
            "curvature of the circle over the information, sharp peak, deviation from 1",
            "kappa = 1 / r = I_F",
            at_most=1e-4,
        ),
        Statement(
            "curvature over information of a coin, chances 0.1 to 0.9, deviation from 1",
            "kappa = 1 / r = I_F for other laws, too",
            at_most=1e-3,
        ),
        Statement(
            "variance of estimates, flat peak over sharp peak",
            "(a) small information: large variance; (b) large information: small variance",
            at_least=5.0,
        ),
        Number("efficiency of the estimates (Cramer and Rao: at most 1)", (1.0, 1.0), 0.05),
        Statement(
            "expected log-likelihood less its parabola, largest",
            "E l(theta) = E l(theta^) - (theta - theta^) I_F (theta - theta^) / 2",
            at_most=1e-9,
        ),
    ],
    full={"trials": 200_000},
)
def fisher_as_curvature(trials: int = 10_000) -> Outcome:
    """The circle that fits the top of the log-likelihood, and what its radius says.

    A parameter close to the best one explains the data nearly as well. How close is told by the
    curvature at the top, one over the radius of the circle that fits it best, which is the Fisher
    information. A flat top, with a large circle, leaves the parameter open: estimates vary much.
    A sharp one pins it down. Here the parameter is the mean of a normal law with standard
    deviation 1.4 and 0.5; the information is one over the variance, and the mean of samples has
    the least variance that Cramer and Rao allow, for each of many samples of 20.
    """
    step, obtained, variances, efficiencies, rest = 1e-3, {}, [], [], []
    axes = charts.grid_of_axes(None, 2, 2, (3.4, 3.7))
    grid = chainrule.linspace(-1.6, 1.6, 65, dtype=chainrule.float64)
    generator = Generator().manual_seed(0)
    for ax, (name, deviation) in zip(axes, {"flat": 1.4, "sharp": 0.5}.items(), strict=True):
        law = functools.partial(log_normal, deviation=deviation)
        x = deviation * chainrule.linspace(-12, 12, 481, dtype=chainrule.float64)
        zero = chainrule.zeros((), dtype=chainrule.float64)
        widths = chainrule.full_like(x, float(x[1] - x[0]))  # the trapezoidal rule
        fisher = float(information.fisher_information(law, zero, x, widths))
        near = chainrule.tensor([0.0, step], dtype=chainrule.float64)
        peak, beside = expected_log_likelihood(near, deviation).tolist()
        radius = circle_through(peak, beside, step)
        key = f"curvature of the circle over the information, {name} peak, deviation from 1"
        obtained[key] = abs(1 / radius / fisher - 1)
        curve = expected_log_likelihood(grid, deviation)
        top = float(curve.max())
        rest.append(float((curve - top + fisher / 2 * grid * grid).abs().max()))
        study = information.simulate_estimator(
            lambda t, n, d=deviation: d * chainrule.randn(t, n, generator=generator),
            lambda x: x.mean(1),
            truth=0.0,
            n=20,
            trials=trials,
            information=fisher,
        )
        variances.append(study.variance)
        efficiencies.append(float(study.efficiency or 0.0))
        draw_circle(ax, grid, curve, radius, f"{name}: information {fisher:.2f}")
    return Outcome(
        {
            **obtained,
            "curvature over information of a coin, chances 0.1 to 0.9, deviation from 1": (
                coin_deviation()
            ),
            "variance of estimates, flat peak over sharp peak": variances[0] / variances[1],
            "efficiency of the estimates (Cramer and Rao: at most 1)": efficiencies,
            "expected log-likelihood less its parabola, largest": max(rest),
        },
        [axes],
        note=f"Variances are those of {trials} samples of 20.",
    )


def normal(x: Tensor, mean: float, deviation: float) -> Tensor:
    """The density of a normal law."""
    return log_normal(chainrule.tensor(mean, dtype=x.dtype), x, deviation).exp()


def entropy_of_normal(deviation: float) -> float:
    """The differential entropy of a normal law, by quadrature."""
    zero = chainrule.zeros((), dtype=chainrule.float64)
    width = 14 * deviation
    law = functools.partial(log_normal, zero, deviation=deviation)
    return float(information.differential_entropy(law, -width, width))


def divergence_of(p: tuple[float, float], q: tuple[float, float]) -> tuple[float, float]:
    """The divergence of two normal laws, by quadrature, and the bound E_p[(p - q) / p] below it."""
    low = min(p[0] - 12 * p[1], q[0] - 12 * q[1])
    high = max(p[0] + 12 * p[1], q[0] + 12 * q[1])

    def surprise(x: Tensor) -> Tensor:
        logs = [log_normal(chainrule.tensor(m, dtype=x.dtype), x, d) for m, d in (p, q)]
        return logs[0].exp() * (logs[0] - logs[1])

    above = information.integrate(surprise, low, high)
    below = information.integrate(lambda x: normal(x, *p) - normal(x, *q), low, high)
    return float(above), float(below)


@entry(
    "V49",
    course="003",
    printed="figures: differential entropy, divergence of Kullback and Leibler",
    title="Differential entropy and divergence as areas",
    claims=[
        Number("entropy of the normal law, variance 1", 1.418938533204673, tolerance=1e-12),
        Wrong(
            "entropy of the normal law, variance 4",
            "d/2 ln 2 pi + Tr(Sigma) / 2",
            "d/2 (1 + ln 2 pi) + ln det(Sigma) / 2",
        ),
        Statement("least divergence of pairs", "0 <= D(p || q)", at_least=0.0),
        Statement(
            "divergence less E_p[(p - q) / p], least of pairs",
            "D(p || q) >= E_p[(p - q) / p]",
            at_least=0.0,
        ),
        Statement("divergence of a law from itself", "it is 0 for p = q", at_most=1e-12),
    ],
    full={"pairs": 2000},
)
def entropy_and_divergence(pairs: int = 150) -> Outcome:
    """Entropy is the area under -p ln p, divergence the area under p ln(p / q).

    Where a density is above 1, -p ln p is negative: a narrow law has a negative entropy, which no
    discrete law has. That of a normal law grows with the logarithm of its width, not with the
    width, as the slide's formula has it; the two agree only for a variance of 1, the case whose
    number is printed. The divergence has parts above and below 0; together they are never negative,
    and 0 only if both laws are the same.
    """
    x = chainrule.linspace(-5, 6, 441, dtype=chainrule.float64)
    axes = charts.grid_of_axes(None, 3, 1, (5.6, 2.9))
    for k, deviation in enumerate((0.2, 1.0, 2.0)):
        p = normal(x, 0.0, deviation)
        part = (-p * p.clamp(min=1e-300).log()).numpy()
        label = f"deviation {deviation:g}: entropy {entropy_of_normal(deviation):.2f}"
        axes[0].plot(x.numpy(), part, color=charts.COLORS[k], label=label)
        axes[0].fill_between(x.numpy(), part, color=charts.COLORS[k], alpha=0.15)
    axes[0].set(title="Entropy: the area under -p ln p", xlabel="x", ylabel="-p ln p")
    widths = [0.05 * 1.15**i for i in range(30)]
    obtained = [entropy_of_normal(d) for d in widths]
    printed = [0.5 * math.log(2 * math.pi) + d * d / 2 for d in widths]
    axes[1].plot(widths, obtained, "o", color=charts.COLORS[0], markersize=4, label="quadrature")
    right = [float(information.gaussian_entropy(d * d)) for d in widths]
    axes[1].plot(widths, right, color=charts.COLORS[2], label="right: (1 + ln 2 pi + ln var) / 2")
    axes[1].plot(
        widths, printed, "--", color=charts.COLORS[1], label="printed: (ln 2 pi + var) / 2"
    )
    axes[1].plot(
        [1], [1.418938533204673], "*", color="black", markersize=12, label="printed number"
    )
    axes[1].set(title="Entropy of normal laws", xlabel="standard deviation", ylabel="entropy")
    p, q = normal(x, 0.0, 1.0), normal(x, 1.5, 1.2)
    area = (p * (p / q).log()).numpy()
    axes[2].plot(x.numpy(), p.numpy(), color=charts.COLORS[0], label="p")
    axes[2].plot(x.numpy(), q.numpy(), color=charts.COLORS[1], label="q")
    found = divergence_of((0.0, 1.0), (1.5, 1.2))[0]
    axes[2].fill_between(x.numpy(), area, color="gray", alpha=0.4, label=f"area {found:.3f}")
    axes[2].set(title="Divergence: the area under p ln(p / q)", xlabel="x", ylabel="density")
    for ax in axes:
        ax.axhline(0, color="black", linewidth=0.8)
        ax.legend()
    draw = chainrule.rand(pairs, 4, generator=Generator().manual_seed(0)).double().tolist()
    laws = [((4 * a - 2, 0.3 + 2 * b), (4 * c - 2, 0.3 + 2 * d)) for a, b, c, d in draw]
    divergences = [divergence_of(*law) for law in laws]
    return Outcome(
        {
            "entropy of the normal law, variance 1": entropy_of_normal(1.0),
            "entropy of the normal law, variance 4": Forms(
                printed=0.5 * math.log(2 * math.pi) + 4 / 2,
                right=float(information.gaussian_entropy(chainrule.tensor(4.0).double())),
                truth=entropy_of_normal(2.0),
            ),
            "least divergence of pairs": min(d for d, _ in divergences),
            "divergence less E_p[(p - q) / p], least of pairs": min(d - b for d, b in divergences),
            "divergence of a law from itself": abs(divergence_of((0.5, 1.3), (0.5, 1.3))[0]),
        },
        [axes],
        note=f"{pairs} pairs of normal laws. The caption of the second figure is erratum 85.",
    )
