"""Estimation and descent in the slides 003, as they are printed and as it is right."""

from __future__ import annotations

import math
from math import inf

import chainrule
from chainrule import Tensor, charts, func, optim
from chainrule.atlas import Forms, Outcome, Refuted, Statement, Wrong, attempt, entry

DOUBLE = chainrule.float64


@entry(
    "ERR077",
    course="003",
    printed="identifiability",
    title="Identifiable: equal laws have equal parameters",
    claims=[
        Refuted(
            "distance of two parameters with one law",
            "theta1 = theta2 => p equal makes it identifiable: 0",
            (0.0, 0.0),
            "p1 = p2 has to imply theta1 = theta2",
            (1e-9, inf),
        ),
        Statement("difference of their laws", "the laws are the same", at_most=1e-12),
    ],
)
def identifiability() -> Outcome:
    """A parameter can be found from data only if no other one makes the same data.

    The printed implication, equal parameters give equal laws, holds for every model. N(0, sigma^2)
    with sigma of either sign has two parameters for one law: it is not identifiable.
    """
    x = chainrule.linspace(-3, 3, 61, dtype=DOUBLE)

    def law(sigma: float) -> Tensor:
        return (-(x**2) / (2 * sigma**2)).exp() / math.sqrt(2 * math.pi * sigma**2)

    # Of a grid of parameters, the one farthest from 1.5 that makes the same law.
    grid = [k / 10 for k in range(-30, 31) if k]
    same = [s for s in grid if float((law(1.5) - law(s)).abs().max()) < 1e-12]
    other = max(same, key=lambda s: abs(s - 1.5))
    return Outcome(
        {
            "distance of two parameters with one law": abs(other - 1.5),
            "difference of their laws": float((law(1.5) - law(other)).abs().max()),
        }
    )


@entry(
    "ERR078",
    course="003",
    printed="negative log-likelihood",
    title="The squared error compares predictions with data",
    claims=[
        Wrong("slope of the loss at h = 0", "mean (h - mu)^2", "mean (y - h)^2", tolerance=1e-9),
        Refuted(
            "change of the printed loss when all data move by 1",
            "it measures the fit",
            (1e-9, inf),
            "the data are not in it",
            (0.0, 0.0),
        ),
    ],
)
def squared_error() -> Outcome:
    """The model predicts the mean mu = h, and the data y are compared with it.

    With y replaced by h the data are gone: a loss of predictions and predictions. The truth is the
    slope of the negative log-likelihood of normal data, which is that of the squared error.
    """
    y = chainrule.tensor([1.0, 2.0, 4.5], dtype=DOUBLE)
    zero = chainrule.tensor(0.0, dtype=DOUBLE)

    def likelihood(h: Tensor) -> Tensor:
        return (0.5 * math.log(2 * math.pi) + 0.5 * (y - h) ** 2).mean()

    truth = 2 * func.grad(likelihood)(zero)
    printed = func.grad(lambda h: ((h - h) ** 2).mean())(zero)
    right = func.grad(lambda h: ((y - h) ** 2).mean())(zero)

    def as_printed(y: Tensor, h: Tensor) -> float:
        mu = h  # y is replaced by h, and the model's mean is h
        return float(((h - mu) ** 2 + 0 * y).mean())

    moved = abs(as_printed(y + 1, zero + 3) - as_printed(y, zero + 3))
    return Outcome(
        {
            "slope of the loss at h = 0": Forms(float(printed), float(right), float(truth)),
            "change of the printed loss when all data move by 1": moved,
        }
    )


