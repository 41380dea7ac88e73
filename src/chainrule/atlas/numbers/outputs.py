"""Losses with the activations that belong to them, and what normalizations do not see."""

from __future__ import annotations

from typing import Any

import chainrule
from chainrule import Tensor, charts, inspect, nn
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.nn.utils.parametrizations import weight_norm

DOUBLE = chainrule.float64
# The losses of the table, with other activations in front of them.
MISMATCHED = {
    "squared loss behind a sigmoid": lambda s, y: ((s.sigmoid() - y) ** 2).sum() / 2,
    "squared loss behind a tanh": lambda s, y: ((s.tanh() - y) ** 2).sum() / 2,
}
# Table 10.1: for six transformations, invariant (1) or not (0).
INVARIANT = {
    "batch norm": (1, 0, 1, 1, 1, 0),
    "weight norm": (1, 0, 1, 0, 0, 0),
    "layer norm": (1, 1, 0, 1, 0, 1),
    "self norm": (0, 0, 0, 0, 0, 0),
}
SIX = "the six changes of the picture, 1 for invariant"


def slope(loss: Any, scores: Tensor, target: Tensor) -> Tensor:
    """The derivative of a loss by the scores, from the loss itself."""
    scores = scores.detach().requires_grad_()
    (found,) = chainrule.autograd.grad(loss(scores, target), scores)
    return found


@entry(
    "S17",
    course="004",
    printed="table 4.1",
    title="Losses and the activations that belong to them",
    claims=[
        Statement(
            "squared loss, linear: largest |delta - (a - y)|", "delta = a - y", at_most=1e-12
        ),
        Statement(
            "binary cross entropy, sigmoid: largest |delta - (a - y)|",
            "delta = a - y",
            at_most=1e-12,
        ),
        Statement(
            "cross entropy, softmax: largest |delta - (a - y)|", "delta = a - y", at_most=1e-12
        ),
        Statement(
            "other pairs: largest |delta - (a - y)|", "only for the canonical link", at_least=0.1
        ),
    ],
)
def canonical_links(samples: int = 50) -> Outcome:
    """Three losses, each with the activation for which the error at the output is simply a - y.

    The slope of the activation cancels what the loss divides by. So a unit that is badly wrong
    learns fast, however saturated it is. With another activation the slope stays in the product:
    a squared loss behind a sigmoid has hardly any gradient where the error is largest.
    """
    scores = 2 * chainrule.randn(samples, 4, dtype=DOUBLE)
    one_hot = nn.functional.one_hot(chainrule.randint(0, 4, (samples,)), 4).double()
    targets = {
        "regression": chainrule.randn(samples, 4, dtype=DOUBLE),
        "binary classification": (chainrule.rand(samples, 4) < 0.5).double(),
        "multiclass classification": one_hot,
    }
    worst = []
    for task, y in targets.items():
        link = nn.CANONICAL_LINKS[task]
        found = slope(lambda s, y, link=link: link.loss(link.activation(s), y), scores, y)
        worst.append(float((found - (link.activation(scores) - y)).abs().max()))
    s = chainrule.linspace(-6, 6, 121, dtype=DOUBLE)
    zero = chainrule.zeros(121, dtype=DOUBLE)
    link = nn.CANONICAL_LINKS["binary classification"]
    ax = charts.axes_for(None)
    right = slope(lambda s, y: link.loss(link.activation(s), y), s, zero)
    ax.plot(s.numpy(), right.numpy(), color=charts.COLORS[0], label="binary CE behind a sigmoid")
    others = {name: slope(loss, s, zero) for name, loss in MISMATCHED.items()}
    for k, (name, found) in enumerate(others.items()):
        ax.plot(s.numpy(), found.numpy(), color=charts.COLORS[1 + k], linestyle="--", label=name)
    ax.set(title="Error at the output for the target 0", xlabel="score s", ylabel="delta")
    ax.legend()
    squared = others["squared loss behind a sigmoid"] - s.sigmoid()
    return Outcome(
        {
            "squared loss, linear: largest |delta - (a - y)|": worst[0],
            "binary cross entropy, sigmoid: largest |delta - (a - y)|": worst[1],
            "cross entropy, softmax: largest |delta - (a - y)|": worst[2],
            "other pairs: largest |delta - (a - y)|": float(squared.abs().max()),
        },
        [ax],
    )


@entry(
    "N08",
    course="004",
    printed="table 10.1",
    title="What normalizations do not see",
    claims=[Number(f"{name}: {SIX}", row, tolerance=1e-9) for name, row in INVARIANT.items()],
)
def invariances() -> Outcome:
    """Six changes of weights or data, and four normalizations: whose outputs stay the same?

    Each change is made to a layer, and the outputs are compared before and after. Where a cell is
    dark they moved by their own size or more; where it is light, by less than a thousandth. A
    normalization over the batch cannot see the scale of the weights of a unit, one over the units
    of a sample cannot see the scale of a sample, and self-normalization sees all.
    """

    def layer() -> nn.Module:
        return nn.Linear(6, 5, bias=False, dtype=DOUBLE)

    nets = {
        "batch norm": nn.Sequential(layer(), nn.BatchNorm1d(5, dtype=DOUBLE), nn.Tanh()),
        "weight norm": nn.Sequential(weight_norm(layer()), nn.ReLU()),
        "layer norm": nn.Sequential(layer(), nn.LayerNorm(5, dtype=DOUBLE), nn.Tanh()),
        "self norm": nn.Sequential(layer(), nn.SELU()),
    }
    table = inspect.invariance_table(nets, chainrule.randn(16, 6, dtype=DOUBLE))
    rows = {name: [*table.deviations[name].values()] for name in nets}
    names = [*table.deviations["batch norm"]]
    ax = charts.axes_for(None, (6.4, 4.2))
    shades = chainrule.tensor([*rows.values()]).log10().clamp(-4, 0).T
    drawn = ax.imshow(shades.numpy(), cmap=charts.SEQUENTIAL + "_r", aspect="auto")
    for i, column in enumerate(rows):
        for j, name in enumerate(names):
            text = "invariant" if table[column][name] else "no"
            color = "white" if shades[j, i] > -2 else "black"
            ax.text(i, j, text, ha="center", va="center", fontsize=9, color=color)
    ax.set_xticks(range(4), [name.replace(" ", "\n") for name in rows])
    ax.set_yticks(range(6), [name.replace("single training case", "single case") for name in names])
    ax.set_title("Change of the outputs")
    charts.add_colorbar(ax, drawn, "log10 of the relative change")
    found = {f"{name}: {SIX}": [float(v) for v in table[name].values()] for name in rows}
    return Outcome(found, [ax])
