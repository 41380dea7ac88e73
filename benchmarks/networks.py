"""Whole networks side by side with PyTorch: training steps, inference, peak memory.

    python benchmarks/networks.py                     the whole table, and benchmarks/results.md
    python benchmarks/networks.py resnet              the rows whose names have this part, printed
    python benchmarks/networks.py --kernels numpy     with the NumPy kernels
    python benchmarks/networks.py --isa avx2          with another instruction set
    python benchmarks/networks.py --busy              one thread and processor time

Both libraries run the same text (``architectures``) with the same numbers, float32, as many
threads as there are processors, and take turns. Ratios are PyTorch's time or memory to
chainrule's, for times that of the medians or of the best turns, whichever is less: above 1
chainrule is better. Memory is by how much a training step raises the resident pages of a fresh
process. Beside some networks stands a training step that is written by hand for JAX and jitted
(``gpu_jax.py``). On a machine that is busy with other work, threads that wait for each other lose
most, and unlike ones unlike much: there ``--busy`` compares the processor time of one thread.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

from _timing import Times, take_turns
from architectures import NETWORKS, Network
from architectures.task import integers, normal
from memory import growth_of, measured_apart
from pages import README, RESULTS, write_part

__all__ = ["measured"]

HEADS = [
    *("training, ms", "PyTorch", "ratio", "JAX", "inference, ms", "PyTorch", "ratio"),
    *("MiB", "PyTorch", "ratio"),
]
PROCESSES = 3  # in which memory is measured
UNITS = (
    "Milliseconds: the median of interleaved turns. MiB: growth of the resident memory by training "
    f"(the median of {PROCESSES} processes)."
)
warnings.filterwarnings("ignore", message="Sparse invariant checks")


class Row(NamedTuple):
    """What was measured of one network, of chainrule first and of PyTorch second."""

    network: Network
    training: tuple[Times, Times]
    inference: tuple[Times, Times]
    memory: tuple[float, float]
    jax: Times | None = None  # of a training step

    def ratios(self) -> tuple[float, float, float]:
        """Of training, inference and memory: above 1 chainrule is better."""
        return _ratio(*self.training), _ratio(*self.inference), self.memory[1] / self.memory[0]


def _ratio(ours: Times, theirs: Times) -> float:
    return min(theirs.median / ours.median, theirs.best / ours.best)


def measured(lib: Any, name: str, **sizes: Any) -> float:
    """The growth of memory by training steps of the network of this name, in mebibytes."""
    (network,) = [n for n in NETWORKS if n.name == name]
    return growth_of(lambda small: network.task(lib, small).training())


def _by_jax(network: Network) -> Callable[[], object] | None:
    """A training step of the same network with the same numbers, where one is written for JAX."""
    if network.name not in ("resnet18", "gpt128", "gpt384") or not find_spec("jax"):
        return None
    gpu_jax, lib = (importlib.import_module(name) for name in ("gpu_jax", "chainrule"))
    weights = [p.detach().numpy() for p in network.task(lib).model.parameters()]
    taken = inspect.signature(network.make).parameters
    sizes = {n: p.default for n, p in taken.items() if n != "lib"} | network.sizes
    batch = sizes["batch"]
    if network.name == "resnet18":
        given = normal(lib, batch, 3, sizes["size"], sizes["size"]), integers(lib, 10, batch)
        training = gpu_jax.resnet18(weights)
    else:
        text = integers(lib, sizes["vocabulary"], batch, sizes["length"] + 1)
        given = text[:, :-1], text[:, 1:]
        training = gpu_jax.gpt(weights, sizes["layers"], sizes["heads"])
    arrays = [training.array(a.numpy()) for a in given]
    return lambda: training.steps(arrays, 1)


def _turns(
    make: Callable[[Any], Any],
    chosen: argparse.Namespace,
    beside: Callable[[], object] | None = None,
) -> tuple[Times, Times, Times | None]:
    libraries = {name: importlib.import_module(name) for name in ("chainrule", "torch")}
    work = {name: make(lib) for name, lib in libraries.items()}
    work |= {"jax": beside} if beside is not None else {}
    clock = process_time if chosen.busy else perf_counter
    found = take_turns(work, chosen.repeats, chosen.seconds, rest=0.02, clock=clock)
    return found["chainrule"], found["torch"], found.get("jax")


def measure(network: Network, chosen: argparse.Namespace, threads: int) -> Row:
    """Times in this process; memory in others, of which the one in the middle counts."""
    memory = [
        median(
            measured_apart("networks", lib, network.name, threads=threads) for _ in range(PROCESSES)
        )
        for lib in ("chainrule", "torch")
    ]
    by_jax = None if chosen.busy else _by_jax(network)  # that takes the threads that it finds
    *training, jax = _turns(lambda lib: network.task(lib).training(), chosen, by_jax)
    *inference, _ = _turns(lambda lib: network.task(lib).inference(), chosen)
    return Row(
        network,
        (training[0], training[1]),
        (inference[0], inference[1]),
        (memory[0], memory[1]),
        jax,
    )


def _cells(row: Row) -> list[str]:
    def time(times: Times) -> str:
        return f"{1e3 * times.median:.3g}" if times.median < 0.1 else f"{1e3 * times.median:.0f}"

    training, inference, memory = (f"{r:.2f}" for r in row.ratios())
    return [
        *(*map(time, row.training), training, "" if row.jax is None else time(row.jax)),
        *(*map(time, row.inference), inference),
        *(*(f"{m:.0f}" for m in row.memory), memory),
    ]


def printed(title: str, cells: Iterable[str]) -> str:
    """A line of the table for a terminal."""
    return f"{title:<47}" + "".join(f"{c:>14}" if "," in c else f"{c:>8}" for c in cells)


def row_line(row: Row) -> str:
    """The same for a row, below the heads."""
    widths = [14 if "," in head else 8 for head in HEADS]
    cells = zip(_cells(row), widths, strict=True)
    return f"{row.network.title:<47}" + "".join(f"{c:>{w}}" for c, w in cells)


def _mean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs))


def summary(rows: list[Row]) -> list[str]:
    """Means, noise, and what is behind PyTorch."""
    kinds = dict(zip(("training", "inference", "memory"), zip(*(r.ratios() for r in rows))))  # noqa: B905
    means = ", ".join(f"{kind} {_mean(values):.2f}" for kind, values in kinds.items())
    turns = [t for r in rows for t in (*r.training, *r.inference)]
    noise = 100 * median(t.median / t.best - 1 for t in turns)
    lines = [
        f"geometric means of the ratios: {means} (wanted: 1.25 for times)",
        f"noise: the median turn is {noise:.0f} % above the best one",
    ]
    for kind, values in kinds.items():
        behind = [
            f"{row.network.title}: {value:.2f}"
            for row, value in zip(rows, values, strict=True)
            if value < 1
        ]
        lines.append(f"{kind} behind PyTorch: {'; '.join(behind) or 'none'}")
    return lines


def markdown(rows: list[Row], conditions: list[str]) -> list[str]:
    """The table and what it depends on."""
    lines = [*(f"- {text}" for text in conditions), "", UNITS, ""]
    lines += [f"| network | {' | '.join(HEADS)} |", "|---" * (len(HEADS) + 1) + "|"]
    lines += [f"| {row.network.title} | {' | '.join(_cells(row))} |" for row in rows]
    return [*lines, "", *(f"- {text}" for text in summary(rows))]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", nargs="?", default="", help="of the names of the rows")
    parser.add_argument("--kernels", choices=["native", "numpy"], help="(CHAINRULE_KERNELS)")
    parser.add_argument("--isa", choices=["baseline", "avx2", "avx512"], help="(CHAINRULE_ISA)")
    parser.add_argument("--repeats", type=int, default=7, help="turns of each library (7)")
    parser.add_argument("--seconds", type=float, default=0.3, help="of a turn (0.3)")
    parser.add_argument("--threads", type=int, default=0, help="(as many as processors)")
    parser.add_argument("--busy", action="store_true", help="processor time of one thread")
    return parser.parse_args()


# Who else has to do without the instructions that chainrule does without.
OTHERS = {
    "baseline": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "ATEN_CPU_CAPABILITY": "default",
        "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2",
    },
    "avx2": {
        "OPENBLAS_CORETYPE": "Haswell",
        "ATEN_CPU_CAPABILITY": "avx2",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    },
    "avx512": {},
}
ONEDNN = {"baseline": ("SSE41", "SSE4_2"), "avx2": ("AVX2", "AVX2"), "avx512": ("ALL", "AVX512")}


def settle(chosen: argparse.Namespace) -> None:
    """Starts this program again with the variables that libraries read when they are loaded."""
    wanted = {"CHAINRULE_KERNELS": chosen.kernels} if chosen.kernels else {}
    if chosen.isa:
        onednn, mkl = ONEDNN[chosen.isa]
        wanted |= {"CHAINRULE_ISA": chosen.isa, **OTHERS[chosen.isa]}
        wanted |= {"ONEDNN_MAX_CPU_ISA": onednn, "MKL_ENABLE_INSTRUCTIONS": mkl}
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.environ.update(wanted)
        os.execv(sys.executable, [sys.executable, *sys.argv])


def title(chosen: argparse.Namespace) -> tuple[str, str]:
    """The mark of the table in results.md, and its heading."""
    if chosen.kernels == "numpy":
        return "networks-numpy", "Networks with the NumPy kernels"
    if chosen.isa:
        return f"networks-{chosen.isa}", f"Networks with {chosen.isa} alone"
    return "networks", "Networks"


def main() -> None:
    chosen = options()
    settle(chosen)
    rows_of = [n for n in NETWORKS if chosen.part in n.name]
    if not rows_of:
        raise SystemExit(f"no row has {chosen.part!r}: {', '.join(n.name for n in NETWORKS)}")
    training: Any = importlib.import_module("training")
    threads = 1 if chosen.busy else chosen.threads or training.processors()
    for name in ("chainrule", "torch"):
        importlib.import_module(name).set_num_threads(threads)
    conditions = training.conditions(threads)
    if chosen.busy:
        conditions[-1] = "the machine was busy: times are the processor times of one thread each"
    print(*conditions, "", UNITS, printed("", HEADS), sep="\n", flush=True)
    rows = []
    for network in rows_of:
        rows.append(measure(network, chosen, threads))
        print(row_line(rows[-1]), flush=True)
    print("", *summary(rows), sep="\n")
    if len(rows) < len(NETWORKS):
        return
    mark, heading = title(chosen)
    write_part(RESULTS, mark, [f"## {heading}", "", *markdown(rows, conditions)])
    if mark == "networks":
        write_part(README, mark, markdown(rows, conditions))
    print(f"\nwritten to {RESULTS.name}" + (f" and {README.name}" if mark == "networks" else ""))


if __name__ == "__main__":
    main()
