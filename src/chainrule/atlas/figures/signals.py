"""How large signals are in each layer, how normal they are, and what initializers draw."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chainrule
from chainrule import Tensor, charts, information, inspect, nn, train
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.atlas.figures.samples import handwritten
from chainrule.inspect.training.pictures import stairs

WIDTH, HIDDEN = 512, 4
# Each activation with the variance of weights, times their number, that is advised for it.
ADVISED: dict[str, tuple[Callable[[], nn.Module], float]] = {
    "ReLU": (nn.ReLU, 2.0),
    "tanh": (nn.Tanh, 1.0),
    "SELU": (nn.SELU, 1.0),
}


def layered(name: str, inputs: int, width: int, hidden: int, outputs: int) -> nn.Sequential:
    """Dense layers with one activation, and the weights that are advised for it."""
    made, gain = ADVISED[name]
    sizes = [inputs, *[width] * hidden, outputs]
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes):
        layer = nn.Linear(before, after)
        nn.init.normal_(layer.weight, 0.0, math.sqrt(gain / before))
        nn.init.zeros_(layer.bias)
        layers += [layer, made()]
    return nn.Sequential(*layers[:-1])


KINDS = ("preactivation", "activation")


def hidden_layers(seen: inspect.Watched, kind: str) -> list[Any]:
    """The statistics of the sums or activations of each hidden layer."""
    return [one.last for one in seen[kind].values()][:HIDDEN]


def ratios(networks: list[inspect.Watched]) -> list[float]:
    """How sizes (roots of mean squares) change from layer to layer: sums, then activations; they
    are means over networks."""
    found = []
    for kind in KINDS:
        rows = [[math.hypot(s.mean, s.std) for s in hidden_layers(n, kind)] for n in networks]
        means = [sum(layer) / len(layer) for layer in zip(*rows, strict=True)]
        found += [b / a for a, b in itertools.pairwise(means)]
    return found


def draw_layers(axes: list[Any], name: str, seen: inspect.Watched) -> None:
    """Histograms of the sums of each layer, and of its activations as a line."""
    pairs = zip(*(hidden_layers(seen, kind) for kind in KINDS), strict=True)
    for k, (ax, (sums, active)) in enumerate(zip(axes, pairs, strict=True)):
        stairs(ax, sums, charts.COLORS[5], label="sums")
        ax.stairs(active.density, active.edges, color=charts.COLORS[1], label="activations")
        ax.set(xlim=(-4, 4), ylim=(0, 1), yticks=[])
        ax.set_title(f"{name}, layer {k + 1}", fontsize=9)
        ax.set_xlabel(f"std {sums.std:.2f}, {active.std:.2f}", fontsize=8)


@entry(
    "V20",
    course="004",
    printed="fig. 10.1, 10.7",
    title="Signals that grow, shrink and stay",
    claims=[
        Statement(
            "ReLU: sizes of sums and activations over those of the layer before",
            "absolute values increase over layers",
            at_least=1.0,
        ),
        Statement(
            "tanh: sizes of sums and activations over those of the layer before",
            "absolute values decrease over layers",
            at_most=1.0,
        ),
        Statement("SELU: means of sums and activations in all layers", "zero mean", -0.1, 0.1),
        Statement("SELU: their deviations", "unit variance", 0.85, 1.15),
    ],
    full={"images": 20_000},
    data=("mnist",),
)
def signals(images: int = 1000, seeds: int = 5, data: Path | None = None) -> Outcome:
    """Sums and activations of four hidden layers of 512 units, after an epoch or two.

    Behind ReLU they grow from layer to layer, behind tanh they shrink, behind SELU they keep mean
    0 and variance 1. The notes do not say how weights were drawn and trained, and it matters. Here
    each activation has the variance that is advised for it (2 over the number of inputs for ReLU,
    else 1 over it), and steps are few and small. With 1 over it signals of ReLU shrink at first;
    with Adam or momentum those of tanh grow again in the last layers, and SELU's deviations leave
    1 (1.3 to 2 after a hundred steps). So the figures show tendencies of the start, not laws.
    """
    x, y, note = handwritten(data)
    x, y = x[:images].flatten(1), y[:images]
    x = (x - x.mean()) / x.std()
    found: dict[str, list[inspect.Watched]] = {}
    axes = charts.grid_of_axes(None, 3 * HIDDEN, HIDDEN, (1.75, 1.6))
    for row, name in enumerate(ADVISED):
        fits = train.fit_many(
            functools.partial(layered, name, 784, WIDTH, HIDDEN, 10),
            (x, y),
            "cross_entropy",
            "sgd",
            seeds=range(seeds),
            lr=0.01,
            epochs=2,
            batch_size=64,
        )
        found[name] = [inspect.activations(net, x[:100]) for net in fits.models]
        draw_layers(axes[HIDDEN * row : HIDDEN * (row + 1)], name, found[name][0])
    axes[2 * HIDDEN].legend(fontsize=7, loc="upper left", frameon=False)
    means, deviations = (
        [
            sum(each) / seeds
            for kind in KINDS
            for each in zip(
                *([getattr(s, what) for s in hidden_layers(n, kind)] for n in found["SELU"]),
                strict=True,
            )
        ]
        for what in ("mean", "std")
    )
    return Outcome(
        {
            "ReLU: sizes of sums and activations over those of the layer before": ratios(
                found["ReLU"]
            ),
            "tanh: sizes of sums and activations over those of the layer before": ratios(
                found["tanh"]
            ),
            "SELU: means of sums and activations in all layers": means,
            "SELU: their deviations": deviations,
        },
        [axes],
        note=note + f"All numbers are means over {seeds} starts; the picture shows one of them.",
    )


FEATURES, TASKS = 801, 12  # dense features and assays of Tox21


def compounds(count: int) -> tuple[Tensor, Tensor]:
    """A table of the shape of Tox21: features that depend on each other, twelve rare answers."""
    causes = chainrule.randn(count, 40)
    x = causes @ chainrule.randn(40, FEATURES) / 40**0.5 + 0.5 * chainrule.randn(count, FEATURES)
    x = x + 0.3 * x.square()  # as counts of groups of atoms, they are skewed
    active = (causes @ chainrule.randn(40, TASKS) / 40**0.5).tanh() + 0.3 * causes[:, :TASKS]
    return (x - x.mean(0)) / x.std(0), (active > 0.9).float()


@entry(
    "V21",
    course="004",
    printed="fig. 10.5",
    title="Sums of a layer beside a normal distribution",
    claims=[
        Statement(
            "largest distance from N(0, 1) at the start", "close to a standard normal", at_most=0.05
        ),
        Statement("distance from a normal law after 40 epochs", "close to a normal", at_most=0.05),
    ],
    full={"samples": 4000, "width": 1024, "seeds": 5},
)
def normal_sums(samples: int = 200, width: int = 256, seeds: int = 3) -> Outcome:
    """The inputs of the second layer of a SELU network, before and after 40 epochs.

    Each is a sum over hundreds of units, so the central limit theorem makes it nearly normal, and
    at the start weights are such that it is nearly *standard* normal. Learning makes weights
    depend on each other; sums are still close to a normal distribution then, though not to the
    standard one. The distance is the largest between the two distribution functions.
    """
    x, y = compounds(samples)
    nets = [layered("SELU", FEATURES, width, 3, TASKS) for _ in range(seeds)]
    starts = [information.kolmogorov_distance(net[:3](x)) for net in nets]
    shown = [inspect.normality(nets[0], x, "2")]
    fits = train.fit_many(nets, (x, y), "bce_with_logits", "sgd", lr=0.5, epochs=40, batch_size=100)
    learned = [nn.Sequential(*[*net.children()][:3]) for net in fits.models]
    shown.append(inspect.normality(fits.models[0], x, "2"))
    sums = [net(x).detach() for net in learned]
    scales = [float(s.std()) for s in sums]
    ends = [
        information.kolmogorov_distance(s, float(s.mean()), std)
        for s, std in zip(sums, scales, strict=True)
    ]
    axes = charts.grid_of_axes(None, 2, 2, (3.2, 2.8))
    for ax, seen, when in zip(axes, shown, ("At the start", "After 40 epochs"), strict=True):
        seen.plot(axes=[ax])
        ax.set_title(when)
        ax.set_xlabel("sum of the second layer, scaled", fontsize=9)
    return Outcome(
        {
            "largest distance from N(0, 1) at the start": starts,
            "distance from a normal law after 40 epochs": ends,
        },
        [axes],
        note="A table of random numbers of its shape (801 features, 12 rare answers) stands in "
        f"for Tox21. {seeds} starts; after 40 epochs sums have a deviation of "
        f"{sum(scales) / seeds:.2f}.",
    )


FIGURE_46: dict[str, Callable[[Tensor], Any]] = {
    "uniform": lambda w: nn.init.uniform_(w, -0.5, 0.5),
    "normal": nn.init.normal_,
    "xavier uniform": nn.init.xavier_uniform_,
    "xavier normal": nn.init.xavier_normal_,
    "kaiming uniform": nn.init.kaiming_uniform_,
    "kaiming normal": nn.init.kaiming_normal_,
}


def drawn_by(inputs: int) -> inspect.WeightHistograms:
    """The weights of a layer of 100 units under each of the six initializers."""
    net = nn.Linear(inputs, 100)
    drawn = []
    for name, draw in FIGURE_46.items():
        with chainrule.no_grad():
            draw(net.weight)
        (one,) = inspect.weight_histograms(net, ["now"]).drawn
        drawn.append(dataclasses.replace(one, initializer=name))
    return inspect.WeightHistograms("weight", tuple(net.weight.shape), drawn)


@entry(
    "V22",
    course="000",
    printed="fig. 46",
    title="What six initializers draw",
    claims=[
        Number("deviations of the six over those of their rules", (1.0,) * 6, tolerance=0.03),
        Statement(
            "Kaiming: deviation for 400 inputs over that for 100",
            "highly affected by fan_in",
            at_most=0.6,
        ),
        Statement("uniform and normal: the same quotient", "they remain stable", 0.9, 1.1),
        Statement("Xavier: the same quotient", "they remain stable", 0.9, 1.1),
    ],
)
def initializers() -> Outcome:
    """Weights of a layer of 100 units with 100 inputs, drawn by six rules.

    Fixed rules draw the same whatever the layer. Kaiming's deviation falls with the root of the
    inputs, to a half for four times as many. That Xavier's stays, as the text says, is not so: it
    has inputs plus outputs below the root and falls to 63 %.
    """
    seen, wider = drawn_by(100), drawn_by(400)
    stds = [d.statistics.std for d in seen.drawn]
    rules = [12**-0.5, 1.0, *[(2 / 200) ** 0.5] * 2, *[(2 / 100) ** 0.5] * 2]
    quotients = [d.statistics.std / s for d, s in zip(wider.drawn, stds, strict=True)]
    axes = charts.grid_of_axes(None, 6, 3, (2.3, 2.0))
    for ax, one, other in zip(axes, seen.drawn, wider.drawn, strict=True):
        stairs(ax, one.statistics, charts.COLORS[0], label="100 inputs")
        ax.stairs(
            other.statistics.density,
            other.statistics.edges,
            color=charts.COLORS[1],
            label="400 inputs",
        )
        ax.set_title(one.initializer, fontsize=10)
        ax.set_xlabel(f"std {one.statistics.std:.2g} and {other.statistics.std:.2g}", fontsize=8)
        ax.set_yticks([])
    axes[0].legend(fontsize=7, loc="lower center")
    return Outcome(
        {
            "deviations of the six over those of their rules": [
                s / r for s, r in zip(stds, rules, strict=True)
            ],
            "Kaiming: deviation for 400 inputs over that for 100": quotients[4:],
            "uniform and normal: the same quotient": quotients[:2],
            "Xavier: the same quotient": quotients[2:4],
        },
        [axes],
    )
