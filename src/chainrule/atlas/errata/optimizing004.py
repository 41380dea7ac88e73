"""Chapters 7 and 8 of the notes 004, as they are printed and as it is right."""

from __future__ import annotations

import math
from itertools import pairwise
from math import inf

import chainrule
from chainrule import Tensor, func, optim
from chainrule.atlas import Forms, Number, Outcome, Refuted, Statement, Wrong, entry
from chainrule.atlas.errata.momentum import path, two_paths

DOUBLE = chainrule.float64


def normal(*size: int) -> Tensor:
    """Numbers of the seed of the entry."""
    return chainrule.randn(*size, dtype=DOUBLE)


@entry(
    "ERR116",
    course="004",
    printed="eq 7.13-7.14",
    title="The rate of the velocity form of averaged momentum",
    claims=[
        Wrong("path of four gradients", "eta' = -eta (1 - mu)", "eta' = +eta (1 - mu)", 1e-12),
    ],
)
def averaged_momentum() -> Outcome:
    """An average of gradients is a velocity with the rate eta (1 - mu).

    With the printed minus sign the weight climbs as far as it should descend.
    """
    gradients, eta, mu = [1.0, -0.5, 2.0, 0.3], 0.01, 0.9
    truth, _ = path(lambda p: optim.AveragedMomentum(p, lr=eta, momentum=mu), gradients)

    def run(rate: float) -> list[float]:
        w, v, places = 0.0, 0.0, []
        for g in gradients:
            v = mu * v - rate * g
            w += v
            places.append(w)
        return places

    printed, right = run(-eta * (1 - mu)), run(eta * (1 - mu))
    picture = two_paths("Averaged momentum", [0.0, *printed], [0.0, *right])
    return Outcome({"path of four gradients": Forms(printed, right, truth)}, [picture])


@entry(
    "ERR117",
    course="004",
    printed="eq 7.17",
    title="Free motion starts at t0",
    claims=[
        Wrong(
            "velocity at t = 12 of one that starts at t0 = 10 with 1",
            "exp(-(1 - mu) t)",
            "exp(-(1 - mu) (t - t0))",
            tolerance=1e-3,
        )
    ],
)
def free_motion() -> Outcome:
    """Without a gradient the velocity decays from what it was at t0.

    At t0 itself the factor has to be 1. The truth is the equation m' = -(1 - mu) m, solved in small
    steps from t0 on.
    """
    rate, start, end, n = 0.1, 10.0, 12.0, 20_000
    m = 1.0
    for _ in range(n):
        m -= rate * m * (end - start) / n
    forms = Forms(math.exp(-rate * end), math.exp(-rate * (end - start)), m)
    return Outcome({"velocity at t = 12 of one that starts at t0 = 10 with 1": forms})


@entry(
    "ERR118",
    course="004",
    printed="eq 7.35",
    title="Delta-bar-delta compares with the average before",
    claims=[
        Refuted(
            "share of steps that raise the rate, alternating gradients, gbar(t)",
            "it lowers the rate where gradients alternate",
            (0.0, 0.5),
            "with gbar(t) it raises it",
            (0.9, 1.0),
        ),
        Statement("share that lower it with gbar(t - 1)", "the right rule lowers it", 0.9),
    ],
)
def delta_bar_delta(steps: int = 100) -> Outcome:
    """If a gradient points the other way than the last ones, the rate was too large.

    The average gbar(t) contains g(t) with the larger weight, so it always has its sign, and the
    printed rule never sees an alternation. With the average before, it does.
    """
    theta, gbar = 0.3, 0.0
    raised = lowered = 0
    for t in range(steps):
        g = 1.0 if t % 2 == 0 else -1.0
        before, gbar = gbar, (1 - theta) * g + theta * gbar
        raised += gbar * g > 0
        lowered += before * g < 0
    return Outcome(
        {
            "share of steps that raise the rate, alternating gradients, gbar(t)": raised / steps,
            "share that lower it with gbar(t - 1)": lowered / steps,
        }
    )


