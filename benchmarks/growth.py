"""How the cost of a training step grows with width, batch, depth, image, length and vocabulary.

    python benchmarks/growth.py               all axes, time and memory
    python benchmarks/growth.py image         one axis
    python benchmarks/growth.py --busy        one thread and processor time

The slope is that of log(time) or log(memory) over log(size): 0 where the cost per call rules, 1
where the work is proportional to the size, 2 for the products of a network of this width. The small
networks of the first table show the cost per call, the larger ones of the second one the work; of
those memory is measured, too: the growth of the resident pages of a fresh process.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from _timing import take_turns
from architectures import Task, generative, residual, sequences
from architectures.task import classifying
from memory import growth_of, measured_apart
from pages import RESULTS, write_part
from workloads import MNIST_MLP, Work, of_mlp, of_sequence, samples, training

__all__ = ["growth", "measured"]


def _network(widths: list[int], batch: int) -> Callable[[Any], Work]:
    return training(of_mlp(widths), lambda: samples((widths[0],), batch, 10, n=2))


AXES: dict[str, tuple[list[int], Callable[[int], Callable[[Any], Work]]]] = {
    "width": ([64, 128, 256, 512, 1024], lambda n: _network([64, n, n, n, 10], 64)),
    "batch": ([16, 32, 64, 128, 256, 512], lambda n: _network(MNIST_MLP, n)),
    "depth": ([2, 4, 8, 16, 32], lambda n: _network([64, *[64] * n, 10], 64)),
    "length": ([25, 50, 100, 200, 400], lambda n: of_sequence("LSTM", n)),
}


class Axis(NamedTuple):
    """What grows in a network, and ``make(lib, size)``; ``tiny`` is a size to load code with."""

    title: str
    tiny: int
    sizes: Sequence[int]
    make: Callable[[Any, int], Task]


def _wide(lib: Any, width: int) -> Task:
    nn = lib.nn
    hidden = [layer for _ in range(2) for layer in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*hidden, nn.Linear(width, 10))
    return classifying(lib, model, (width,), 128, optimizer="Adam", options={})


def _language(lib: Any, vocabulary: int) -> Task:
    return sequences.lstm_language_model(lib, 8, 16, vocabulary, 64, 64)


NETWORK_AXES = {
    "width": Axis("MLP of three layers, batch 128", 16, [512, 1024, 2048, 4096], _wide),
    "batch": Axis(
        "ResNet-18 of width 16, 3x32x32",
        2,
        [8, 16, 32, 64],
        lambda lib, n: residual.resnet18(lib, n, 32, 16),
    ),
    "depth": Axis(
        "GPT of width 128, 4 x 64 letters",
        1,
        [2, 4, 8, 16],
        lambda lib, n: sequences.gpt(lib, length=64, layers=n),
    ),
    "image": Axis(
        "U-Net of width 16, batch 2",
        8,
        [32, 64, 128, 256],
        lambda lib, n: generative.unet(lib, 2, n, 16, 3),
    ),
    "length": Axis(
        "GPT, 2 layers of 128, batch 2",
        8,
        [64, 128, 256, 512],
        lambda lib, n: sequences.gpt(lib, 2, n, 2),
    ),
    "vocabulary": Axis("LSTM language model, 8 x 16", 50, [2000, 8000, 32_000, 128_000], _language),
}


def measured(lib: Any, axis: str, size: str) -> float:
    """The growth of memory by training steps at this size, in mebibytes."""
    of = NETWORK_AXES[axis]
    return growth_of(lambda small: of.make(lib, of.tiny if small else int(size)).training())


def _slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    return float(np.polyfit([math.log(s) for s in sizes], np.log(values), 1)[0])


def _cells(sizes: Sequence[int], values: Sequence[float], unit: float = 1.0) -> str:
    return "  ".join(f"{size}: {unit * v:.3g}" for size, v in zip(sizes, values, strict=True))


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
            cells = _cells(sizes, times, 1e3)
            lines.append(f"{axis:<7} {name:<10} slope {_slope(sizes, times):4.2f}   {cells} ms")
    return lines


def _axis_lines(
    axis: str, libraries: Mapping[str, Any], repeats: int, seconds: float, busy: bool, threads: int
) -> list[str]:
    title, _, sizes, make = NETWORK_AXES[axis]
    times: dict[str, list[float]] = {name: [] for name in libraries}
    memory: dict[str, list[float]] = {name: [] for name in libraries}
    clock = process_time if busy else perf_counter
    for size in sizes:
        for name, lib in libraries.items():
            of = (lib.__name__, axis, str(size))
            memory[name].append(measured_apart("growth", *of, threads=threads))
        work = {name: make(lib, size).training() for name, lib in libraries.items()}
        for name, t in take_turns(work, repeats, seconds, rest=0.01, clock=clock).items():
            times[name].append(t.best)
    lines = [f"{axis}: {title}"]
    for what, found, unit in (("ms", times, 1e3), ("MiB", memory, 1.0)):
        for name, values in found.items():
            cells = _cells(sizes, values, unit)
            lines.append(f"    {what:<4}{name:<10} slope {_slope(sizes, values):4.2f}   {cells}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", nargs="?", default="", help="of the name of an axis")
    parser.add_argument("--busy", action="store_true", help="processor time of one thread")
    chosen = parser.parse_args()
    libraries = {"chainrule": "chainrule", "PyTorch": "torch"}
    found = {title: importlib.import_module(name) for title, name in libraries.items()}
    threads = 1 if chosen.busy else len(os.sched_getaffinity(0))
    for lib in found.values():
        lib.set_num_threads(threads)
    lines = []
    for axis in NETWORK_AXES:
        if chosen.part in axis:
            lines += _axis_lines(axis, found, 5, 0.1, chosen.busy, threads)
            print(*lines[-5:], sep="\n", flush=True)
    if not chosen.part:
        how = "Processor times of one thread" if chosen.busy else "Best times"
        text = f"{how}, and growth of the resident memory; slopes of their logarithms."
        table = [f"    {line}" for line in lines]
        write_part(RESULTS, "growth", ["## Growth of networks", "", text, "", *table])


if __name__ == "__main__":
    main()
