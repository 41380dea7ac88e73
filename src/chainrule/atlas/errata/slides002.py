"""The lecture slides 002, as they are printed and as it is right."""

from __future__ import annotations

import math
from math import inf

import chainrule
from chainrule import Tensor, charts, func, nn
from chainrule.atlas import Forms, Outcome, Refuted, Statement, Wrong, attempt, entry
from chainrule.nn import functional as F

DOUBLE = chainrule.float64


def normal(*size: int) -> Tensor:
    """Numbers of the seed of the entry."""
    return chainrule.randn(*size, dtype=DOUBLE)


@entry(
    "ERR068",
    course="002",
    printed="slide 7",
    title="The sign of the offset in a logistic neuron",
    claims=[
        Wrong("p for w.x = 1, b = 2", "1 / (1 + exp(-w.x + b))", "1 / (1 + exp(-(w.x + b)))", 1e-9)
    ],
)
def logistic_offset() -> Outcome:
    """The offset is part of the sum, so the minus sign in front of the sum is in front of it, too.

    With the printed sign a positive offset makes class 1 less likely: 0.27 instead of 0.95.
    """
    s = chainrule.tensor(1.0, dtype=DOUBLE)
    truth = float((s + 2.0).sigmoid())
    forms = Forms(1 / (1 + math.exp(-1.0 + 2.0)), 1 / (1 + math.exp(-(1.0 + 2.0))), truth)
    return Outcome({"p for w.x = 1, b = 2": forms})


@entry(
    "ERR069",
    course="002",
    printed="slide 31",
    title="Binary cross-entropy has a minus sign, and so has its slope",
    claims=[
        Wrong("loss at x = 0.3, c = 1", "c log x + (1 - c) log(1 - x)", "its negative", 1e-9),
        Wrong("slope at x = 0.3, c = 1", "c/x - (1-c)/(1-x)", "-c/x + (1-c)/(1-x)", 1e-9),
    ],
)
def cross_entropy() -> Outcome:
    """A loss is large where the answer is bad: -log x for class 1, which is 0 at x = 1.

    As printed it is a log-likelihood, which is to be made large. Descending on it would drive the
    answer away from the class.
    """
    x = chainrule.tensor(0.3, dtype=DOUBLE)
    one = chainrule.tensor(1.0, dtype=DOUBLE)
    loss = F.binary_cross_entropy(x, one)
    slope = func.grad(lambda x: F.binary_cross_entropy(x, one))(x)
    grid = chainrule.linspace(0.02, 0.98, 97, dtype=DOUBLE)
    ax = charts.axes_for(None)
    ax.plot(grid.numpy(), grid.log().numpy(), color=charts.COLORS[1], label="printed: log x")
    ax.plot(grid.numpy(), (-grid.log()).numpy(), color=charts.COLORS[0], label="right: -log x")
    ax.set(title="The loss of class 1", xlabel="answer x", ylabel="loss")
    ax.legend()
    return Outcome(
        {
            "loss at x = 0.3, c = 1": Forms(math.log(0.3), -math.log(0.3), float(loss)),
            "slope at x = 0.3, c = 1": Forms(1 / 0.3, -1 / 0.3, float(slope)),
        },
        [ax],
    )


@entry(
    "ERR070",
    course="002",
    printed="dn_k/dx_(k-1)",
    title="The Jacobian of n = W^T x is W^T",
    claims=[
        Wrong("Jacobian of n = W^T x", "W", "W^T", tolerance=1e-9),
        Wrong("gradient at x for v = dl/dn", "v W", "v W^T", tolerance=1e-9),
    ],
)
def jacobian_of_a_layer() -> Outcome:
    """If the layer multiplies by W^T, so does its derivative.

    Going back, a row v of slopes is multiplied by the Jacobian from the left: v W^T. With W the
    sizes do not fit as soon as the layer is not square.
    """
    w, x, v = normal(3, 5), normal(3), normal(5)
    jacobian = func.jacrev(lambda x: w.T @ x)(x)
    slope = func.grad(lambda x: v.dot(w.T @ x))(x)
    printed = attempt(lambda: v @ w)
    return Outcome(
        {
            "Jacobian of n = W^T x": Forms(w, w.T, jacobian),
            "gradient at x for v = dl/dn": Forms(printed, v @ w.T, slope),
        }
    )


