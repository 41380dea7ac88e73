"""One wide layer against two narrow ones, on a target that depends on the distance alone."""

from __future__ import annotations

import math
from typing import Any

import chainrule
from chainrule import charts, models, optim, problems, train
from chainrule.atlas import Outcome, Spread, Statement, entry

DEEP = (100, 100)
CLAIMS = [
    Statement("error of the wide layer over that of two", "depth wins", at_least=1.0),
    Statement(
        "orders of magnitude between them", "one to two orders lower", at_least=1.0, at_most=2.5
    ),
]


def radial_fits(points: int, wide: int, steps: int, seeds: int) -> dict[str, train.ManyFits]:
    """One layer of ``wide`` units and two of 100, each from many seeds, by AdamW on all points.

    Every seed has its own points, of which 70 % are to train with. Errors are in units of the
    target's variance.
    """
    fitted, held = [], []
    for seed in range(seeds):
        generator = chainrule.Generator().manual_seed(seed)
        problem = problems.radial_bessel(points, generator=generator)
        (x, y), (x_test, y_test) = problem.split(0.7)
        scale = float(y.std())
        fitted.append((x, y / scale))
        held.append((x_test, y_test / scale))
    widths = {f"1 x {wide}": [wide], "2 x 100": [*DEEP]}
    return {
        name: train.fit_many(
            lambda hidden=hidden: models.MLP(2, hidden, 1, "relu"),  # type: ignore[misc]
            fitted,
            "mse",
            lambda params: optim.AdamW(params, lr=2e-3),
            seeds=range(seeds),
            validation=held,
            epochs=steps,
            batch_size=points,
        )
        for name, hidden in widths.items()
    }


def ratios_of(fits: dict[str, train.ManyFits], key: str, late: int = 50) -> tuple[float, ...]:
    """The error of the first network over that of the second, for each seed: means over the last
    steps, because single steps jump."""
    first, second = (
        [sum(h[key][-late:]) / len(h[key][-late:]) for h in many.histories]
        for many in fits.values()
    )
    return tuple(a / b for a, b in zip(first, second, strict=True))


def curves(fits: dict[str, train.ManyFits], steps: int, seeds: int) -> Any:
    """Test errors along the training: median and range of the seeds."""
    ax = charts.axes_for(None)
    for k, (name, many) in enumerate(fits.items()):
        errors = chainrule.tensor([h["val_loss"] for h in many.histories])
        epochs = range(1, steps + 1)
        low, high = errors.amin(0).numpy(), errors.amax(0).numpy()
        ax.fill_between(epochs, low, high, color=charts.COLORS[k], alpha=0.25)
        ax.semilogy(epochs, errors.median(0).values.numpy(), color=charts.COLORS[k], label=name)
    ax.set(title=f"Radial target: median and range of {seeds} seeds", xlabel="step")
    ax.set(ylabel="test error over variance")
    ax.minorticks_off()
    ax.legend(title="layers x units")
    return ax


def outcome(points: int, wide: int, steps: int, seeds: int) -> Outcome:
    """Ratio of the test errors, and its logarithm, over seeds."""
    fits = radial_fits(points, wide, steps, seeds)
    ratios = ratios_of(fits, "val_loss")
    return Outcome(
        {
            "error of the wide layer over that of two": Spread(ratios),
            "orders of magnitude between them": Spread(tuple(math.log10(r) for r in ratios)),
        },
        [curves(fits, steps, seeds)],
        note=f"{seeds} seeds of each network, trained at once; {steps} steps of AdamW.",
    )


@entry(
    "X11",
    course="000",
    printed="fig. 12-14; 003, hands-on 1",
    title="One wide layer against two narrow ones",
    claims=CLAIMS,
    full={"points": 4000, "wide": 10_000, "steps": 5000, "seeds": 5},
)
def shallow_and_deep(
    points: int = 1000, wide: int = 1000, steps: int = 1500, seeds: int = 3
) -> Outcome:
    """A target that depends on the distance from 0 alone, learned by one wide layer and by two.

    Two layers can first compute the distance and then a function of it; one layer has to build the
    rings out of ridges. At quick settings the wide layer has 1000 units instead of 10,000, there
    are 1000 points instead of 4000, and training ends after 1500 steps instead of 5000.
    """
    return outcome(points, wide, steps, seeds)
