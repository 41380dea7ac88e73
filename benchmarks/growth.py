"""How the cost of a training step grows with width, batch, depth and the length of sequences.

The slope is that of log(time) over log(size): 0 where the cost per call rules, 1 where the work is
proportional to the size, 2 for the products of a network of this width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from _timing import take_turns
from workloads import MNIST_MLP, Work, of_mlp, of_sequence, samples, training

__all__ = ["growth"]


def _network(widths: list[int], batch: int) -> Callable[[Any], Work]:
    return training(of_mlp(widths), lambda: samples((widths[0],), batch, 10, n=2))


AXES: dict[str, tuple[list[int], Callable[[int], Callable[[Any], Work]]]] = {
    "width": ([64, 128, 256, 512, 1024], lambda n: _network([64, n, n, n, 10], 64)),
    "batch": ([16, 32, 64, 128, 256, 512], lambda n: _network(MNIST_MLP, n)),
    "depth": ([2, 4, 8, 16, 32], lambda n: _network([64, *[64] * n, 10], 64)),
    "length": ([25, 50, 100, 200, 400], lambda n: of_sequence("LSTM", n)),
}


def growth(libraries: Mapping[str, Any], repeats: int = 5, seconds: float = 0.1) -> list[str]:
    """Lines of a table: sizes, best milliseconds per step, slopes."""
    lines = []
    for axis, (sizes, make) in AXES.items():
        found: dict[str, list[float]] = {name: [] for name in libraries}
        for size in sizes:
            work = {name: make(size)(lib) for name, lib in libraries.items()}
            for name, t in take_turns(work, repeats, seconds, rest=0.01).items():
                found[name].append(t.best)
        for name, times in found.items():
            slope = np.polyfit([math.log(s) for s in sizes], np.log(times), 1)[0]
            cells = "  ".join(
                f"{size}: {1e3 * t:.2f}" for size, t in zip(sizes, times, strict=True)
            )
            lines.append(f"{axis:<7} {name:<10} slope {slope:4.2f}   {cells} ms")
    return lines
