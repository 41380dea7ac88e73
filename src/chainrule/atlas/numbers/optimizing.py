"""Numbers of optimization: the best momentum, Newton's steps, the lowest valley."""

from __future__ import annotations

import chainrule
from chainrule import charts, inspect, optim, problems
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.optim.theory import descent_rate, optimal_momentum

DOUBLE = chainrule.float64


def distances(steps: int, lr: float, momentum: float = 0.0) -> list[float]:
    """How far descent is from the minimum of a bowl with curvatures 1 and 100, at each step."""
    w = chainrule.ones(2, dtype=DOUBLE).requires_grad_()
    curvature = chainrule.tensor([1.0, 100.0], dtype=DOUBLE)
    optimizer = optim.SGD([w], lr=lr, momentum=momentum)
    found = []
    for _ in range(steps):
        found.append(float(w.detach().norm()))
        optimizer.zero_grad()
        (curvature * w * w).sum().div(2).backward()
        optimizer.step()
    return found


@entry(
    "O09",
    course="000",
    printed="section 3.2",
    title="The best momentum from the condition number",
    claims=[
        Number("rate without momentum, condition 100", 0.980, tolerance=5e-4, unprinted="99 / 101"),
        Number(
            "best momentum of the heavy ball, condition 100",
            0.669,
            tolerance=5e-4,
            unprinted="(9 / 11)^2",
        ),
        Number("rate with it, steps 100 to 200", 0.825, tolerance=5e-3, unprinted="step by step"),
        Statement("what a momentum of 0.60, 0.64, 0.70 or 0.74 gains", "none is better", 0.0, 1e-3),
    ],
)
def best_momentum(steps: int = 301) -> Outcome:
    """How fast descent comes closer depends on how unlike the curvatures are: here, 1 and 100.

    Without momentum 2 % of the way is left behind in a step. With q = (sqrt(kappa) - 1) /
    (sqrt(kappa) + 1), the momentum q^2 and a rate that belongs to it, the distance falls by a
    factor of q in the long run, 0.818; in the second hundred steps it is 0.825. The course gives q
    itself, which is right for Nesterov's form.
    """
    best = optimal_momentum(100, lipschitz=100.0)
    plain = distances(steps, lr=2 / 101)
    heavy = distances(steps, lr=best.lr, momentum=best.momentum)
    others = []
    for momentum in (0.60, 0.64, 0.70, 0.74):
        path = distances(steps, lr=best.lr, momentum=momentum)
        others.append((path[200] / path[100]) ** 0.01)
    own = (heavy[200] / heavy[100]) ** 0.01
    ax = charts.axes_for(None)
    ax.semilogy(plain, color=charts.COLORS[1], label="no momentum")
    ax.semilogy(heavy, color=charts.COLORS[0], label=f"momentum {best.momentum:.3f}")
    ax.set(title="A bowl of condition 100", xlabel="step", ylabel="distance from the minimum")
    ax.legend()
    return Outcome(
        {
            "rate without momentum, condition 100": (plain[200] / plain[100]) ** 0.01,
            "best momentum of the heavy ball, condition 100": best.momentum,
            "rate with it, steps 100 to 200": own,
            "what a momentum of 0.60, 0.64, 0.70 or 0.74 gains": max(0.0, own - min(others)),
        },
        [ax],
        note=f"Without momentum theory says {descent_rate(100):.4f}.",
    )


