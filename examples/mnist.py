"""The table of MNIST errors of the courses (002): networks and regularizers on the real files.

    python examples/mnist.py --root DIR                 all rows (some hours on two cores)
    python examples/mnist.py --root DIR --only linear relu512 --epochs 5
    python examples/mnist.py --root DIR --check         fails where a printed error is not reached

DIR holds the four files of MNIST (or set CHAINRULE_DATA). Each network is trained on 54,000 images,
the epoch is chosen by the error on the other 6,000, and the error on the 10,000 test images is
printed: of that epoch, and in brackets the lowest of all epochs, as the course gives them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chainrule
from chainrule import optim, train
from chainrule.atlas.course.x05_mnist import EPOCHS, NETWORKS, PRINTED, Rows, read


class TestErrors(train.Callback):
    """The error on the test images after each epoch."""

    def __init__(self, test: Rows):
        self.test, self.errors = test, []  # type: ignore[var-annotated]

    def on_epoch_end(self, trainer: train.Trainer) -> None:
        self.errors.append(100 * trainer.evaluate(self.test, batch_size=1000)["error_rate"])


def run(name: str, regularizer: str, parts: Any, epochs: int, seed: int) -> dict[str, Any]:
    """Trains one network; its test error at the chosen epoch and at its best one, in percent."""
    chainrule.manual_seed(seed)
    model = NETWORKS[name](0.5 if regularizer == "dropout" else 0.0)
    decay = 1e-5 if regularizer == "l2" else 0.0
    optimizer = optim.Adam(model.parameters(), lr=1e-3, weight_decay=decay)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    errors = TestErrors(parts[2])
    trainer = train.Trainer(
        model,
        "cross_entropy",
        optimizer,
        schedule=schedule,
        metrics=["error_rate"],
        callbacks=[errors],
        seed=seed,
    )
    began = time.perf_counter()
    history = trainer.fit(parts[0], parts[1], epochs=epochs, batch_size=128)
    chosen = history.best("val_error_rate")["epoch"]
    return {
        "network": name,
        "regularizer": regularizer,
        "epochs": epochs,
        "chosen_epoch": chosen,
        "error": errors.errors[chosen - 1],
        "best": min(errors.errors),
        "minutes": (time.perf_counter() - began) / 60,
    }


def reached(row: dict[str, Any]) -> bool:
    """Whether the error is the printed one, to its one decimal, or lower."""
    return row["error"] <= PRINTED[row["network"]][row["regularizer"]][0] + 0.05


def line(row: dict[str, Any]) -> str:
    printed = PRINTED[row["network"]][row["regularizer"]]
    verdict = "reached" if reached(row) else "not reached"
    return (
        f"{row['network']:<9} {row['regularizer']:<8} {printed[0]:>6.1f} [{printed[1]:.1f}] "
        f"{row['error']:>9.2f} [{row['best']:.2f}]  {verdict:<12} {row['epochs']:>3} epochs "
        f"{row['minutes']:>6.1f} min"
    )


def main(arguments: Sequence[str] | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", help="the folder with MNIST's files (default: CHAINRULE_DATA)")
    parser.add_argument("--only", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--regularizers", nargs="+", default=["none", "l2", "dropout"])
    parser.add_argument("--epochs", type=int, help="by default as many as each row needs")
    parser.add_argument("--images", type=int, help="how many of the 54,000 to train on")
    parser.add_argument("--check", action="store_true", help="fail if an error is not reached")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="a file for the rows, as JSON lines")
    options = parser.parse_args(arguments)
    parts = read(options.root, options.images)
    print(f"{'network':<9} {'regular.':<8} {'printed':>12} {'obtained':>16}")
    rows = []
    for name in options.only:
        for regularizer in options.regularizers:
            if regularizer not in PRINTED[name]:
                continue
            epochs = options.epochs or EPOCHS[name][regularizer]
            row = run(name, regularizer, parts, epochs, options.seed)
            rows.append(row)
            print(line(row), flush=True)
            if options.out:
                with Path(options.out).open("a") as file:
                    file.write(json.dumps(row) + "\n")
    missed = [row for row in rows if not reached(row)]
    if options.check and missed:
        parser.exit(1, f"{len(missed)} of {len(rows)} printed errors are not reached\n")
    return rows


if __name__ == "__main__":
    main()