@entry(
    "ERR087",
    course="003",
    printed="maximum likelihood",
    title="A likelihood is a product of densities",
    claims=[Wrong("best mean of -1, 0 and 4", "argmax sum p", "argmax prod p", tolerance=0.02)],
)
def likelihood_is_a_product() -> Outcome:
    """Independent data have the product of their densities, so their logarithms are summed.

    The best mean of normal data is then their average, 1. A sum of densities is largest where two
    of the points are close together, and ignores the third.
    """
    data = chainrule.tensor([-1.0, 0.0, 4.0], dtype=DOUBLE)
    grid = chainrule.linspace(-3, 6, 1801, dtype=DOUBLE)
    densities = (-0.5 * (data.unsqueeze(1) - grid) ** 2).exp() / math.sqrt(2 * math.pi)
    total, joint = densities.sum(0), densities.prod(0)
    forms = Forms(float(grid[total.argmax()]), float(grid[joint.argmax()]), float(data.mean()))
    ax = charts.axes_for(None)
    for k, (name, values) in enumerate((("product", joint), ("sum", total))):
        curve = (values / values.max()).numpy()
        ax.plot(grid.numpy(), curve, color=charts.COLORS[k], label=f"{name} of densities")
    ax.plot(data.numpy(), 0 * data.numpy(), "k|", markersize=14, label="data")
    ax.set(title="Which mean made these data?", xlabel="mean", ylabel="value over its maximum")
    ax.legend()
    return Outcome({"best mean of -1, 0 and 4": forms}, [ax])


@entry(
    "ERR088",
    course="003",
    printed="normality of the MLE",
    title="The information of one sample stands in the limit",
    claims=[
        Wrong(
            "N Var(p^) for Bernoulli 0.3, N = 400",
            "1 / I of the whole sample",
            "1 / I of one sample",
            tolerance=0.02,
        )
    ],
    full={"trials": 100_000},
)
def normality(trials: int = 4000, n: int = 400) -> Outcome:
    """sqrt(N) (p^ - p) has the variance 1 / I_1 in the limit, with the information of one draw.

    With the information of all N draws the variance would be N times smaller, and the root of N in
    front would have nothing to do. The truth is a simulation of many samples.
    """
    p = 0.3
    draws = (chainrule.rand(trials, n, dtype=DOUBLE) < p).double().mean(1)
    one = 1 / (p * (1 - p))
    scaled = math.sqrt(n) * (draws - p)
    ax = charts.axes_for(None)
    # A share is k / n: bars between the multiples of 1 / sqrt(n), or some would count two.
    edges = [(k + 0.25) * 2 / math.sqrt(n) for k in range(-20, 20)]
    ax.hist(scaled.numpy(), edges, density=True, color=charts.COLORS[0], label=f"{trials} samples")
    grid = chainrule.linspace(-2, 2, 201, dtype=DOUBLE)
    density = (-(grid**2) * one / 2).exp() * math.sqrt(one / (2 * math.pi))
    ax.plot(grid.numpy(), density.numpy(), color=charts.COLORS[1], label="N(0, 1 / I_1)")
    ax.set(title="sqrt(N) (estimate - p)", xlabel="deviation", ylabel="density")
    ax.legend()
    forms = Forms(1 / (n * one), 1 / one, float(scaled.var()))
    return Outcome({"N Var(p^) for Bernoulli 0.3, N = 400": forms}, [ax])


@entry(
    "ERR089",
    course="003",
    printed="score, strong law, unbiasedness",
    title="The score is the slope of the logarithm",
    claims=[
        Wrong("E[s] at p = 0.3", "s = grad p", "s = grad ln p", tolerance=1e-9),
        Wrong("E[s^2], the information", "s = grad p", "s = grad ln p", tolerance=1e-9),
        Statement("largest |mean - p| of 100000 draws", "lim (mean - mu) = 0", at_most=0.01),
    ],
)
def score() -> Outcome:
    """The score has the mean 0 and the information as its variance.

    Both are true of the slope of ln p, and not of that of p. And the strong law says that the mean
    less mu tends to 0, where the slides leave the 0 out.
    """
    p = chainrule.tensor(0.3, dtype=DOUBLE)
    of_law = [func.grad(f)(p) for f in (lambda p: 1 - p, lambda p: p)]
    of_log = [func.grad(f)(p) for f in (lambda p: (1 - p).log(), lambda p: p.log())]

    def mean(values: list[Tensor], power: int) -> float:
        return float((1 - p) * values[0] ** power + p * values[1] ** power)

    draws = (chainrule.rand(100_000, dtype=DOUBLE) < 0.3).double().mean()
    return Outcome(
        {
            "E[s] at p = 0.3": Forms(mean(of_law, 1), mean(of_log, 1), 0.0),
            "E[s^2], the information": Forms(mean(of_law, 2), mean(of_log, 2), 1 / (0.3 * 0.7)),
            "largest |mean - p| of 100000 draws": abs(float(draws) - 0.3),
        }
    )


