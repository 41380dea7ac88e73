"""A LeNet on MNIST, pruned: by Optimal Brain Damage to a tenth of its weights, and by units.

    python examples/prune_lenet.py --root DIR           (a few minutes on two cores)

DIR holds the four files of MNIST (or set CHAINRULE_DATA). The network is trained, then

- pruned by the saliencies 1/2 H_ii w_i^2 (H_ii from the Gauss-Newton matrix of some training
  images) in steps, with retraining after each;
- and, from the same start, robbed of half of the units of each layer, those whose removal raises
  the loss least, retrained, and cut down to a smaller network, which is timed against the first.

Printed are the test error before and after, the change of the loss that each step predicted and
the one that came, and the time of a call.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chainrule
from chainrule import data, models, nn, optim, train
from chainrule.regularize import prune

Images = tuple[Any, Any]


def read(root: str | None, number: int, tests: int) -> tuple[Images, Images]:
    """Training and test images of 32 x 32 numbers, standardized."""
    parts = []
    for is_train, count in ((True, number), (False, tests)):
        mnist = data.MNIST(root, train=is_train)
        images = mnist.data[:count].reshape(-1, 1, 28, 28).float() / 255
        dark = -0.1307 / 0.3081
        framed = chainrule.pad((images - 0.1307) / 0.3081, [2, 2, 2, 2], value=dark)
        parts.append((framed, mnist.targets[:count]))
    return parts[0], parts[1]


def fit(model: nn.Module, images: Images, epochs: int, lr: float, seed: int) -> None:
    """Adam with a rate that falls to zero along a cosine."""
    optimizer = optim.Adam(model.parameters(), lr=lr)
    batches = epochs * -(-len(images[1]) // 128)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, batches)
    trainer = train.Trainer(
        model,
        "cross_entropy",
        optimizer,
        schedule=schedule,
        schedule_each="batch",
        progress=False,
        seed=seed,
    )
    trainer.fit(images, epochs=epochs, batch_size=128)


def error(model: nn.Module, images: Images) -> float:
    """The error rate in percent."""
    trainer = train.Trainer(model, "cross_entropy", metrics=["error_rate"], progress=False)
    return 100 * trainer.evaluate(images, batch_size=1000)["error_rate"]


def some(images: Images, number: int, seed: int) -> Images:
    """A random sample of images."""
    generator = chainrule.Generator().manual_seed(seed)
    chosen = chainrule.randperm(len(images[1]), generator=generator)[:number]
    return images[0][chosen], images[1][chosen]


def by_damage(model: nn.Module, images: Images, test: Images, options: Any) -> prune.PruningTable:
    """Optimal Brain Damage to a tenth of the weights, with retraining."""
    sample = some(images, options.sample, options.seed)
    loss = nn.CrossEntropyLoss()
    return prune.iterate(
        model,
        lambda sparsity: prune.obd(model, loss, sample, sparsity, diagonal="gauss-newton"),
        prune.sparsities(options.sparsity, options.steps),
        retrain=lambda: fit(model, images, options.retrain, options.lr, options.seed),
        measure=lambda: error(model, test),
    )


def by_units(model: nn.Module, images: Images, options: Any) -> prune.Step:
    """Half of the units of each layer removed by their influence, then retraining."""
    sample = some(images, options.sample, options.seed)
    step = prune.skeletonize(
        model, nn.CrossEntropyLoss(), sample, options.units, method="ablation", scope="layer"
    )
    fit(model, images, options.retrain, options.lr, options.seed)
    return step


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", help="the folder with MNIST's files (default: CHAINRULE_DATA)")
    parser.add_argument("--epochs", type=int, default=4, help="of the first training")
    parser.add_argument("--retrain", type=int, default=1, help="epochs after each step")
    parser.add_argument("--lr", type=float, default=1e-3, help="of the retraining")
    parser.add_argument("--steps", type=int, default=4, help="of Optimal Brain Damage")
    parser.add_argument("--sparsity", type=float, default=0.9)
    parser.add_argument("--units", type=float, default=0.5, help="fraction of units to remove")
    parser.add_argument("--sample", type=int, default=256, help="images for the derivatives")
    parser.add_argument("--images", type=int, default=60000, help="for training")
    parser.add_argument("--tests", type=int, default=10000, help="images to test on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="a file for the figures, as JSON")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    chainrule.manual_seed(options.seed)
    images, test = read(options.root, options.images, options.tests)
    full = models.LeNet()
    fit(full, images, options.epochs, 2e-3, options.seed)
    start = error(full, test)
    print(f"LeNet: {start:.2f} % error on the test images", flush=True)

    sparse = copy.deepcopy(full)
    table = by_damage(sparse, images, test, options)
    print(table)
    pruned = error(sparse, test)
    print(
        f"Optimal Brain Damage: {pruned:.2f} % with {prune.sparsity(sparse):.1%} of the weights "
        f"zero, {pruned - start:+.2f} points",
        flush=True,
    )

    narrow = copy.deepcopy(full)
    step = by_units(narrow, images, options)
    small = prune.compact(narrow, test[0][:2])
    removed = error(small, test)
    speed = prune.speedup(full, small, test[0][:256])
    same = prune.speedup(narrow, small, test[0][:256], repeats=3).difference
    print(
        f"{step.pruned} of {step.total} units removed: {removed:.2f} %, {removed - start:+.2f} "
        f"points\n{1e3 * speed.seconds[0]:.1f} ms -> {1e3 * speed.seconds[1]:.1f} ms for 256 "
        f"images ({speed.factor:.2f} times faster), {speed.parameters[0]} -> "
        f"{speed.parameters[1]} parameters;\nmasked and cut-down network differ by {same:.1g}"
    )
    figures = {
        "error": start,
        "obd_error": pruned,
        "obd_sparsity": prune.sparsity(sparse),
        "obd_steps": table.rows,
        "units_error": removed,
        "units": [step.pruned, step.total],
        "seconds": speed.seconds,
        "speedup": speed.factor,
        "parameters": speed.parameters,
        "minutes": (time.perf_counter() - began) / 60,
    }
    if options.out:
        Path(options.out).write_text(json.dumps(figures, indent=1) + "\n")
    return figures


if __name__ == "__main__":
    main()