@entry(
    "ERR119",
    course="004",
    printed="section 7.4.3",
    title="RMSprop without memory is not AdaGrad",
    claims=[
        Wrong("steps of 3, -1, 0.5 with gamma = 0", "those of AdaGrad", "sign of g", 1e-6),
        Wrong("AdaGrad's sum for 3, -1, 0.5", "sum g", "sum g^2", tolerance=1e-9),
    ],
)
def without_memory() -> Outcome:
    """gamma = 0 forgets everything but the present gradient: g / |g|, the sign alone.

    AdaGrad forgets nothing. And what both sum are squares; gradients themselves would cancel.
    """
    gradients = [3.0, -1.0, 0.5]

    def steps(places: list[float]) -> list[float]:
        return [b - a for a, b in zip([0.0, *places], places, strict=False)]

    rms, _ = path(lambda p: optim.RMSprop(p, lr=1.0, alpha=0.0, eps=0.0), gradients)
    ada, state = path(lambda p: optim.Adagrad(p, lr=1.0, eps=0.0), gradients)
    signs = [-math.copysign(1.0, g) for g in gradients]
    return Outcome(
        {
            "steps of 3, -1, 0.5 with gamma = 0": Forms(steps(ada), signs, steps(rms)),
            "AdaGrad's sum for 3, -1, 0.5": Forms(
                sum(gradients), sum(g * g for g in gradients), float(state["sum"])
            ),
        }
    )


@entry(
    "ERR120",
    course="004",
    printed="eq 7.41",
    title="Adadelta goes down",
    claims=[Wrong("path under 1, 0.5, -0.3, 0.8", "+ RMS ratio g", "- RMS ratio g", 1e-12)],
)
def adadelta_sign() -> Outcome:
    """A step against the gradient has a minus sign, here as everywhere.

    The averages do not know of signs, so it has to be written.
    """
    gradients, rho, eps = [1.0, 0.5, -0.3, 0.8], 0.9, 1e-6

    def run(sign: float) -> list[float]:
        w = v = d = 0.0
        places = []
        for g in gradients:
            v = rho * v + (1 - rho) * g * g
            step = sign * math.sqrt(d + eps) / math.sqrt(v + eps) * g
            d = rho * d + (1 - rho) * step * step
            w += step
            places.append(w)
        return places

    truth, _ = path(optim.Adadelta, gradients)
    return Outcome({"path under 1, 0.5, -0.3, 0.8": Forms(run(1.0), run(-1.0), truth)})


@entry(
    "ERR121",
    course="004",
    printed="eq 7.42",
    title="Adam divides by 1 - beta^t",
    claims=[
        Wrong("first step over eta", "m / sqrt(v)", "bias-corrected", tolerance=1e-6),
        Number("first step over eta as printed", 3.16, tolerance=5e-3, unprinted="sqrt(10)"),
    ],
)
def adam_correction() -> Outcome:
    """The averages start at 0: after one step m is 0.1 g and v 0.001 g^2.

    Their quotient m / sqrt(v) is 3.16, so the first steps are three times too long. Divided by
    1 - beta^t both are unbiased, and the first step has the length of the rate.
    """
    g = 2.0
    (place,), _ = path(lambda p: optim.Adam(p, lr=1.0), [g])
    m, v = 0.1 * g, 0.001 * g * g
    printed, right = m / math.sqrt(v), (m / 0.1) / math.sqrt(v / 0.001)
    return Outcome(
        {
            "first step over eta": Forms(printed, right, -place),
            "first step over eta as printed": printed,
        }
    )


@entry(
    "ERR122",
    course="004",
    printed="section 7.4.2",
    title="AdaGrad divides by the root of the sum of squares",
    claims=[Wrong("second step, gradients 2 and 2", "by the sum", "by its root", tolerance=1e-6)],
)
def adagrad_root() -> Outcome:
    """Divided by the sum itself a step would get smaller when the gradient gets larger.

    The words leave the root out, which the equation has.
    """
    places, _ = path(lambda p: optim.Adagrad(p, lr=1.0), [2.0, 2.0])
    truth = places[1] - places[0]
    return Outcome({"second step, gradients 2 and 2": Forms(-2 / 8, -2 / math.sqrt(8), truth)})


