"""Example 19 of document 000 (X10): ten hidden layers of 5 neurons, tanh against ReLU, on irises.

The document shows one run of each, and concludes that tanh makes the gradient vanish in the first
layers while ReLU lets the loss go to 0 (figure 45). Here both are trained from many seeds, with
the gradient's norm taken layer by layer, before and after (erratum 45). Mended (erratum 54):
``nn.Tanh()``, and an activation behind every layer. All seeds are trained at once, each with its
own start and split.

A run has failed if its accuracy on the training set is below 0.9; it is dead if no gradient at all
reaches the first layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

import chainrule
from chainrule import Tensor, nn, train as training
from chainrule.func import functional_call, grad, vmap
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


def gradient_norms(models: Sequence[nn.Module], x: Tensor, y: Tensor) -> list[list[float]]:
    """By network and layer: the norm of the gradient by the weights, mean over the batches."""
    template = models[0]
    params = {
        name: chainrule.stack([m.get_parameter(name).detach() for m in models])
        for name, _ in template.named_parameters()
    }

    def loss(params: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(functional_call(template, params, (x,)), y)

    slopes = vmap(vmap(grad(loss), in_dims=(None, 0, 0)))
    batches = [t.reshape(len(models), -1, BATCH, t.shape[-1]) for t in (x, y)]
    found = slopes(params, *batches)
    weights = [name for name in params if name.endswith("weight")]
    norms = chainrule.stack([found[name].norm(dim=(2, 3)).mean(1) for name in weights], 1)
    return norms.tolist()


def train(activation: type[nn.Module], seeds: int, epochs: int) -> list[dict[str, Any]]:
    """What became of every seed: loss, accuracy, norms by layer at the start and at the end; the
    loss of every epoch."""
    splits = [split(seed) for seed in range(seeds)]
    x, y = (chainrule.stack([part[k] for part in splits]) for k in (0, 2))
    starts = []
    for seed in range(seeds):
        chainrule.manual_seed(seed)
        starts.append(network(activation))
    first = gradient_norms(starts, x, y)
    fits = training.fit_many(
        lambda: network(activation),
        [(part[0], part[2]) for part in splits],
        "cross_entropy",
        "adam",
        lr=0.001,
        seeds=range(seeds),
        epochs=epochs,
        batch_size=BATCH,
        shuffle=False,
    )
    last = gradient_norms(fits.models, x, y)
    found = []
    for i, net in enumerate(fits.models):
        with chainrule.no_grad():
            scores = net(x[i])
        right = (scores.argmax(1) == y[i].argmax(1)).float().mean().item()
        loss = nn.functional.cross_entropy(scores, y[i]).item()
        told = {"loss": loss, "accuracy": right, "first": first[i], "last": last[i]}
        found.append({**told, "losses": fits.histories[i]["loss"]})
    return found


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
        ("layer", "tanh, start", "end", "ReLU, start", "end"),
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
