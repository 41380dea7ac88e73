"""Rates from the squares of gradients, as course 000 prints them and as they are."""

from __future__ import annotations

import math
from math import inf

import chainrule
from chainrule import charts, optim
from chainrule.atlas import Forms, Number, Outcome, Refuted, Statement, Wrong, entry
from chainrule.atlas.errata.momentum import path, two_paths


@entry(
    "ERR027",
    course="000",
    printed="eq 68-69; 003",
    title="AdaGrad counts the current gradient",
    claims=[Wrong("first step, eta = 0.01, g = 2", "sum to i - 1", "sum to i", tolerance=1e-6)],
)
def adagrad_sum() -> Outcome:
    """AdaGrad divides by the root of the sum of all squares, the present one among them.

    Without it the first sum is empty, and the first step is divided by the root of epsilon alone:
    200 instead of 0.01.
    """
    eta, g, eps = 0.01, 2.0, 1e-8
    (truth,), _ = path(lambda p: optim.Adagrad(p, lr=eta), [g])
    printed, right = -eta * g / math.sqrt(0.0 + eps), -eta * g / math.sqrt(g * g + eps)
    return Outcome({"first step, eta = 0.01, g = 2": Forms(printed, right, truth)})


@entry(
    "ERR028",
    course="000",
    printed="section 3.4.1",
    title="The effective rate of AdaGrad has a root in it",
    claims=[
        Wrong("effective rate, eta = 0.01, G = 4", "eta / (G + eps)", "eta / sqrt(G + eps)", 1e-7),
        Wrong(
            "second moment of N(1, 1)", "G / (i - 1), the variance", "G / i, E[g^2]", tolerance=0.1
        ),
    ],
    full={"draws": 1_000_000},
)
def adagrad_rate(draws: int = 20_000) -> Outcome:
    """What a gradient is multiplied by: the rate over the root of the summed squares.

    And the mean of the squares estimates their second moment, variance plus squared mean; it is the
    variance only if the mean is 0.
    """
    (step,), _ = path(lambda p: optim.Adagrad(p, lr=0.01), [2.0])
    g = 1 + chainrule.randn(draws, dtype=chainrule.float64)
    variance = float(g.var())
    return Outcome(
        {
            "effective rate, eta = 0.01, G = 4": Forms(0.01 / 4, 0.01 / math.sqrt(4), -step / 2.0),
            "second moment of N(1, 1)": Forms(variance, float((g * g).sum()) / draws, 2.0),
        }
    )


def cumulative(decay: float, steps: int, square: float = 4.0) -> list[float]:
    """The average as it is printed: of the sum of all squares, not of the last average."""
    total, average, seen = 0.0, 0.0, []
    for _ in range(steps):
        average = decay * total + (1 - decay) * square
        total += square
        seen.append(average)
    return seen


@entry(
    "ERR029",
    course="000",
    printed="eq 70; 003",
    title="RMSprop averages squares and does not sum them",
    claims=[
        Wrong("average of g^2 = 4 after 1000 steps", "of G^(i-1)", "of the last average", 0.01)
    ],
)
def rmsprop_average(steps: int = 1000) -> Outcome:
    """A running average of a constant is that constant.

    The printed recursion multiplies the sum of all squares by the decay: it grows without end, and
    the steps die as those of AdaGrad do, which is what RMSprop is there to avoid.
    """
    average, right = 0.0, []
    for _ in range(steps):
        average = 0.9 * average + 0.1 * 4.0
        right.append(average)
    _, state = path(lambda p: optim.RMSprop(p, alpha=0.9), [2.0] * steps)
    printed = cumulative(0.9, steps)
    truth = float(state["square_avg"])
    ax = two_paths("The average of squares, all of them 4", printed, right, "average")
    ax.set_yscale("log")
    return Outcome(
        {"average of g^2 = 4 after 1000 steps": Forms(printed[-1], right[-1], truth)}, [ax]
    )


