"""Activations as they are printed, and as they are."""

from __future__ import annotations

import math
from math import inf

import chainrule
from chainrule import charts, nn
from chainrule.atlas import Forms, Outcome, Refuted, Statement, Wrong, entry
from chainrule.nn import functional as F

POINTS = (-3.0, -1.0, -0.5, 0.5, 2.0)


@entry(
    "ERR001",
    course="000",
    printed="eq 7",
    title="Leaky ReLU keeps the sign of its input",
    claims=[Wrong("leaky ReLU", "-alpha a for a < 0", "alpha a for a < 0", tolerance=1e-7)],
)
def leaky_relu(alpha: float = 0.01) -> Outcome:
    """The branch for negative inputs must be negative, too.

    With the printed minus sign the function is positive on both sides and falls before it rises: a
    reader who implements it gets a V with one short arm. The truth is the slope that
    differentiation finds, which is alpha and not -alpha, times the input.
    """
    x = chainrule.tensor(POINTS, requires_grad=True)
    (slopes,) = chainrule.autograd.grad(F.leaky_relu(x, alpha).sum(), x)
    a = x.detach()
    truth = slopes * a
    printed = chainrule.where(a < 0, -alpha * a, a)
    right = chainrule.where(a < 0, alpha * a, a)
    ax = charts.axes_for(None)
    grid = chainrule.linspace(-3, 1, 81)
    steep = 0.2  # seen better than 0.01
    for k, (name, sign) in enumerate((("printed", -1), ("right", 1))):
        values = chainrule.where(grid < 0, sign * steep * grid, grid)
        ax.plot(grid.numpy(), values.numpy(), color=charts.COLORS[1 - k], label=name)
    ax.set(title=f"Leaky ReLU with alpha = {steep:g}", xlabel="a", ylabel="g(a)")
    ax.legend()
    return Outcome({"leaky ReLU": Forms(printed, right, truth)}, [ax])


@entry(
    "ERR002",
    course="000",
    printed="section 2.1, ReLU",
    title="ReLU is neither strictly increasing nor positive",
    claims=[
        Refuted(
            "least slope", "strictly increasing on R", (1e-12, inf), "non-decreasing", (0.0, inf)
        ),
        Refuted("least value", "positive on R", (1e-12, inf), "non-negative", (0.0, inf)),
    ],
)
def relu() -> Outcome:
    """ReLU is constant for negative inputs: it does not increase there, and its value is 0.

    This is why units can die: where the slope is 0, no gradient comes through. The least slope and
    the least value on a grid of inputs are 0, which is neither increasing nor positive.
    """
    x = chainrule.linspace(-5, 5, 1001, dtype=chainrule.float64).requires_grad_()
    y = F.relu(x)
    (slope,) = chainrule.autograd.grad(y.sum(), x)
    return Outcome({"least slope": float(slope.min()), "least value": float(y.min())})


@entry(
    "ERR003",
    course="000",
    printed="section 2.1, SELU",
    title="SELU is steeper than the identity, and its bound has the scale in it",
    claims=[
        Wrong("slope for a > 0", "1", "s = 1.0507", tolerance=1e-6),
        Wrong("lower bound", "-alpha", "-s alpha", tolerance=1e-6),
        Statement("s alpha", "001 and 004 print 1.7581", at_least=1.75805, at_most=1.75815),
    ],
)
def selu() -> Outcome:
    """SELU multiplies ELU by s = 1.0507, on both sides of 0.

    For positive inputs the slope is therefore s and not 1, and for very negative ones the value
    tends to -s alpha = -1.7581. The slope above 1 is what widens a variance that became too small.
    """
    s, alpha = nn.activations.functions.SELU_SCALE, nn.activations.functions.SELU_ALPHA
    x = chainrule.tensor([2.0, -60.0], dtype=chainrule.float64, requires_grad=True)
    y = F.selu(x)
    (slope,) = chainrule.autograd.grad(y[0], x)
    return Outcome(
        {
            "slope for a > 0": Forms(1.0, s, float(slope[0])),
            "lower bound": Forms(-alpha, -s * alpha, float(y[1])),
            "s alpha": s * alpha,
        }
    )


@entry(
    "ERR004",
    course="000",
    printed="section 2.1; 003, decision boundary",
    title="A large output of a sigmoid means class 1",
    claims=[
        Wrong("accuracy of a trained sigmoid neuron", "y = 0 if h > 0.5", "y = 1 if h > 0.5", 0.05),
        Wrong("threshold of a tanh neuron", "0.5", "0", tolerance=0.02),
    ],
)
def decision() -> Outcome:
    """The sigmoid is the probability of class 1, so a large value is a vote for class 1.

    A neuron that has learned two clouds of points is right nearly always when it is read that way,
    and wrong nearly always when it is read the other way round. For tanh the middle between the
    two answers is 0: where the sigmoid of the same sum is one half, tanh is 0.
    """
    y = (chainrule.arange(400) % 2).double()
    x = chainrule.randn(400, 2, dtype=chainrule.float64) + 4 * y.unsqueeze(1)
    net = nn.Linear(2, 1, dtype=chainrule.float64)
    optimizer = chainrule.optim.SGD(net.parameters(), lr=0.5)
    for _ in range(300):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(net(x)[:, 0], y).backward()
        optimizer.step()
    large = (net(x)[:, 0].detach().sigmoid() > 0.5).double()
    accuracy = float((large == y).double().mean())
    boundary = math.tanh(0.0)  # of the sum at which the sigmoid is one half
    return Outcome(
        {
            "accuracy of a trained sigmoid neuron": Forms(1 - accuracy, accuracy, 1.0),
            "threshold of a tanh neuron": Forms(0.5, 0.0, boundary),
        }
    )
