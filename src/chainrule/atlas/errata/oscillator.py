"""An oscillator and a network of the slides 003, as they are printed and as it is right."""

from __future__ import annotations

import math

import chainrule
from chainrule import charts, problems
from chainrule.atlas import Forms, Outcome, Statement, Wrong, entry

DOUBLE = chainrule.float64


@entry(
    "ERR095",
    course="003",
    printed="MDOF slide",
    title="The oscillator's mass is constant, and its force has units",
    claims=[
        Wrong(
            "change of the force when force is measured in N instead of kN",
            "beta y' |f|^(n-1)",
            "beta y' |f|^n",
            tolerance=1e-9,
        ),
        Statement("largest force over the bound (k / (alpha + beta))^(1/n)", "bounded", 0.0, 1.001),
    ],
)
def bouc_wen() -> Outcome:
    """In Bouc and Wen's law both terms of the yielding have the unit |f|^n.

    The first is |y'| |f|^(n-1) f, so the second is y' |f|^n; with n - 1 there the two coefficients
    could not have one unit, and the same building in another unit would be another one. With the
    right law the force stays below a bound. (The slides also put the dots on M instead of on y.)
    """
    alpha, n, scale = 3.125, 2.0, 1000.0

    def last_term(f: float, power: float, beta: float) -> float:
        return beta * abs(f) ** power

    # alpha and beta have one unit: in another unit of force both are divided by scale^n, and a
    # rate of force has to come out scale times as large.
    f = 5.0
    changes = []
    for power in (n - 1, n):
        before = last_term(f, power, alpha)
        after = last_term(scale * f, power, alpha / scale ** (n - 1))
        changes.append(after / before)
    ground = problems.oscillator.ground_motion(1, 400, dtype=DOUBLE)
    moves, forces = problems.oscillator.bouc_wen_response(20 * ground)
    bound = math.sqrt(400.0 / (alpha + alpha))
    ax = charts.axes_for(None)
    ax.plot(moves[0, :, 0].numpy(), forces[0, :, 0].numpy(), color=charts.COLORS[0], linewidth=1)
    ax.set(title="Force against displacement of the first floor", xlabel="drift", ylabel="force")
    return Outcome(
        {
            "change of the force when force is measured in N instead of kN": Forms(
                changes[0], changes[1], scale
            ),
            "largest force over the bound (k / (alpha + beta))^(1/n)": float(forces.abs().max())
            / bound,
        },
        [ax],
    )


@entry(
    "ERR096",
    course="003",
    printed="initialization slide",
    title="Two neurons in one layer are one hidden layer",
    claims=[
        Wrong("hidden layers of w_1 g(a x) + w_2 g(b x)", "2 hidden layers", "1", tolerance=0.5)
    ],
)
def hidden_layers() -> Outcome:
    """The equation of the slide adds two neurons that both look at the input.

    They stand beside each other, in one layer. The number of layers is how many activations a
    signal passes on its way, which the graph behind the output tells.
    """
    x = chainrule.tensor(0.5, dtype=DOUBLE, requires_grad=True)
    y = 2.0 * (3.0 * x).tanh() - 1.0 * (0.5 * x).tanh()

    def depth(node: object) -> int:
        if node is None:
            return 0
        below = max([depth(edge[0]) for edge in getattr(node, "next_functions", ())], default=0)
        return below + ("Tanh" in type(node).__name__ or "Tanh" in str(node))

    return Outcome({"hidden layers of w_1 g(a x) + w_2 g(b x)": Forms(2, 1, depth(y.grad_fn))})