@entry(
    "ERR030",
    course="000",
    printed="eq 71-72; 003",
    title="Adadelta averages squares of steps",
    claims=[
        Wrong(
            "path under 1, 0.5, -0.3, 0.8",
            "average of u, |U| under the root, the old u",
            "average of u^2, the new u",
            tolerance=1e-9,
        )
    ],
)
def adadelta() -> Outcome:
    """Adadelta's step is the gradient times RMS(steps) / RMS(gradients).

    RMS is the root of an average of squares. The printed form averages the steps themselves, whose
    signs cancel, takes the size of that under the root, and moves by the step before.
    """
    gradients, rho, eps = [1.0, 0.5, -0.3, 0.8], 0.9, 1e-6

    def run(right: bool) -> list[float]:
        theta = squares = steps = u = 0.0
        places = []
        for g in gradients:
            squares = rho * squares + (1 - rho) * g * g
            last, size = u, steps if right else abs(steps)
            u = math.sqrt(size + eps) / math.sqrt(squares + eps) * g
            steps = rho * steps + (1 - rho) * (u * u if right else u)
            theta -= u if right else last
            places.append(theta)
        return places

    truth, _ = path(optim.Adadelta, gradients)
    printed, right = run(False), run(True)
    picture = two_paths("Adadelta under four gradients", [0.0, *printed], [0.0, *right])
    return Outcome({"path under 1, 0.5, -0.3, 0.8": Forms(printed, right, truth)}, [picture])


@entry(
    "ERR031",
    course="000",
    printed="section 3.4.3; 003",
    title="Adadelta divides by the curvature",
    claims=[
        Refuted(
            "ratio RMS(steps) / RMS(g) at curvature 1000 over that at 1",
            "it stands for the Hessian (003): 1000",
            (900.0, 1100.0),
            "for its inverse (000): 1/1000",
            (0.0009, 0.0011),
        ),
        Statement("difference of the paths", "steps do not depend on the scale", at_most=1e-6),
    ],
)
def adadelta_curvature(steps: int = 50) -> Outcome:
    """On a parabola that is 1000 times as steep, Adadelta makes the same steps.

    So the factor in front of the gradient is 1000 times smaller there: it goes like the inverse of
    the curvature. The two documents contradict each other, and this decides it.
    """

    def run(curvature: float) -> tuple[float, float]:
        w = chainrule.tensor(1.0, dtype=chainrule.float64, requires_grad=True)
        optimizer = optim.Adadelta([w], eps=1e-12)
        for _ in range(steps):
            w.grad = curvature * w.detach()
            optimizer.step()
        state = optimizer.state[w]
        return w.item(), math.sqrt(state["acc_delta"].item() / state["square_avg"].item())

    (flat, ratio), (steep, smaller) = run(1.0), run(1000.0)
    return Outcome(
        {
            "ratio RMS(steps) / RMS(g) at curvature 1000 over that at 1": smaller / ratio,
            "difference of the paths": abs(flat - steep),
        }
    )


@entry(
    "ERR032",
    course="000",
    printed="eq 73; 003",
    title="Adam's second moment is fed with the current square",
    claims=[
        Wrong("V for g^2 = 4 after 1000 steps", "of the cumulative G", "of the current g^2", 1e-9)
    ],
)
def adam_second_moment(steps: int = 1000) -> Outcome:
    """V is a running average of squares, with the weight 1 - beta_2 for the newest.

    Fed with the sum of all squares it grows with the square of the number of steps, and the steps
    of Adam shrink towards nothing.
    """
    beta, printed, right = 0.999, [], []
    v_printed = v_right = total = 0.0
    for _ in range(steps):
        total += 4.0
        v_printed = beta * v_printed + (1 - beta) * total
        v_right = beta * v_right + (1 - beta) * 4.0
        printed.append(v_printed)
        right.append(v_right)
    _, state = path(optim.Adam, [2.0] * steps)
    ax = two_paths("Adam's second moment, all squares 4", printed, right, "V")
    ax.set_yscale("log")
    truth = float(state["exp_avg_sq"])
    return Outcome({"V for g^2 = 4 after 1000 steps": Forms(printed[-1], right[-1], truth)}, [ax])


