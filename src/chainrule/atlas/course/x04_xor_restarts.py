"""X04: does the starting point matter? Restarts of a 2-4-1 sigmoid network on XOR (document 001).

Cross entropy, SGD with rate 0.1 and momentum 0.99, 1000 epochs, biases 0; the weights begin in
U(-10, 10), or with variance 1 / fan_in (LeCun). A start fails if one of the four cases is wrong at
the end. The course does not say how many cases an update sees: here are both readings. All starts
are trained at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import chainrule
from chainrule import nn, optim, problems, train
from chainrule.atlas.course.course_table import binomial_tail, show

PRINTED = {"U(-10, 10)": 6, "LeCun": 0}  # failures in 20 starts


def network(init: str) -> nn.Sequential:
    """A network of 2-4-1 sigmoid units at a new start."""
    net = nn.Sequential(nn.Linear(2, 4), nn.Sigmoid(), nn.Linear(4, 1), nn.Sigmoid())
    for name, p in net.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(p)
        elif init == "LeCun":
            nn.init.normal_(p, 0.0, 1 / math.sqrt(p.shape[1]))
        else:
            nn.init.uniform_(p, -10.0, 10.0)
    return net


def restarts(init: str, count: int, batch: int = 4, epochs: int = 1000) -> train.ManyFits:
    """Networks from ``count`` starts, trained; their seeds are 0, 1, 2, ..."""
    xor = problems.boolean("xor")
    return train.fit_many(
        lambda: network(init),
        (xor.inputs, xor.targets),
        "bce",
        lambda params: optim.SGD(params, lr=0.1, momentum=0.99),
        seeds=range(count),
        epochs=epochs,
        batch_size=batch,
    )


def learned(models: Sequence[nn.Module]) -> list[bool]:
    """Which of the networks get all four cases right."""
    xor = problems.boolean("xor")
    with chainrule.no_grad():
        return [bool(((net(xor.inputs) > 0.5) == (xor.targets > 0.5)).all()) for net in models]


def main(
    count: int = 400, epochs: int = 1000, batches: tuple[int, ...] = (4, 1)
) -> dict[tuple[str, int], int]:
    """{(start, batch): failures}"""
    failures, rows = {}, []
    for batch in batches:
        for init, printed in PRINTED.items():
            failed = count - sum(learned(restarts(init, count, batch, epochs).models))
            failures[init, batch] = failed
            rate = failed / count
            error = math.sqrt(rate * (1 - rate) / count)
            tail = binomial_tail(printed, 20, rate)
            rows.append(
                (
                    init,
                    batch,
                    f"{printed}/20",
                    f"{20 * rate:.1f}/20",
                    f"{100 * rate:.1f} % +- {100 * error:.1f} %",
                    f"{tail:.3f}",
                    "agrees" if tail > 0.025 else "differs",
                )
            )
    show(
        f"XOR, {count} starts, {epochs} epochs: failures",
        ("weights", "batch", "printed", "obtained", "rate", "P(printed or farther)", "verdict"),
        rows,
    )
    return failures


if __name__ == "__main__":
    main()
