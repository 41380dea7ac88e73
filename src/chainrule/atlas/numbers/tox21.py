"""Tox21: a self-normalizing network on compounds, or on what stands in for them."""

from __future__ import annotations

import csv
import math
import tempfile
from pathlib import Path
from typing import Any

import chainrule
from chainrule import Tensor, charts, data as datasets, information, metrics, models, nn, optim
from chainrule.atlas import Number, Outcome, Statement, entry

NOTE = (
    "The files of Tox21 are not at hand: compounds that are drawn at random stand in for them, in "
    "files of the same form, with 801 descriptors, twelve tests, and tests that were not made."
)
DESCRIPTORS, TASKS = 801, 12


def write_stand_in(folder: Path, compounds: int) -> None:
    """Files as those of the challenge: descriptors of a few hidden causes, tests that ask for some
    of the causes, one in five of them not made."""
    loadings = chainrule.randn(8, DESCRIPTORS)
    rules = 2 * chainrule.randn(8, TASKS)
    for part, count in (("train", compounds), ("test", compounds // 3)):
        causes = chainrule.randn(count, 8)
        x = causes @ loadings / math.sqrt(8) + 0.5 * chainrule.randn(count, DESCRIPTORS)
        y = (chainrule.rand(count, TASKS) < (causes @ rules - 1).sigmoid()).float()
        made = chainrule.rand(count, TASKS) < 0.8
        tables = {
            "dense": [[f"{v:.4f}" for v in row] for row in x.tolist()],
            "labels": [
                [str(int(v)) if m else "NA" for v, m in zip(*rows, strict=True)]
                for rows in zip(y.tolist(), made.tolist(), strict=True)
            ],
        }
        for name, rows in tables.items():
            with (folder / f"tox21_{name}_{part}.csv").open("w", newline="") as file:
                write = csv.writer(file).writerow
                write(["", *(f"{name}{k}" for k in range(len(rows[0])))])
                for k, row in enumerate(rows):
                    write([f"NCGC{k:08}", *row])


def known_tests(output: Tensor, target: Tensor) -> Tensor:
    """Cross entropy over the tests that were made."""
    made = ~target.isnan()
    y = chainrule.where(made, target, chainrule.zeros_like(target))
    losses = nn.functional.binary_cross_entropy_with_logits(output, y, reduction="none")
    return (losses * made).sum() / made.sum()


def second_sums(net: nn.Sequential, x: Tensor) -> Tensor:
    """What goes into the units of the second layer."""
    with chainrule.no_grad():
        return net[:3](x).flatten()


def area(net: nn.Module, x: Tensor, y: Tensor) -> float:
    """The mean area under the curve of the twelve tests."""
    with chainrule.no_grad():
        scores = net(x)
    areas = []
    for k in range(y.shape[1]):
        made = ~y[:, k].isnan()
        areas.append(metrics.roc_auc(scores[made, k], y[made, k].long()))
    return sum(areas) / len(areas)


def histograms(sums: dict[str, Tensor]) -> Any:
    """Both distributions, beside the standard normal one and the normal one of their moments."""
    axes = charts.grid_of_axes(None, 2, 2, (3.3, 2.9))
    x = chainrule.linspace(-4, 4, 161)
    normal = (-x * x / 2).exp() / math.sqrt(2 * math.pi)
    for ax, (name, values) in zip(axes, sums.items(), strict=True):
        ax.hist(values.numpy(), 60, range=(-4, 4), density=True, color=charts.COLORS[0])
        ax.plot(x.numpy(), normal.numpy(), color="black", label="standard normal")
        z = (x - values.mean()) / values.std()
        own = (-z * z / 2).exp() / (float(values.std()) * math.sqrt(2 * math.pi))
        ax.plot(x.numpy(), own.numpy(), "--", color=charts.COLORS[1], label="same mean, variance")
        ax.set(title=name, xlabel="sum of a unit", ylabel="density", ylim=(0, 0.62))
    axes[0].legend(loc="upper center")
    return axes


@entry(
    "T05",
    course="004",
    printed="fig. 10.5",
    title="The sums of a self-normalizing network on Tox21",
    claims=[
        Number("mean and variance of the sums at the start", (0.0, 1.0), tolerance=0.1),
        Statement(
            "distance from a normal law at the start", "close to standard normal", at_most=0.05
        ),
        Statement(
            "distance from a normal law after learning", "close to a normal law", at_most=0.05
        ),
        Statement("area under the curve, mean of the tests", "it learns the tests", at_least=0.7),
    ],
    full={"compounds": 3000, "units": 512},
)
def tox21(compounds: int = 240, units: int = 128, epochs: int = 40) -> Outcome:
    """Twelve tests of toxicity, predicted from 801 descriptors of a compound by SELU units.

    With standardized inputs and LeCun's weights the sums of the second layer begin as a standard
    normal law, for they add up many terms; after forty epochs they are still close to a normal one.
    Tests that were not made do not count in the loss.
    """
    with tempfile.TemporaryDirectory() as folder:
        write_stand_in(Path(folder), compounds)
        x, y = datasets.Tox21(folder).tensors()
        x_test, y_test = datasets.Tox21(folder, train=False).tensors()
    mean, std = x.mean(0), x.std(0)
    x, x_test = (x - mean) / std, (x_test - mean) / std
    net = models.SelfNormalizingMLP(DESCRIPTORS, [units] * 3, TASKS)
    sums = {"at the start": second_sums(net, x)}
    optimizer = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for _ in range(epochs):
        for i in chainrule.randperm(len(x)).split(64):
            optimizer.zero_grad()
            known_tests(net(x[i]), y[i]).backward()
            optimizer.step()
    sums[f"after {epochs} epochs"] = second_sums(net, x)
    first, last = sums.values()

    def distance(values: Tensor) -> float:
        return information.kolmogorov_distance(values, float(values.mean()), float(values.std()))

    return Outcome(
        {
            "mean and variance of the sums at the start": (float(first.mean()), float(first.var())),
            "distance from a normal law at the start": distance(first),
            "distance from a normal law after learning": distance(last),
            "area under the curve, mean of the tests": area(net, x_test, y_test),
        },
        [histograms(sums)],
        note=NOTE,
    )