@entry(
    "ERR071",
    course="002",
    printed="grad_W = x v",
    title="The gradient of the weights has the shape of the weights",
    claims=[
        Wrong("W after a step, 3 x 5", "W - eta grad_W^T, grad_W = x v", "W - eta x v", 1e-9),
    ],
)
def gradient_of_weights() -> Outcome:
    """The outer product of the input x (3) and the slopes v (5) is 3 x 5, as W is for n = W^T x.

    The slides define the gradient as a matrix of 5 x 3 and transpose it in the update, and then
    write x v, which is 3 x 5 already: transposed it does not fit to W.
    """
    w, x, v = normal(3, 5), normal(3), normal(5)
    truth = w - 0.1 * func.grad(lambda w: v.dot(w.T @ x))(w)
    outer = chainrule.outer(x, v)
    printed = attempt(lambda: w - 0.1 * outer.T)
    return Outcome({"W after a step, 3 x 5": Forms(printed, w - 0.1 * outer, truth)})


@entry(
    "ERR072",
    course="002",
    printed="slide 30",
    title="How many components a map from R^p to R^q has",
    claims=[
        Wrong("components of h: R^3 -> R^5", "p = 3", "q = 5", tolerance=0.5),
        Wrong("entries of grad_W for layers of 3 and 5", "up to d_(m-1)", "d_(m-1) d_m", 0.5),
    ],
)
def components() -> Outcome:
    """A map into R^q has q components, however many numbers go in.

    Likewise the gradient of a weight matrix has an entry for each pair of units, 15 for 3 and 5.
    """
    w = normal(5, 3)
    output = w @ normal(3)
    gradient = func.grad(lambda w: (w @ normal(3)).sum())(w)
    return Outcome(
        {
            "components of h: R^3 -> R^5": Forms(3, 5, output.numel()),
            "entries of grad_W for layers of 3 and 5": Forms(3, 3 * 5, gradient.numel()),
        }
    )


@entry(
    "ERR073",
    course="002",
    printed="loss slide",
    title="A loss is a number, and its argmin is where it is least",
    claims=[
        Wrong("L of y = 2 at W = 0.5", "argmin of the loss", "the loss itself", tolerance=1e-9),
        Wrong("entry [1, 2] of a product", "sum_i A_1i B_jk", "sum_i A_1i B_i2", tolerance=1e-9),
    ],
)
def loss_and_argmin() -> Outcome:
    """L is what is made small; the argmin are the weights that do it.

    Defined as an argmin, L would be the best weight and could not be differentiated. And the index
    that is summed over has to stand in both factors.
    """
    w, y = chainrule.tensor(0.5, dtype=DOUBLE), 2.0
    a, b = normal(3, 3), normal(3, 3)
    best = y  # of (y - w)^2
    summed = sum(float(a[0, i]) for i in range(3)) * float(b[1, 2])
    right = sum(float(a[0, i] * b[i, 1]) for i in range(3))
    return Outcome(
        {
            "L of y = 2 at W = 0.5": Forms(best, (y - 0.5) ** 2, float(F.mse_loss(w, w * 0 + y))),
            "entry [1, 2] of a product": Forms(summed, right, float((a @ b)[0, 1])),
        }
    )