@entry(
    "O23",
    course="004",
    printed="eq 4.30-4.31",
    title="Logistic regression in a few reweighted least squares",
    claims=[
        Statement("steps to a gradient below 1e-10", "few steps of Newton's method", at_most=8),
        Statement("largest slope of the likelihood at the end", "a maximum", at_most=1e-10),
        Statement("least eigenvalue of the Hessian", "it is positive definite", at_least=1e-6),
        Statement(
            "gradient descent: slope after 1000 steps over that after IRLS",
            "the second derivative improves learning",
            at_least=100,
        ),
    ],
)
def reweighted_least_squares(samples: int = 200) -> Outcome:
    """Newton's method for a neuron with a sigmoid: each step is a weighted least-squares problem.

    The Hessian is X^T R X with the weights a (1 - a), so near the border samples count most. Close
    to the solution every step doubles the number of right digits: after eight of them there is
    nothing left to gain, where gradient descent still has far to go.
    """
    x = chainrule.randn(samples, 3, dtype=DOUBLE)
    truth = chainrule.tensor([2.0, -1.0, 0.5], dtype=DOUBLE)
    y = (chainrule.rand(samples, dtype=DOUBLE) < (x @ truth).sigmoid()).double()

    def slope(w: chainrule.Tensor) -> chainrule.Tensor:
        return x.T @ ((x @ w).sigmoid() - y) / samples

    w, sizes = chainrule.zeros(3, dtype=DOUBLE), []
    hessian = chainrule.eye(3, dtype=DOUBLE)
    for _ in range(9):
        sizes.append(float(slope(w).abs().max()))
        a = (x @ w).sigmoid()
        hessian = x.T @ ((a * (1 - a))[:, None] * x)
        w = w - chainrule.linalg.solve(hessian, x.T @ (a - y))
    fit = optim.logistic_regression(x, y, bias=False)
    plain, ends = chainrule.zeros(3, dtype=DOUBLE), []
    for _ in range(1000):
        ends.append(float(slope(plain).abs().max()))
        plain = plain - 0.1 * slope(plain)
    ax = charts.axes_for(None)
    ax.loglog(range(1, 1001), ends, color=charts.COLORS[1], label="gradient descent, rate 0.1")
    floor = [max(s, 1e-17) for s in sizes]
    ax.loglog(range(1, 10), floor, "o-", color=charts.COLORS[0], label="reweighted least squares")
    ax.set(title="Logistic regression", xlabel="steps", ylabel="largest slope")
    ax.minorticks_off()
    ax.legend(loc="lower right")
    least = float(chainrule.linalg.eigvalsh(hessian).min())
    end = float(slope(fit.weight).abs().max())
    return Outcome(
        {
            "steps to a gradient below 1e-10": fit.report.iterations,
            "largest slope of the likelihood at the end": end,
            "least eigenvalue of the Hessian": least,
            "gradient descent: slope after 1000 steps over that after IRLS": ends[-1]
            / max(end, 1e-17),
        },
        [ax],
    )


@entry(
    "T10",
    course="000",
    printed="eq 78",
    title="The lowest valley of the surface of equation 78",
    claims=[
        Number(
            "the lowest point",
            (61.770, 67.590),
            tolerance=5e-4,
            unprinted="eq 78 by another search",
        ),
        Number("the loss there", 10.5195, tolerance=5e-5, unprinted="eq 78 by another search"),
        Number(
            "distance of the starts",
            (99.53, 36.65),
            tolerance=5e-3,
            unprinted="from the lowest point",
        ),
    ],
)
def lowest_valley(points: int = 301) -> Outcome:
    """Where the surface is lowest: by a fine grid, then by Newton's method from its best point.

    The course gives the surface and two starts, not the minimum. A grid of half a unit leaves no
    valley out, for they are more than twenty apart.
    """
    problem = problems.vialle(dtype=DOUBLE)
    grid = chainrule.linspace(0, 150, points, dtype=DOUBLE)
    a, b = chainrule.meshgrid(grid, grid, indexing="ij")
    values = problem.function(chainrule.stack([a, b])).flatten()
    best = int(values.argmin())
    at = chainrule.stack([a.flatten()[best], b.flatten()[best]])
    gradient = chainrule.func.grad(problem.function)
    for _ in range(8):
        curvature = chainrule.func.jacrev(gradient)(at)
        at = at - chainrule.linalg.solve(curvature, gradient(at))
    seen = inspect.surface(problem.function, (0.0, 150.0), (0.0, 150.0), points=121)
    ax = seen.plot(charts.axes_for(None, (6.4, 4.6)))
    starts = ((135.0, 135.0), (45.0, 35.0))
    away = [float((chainrule.tensor(s, dtype=DOUBLE) - at).norm()) for s in starts]
    ax.plot(*zip(*starts, strict=True), "o", color="white", markeredgecolor="black", label="starts")
    ax.plot(
        *at.tolist(), "*", color="white", markeredgecolor="black", markersize=15, label="lowest"
    )
    ax.set(title="A surface with many valleys (eq. 78)")
    ax.legend(loc="upper left")
    return Outcome(
        {
            "the lowest point": at,
            "the loss there": float(problem.function(at)),
            "distance of the starts": away,
        },
        [ax],
    )