@entry(
    "ERR090",
    course="003",
    printed="learning rate",
    title="Which learning rates converge",
    claims=[
        Refuted(
            "|x| after 100 steps, eta beta = 0.1",
            "eta in [1/beta, 2/beta]: 0.1 is too small to converge",
            (0.5, inf),
            "0 < eta < 2/beta: it converges",
            (0.0, 1e-3),
        ),
        Refuted(
            "|x| after 100 steps, eta beta = 2",
            "2/beta converges",
            (0.0, 0.5),
            "it swings for ever",
            (1.0 - 1e-9, 1.0 + 1e-9),
        ),
        Statement("|x| after 500 steps, eta beta = 2.05", "above, it diverges", at_least=1e6),
    ],
)
def learning_rates() -> Outcome:
    """On beta x^2 / 2 each step multiplies x by 1 - eta beta.

    Its size is below 1 for every rate between 0 and 2 / beta; at 2 / beta it is 1, and x jumps from
    side to side. The printed interval leaves out all rates that converge slowly, and takes in one
    that does not.
    """

    def run(rate: float, steps: int) -> list[float]:
        w = chainrule.tensor(1.0, dtype=DOUBLE, requires_grad=True)
        optimizer = optim.SGD([w], lr=rate)
        places = [1.0]
        for _ in range(steps):
            w.grad = w.detach().clone()
            optimizer.step()
            places.append(abs(w.item()))
        return places

    paths = {rate: run(rate, 100) for rate in (0.1, 1.5, 2.0, 2.05)}
    ax = charts.axes_for(None)
    for k, (rate, places) in enumerate(paths.items()):
        shown = [max(p, 1e-12) for p in places]
        ax.semilogy(shown, color=charts.COLORS[k], label=f"eta beta = {rate}")
    ax.set(title="Descent on a parabola", xlabel="step", ylabel="|x|")
    ax.legend()
    return Outcome(
        {
            "|x| after 100 steps, eta beta = 0.1": paths[0.1][-1],
            "|x| after 100 steps, eta beta = 2": paths[2.0][-1],
            "|x| after 500 steps, eta beta = 2.05": run(2.05, 500)[-1],
        },
        [ax],
    )


@entry(
    "ERR091",
    course="003",
    printed="bound of rho",
    title="A bound in terms of the condition number",
    claims=[
        Wrong(
            "sqrt(beta / (alpha + beta)) for kappa = 100",
            "sqrt(1 / (1 + kappa))",
            "sqrt(1 / (1 + 1 / kappa))",
            tolerance=1e-9,
        )
    ],
)
def rho_bound() -> Outcome:
    """With kappa = beta / alpha the quotient beta / (alpha + beta) is 1 / (1 + 1 / kappa).

    Badly conditioned problems have a rate near 1: 0.995 for kappa = 100. The printed form gives
    0.0995, as if they were the fastest.
    """
    alpha, beta = 2.0, 200.0
    kappa = beta / alpha
    truth = math.sqrt(beta / (alpha + beta))
    forms = Forms(math.sqrt(1 / (1 + kappa)), math.sqrt(1 / (1 + 1 / kappa)), truth)
    return Outcome({"sqrt(beta / (alpha + beta)) for kappa = 100": forms})


