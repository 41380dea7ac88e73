"""What ``utils.checkpoint`` costs and saves: time and peak memory of training with and without it.

    python benchmarks/recomputed.py [--busy]

A GPT of 12 layers of 128 whose blocks are computed again in the backward pass, and a residual
network of 8 blocks in 4 segments (``checkpoint_sequential``). Forward costs about half of
backward, so a third more time is what recomputing everything is worth.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

from _timing import take_turns
from architectures import Task, residual, sequences
from memory import growth_of, measured_apart
from pages import RESULTS, write_part

__all__ = ["lines", "measured"]


def _gpt(lib: Any, small: bool, recomputed: bool) -> Task:
    task = sequences.gpt(lib, 4, 16 if small else 256, 2 if small else 12)
    blocks, checkpoint = task.model.blocks, _utils(lib).checkpoint
    if recomputed:

        def forward(x: Any) -> Any:
            for block in list(blocks):
                x = checkpoint(block, x, use_reentrant=False)
            return x

        blocks.forward = forward
    return task


def _resnet(lib: Any, small: bool, recomputed: bool) -> Task:
    size = 16 if small else 64
    task = residual.resnet18(lib, 8, size, 16)
    layers = list(task.model)
    body, in_segments = lib.nn.Sequential(*layers[3:-3]), _utils(lib).checkpoint_sequential
    head = lib.nn.Sequential(*layers[-3:])
    if recomputed:

        def forward(x: Any) -> Any:
            x = layers[2](layers[1](layers[0](x)))
            return head(in_segments(body, 4, x, use_reentrant=False))

        task.model.forward = forward
    return task


def _utils(lib: Any) -> Any:
    return importlib.import_module(f"{lib.__name__}.utils.checkpoint")


WORK: dict[str, tuple[str, Callable[[Any, bool, bool], Task]]] = {
    "gpt": ("GPT, 12 layers of 128, 4 x 256 letters, each block", _gpt),
    "resnet": ("ResNet-18 of width 16, 3x64x64, batch 8, 4 segments", _resnet),
}


def measured(lib: Any, name: str, recomputed: str) -> float:
    """The growth of memory by training steps, in mebibytes."""
    make = WORK[name][1]
    return growth_of(lambda small: make(lib, small, recomputed == "again").training())


def lines(busy: bool, threads: int) -> list[str]:
    """The table."""
    found = []
    clock = process_time if busy else perf_counter
    for name, (title, make) in WORK.items():
        found.append(title)
        for module, library in (("chainrule", "chainrule"), ("torch", "PyTorch")):
            lib = importlib.import_module(module)
            lib.set_num_threads(threads)
            memory = {
                how: measured_apart("recomputed", module, name, how, threads=threads)
                for how in ("kept", "again")
            }
            work = {how: make(lib, False, how == "again").training() for how in memory}
            times = take_turns(work, 5, 0.1, rest=0.01, clock=clock)
            kept, again = times["kept"].best, times["again"].best
            found.append(
                f"    {library:<10} kept {1e3 * kept:.0f} ms {memory['kept']:.0f} MiB   "
                f"computed again {1e3 * again:.0f} ms {memory['again']:.0f} MiB   "
                f"time {again / kept:.2f}, memory {memory['again'] / memory['kept']:.2f}"
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--busy", action="store_true", help="processor time of one thread")
    busy = parser.parse_args().busy
    found = lines(busy, 1 if busy else len(os.sched_getaffinity(0)))
    print(*found, sep="\n")
    table = [f"    {line}" for line in found]
    text = "`utils.checkpoint`: activations kept, or computed again in the backward pass."
    write_part(RESULTS, "recomputed", ["## Memory for time", "", text, "", *table])


if __name__ == "__main__":
    main()
