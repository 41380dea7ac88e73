"""Examples 10 to 15 of document 000: example 9 with another optimizer, and with decoupled decay.

10 classical momentum, 11 Nesterov, 12 AdaGrad, 13 RMSprop, 14 Adadelta, 15 Adam; section 3.4.5
adds SGDW and AdamW. Mended: the batch's losses are averaged (erratum 50); example 10 passes its
momentum 0.5 itself and not 0.5 / eta = 5 (erratum 51), with which every step is five times as
long as the last. The update rules are the right ones (errata 22-35).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import chainrule
from chainrule import optim
from chainrule.atlas.course.course_table import show
from chainrule.atlas.course.ex09_x07_exponential import ETA, exponential, line_error, neuron, train

EXAMPLES: dict[str, Callable[[Any], optim.Optimizer]] = {
    "9 SGD": lambda p: optim.SGD(p, lr=ETA),
    "10 momentum": lambda p: optim.SGD(p, lr=ETA, momentum=0.5, dampening=0.0),
    "11 Nesterov": lambda p: optim.SGD(p, lr=ETA, momentum=0.9, nesterov=True),
    "12 AdaGrad": lambda p: optim.Adagrad(
        p, lr=ETA, lr_decay=0.0, eps=1e-8, initial_accumulator_value=0.0
    ),
    "13 RMSprop": lambda p: optim.RMSprop(p, lr=ETA, alpha=0.9, eps=1e-8),
    "14 Adadelta": lambda p: optim.Adadelta(p, lr=ETA, rho=0.9, eps=1e-8),
    "15 Adam": lambda p: optim.Adam(p, lr=ETA, betas=(0.9, 0.999), eps=1e-8),
    "SGDW": lambda p: optim.SGDW(p, lr=ETA, weight_decay=1e-3),
    "AdamW": lambda p: optim.AdamW(p, lr=ETA, weight_decay=1e-3),
}


def parabola(momentum: float, steps: int = 30) -> float:
    """Where gradient descent on w^2 / 2 from 1 is after some steps."""
    w = chainrule.ones(1, dtype=chainrule.float64, requires_grad=True)
    optimizer = optim.SGD([w], lr=ETA, momentum=momentum)
    for _ in range(steps):
        optimizer.zero_grad()
        (0.5 * w * w).sum().backward()
        optimizer.step()
    return w.item()


def verdict(errors: list[float], line: float) -> str:
    """How far the neuron came, in a few words."""
    if errors[-1] < 1.05 * line:
        return "at the line"
    falling = errors[-1] < 0.99 * errors[len(errors) // 2]
    return "still falling" if falling else "circles around it: the rate is constant"


def main(epochs: int = 1000) -> dict[str, list[float]]:
    """The error after every epoch, by optimizer."""
    results = {}
    for name, make in EXAMPLES.items():
        h_theta = neuron(0)
        results[name] = train(make(h_theta.parameters()), h_theta, epochs)
    line = line_error(*exponential())
    when = [n for n in (30, epochs) if n <= epochs]
    show(
        f"Examples 10-15: mean squared error of a SiLU neuron; the best line has {line:.1f}",
        ("example", *(f"after {n} epochs" for n in when), "verdict"),
        [
            (name, *(f"{errors[n - 1]:.1f}" for n in when), verdict(errors, line))
            for name, errors in results.items()
        ],
    )
    print(f"30 steps on a parabola: momentum 0.5 {parabola(0.5):.2g}, 0.5/eta {parabola(5.0):.2g}")
    results["parabola"] = [parabola(0.5), parabola(5.0)]
    return results


if __name__ == "__main__":
    main()