@entry(
    "ERR123",
    course="004",
    printed="eq 8.14",
    title="The responsibility of a component for a weight",
    claims=[
        Wrong("slope of -log p(w) at w = 0.4", "with p(w|j)", "with p(j|w)", tolerance=1e-9),
    ],
)
def responsibility() -> Outcome:
    """Soft weight sharing pulls a weight to each center by the share that it has in it.

    This share, p(j|w), sums to 1 over the components, by Bayes' rule. The density p(w|j) does not,
    and the pull comes out wrong. The truth is the slope of the logarithm of the mixture.
    """
    w = chainrule.tensor(0.4, dtype=DOUBLE)
    alpha, mu, sigma = (
        chainrule.tensor(v, dtype=DOUBLE) for v in ([0.3, 0.7], [0.0, 1.0], [0.2, 0.5])
    )

    def densities(w: Tensor) -> Tensor:
        z = (w - mu) / sigma
        return (-0.5 * z * z).exp() / (sigma * math.sqrt(2 * math.pi))

    truth = func.grad(lambda w: -(alpha * densities(w)).sum().log())(w)
    pull = (w - mu) / sigma**2
    share = alpha * densities(w) / (alpha * densities(w)).sum()
    forms = Forms(float((densities(w) * pull).sum()), float((share * pull).sum()), float(truth))
    return Outcome({"slope of -log p(w) at w = 0.4": forms})


@entry(
    "ERR124",
    course="004",
    printed="eq 8.24",
    title="Each output has its own sign in cascade correlation",
    claims=[
        Wrong(
            "slope of the summed correlations",
            "one sign in front of the sum",
            "a sign for each output",
            tolerance=1e-9,
        )
    ],
)
def correlation_signs(samples: int = 20) -> Outcome:
    """A new unit is to correlate with the error of every output, positively or negatively.

    The sum is of sizes |S_k|, so the slope has the sign of each S_k in its own term. One sign in
    front lets outputs of different signs cancel.
    """
    x, errors = normal(samples, 3), normal(samples, 2)
    centered = errors - errors.mean(0)
    # The second output's error is made to go the other way than the first.
    centered[:, 1] = -centered[:, 0] + 0.1 * centered[:, 1]
    w = normal(3)

    def correlations(w: Tensor) -> Tensor:
        a = (x @ w).tanh()
        return (a - a.mean()) @ centered

    truth = func.grad(lambda w: correlations(w).abs().sum())(w)
    signs = correlations(w).sign()
    slopes = func.jacrev(correlations)(w)
    printed = correlations(w).sum().sign() * slopes.sum(0)
    forms = Forms(printed, signs @ slopes, truth)
    return Outcome({"slope of the summed correlations": forms})


@entry(
    "ERR125",
    course="004",
    printed="eq 8.27-8.32",
    title="The cost of removing a weight has a half in it",
    claims=[
        Wrong("rise of the loss when w_1 = 2 goes, H_11 = 3", "H w^2", "H w^2 / 2", 1e-9),
        Refuted(
            "least eigenvalue at a minimum with a flat direction",
            "positive definite",
            (1e-9, inf),
            "semidefinite",
            (0.0, 1e-12),
        ),
    ],
)
def saliency() -> Outcome:
    """Near a minimum the loss is a parabola: moving a weight by w costs half of H w^2.

    The order in which weights go is the same without the half, the predicted loss is not. And at a
    minimum the curvature may be 0 in some direction.
    """
    h = chainrule.tensor([[3.0, 0.0], [0.0, 0.0]], dtype=DOUBLE)
    at = chainrule.tensor([2.0, 5.0], dtype=DOUBLE)

    def loss(w: Tensor) -> Tensor:
        return 0.5 * (w - at) @ h @ (w - at)

    removed = chainrule.tensor([0.0, 5.0], dtype=DOUBLE)
    rise = float(loss(removed) - loss(at))
    hessian = func.hessian(loss)(at)
    return Outcome(
        {
            "rise of the loss when w_1 = 2 goes, H_11 = 3": Forms(3 * 4.0, 0.5 * 3 * 4.0, rise),
            "least eigenvalue at a minimum with a flat direction": abs(
                float(chainrule.linalg.eigvalsh(hessian).min())
            ),
        }
    )


