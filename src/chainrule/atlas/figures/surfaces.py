"""Surfaces of losses and maps of moments."""

from __future__ import annotations

import chainrule
from chainrule import charts, inspect, problems
from chainrule.atlas import Number, Outcome, Statement, entry


@entry(
    "V10",
    course="000",
    printed="fig. 33, eq 78",
    title="A loss surface in three dimensions and as contours",
    claims=[
        Statement("local minima in [0, 150] squared", "the surface has many valleys", at_least=5),
        Statement("slope at the lowest point", "it is a minimum", at_most=1e-4),
    ],
    full={"points": 301},
)
def loss_surface(points: int = 121) -> Outcome:
    """A loss over two parameters, from the side and from above.

    Waves in both directions lie on a wide bowl, so there are many valleys, and a method that only
    goes downhill ends in the one where it began. The cross marks the lowest point of all. Contours
    say the same as the surface: where they are close together, it is steep.
    """
    problem = problems.vialle(dtype=chainrule.float64)
    area = (0.0, 150.0)
    seen = inspect.surface(
        problem.function, area, area, points=points, title="A surface with many valleys (eq. 78)"
    )
    v = seen.values
    inner = v[1:-1, 1:-1]
    beside = chainrule.stack([v[:-2, 1:-1], v[2:, 1:-1], v[1:-1, :-2], v[1:-1, 2:]])
    lowest = inner < beside.amin(0)
    best = problem.minimizer.clone().requires_grad_()
    (slope,) = chainrule.autograd.grad(problem.function(best), best)

    contours = seen.plot(charts.axes_for(None))
    contours.plot(*best.tolist(), "x", color="white", markersize=10, markeredgewidth=3)
    return Outcome(
        {
            "local minima in [0, 150] squared": int(lowest.sum()),
            "slope at the lowest point": float(slope.norm()),
        },
        pictures=[seen.plot(kind="surface"), contours],
    )


@entry(
    "V23",
    course="004",
    printed="fig. 10.6, eq 10.20-10.23",
    title="Where SELU sends mean and variance",
    claims=[
        Number("fixed point", (0.0, 1.0), tolerance=1e-6),
        Number("norm of the Jacobian", 0.7877, tolerance=5e-5),
        Statement("norm of the Jacobian below 1", "the map contracts around (0, 1)", at_most=1.0),
        Statement("share of arrows towards (0, 1)", "arrows lead to (0, 1)", at_least=0.95),
    ],
    full={"points": 21},
)
def selu_moment_map(points: int = 9) -> Outcome:
    """Mean and variance of what goes into a layer of SELU units, and of what comes out of it.

    Each arrow starts at a pair (mean, variance) and shows the way to the pair after one layer,
    with weights whose sum is 0 and whose squares sum to 1. All arrows lead to (0, 1): whatever the
    activations are at the start, layer after layer their mean comes to 0 and their variance to 1.
    Near that point a layer shrinks every deviation to 79 % of it or less, which is the norm of the
    Jacobian.
    """
    seen = inspect.moment_map(points=points)
    before = chainrule.hypot(seen.means.reshape(1, -1), seen.variances.reshape(-1, 1) - 1)
    after = chainrule.hypot(seen.new_means, seen.new_variances - 1)
    return Outcome(
        {
            "fixed point": seen.fixed,
            "norm of the Jacobian": seen.contraction,
            "norm of the Jacobian below 1": seen.contraction,
            "share of arrows towards (0, 1)": float((after < before).double().mean()),
        },
        pictures=[seen],
    )
