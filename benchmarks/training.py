"""Training steps and inference side by side with PyTorch and other libraries, in one run.

    python benchmarks/training.py                       the whole table, and benchmarks/results.md
    python benchmarks/training.py --only iris lstm      some rows, printed alone
    python benchmarks/training.py --mnist DIR           with an epoch of MNIST from these files

All libraries get the same data and the same work, float32, with as many threads as there are
processors, and take turns. The ratio is that of PyTorch's time to chainrule's, of the medians or
of the best turns, whichever is less: above 1 chainrule is faster.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from _timing import Times, take_turns
from growth import growth
from installed import import_times, installed_size
from many import lines as many_networks
from pages import README, RESULTS, kept, write_part
from peers import jax_steps, sklearn_steps
from workloads import WORKLOADS, Work, Workload

import chainrule
from chainrule import backend

torch: Any = None
if importlib.util.find_spec("torch") is not None:
    torch = importlib.import_module("torch")

COLUMNS = ["chainrule", "PyTorch", "NumPy kernels", "JAX", "scikit-learn"]
UNITS = "microseconds per step: the median of interleaved turns, in brackets the best"
Row = tuple[str, dict[str, Times], float]


@contextlib.contextmanager
def numpy_kernels() -> Iterator[None]:
    """The kernels that need no compiler."""
    before = backend.current()
    backend.use("numpy")
    try:
        yield
    finally:
        backend.use(before)


def processor() -> str:
    """The processor's name, where the system tells."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def busy_processors(seconds: float = 2.0) -> float:
    """How many processors other programs keep busy at this moment, where the system tells."""

    def idle_and_all() -> tuple[int, int]:
        _, *ticks = Path("/proc/stat").read_text().split("\n", 1)[0].split()
        return int(ticks[3]) + int(ticks[4]), sum(map(int, ticks[:8]))

    try:
        before = idle_and_all()
        time.sleep(seconds)
        idle, total = (b - a for a, b in zip(before, idle_and_all(), strict=True))
    except (OSError, ValueError, IndexError):
        return math.nan
    return processors() * (1 - idle / max(total, 1))


def conditions(threads: int) -> list[str]:
    """What the numbers depend on."""
    kernels = backend.current()
    if kernels == "native":
        kernels += f" ({backend._native.get_isa()})"  # type: ignore[attr-defined]
    else:
        kernels += f" ({backend.why_not_native or 'chosen by hand'})"
    peers = {"PyTorch": "torch", "JAX": "jax", "scikit-learn": "sklearn"}
    dist = {"sklearn": "scikit-learn"}
    found = [
        f"{title} {metadata.version(dist.get(name, name))}"
        for title, name in peers.items()
        if importlib.util.find_spec(name) is not None
    ]
    busy = busy_processors()
    lines = [
        f"chainrule {chainrule.__version__}, kernels: {kernels}, {threads} threads; "
        f"Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {metadata.version('scipy')}",
        f"against {', '.join(found) or 'nothing: no other library is installed'}; "
        f"{threads} threads each",
        f"{processor()}, {os.cpu_count()} processors, {busy:.1f} of them busy before the start",
    ]
    if busy > threads / 4:
        lines.append("THE MACHINE IS BUSY WITH OTHER WORK: run this again when it is not")
    return lines


def candidates(workload: Workload, peers: dict[str, Any]) -> dict[str, Work]:
    """The work of one row in every library that has it."""
    work = {"chainrule": workload.make(chainrule)}
    if torch is not None:
        work["PyTorch"] = workload.make(torch)
    if backend.current() != "numpy":
        with numpy_kernels():
            work["NumPy kernels"] = workload.make(chainrule)
    for title, steps in peers.items():
        if workload.name in steps:
            work[title] = steps[workload.name]()
    return work


def measure(workload: Workload, peers: dict[str, Any], repeats: int) -> dict[str, Times]:
    around: dict[str, Callable[[], Any]] = {"NumPy kernels": numpy_kernels}
    work = candidates(workload, peers)
    return take_turns(work, repeats, workload.seconds, around, rest=0.02)


def ratio(times: dict[str, Times]) -> float:
    """How many times faster than PyTorch: by the medians or by the best turns, the lower one.

    A busy machine disturbs the turns of several threads most, and medians would flatter those of
    one thread.
    """
    if "PyTorch" not in times:
        return math.nan
    ours, theirs = times["chainrule"], times["PyTorch"]
    return min(theirs.median / ours.median, theirs.best / ours.best)


def cell(times: Times | None, unit: float = 1e6) -> str:
    return "" if times is None else f"{unit * times.median:,.0f} ({unit * times.best:,.0f})"


def line(title: str, cells: list[str], found: str, wanted: str, markdown: bool) -> str:
    if markdown:
        return "| " + " | ".join([title, *cells, found, wanted]) + " |"
    return f"{title:<48} " + " ".join(f"{c:>19}" for c in cells) + f" {found:>7} {wanted:>7}"


def row_line(row: Row, markdown: bool = False) -> str:
    """A row of the table: microseconds, the median and in brackets the best."""
    title, times, target = row
    cells = [cell(times.get(name)) for name in COLUMNS]
    return line(title, cells, f"{ratio(times):.2f}", f"{target:g}", markdown)


