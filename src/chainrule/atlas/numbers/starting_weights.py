"""Numbers of starting weights, and of dropout that keeps their moments."""

from __future__ import annotations

import math

import chainrule
from chainrule import Tensor, charts, information, nn, problems
from chainrule.atlas import Forms, Number, Outcome, Statement, Wrong, entry
from chainrule.atlas.course.course_table import binomial_tail
from chainrule.atlas.course.x04_xor_restarts import PRINTED, learned, network, restarts
from chainrule.nn.activations.functions import SELU_ALPHA, SELU_SCALE

DOUBLE = chainrule.float64


@entry(
    "I05",
    course="004",
    printed="eq 9.3",
    title="The variance of a normal law cut off at two deviations",
    claims=[
        Wrong("variance over sigma^2", "0.8796", "0.7737", tolerance=5e-5),
        Number("deviation of weights that are drawn, over sigma", 0.8796, tolerance=3e-3),
        Statement("largest weight in deviations", "values lie in [-2 sigma, 2 sigma]", 0.0, 2.0),
    ],
    full={"count": 4_000_000},
)
def truncated_normal(count: int = 400_000) -> Outcome:
    """Weights from a normal law without its tails: none is farther from 0 than two deviations.

    That makes them less spread out. Their variance is 0.7737 of the whole law's, and their standard
    deviation 0.8796 of it; the notes print the second number for the first. Here it comes from an
    integral, and from weights that are drawn.
    """
    sigma = 0.05
    drawn = nn.init.trunc_normal_(
        chainrule.empty(count, dtype=DOUBLE), std=sigma, a=-2 * sigma, b=2 * sigma
    )

    def density(x: Tensor) -> Tensor:
        return (-x * x / 2).exp() / math.sqrt(2 * math.pi)

    inside = float(information.integrate(density, -2.0, 2.0))
    variance = float(information.integrate(lambda x: x * x * density(x), -2.0, 2.0)) / inside
    ax = charts.axes_for(None)
    ax.hist(
        (drawn / sigma).numpy(), 80, density=True, color=charts.COLORS[0], label="weights drawn"
    )
    x = chainrule.linspace(-3.5, 3.5, 201)
    ax.plot(x.numpy(), density(x).numpy(), color=charts.COLORS[1], label="the whole normal law")
    ax.set(title="Cut off at two deviations", xlabel="weight / sigma", ylabel="density")
    ax.legend(loc="upper right")
    ax.set_ylim(0, 0.58)
    return Outcome(
        {
            "variance over sigma^2": Forms(0.8796, 0.7737, variance),
            "deviation of weights that are drawn, over sigma": float(drawn.std()) / sigma,
            "largest weight in deviations": float(drawn.abs().max()) / sigma,
        },
        [ax],
    )


@entry(
    "I11",
    course="004",
    printed="eq 9.11",
    title="The gain of any activation, by quadrature",
    claims=[
        Number("gain of ReLU", 2.0, tolerance=1e-9),
        Number("variance behind a layer with its gain", (1.0,) * 5, tolerance=0.02),
        Statement("slope of the map of ReLU", "every variance is kept", 1 - 1e-6, 1 + 1e-6),
    ],
    full={"width": 4000},
)
def numeric_gain(width: int = 800) -> Outcome:
    """How large weights have to be so that sums keep their variance, for any activation.

    A layer makes of the variance q of its sums F(q) = J s^2 E f(sqrt(q) Z)^2, an integral that
    quadrature does for any f. The gain is the J s^2 for which F(1) = 1; layers of random weights
    confirm it. ReLU keeps every variance. Where the curve is steeper than the diagonal at 1, as for
    SiLU and GELU, a variance that is off 1 moves away from it, layer after layer; where it is
    flatter, as for tanh and SELU, it comes back.
    """
    named = {name: nn.init.gain(name) for name in ("relu", "tanh", "silu", "gelu", "selu")}
    variances = [k / 20 for k in range(1, 51)]
    ax = charts.axes_for(None, (6.4, 4.4))
    ax.axline((0, 0), slope=1, color="silver", linewidth=1)
    behind, maps = [], {}
    for k, (name, gain) in enumerate(named.items()):
        activation = getattr(nn.functional, name)
        maps[name] = [gain * q / nn.init.gain(name, q) for q in variances]
        ax.plot(variances, maps[name], color=charts.COLORS[k], label=f"{name}: gain {gain:.3f}")
        sums = chainrule.randn(400, width, dtype=DOUBLE)
        weight = math.sqrt(gain / width) * chainrule.randn(width, width, dtype=DOUBLE)
        behind.append(float((activation(sums) @ weight).pow(2).mean()))
    ax.plot([1] * 5, behind, "o", color="black", label=f"layers of {width} units")
    ax.set(title="Variance of the sums, one layer on", xlabel="before", ylabel="after")
    ax.legend(loc="upper left")
    return Outcome(
        {
            "gain of ReLU": named["relu"],
            "variance behind a layer with its gain": behind,
            "slope of the map of ReLU": (maps["relu"][-1] - maps["relu"][0]) / (2.5 - 0.05),
        },
        [ax],
    )


def _moments(x: Tensor) -> tuple[float, float]:
    return float(x.mean()), float(x.var())