@entry(
    "ERR092",
    course="003",
    printed="condition of recurrent networks",
    title="The spectral radius does not bound a step",
    claims=[
        Wrong(
            "largest growth in one step of [[.5, 10], [0, .5]]",
            "spectral radius",
            "largest singular value",
            tolerance=0.01,
        )
    ],
)
def spectral_radius() -> Outcome:
    """A matrix may have small eigenvalues and still stretch some vectors.

    This one has the eigenvalue 0.5 twice and makes a vector ten times as long in one step. What
    bounds a step is the largest singular value; the truth is a search over all directions.
    """
    w = chainrule.tensor([[0.5, 10.0], [0.0, 0.5]], dtype=DOUBLE)
    angles = chainrule.linspace(0, 2 * math.pi, 3601, dtype=DOUBLE)
    circle = chainrule.stack([angles.cos(), angles.sin()])
    growth = (w @ circle).norm(dim=0)
    radius = float(chainrule.linalg.eigvals(w).abs().max())
    sigma = float(chainrule.linalg.matrix_norm(w, 2))
    ax = charts.axes_for(None)
    ax.plot(angles.rad2deg().numpy(), growth.numpy(), color=charts.COLORS[0], label="growth")
    ax.axhline(sigma, color=charts.COLORS[2], linestyle="--", label="largest singular value")
    ax.axhline(radius, color=charts.COLORS[1], linestyle="--", label="spectral radius")
    ax.set(title="One step, by direction", xlabel="angle in degrees", ylabel="length after a step")
    ax.legend()
    name = "largest growth in one step of [[.5, 10], [0, .5]]"
    return Outcome({name: Forms(radius, sigma, float(growth.max()))}, [ax])


@entry(
    "ERR093",
    course="003",
    printed="'f in L2' example",
    title="A tenth of the error needs a smoothness to be told",
    claims=[
        Wrong(
            "neurons for a tenth of the error, d = 5",
            "f in L^2 (k = 0): 10^((d-1)/2)",
            "f in W^(2,2) (k = 2): 10^((d-1)/2)",
            tolerance=1e-6,
        )
    ],
)
def smoothness() -> Outcome:
    """The number of neurons grows like eps^((1 - d) / k), with k the derivatives that f has.

    10^((d-1)/2) is this formula for k = 2. A function of L^2 alone has k = 0, and then the formula
    divides by zero: nothing can be promised for it.
    """
    d = 5

    def neurons(k: int) -> float:
        return float(10.0 ** ((d - 1) / k))

    printed = attempt(lambda: neurons(0))
    return Outcome({"neurons for a tenth of the error, d = 5": Forms(printed, neurons(2), 10.0**2)})


@entry(
    "ERR094",
    course="003",
    printed="Tr(G), diag(I_F)",
    title="A mean over gradients, and when it is the Hessian",
    claims=[
        Wrong("mean of g^2 over i = 4 gradients", "sum from k = 1", "(1/i) sum from k = 0", 1e-9),
        Refuted(
            "information over Hessian away from theta*",
            "diag I_F = diag H_L: 1",
            (0.999, 1.001),
            "in expectation at theta* alone",
            (1.1, inf),
        ),
        Statement("information over Hessian at theta*", "equal there", 0.98, 1.02),
    ],
    full={"draws": 2_000_000},
)
def fisher_and_hessian(draws: int = 100_000) -> Outcome:
    """The mean of squared gradients equals the curvature of the loss at the true parameter.

    Away from it the gradients have a mean of their own, and their squares are larger than the
    curvature. Sums of i gradients become means when they are divided by i, and begin at k = 0.
    """
    squares = [4.0, 1.0, 0.25, 9.0]
    truth = float(chainrule.tensor(squares, dtype=DOUBLE).mean())
    x = 1.0 + chainrule.randn(draws, dtype=DOUBLE)

    def information(theta: float) -> float:
        return float(((x - theta) ** 2).mean())  # squared scores of N(theta, 1); the Hessian is 1

    return Outcome(
        {
            "mean of g^2 over i = 4 gradients": Forms(sum(squares[1:]), sum(squares) / 4, truth),
            "information over Hessian away from theta*": information(0.0),
            "information over Hessian at theta*": information(1.0),
        }
    )
