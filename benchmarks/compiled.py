"""Microseconds of a training step: as it is, compiled, and inside a compiled epoch.

    python benchmarks/compiled.py

Processor time of one thread, the best of seven.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import chainrule
from chainrule import nn, optim

STEPS = 400


def deep() -> nn.Sequential:
    """Ten hidden layers of five units."""
    layers: list[nn.Module] = []
    for i in range(10):
        layers += [nn.Linear(4 if i == 0 else 5, 5), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(5, 3))


NETS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "4-8-3, batch 5": (lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), (4,), 5),
    "ten layers of 5, batch 5": (deep, (4,), 5),
    "64-32-10, batch 32": (
        lambda: nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10)),
        (64,),
        32,
    ),
}


def best(call: Callable[[], Any], steps: int) -> float:
    """Microseconds of processor time for each of so many steps that a call makes."""
    found = float("inf")
    for _ in range(7):
        start = time.process_time()
        call()
        found = min(found, time.process_time() - start)
    return found / steps * 1e6


def row(label: str) -> str:
    make, shape, size = NETS[label]
    net = make()
    optimizer = optim.Adam(net.parameters())
    x, y = chainrule.randn(size * STEPS, *shape), chainrule.arange(size * STEPS) % 3

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    compiled = chainrule.compile(step, fullgraph=True)
    compiled.epoch(x, y, batch_size=size)
    some = (x[:size], y[:size])
    eager = best(lambda: [step(*some) for _ in range(STEPS)], STEPS)
    called = best(lambda: [compiled(*some) for _ in range(STEPS)], STEPS)
    epoch = best(lambda: compiled.epoch(x, y, batch_size=size), STEPS)
    return f"{label:<26}{eager:>10.1f}{called:>12.1f}{epoch:>10.2f}{eager / epoch:>10.1f}"


def main() -> None:
    chainrule.set_num_threads(1)
    print(f"{'':<26}{'as it is':>10}{'compiled':>12}{'epoch':>10}{'ratio':>10}")
    for label in NETS:
        print(row(label), flush=True)


if __name__ == "__main__":
    main()
