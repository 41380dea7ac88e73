"""The numbers of self-normalizing networks."""

from __future__ import annotations

import chainrule
from chainrule import charts, nn
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.nn.activations import moments


@entry(
    "N06",
    course="004",
    printed="eq 10.20-10.22",
    title="Mean and variance behind a layer of SELU units, in closed form",
    claims=[
        Statement(
            "largest difference from quadrature",
            "the integrals have this closed form",
            at_most=1e-9,
        )
    ],
    full={"points": 25},
)
def selu_moments(points: int = 5) -> Outcome:
    """What SELU makes of a normal input, without drawing a single number.

    The mean and the variance of SELU(s), with s normal, are integrals over the two branches of the
    function; both have a closed form in exp and erf. Here the closed forms are compared with a
    numerical quadrature of the integrals, over a grid of means and variances of s.
    """
    worst, rows = 0.0, []
    for mean in chainrule.linspace(-1, 1, points).tolist():
        for variance in chainrule.linspace(0.2, 2, points).tolist():
            closed = [float(v) for v in moments.selu_moments(mean, variance, 1.0, 1.0)]
            first = moments.gaussian_expectation(nn.functional.selu, mean, variance)
            square = moments.gaussian_expectation(
                lambda s: nn.functional.selu(s) ** 2, mean, variance
            )
            found = [first, square - first**2]
            worst = max([worst, *(abs(a - b) for a, b in zip(closed, found, strict=True))])
            rows.append((closed, found))
    axes = charts.grid_of_axes(None, 2, 2)
    for k, name in enumerate(("mean", "variance")):
        axes[k].plot([c[k] for c, _ in rows], [f[k] for _, f in rows], "o", color=charts.COLORS[k])
        axes[k].set(title=f"{name} of SELU(s)", xlabel="closed form", ylabel="quadrature")
        axes[k].axline((0, 0), slope=1, color="gray", linewidth=1)
    return Outcome({"largest difference from quadrature": worst}, [axes])


@entry(
    "N07",
    course="004",
    printed="eq 10.23",
    title="The fixed point of SELU and its Jacobian",
    claims=[
        Number("alpha", 1.6733, tolerance=5e-5),
        Number("lambda", 1.0507, tolerance=5e-5),
        Number("first row of the Jacobian", (0.0, 0.088834), tolerance=1e-6),
        Number("second row of the Jacobian", (0.0, 0.782648), tolerance=1e-6),
        Number("spectral norm", 0.7877, tolerance=5e-5),
    ],
)
def selu_fixed_point(layers: int = 25) -> Outcome:
    """Why a deep network of SELU units keeps its activations at mean 0 and variance 1.

    The two constants of SELU are chosen so that a layer maps the moments (0, 1) to themselves. The
    Jacobian of the map there has the norm 0.7877, below 1: a small deviation shrinks in every
    layer. The curves start at three pairs of moments and are led through layer after layer.
    """
    fixed = moments.selu_fixed_point()
    norm = float(chainrule.linalg.matrix_norm(fixed.jacobian, 2))
    axes = charts.grid_of_axes(None, 2, 2)
    for k, start in enumerate([(0.3, 1.5), (-0.5, 0.5), (0.1, 3.0)]):
        path = [start]
        for _ in range(layers):
            mean, variance = moments.selu_moments(*path[-1], 0.0, 1.0)
            path.append((float(mean), float(variance)))
        for ax, values in zip(axes, zip(*path, strict=True), strict=True):
            ax.plot(values, color=charts.COLORS[k], label=f"from {start}")
    axes[0].set(title="mean", xlabel="layer", ylabel="mean of the activations")
    axes[1].set(title="variance", xlabel="layer", ylabel="variance of the activations")
    axes[1].legend()
    return Outcome(
        {
            "alpha": nn.activations.functions.SELU_ALPHA,
            "lambda": nn.activations.functions.SELU_SCALE,
            "first row of the Jacobian": fixed.jacobian[0],
            "second row of the Jacobian": fixed.jacobian[1],
            "spectral norm": norm,
        },
        [axes],
    )