@entry(
    "ERR033",
    course="000",
    printed="eq 75; 003",
    title="Adam's bias correction depends on the step",
    claims=[
        Wrong(
            "step over eta at t = 1, 2, 10, 100, 2000, gradient 2",
            "divided by 1 - beta",
            "divided by 1 - beta^t",
            tolerance=1e-6,
        )
    ],
)
def bias_correction(steps: int = 2000) -> Outcome:
    """Under a constant gradient every step of Adam has the length of the learning rate.

    The averages start at 0 and have seen the share 1 - beta^t of their weight after t steps;
    dividing by it makes them right from the first step on. 1 - beta is right for the first step
    alone: later the steps grow to twice the rate, and then shrink.
    """
    b1, b2, g = 0.9, 0.999, 2.0
    at = (1, 2, 10, 100, steps)

    def sizes(right: bool) -> list[float]:
        found = []
        for t in range(1, steps + 1):
            m, v = g * (1 - b1**t), g * g * (1 - b2**t)
            c1, c2 = (1 - b1**t, 1 - b2**t) if right else (1 - b1, 1 - b2)
            found.append(m / c1 / (math.sqrt(v / c2) + 1e-8))
        return found

    printed, right = sizes(False), sizes(True)
    places, _ = path(lambda p: optim.Adam(p, lr=1.0), [g] * steps)
    truth = [a - b for a, b in zip([0.0, *places], places, strict=False)]

    def some(values: list[float]) -> list[float]:
        return [values[t - 1] for t in at]

    ax = two_paths("Steps of Adam under a constant gradient", printed, right, "step over eta")
    ax.set_xscale("log")
    forms = Forms(some(printed), some(right), some(truth))
    return Outcome({"step over eta at t = 1, 2, 10, 100, 2000, gradient 2": forms}, [ax])


@entry(
    "ERR034",
    course="000",
    printed="eq 69, 76",
    title="Epsilon stands beside the root",
    claims=[
        Wrong(
            "first step over eta, g = eps = 1e-8",
            "g / sqrt(v + eps)",
            "g / (sqrt(v) + eps), as PyTorch and 001",
            tolerance=1e-6,
        ),
        Statement("difference with eps_in_root=True", "a convention: both exist", at_most=1e-9),
    ],
)
def epsilon() -> Outcome:
    """Epsilon keeps a division from failing; where it stands matters for tiny gradients alone.

    Under the root 1e-8 counts as 1e-4, beside it as 1e-8: a gradient of 1e-8 is stepped by a half
    of the rate with the usual form and by a ten-thousandth with the printed one. The library's
    optimizers have both, the usual one unless ``eps_in_root`` is set.
    """
    g = eps = 1e-8
    (usual,), _ = path(lambda p: optim.Adam(p, lr=1.0, eps=eps), [g])
    (inside,), _ = path(lambda p: optim.Adam(p, lr=1.0, eps=eps, eps_in_root=True), [g])
    printed, right = -g / math.sqrt(g * g + eps), -g / (g + eps)
    return Outcome(
        {
            "first step over eta, g = eps = 1e-8": Forms(printed, right, usual),
            "difference with eps_in_root=True": abs(printed - inside),
        }
    )


@entry(
    "ERR035",
    course="000",
    printed="eq 77",
    title="Decoupled weight decay shrinks the weight",
    claims=[
        Wrong(
            "weight after a step from 1, g = 1, eta = 0.1, lambda = 0.5",
            "+ lambda w",
            "- eta lambda theta",
            tolerance=1e-6,
        )
    ],
)
def decoupled_decay() -> Outcome:
    """AdamW takes Adam's step and then a share eta lambda of the weight off.

    With the printed plus sign and without the rate the weight grows by half of itself in a step.
    """
    (truth,), _ = path(lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.5), [1.0], start=1.0)
    adam = 1.0 - 0.1
    forms = Forms(adam + 0.5 * 1.0, adam - 0.1 * 0.5 * 1.0, truth)
    return Outcome({"weight after a step from 1, g = 1, eta = 0.1, lambda = 0.5": forms})