def summary(rows: list[Row]) -> list[str]:
    """The mean ratio, and what is not as fast as it should be."""
    ratios = {title: (ratio(times), target) for title, times, target in rows}
    found = [r for r, _ in ratios.values() if r == r]
    if not found:
        return ["PyTorch is not installed: no ratios (make bench installs it)"]
    mean = math.exp(sum(math.log(r) for r in found) / len(found))
    lines = [f"geometric mean of the ratios: {mean:.2f} (wanted: 2)"]
    missed = [f"{t}: {r:.2f} of {target:g}" for t, (r, target) in ratios.items() if r < target]
    slower = [f"{t}: {r:.2f}" for t, (r, _) in ratios.items() if r < 1]
    lines.append(f"below what is wanted: {'; '.join(missed) or 'none'}")
    lines.append(f"slower than PyTorch: {'; '.join(slower) or 'none'}")
    return lines


def footprint() -> list[str]:
    """Import time and installed size."""
    names = ["chainrule", *(["torch"] if torch is not None else [])]
    times = import_times(names)
    lines = [
        "import: "
        + ", ".join(f"{n} {t.median:.2f} s (best {t.best:.2f})" for n, t in times.items())
        + " (wanted: below 0.3 s)"
    ]
    for name in names:
        size, parts = installed_size(name)
        lines.append(f"installed size: {name} {size / 1e6:.0f} MB with {', '.join(parts)}")
    return [*lines, "(wanted: below 200 MB)"]


def write_results(rows: list[Row], sections: dict[str, list[str]]) -> None:
    """The run as a page."""
    lines = ["# Speed", "", "What `make bench` printed:", ""]
    lines += [f"- {text}" for text in sections.pop("conditions")]
    lines += ["", f"{UNITS.capitalize()}.", ""]
    lines += ["| work | " + " | ".join(COLUMNS) + " | ratio to PyTorch | wanted |"]
    lines += ["|---" * (len(COLUMNS) + 3) + "|"]
    lines += [row_line(row, markdown=True) for row in rows]
    for title, text in sections.items():
        lines += ["", f"## {title}", "", *[f"    {t}" for t in text]]
    RESULTS.write_text("\n".join(lines) + "\n" + kept(RESULTS))


def write_readme(rows: list[Row], sections: dict[str, list[str]]) -> None:
    """The same figures in README.md, between two marks."""
    lines = ["| microseconds per step | chainrule | PyTorch | ratio |", "|---|---|---|---|"]
    for title, times, _ in rows:
        cells = [f"{1e6 * times[name].median:,.0f}" for name in ("chainrule", "PyTorch")]
        lines.append(f"| {title} | {' | '.join(cells)} | {ratio(times):.2f} |")
    lines += ["", *[f"- {t}" for t in (*sections["conditions"], *sections["Summary"])]]
    write_part(README, "figures", lines)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = [w.name for w in WORKLOADS]
    parser.add_argument(
        "--only",
        nargs="+",
        choices=names,
        default=names,
        metavar="ROW",
        help=f"some rows alone: {', '.join(names)}",
    )
    parser.add_argument("--repeats", type=int, default=9, help="turns of each library (9)")
    parser.add_argument("--threads", type=int, default=0, help="(as many as processors)")
    parser.add_argument(
        "--mnist",
        metavar="DIR",
        default=os.environ.get("CHAINRULE_DATA"),
        help="the files of MNIST, for an epoch of it (CHAINRULE_DATA)",
    )
    return parser.parse_args()


def processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def show(title: str, lines: list[str], sections: dict[str, list[str]]) -> None:
    print(f"\n{title}", *lines, sep="\n", flush=True)
    sections[title] = lines


def main() -> None:
    chosen = options()
    threads = chosen.threads or processors()
    chainrule.set_num_threads(threads)
    libraries: dict[str, Any] = {"chainrule": chainrule}
    if torch is not None:
        torch.set_num_threads(threads)
        libraries["PyTorch"] = torch
    sections = {"conditions": conditions(threads)}
    print(*sections["conditions"], sep="\n")
    print(f"\n{UNITS}")
    print(line("", COLUMNS, "ratio", "wanted", False), flush=True)
    peers = {"JAX": jax_steps(), "scikit-learn": sklearn_steps()}
    rows: list[Row] = []
    for workload in WORKLOADS:
        if workload.name in chosen.only:
            times = measure(workload, peers, chosen.repeats)
            rows.append((workload.title, times, workload.target))
            print(row_line(rows[-1]), flush=True)
    show("Summary", summary(rows), sections)
    if len(rows) < len(WORKLOADS):
        return
    show("Before the first step", footprint(), sections)
    show("Growth", growth(libraries), sections)
    show("Many networks at once", many_networks(), sections)
    if chosen.mnist:
        from mnist_epoch import epochs

        show("An epoch of MNIST", epochs(libraries, chosen.mnist), sections)
    if torch is not None:
        write_readme(rows, sections)
    write_results(rows, sections)
    print(f"\nwritten to {RESULTS.name} and {README.name}")


if __name__ == "__main__":
    main()