@entry(
    "ERR074",
    course="002",
    printed="backward run",
    title="The first step of the backward run, and an offset",
    claims=[
        Wrong("v_1 = dl/dn_1", "grad_(x_2) dx_2/dn_1", "grad_(x_1) dx_1/dn_1", tolerance=1e-9),
        Wrong("n_m for W = 2, x = 3, b = 1", "W^T x", "W^T x + b", tolerance=1e-9),
    ],
)
def backward_run() -> Outcome:
    """v_m goes back one layer at a time: the slope at x_m times the slope of its own activation.

    In the last step this is x_1 and n_1. With x_2 in the place of x_1 a layer is left out, and the
    weights between them are missing.
    """
    w1, w2, b1, x0 = normal(3, 3), normal(3, 3), normal(3), normal(3)
    n1 = w1.T @ x0 + b1

    def rest(x1: Tensor) -> Tensor:
        return (w2.T @ x1).tanh().square().sum()

    truth = func.grad(lambda n: rest(n.tanh()))(n1)
    slope = 1 - n1.tanh() ** 2
    x2 = (w2.T @ n1.tanh()).tanh()
    layer = nn.Linear(1, 1)
    layer.load_state_dict({"weight": chainrule.tensor([[2.0]]), "bias": chainrule.tensor([1.0])})
    return Outcome(
        {
            "v_1 = dl/dn_1": Forms(2 * x2 * slope, func.grad(rest)(n1.tanh()) * slope, truth),
            "n_m for W = 2, x = 3, b = 1": Forms(6.0, 7.0, float(layer(chainrule.tensor([3.0])))),
        }
    )


@entry(
    "ERR075",
    course="002",
    printed="L2 slide",
    title="The penalty sums over all layers",
    claims=[Wrong("penalty of three layers", "sum_i ||W_m||^2", "sum_i ||W_i||^2", tolerance=1e-9)],
)
def penalty() -> Outcome:
    """The index of the sum has to be that of the matrix, else one layer is counted m times.

    The truth is the squared norm of all weights as one vector.
    """
    weights = [normal(2, 3), normal(3, 3), normal(3, 1)]
    printed = sum(float(weights[-1].square().sum()) for _ in weights)
    right = sum(float(w.square().sum()) for w in weights)
    truth = float(chainrule.cat([w.flatten() for w in weights]).norm()) ** 2
    return Outcome({"penalty of three layers": Forms(printed, right, truth)})


@entry(
    "ERR076",
    course="002",
    printed="convergence of gradient descent",
    title="Two conditions on the rates do not make descent converge",
    claims=[
        Refuted(
            "log10 |x| after five steps on x^4 from 10, rates 1/t",
            "it converges",
            (-inf, 1.0),
            "it needs more, for example a Lipschitz slope",
            (100.0, inf),
        ),
        Statement(
            "x after 2000 steps on x^2 / 2 from 10",
            "with a Lipschitz slope they suffice",
            -0.1,
            0.1,
        ),
    ],
)
def robbins_monro() -> Outcome:
    """Rates 1/t have an infinite sum and a finite sum of squares, as is asked for.

    On x^4 the slope at 10 is 4000, and the first step goes to -3990; the next is cubed again, and
    after five steps the number has some hundred digits. On a parabola, whose slope grows no faster
    than x, the same rates converge.
    """
    x, sizes = 10, [1.0]
    for t in range(1, 6):
        x = x - 4 * x**3 // t  # whole numbers: no overflow
        sizes.append(math.log10(abs(x)) if abs(x) < 10**300 else float(len(str(abs(x)))))
    y = 10.0
    for t in range(1, 2001):
        y -= y / (t + 1)
    ax = charts.axes_for(None)
    ax.plot(sizes, "o-", color=charts.COLORS[1])
    ax.set(title="Descent on x^4 with rates 1/t", xlabel="step", ylabel="log10 |x|")
    return Outcome(
        {
            "log10 |x| after five steps on x^4 from 10, rates 1/t": sizes[-1],
            "x after 2000 steps on x^2 / 2 from 10": y,
        },
        [ax],
    )