@entry(
    "ERR036",
    course="000",
    printed="section 3.4.5",
    title="Weight decay and an L2 penalty are the same for plain descent",
    claims=[
        Refuted(
            "largest difference of the paths of SGD and SGDW",
            "decay is faster than the penalty",
            (1e-6, inf),
            "they are the same for SGD",
            (0.0, 1e-12),
        ),
        Statement(
            "difference of Adam with a penalty and AdamW", "they differ where rates adapt", 0.01
        ),
    ],
)
def decay_and_penalty(steps: int = 40) -> Outcome:
    """A penalty adds lambda w to the gradient; decay takes eta lambda w off the weight.

    In plain gradient descent both are the same step. In Adam the penalty goes through the averages
    and is scaled with the gradient, and decay is not: there the two paths part.
    """

    def run(kind: type[optim.Optimizer], rate: float) -> list[float]:
        w = chainrule.tensor(3.0, dtype=chainrule.float64, requires_grad=True)
        optimizer = kind([w], lr=rate, weight_decay=0.3)  # type: ignore[call-arg]
        places = [3.0]
        for _ in range(steps):
            w.grad = 2 * (w.detach() - 1)
            optimizer.step()
            places.append(w.item())
        return places

    paths = {
        "SGD, penalty": run(optim.SGD, 0.05),
        "SGDW, decay": run(optim.SGDW, 0.05),
        "Adam, penalty": run(optim.Adam, 0.2),
        "AdamW, decay": run(optim.AdamW, 0.2),
    }
    ax = charts.axes_for(None)
    for k, (name, places) in enumerate(paths.items()):
        style = "--" if k % 2 else "-"
        ax.plot(places, style, color=charts.COLORS[k], label=name, linewidth=3 - k % 2 * 1.5)
    ax.set(title="(w - 1)^2 with weight decay 0.3", xlabel="step", ylabel="w")
    ax.legend()
    sgd, sgdw, adam, adamw = paths.values()
    return Outcome(
        {
            "largest difference of the paths of SGD and SGDW": max(
                abs(a - b) for a, b in zip(sgd, sgdw, strict=True)
            ),
            "difference of Adam with a penalty and AdamW": abs(adam[-1] - adamw[-1]),
        },
        [ax],
    )


@entry(
    "ERR037",
    course="000",
    printed="eq 79",
    title="The limits of a mini-batch",
    claims=[
        Wrong(
            "samples that an epoch sees, N = 60, N_b = 10",
            "(j - 1) N_b / N to j N_b / N",
            "(j - 1) N_b + 1 to j N_b",
            tolerance=0.5,
        ),
        Wrong(
            "gradient of the penalty in a batch of 10",
            "summed over the samples",
            "once",
            tolerance=1e-9,
        ),
        Number("updates in an epoch: mini-batch, not batch, descent", 6.0, tolerance=0.5),
    ],
)
def batch_limits() -> Outcome:
    """Batch j of ten samples has the samples 10 (j - 1) + 1 to 10 j.

    The printed limits are divided by N, so they end at 1: one sample at most. A penalty on the
    weights belongs to the objective once, not once for each sample of the batch.
    """
    n, size = 60, 10
    loader = chainrule.utils.data.DataLoader([*range(n)], batch_size=size)
    batches = [*loader]
    printed, right = set(), set()
    for j in range(1, n // size + 1):
        first, last = (j - 1) * size / n, j * size / n
        printed |= {i for i in range(1, n + 1) if first < i <= last}
        right |= {*range((j - 1) * size + 1, j * size + 1)}
    w = chainrule.tensor(2.0, dtype=chainrule.float64, requires_grad=True)
    (0.5 * 0.1 * w * w).backward()
    penalty = 0.1 * w.item()
    return Outcome(
        {
            "samples that an epoch sees, N = 60, N_b = 10": Forms(
                len(printed), len(right), sum(len(b) for b in batches)
            ),
            "gradient of the penalty in a batch of 10": Forms(
                size * penalty, penalty, float(w.grad)
            ),
            "updates in an epoch: mini-batch, not batch, descent": len(batches),
        }
    )
