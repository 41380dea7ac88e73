"""X04: does the starting point matter? Restarts of a 2-4-1 sigmoid network on XOR (document 001).

Cross entropy, SGD with rate 0.1 and momentum 0.99, 1000 epochs, biases 0; the weights begin in
U(-10, 10), or with variance 1 / fan_in (LeCun). A start fails if one of the four cases is wrong at
the end. The course does not say how many cases an update sees: here are both readings. All starts
are trained at once: a dimension in front of every parameter counts them.
"""

from __future__ import annotations

import math

import chainrule
from chainrule import Tensor, nn, optim, problems
from chainrule.func import functional_call, vmap
from chainrule.atlas.course.course_table import binomial_tail, show

NET = nn.Sequential(nn.Linear(2, 4), nn.Sigmoid(), nn.Linear(4, 1), nn.Sigmoid())
PRINTED = {"U(-10, 10)": 6, "LeCun": 0}  # failures in 20 starts


def starts(init: str, count: int) -> dict[str, Tensor]:
    """Parameters of ``count`` networks."""
    params = {}
    for name, p in NET.named_parameters():
        params[name] = chainrule.zeros(count, *p.shape)
        if name.endswith("weight"):
            if init == "LeCun":
                nn.init.normal_(params[name], 0.0, 1 / math.sqrt(p.shape[1]))
            else:
                nn.init.uniform_(params[name], -10.0, 10.0)
        params[name].requires_grad_()
    return params


def train(params: dict[str, Tensor], batch: int, epochs: int) -> Tensor:
    """Which of the networks get all four cases right in the end."""
    xor = problems.boolean("xor")

    def loss(params: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.binary_cross_entropy(functional_call(NET, params, (x,)), y)

    losses = vmap(loss, in_dims=(0, None, None))
    optimizer = optim.SGD(params.values(), lr=0.1, momentum=0.99)
    for _ in range(epochs):
        order = chainrule.randperm(4)
        for i in order.split(batch):
            optimizer.zero_grad()
            losses(params, xor.inputs[i], xor.targets[i]).sum().backward()
            optimizer.step()
    with chainrule.no_grad():
        outputs = vmap(lambda p: functional_call(NET, p, (xor.inputs,)))(params)
    return ((outputs > 0.5) == (xor.targets > 0.5)).all(1)[:, 0]


def main(
    count: int = 400, epochs: int = 1000, batches: tuple[int, ...] = (4, 1)
) -> dict[tuple[str, int], int]:
    """{(start, batch): failures}"""
    failures, rows = {}, []
    for batch in batches:
        for init, printed in PRINTED.items():
            chainrule.manual_seed(0)
            failed = count - int(train(starts(init, count), batch, epochs).sum())
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