@entry(
    "R16",
    course="004",
    printed="section 10.4, alpha dropout",
    title="Dropout that keeps mean 0 and variance 1",
    claims=[
        Number("mean behind alpha dropout, rates 0.05 and 0.10", (0.0, 0.0), tolerance=0.01),
        Number("variance behind alpha dropout, rates 0.05 and 0.10", (1.0, 1.0), tolerance=0.015),
        Number("the value that is set", -1.7581, tolerance=5e-5, unprinted="-s alpha"),
        Statement(
            "variance behind plain dropout, rate 0.10", "plain dropout changes it", at_least=1.05
        ),
        Statement(
            "share of units that are a x + b, less q",
            "a = (q + alpha'^2 q (1 - q))^(-1/2), b = -a (1 - q) alpha'",
            at_least=-0.005,
            at_most=0.005,
        ),
    ],
    full={"count": 2_000_000},
)
def alpha_dropout(count: int = 300_000) -> Outcome:
    """For SELU units "off" is not 0 but the value that they have far to the left, -1.758.

    Alpha dropout sets units to that value, and then scales and shifts all of them so that mean 0
    and variance 1 come out again; the two numbers for that follow from the rate. Plain dropout
    keeps the mean alone, and the self-normalizing property is lost.
    """
    x = nn.functional.selu(chainrule.randn(count, dtype=DOUBLE))
    x = (x - x.mean()) / x.std()
    low = -SELU_SCALE * SELU_ALPHA
    found, set_to, shares = [], [], []
    for rate in (0.05, 0.10):
        q = 1 - rate
        a = (q + low**2 * q * rate) ** -0.5
        b = -a * rate * low
        y = nn.AlphaDropout(rate)(x)
        kept = (y - (a * x + b)).abs() < 1e-6
        found.append(_moments(y))
        # What is not a x + b is the value that was set, scaled and shifted.
        set_to.append(float((y[~kept].median() - b) / a))
        shares.append(float(kept.double().mean()) - q)
    plain = nn.Dropout(0.10)(x)
    axes = charts.grid_of_axes(None, 2, 2, (3.2, 2.8))
    bins = [k / 10 for k in range(-25, 41)]
    for ax, name, values in zip(axes, ("alpha dropout", "plain dropout"), (y, plain), strict=True):
        ax.hist(values.numpy(), bins, density=True, color=charts.COLORS[0])
        mean, variance = _moments(values)
        ax.set(title=f"{name}, rate 0.10", ylabel="density")
        ax.set(xlabel=f"mean {abs(mean):.2f}, variance {variance:.2f}")
    means, variances = zip(*found, strict=True)
    return Outcome(
        {
            "mean behind alpha dropout, rates 0.05 and 0.10": means,
            "variance behind alpha dropout, rates 0.05 and 0.10": variances,
            "the value that is set": sum(set_to) / 2,
            "variance behind plain dropout, rate 0.10": _moments(plain)[1],
            "share of units that are a x + b, less q": shares,
        },
        [axes],
    )


@entry(
    "I14",
    course="001",
    printed="does the starting point matter?",
    title="Wide uniform weights against LeCun's on XOR",
    claims=[
        Statement(
            "chance of 6 or fewer failures in 20, U(-10, 10)", "6 of 20 fail", at_least=0.025
        ),
        Statement("chance of 0 failures in 20, LeCun", "0 of 20 fail", at_least=0.025),
        Statement(
            "median slope of hidden units at the start, U(-10, 10) over LeCun",
            "wide weights saturate",
            at_most=0.5,
        ),
    ],
    full={"starting_points": 2000},
)
def wide_and_lecun(starting_points: int = 100, epochs: int = 1000) -> Outcome:
    """Why wide weights are a bad start: the sigmoids of the hidden units are flat from the outset.

    The slope of a sigmoid is a (1 - a), 0.25 at most. With LeCun's weights the units begin near
    that; with weights between -10 and 10 most have a slope near 0 for most inputs, so no gradient
    reaches their weights. What is printed, 6 of 20 and 0 of 20, is one draw of each; over many
    starts about half of the wide ones fail.
    """
    x = problems.boolean("xor").inputs[1:]  # at (0, 0) every unit has a sum of 0
    rates, errors, slopes = [], [], []
    axes = charts.grid_of_axes(None, 2, 2, (3.4, 3.2))
    for k, init in enumerate(PRINTED):
        fits = restarts(init, starting_points, epochs=epochs)
        rates.append(20 * (1 - sum(learned(fits.models)) / starting_points))
        share = rates[-1] / 20
        errors.append(40 * math.sqrt(share * (1 - share) / starting_points))
        hidden = chainrule.stack([network(init)[:2](x).detach() for _ in range(starting_points)])
        slopes.append((hidden * (1 - hidden)).flatten())
        axes[0].hist(
            slopes[-1].numpy(), 25, range=(0, 0.25), color=charts.COLORS[k], alpha=0.6, label=init
        )
        axes[1].errorbar(k, rates[-1], errors[-1], fmt="o", capsize=6, color=charts.COLORS[k])
        axes[1].plot(k, PRINTED[init], "*", color="black", markersize=12)
    axes[0].set(title="Hidden units at the start", xlabel="slope", ylabel="units and inputs")
    axes[0].legend(loc="upper center")
    axes[1].plot([], [], "*", color="black", markersize=12, label="printed")
    axes[1].set_xticks([0, 1], [*PRINTED])
    axes[1].set(title=f"XOR, {starting_points} starts each", xlim=(-0.6, 1.6))
    axes[1].set(ylabel="failures in 20", xlabel="weights; bars: two standard errors")
    axes[1].legend()
    medians = [float(s.median()) for s in slopes]
    name = "median slope of hidden units at the start, U(-10, 10) over LeCun"
    return Outcome(
        {
            "chance of 6 or fewer failures in 20, U(-10, 10)": binomial_tail(6, 20, rates[0] / 20),
            "chance of 0 failures in 20, LeCun": binomial_tail(0, 20, rates[1] / 20),
            name: medians[0] / medians[1],
        },
        [axes],
        note=f"{starting_points} seeds for each start, trained at once; the printed counts are of "
        "20 starts.",
    )
