"""Example 19 of document 000 (X10): ten hidden layers of 5 neurons, tanh against ReLU, on irises.

The document shows one run of each, and concludes that tanh makes the gradient vanish in the first
layers while ReLU lets the loss go to 0 (figure 45). Here both are trained from many seeds, with
the gradient's norm recorded layer by layer (erratum 45). Mended (erratum 54): ``nn.Tanh()``, and an
activation behind every layer. All seeds are trained at once, each with its own start and split.

A run has failed if its accuracy on the training set is below 0.9; it is dead if no gradient at all
reaches the first layer.
"""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import chainrule
from chainrule import Tensor, nn, optim
from chainrule.func import functional_call, vmap
from chainrule.atlas.course.course_table import show
from chainrule.atlas.course.ex18_x09_iris import BATCH, split

HIDDEN = 10
WIDTH = 5


def network(activation: type[nn.Module]) -> nn.Sequential:
    """Ten hidden layers of five units."""
    h_theta = nn.Sequential()
    for i in range(HIDDEN):
        h_theta.add_module(f"a{i}", nn.Linear(WIDTH if i else 4, WIDTH))
        h_theta.add_module(f"g{i}", activation())
    h_theta.add_module("aout", nn.Linear(WIDTH, 3))
    return h_theta


class Runs:
    """Networks of all seeds: a dimension in front of every parameter counts them."""

    def __init__(self, activation: type[nn.Module], seeds: int):
        self.net = network(activation)
        starts, splits = [], []
        for seed in range(seeds):
            chainrule.manual_seed(seed)
            starts.append(network(activation).state_dict())
            splits.append(split(seed))
        self.params = {
            name: chainrule.stack([s[name] for s in starts]).requires_grad_() for name in starts[0]
        }
        self.x, _, self.y, _ = (chainrule.stack(list(t)) for t in zip(*splits, strict=True))
        self.optimizer = optim.Adam(self.params.values(), lr=0.001)
        self.outputs = vmap(lambda p, x: functional_call(self.net, p, (x,)))

    def epoch(self) -> dict[str, Tensor]:
        """One pass over the data; the mean norm of the gradient of every weight, by seed."""
        norms: dict[str, Any] = {name: 0.0 for name in self.params if name.endswith("weight")}
        count = self.x.shape[1] // BATCH
        for i in range(0, count * BATCH, BATCH):
            scores = self.outputs(self.params, self.x[:, i : i + BATCH])
            self.optimizer.zero_grad()
            # The losses are means over a batch; their sum over the seeds keeps the seeds apart.
            self.losses(scores, self.y[:, i : i + BATCH]).sum().backward()
            self.optimizer.step()
            for name in norms:
                norms[name] = norms[name] + self.params[name].grad.norm(dim=(1, 2)) / count
        return norms

    @staticmethod
    def losses(scores: Tensor, y: Tensor) -> Tensor:
        return -(y * scores.log_softmax(2)).sum(2).mean(1)

    def state(self) -> tuple[list[float], list[float]]:
        """Loss and accuracy on the training set, by seed."""
        with chainrule.no_grad():
            scores = self.outputs(self.params, self.x)
            right = (scores.argmax(2) == self.y.argmax(2)).float().mean(1)
            return self.losses(scores, self.y).tolist(), right.tolist()


def train(activation: type[nn.Module], seeds: int, epochs: int) -> list[dict[str, Any]]:
    """What became of every seed: loss, accuracy, norms by layer in the first and last epoch."""
    runs = Runs(activation, seeds)
    first = last = runs.epoch()
    for _ in range(epochs - 1):
        last = runs.epoch()
    losses, right = runs.state()
    return [
        {
            "loss": losses[i],
            "accuracy": right[i],
            "first": [n[i].item() for n in first.values()],
            "last": [n[i].item() for n in last.values()],
        }
        for i in range(seeds)
    ]


def failed(run: dict[str, Any]) -> bool:
    """Whether it did not learn."""
    return run["accuracy"] < 0.9


def dead(run: dict[str, Any]) -> bool:
    """Whether no gradient is left."""
    return run["last"][0] == 0


def show_seeds(results: dict[str, list[dict[str, Any]]], epochs: int) -> None:
    """Prints a row for every activation."""
    rows = []
    for seed, pair in enumerate(list(zip(*results.values(), strict=True))[:10]):
        row: list[object] = [seed]
        for r in pair:
            verdict = "dead" if dead(r) else "failed" if failed(r) else "learned"
            row += [f"{r['loss']:.3f}", f"{r['accuracy']:.2f}", f"{r['last'][0]:.1e}", verdict]
        rows.append(row)
    columns = ("loss", "accuracy", "grad a0", "verdict")
    show(
        f"Example 19: ten seeds after {epochs} epochs, tanh on the left, ReLU on the right "
        f"(guessing has a loss of {math.log(3):.3f})",
        ("seed", *columns, *columns),
        rows,
    )


def show_layers(results: dict[str, list[dict[str, Any]]]) -> None:
    """Prints a row for every layer."""
    names = [*(f"a{i}" for i in range(HIDDEN)), "aout"]
    columns = [
        [median(r[when][i] for r in runs) for i in range(HIDDEN + 1)]
        for runs in results.values()
        for when in ("first", "last")
    ]
    show(
        "Norm of the gradient by the weights of a layer, median over the seeds",
        ("layer", "tanh, first epoch", "last", "ReLU, first epoch", "last"),
        [(name, *(f"{c[i]:.1e}" for c in columns)) for i, name in enumerate(names)],
    )


def main(epochs: int = 300, seeds: int = 40) -> dict[str, list[dict[str, Any]]]:
    """What became of every seed, by activation."""
    results = {k: train(a, seeds, epochs) for k, a in (("tanh", nn.Tanh), ("ReLU", nn.ReLU))}
    show_seeds(results, epochs)
    show_layers(results)
    printed = {"tanh": ("fails", "2 fail"), "ReLU": ("learns", "1 dead")}
    show(
        "Runs that failed, and those of them that are dead",
        ("activation", "printed, one run", "PyTorch, 4 seeds", "failed", "dead"),
        [
            (name, *printed[name], *(f"{sum(map(f, runs))} of {seeds}" for f in (failed, dead)))
            for name, runs in results.items()
        ],
    )
    return results


if __name__ == "__main__":
    main()