@entry(
    "ERR126",
    course="004",
    printed="section 8.7.2",
    title="The diagonal of the Hessian by a recursion",
    claims=[
        Refuted(
            "error of the recursion with two hidden layers, of the largest entry",
            "the diagonal in O(W), exact",
            (0.0, 1e-9),
            "an approximation beyond one hidden layer",
            (1e-3, inf),
        ),
        Statement("its error with one hidden layer", "exact there", at_most=1e-9),
    ],
)
def hessian_diagonal() -> Outcome:
    """Second derivatives are carried back through the layers like first ones, by squared weights.

    What is left out are the mixed derivatives between units of a layer. For one hidden layer there
    are none at a linear output with squared error; with two there are, and the result is off.
    """
    x, y = normal(3), normal(1)

    def error(sizes: list[int]) -> float:
        weights = [normal(b, a) / math.sqrt(a) for a, b in pairwise(sizes)]
        exact = _exact_diagonal(weights, x, y)
        return float((_recursion(weights, x, y) - exact).abs().max() / exact.abs().max())

    one, two = error([3, 4, 1]), error([3, 4, 4, 1])
    return Outcome(
        {
            "error of the recursion with two hidden layers, of the largest entry": two,
            "its error with one hidden layer": one,
        }
    )


def _exact_diagonal(weights: list[Tensor], x: Tensor, y: Tensor) -> Tensor:
    """Second derivatives by the weights of the first layer, by differentiation."""
    size = weights[0].shape

    def loss(first: Tensor) -> Tensor:
        a = (first.reshape(size) @ x).tanh()
        for w in weights[1:-1]:
            a = (w @ a).tanh()
        return 0.5 * ((weights[-1] @ a - y) ** 2).sum()

    return chainrule.diagonal(func.hessian(loss)(weights[0].flatten()))


def _recursion(weights: list[Tensor], x: Tensor, y: Tensor) -> Tensor:
    """The same by squared weights, back through the layers."""
    a = [x]
    for w in weights[:-1]:
        a.append((w @ a[-1]).tanh())
    first = weights[-1] @ a[-1] - y  # dL/ds of the linear output
    second = chainrule.ones_like(first)
    for k in range(len(weights) - 1, 0, -1):
        slope = 1 - a[k] ** 2
        bend = -2 * a[k] * slope
        above, curved = weights[k].T @ first, (weights[k] ** 2).T @ second
        first, second = slope * above, slope**2 * curved + bend * above
    return chainrule.outer(second, x**2).flatten()


@entry(
    "ERR127",
    course="004",
    printed="section 8.9",
    title="What the search for flat minima costs",
    claims=[Wrong("power of K in the cost", "K (K W): 2", "O(K W): 1", tolerance=0.05)],
)
def cost_of_flatness() -> Outcome:
    """One backward pass of cost W for each of the K outputs is K W in all.

    All of them are written out here: the slopes of K outputs by the W weights of a hidden layer are
    K W numbers. Twice the outputs, twice the numbers, and not four times.
    """
    hidden, x = normal(5, 4), normal(4)

    def slopes(outputs: int) -> int:
        above = normal(outputs, 5)
        return func.jacrev(lambda w: above @ (w @ x).tanh())(hidden).numel()

    counted = [slopes(k) for k in (64, 128)]
    power = math.log2(counted[1] / counted[0])
    return Outcome({"power of K in the cost": Forms(2.0, 1.0, power)})
