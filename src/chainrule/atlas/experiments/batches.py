"""How exact the gradient of a batch is."""

from __future__ import annotations

import chainrule
from chainrule import Tensor, charts, nn, optim, train
from chainrule.atlas import Number, Outcome, Spread, entry

WEIGHT = (1.0, -2.0)


def neuron() -> nn.Module:
    """A linear neuron, always at the same place."""
    layer = nn.Linear(2, 1, bias=False, dtype=chainrule.float64)
    layer.weight.data.copy_(chainrule.tensor([WEIGHT], dtype=chainrule.float64))
    return layer


def gradients(size: int, seeds: int) -> Tensor:
    """The gradients of many batches: what a step takes off the weights."""
    batches = [
        (
            chainrule.randn(size, 2, dtype=chainrule.float64),
            chainrule.randn(size, 1, dtype=chainrule.float64),
        )
        for _ in range(seeds)
    ]
    fits = train.fit_many(
        neuron,
        batches,
        "mse",
        lambda params: optim.SGD(params, lr=0.5),
        seeds=range(seeds),
        epochs=1,
        batch_size=size,
    )
    ends = chainrule.stack([net.weight.detach()[0] for net in fits.models])
    return chainrule.tensor(WEIGHT, dtype=chainrule.float64) - ends


@entry(
    "X15",
    course="004",
    printed="section 7.3",
    title="A hundred times the data, a tenth of the error",
    # The quotient of two deviations of 400 copies each is known to 4 percent.
    claims=[Number("error of batches of 1000 over that of 100000", 10.0, tolerance=1.0)],
    full={"seeds": 2000, "groups": 80},
)
def batch_error(seeds: int = 400, groups: int = 16) -> Outcome:
    """The gradient of a batch is a mean over samples: its error falls like 1 / sqrt(samples).

    So a batch of 100,000 costs a hundred times as much as one of 1,000 and is ten times as exact,
    which is why small batches pay. Many copies of a neuron take one step each, every one with a
    batch of its own; how far their steps differ is the standard error. It is estimated in several
    groups of copies, which show how well it is known.
    """
    sizes = [100, 1000, 10_000, 100_000]
    each = [
        [float(gradients(size, seeds // groups).std(0).norm()) for _ in range(groups)]
        for size in sizes
    ]
    means = [sum(errors) / groups for errors in each]
    ax = charts.axes_for(None)
    for size, errors in zip(sizes, each, strict=True):
        ax.loglog([size] * groups, errors, "o", color=charts.COLORS[0], alpha=0.6)
    label = f"{seeds} batches, in {groups} groups"
    ax.plot([], [], "o", color=charts.COLORS[0], label=label)
    expected = [means[0] * (sizes[0] / n) ** 0.5 for n in sizes]
    ax.loglog(sizes, expected, color=charts.COLORS[1], label="1 / sqrt(batch size)")
    ax.set(title="Standard error of a gradient", xlabel="batch size", ylabel="standard error")
    ax.minorticks_off()
    ax.legend()
    ratios = tuple(a / b for a, b in zip(each[1], each[3], strict=True))
    return Outcome(
        {"error of batches of 1000 over that of 100000": Spread(ratios)},
        [ax],
        note=f"The spread is over {groups} groups of {seeds // groups} copies, each copy with its "
        "own batch.",
    )
