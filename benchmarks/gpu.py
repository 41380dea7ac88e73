"""Training on a device beside hand-written JAX and PyTorch, in one run: ``make gpu-bench``.

    python benchmarks/gpu.py                     all rows, and benchmarks/gpu.md
    python benchmarks/gpu.py --rows mlp128 gpt   some of them, printed
    python benchmarks/gpu.py --device xla --small    tiny sizes on JAX's CPU: does everything run?

Products of float32 are computed in TF32 in all libraries, as the header says. Each candidate runs a
number of steps without waiting, then waits for the last loss. The best mode of PyTorch is the
better one of eager (fused optimizer, channels last for images) and compiled (``torch.compile``, the
better one of two modes where the steps are short).

Compilers take most of the time, so that several processes compile at once, PyTorch's candidates
apart from those of JAX and chainrule; when all have done, one row is measured after another, by one
process at a time, whose candidates take turns.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np

import chainrule
from _timing import Times, take_turns
from gpu_rows import EPOCH, ROWS, STEPS_OF, TOGETHER, Candidates, Case, Setting
from pages import kept

__all__ = ["table"]

PAGE = Path(__file__).parent / "gpu.md"


# --- one process ----------------------------------------------------------------------------------


def _set_up(asked: argparse.Namespace) -> tuple[Setting, str]:
    """The libraries of this process, with products in TF32; and their versions."""
    setting = Setting(asked.device, asked.small, not asked.no_compile)
    if asked.worker == "torch":
        import torch

        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.benchmark = True
        if asked.device == "cuda":
            torch.set_default_device("cuda")
        cuda = f", CUDA {torch.version.cuda}" if asked.device == "cuda" else ""
        return setting._replace(torch=torch), f"PyTorch {torch.__version__}{cuda}"
    import jax

    jax.config.update("jax_default_matmul_precision", "tensorfloat32")
    chainrule.set_float32_matmul_precision("high")
    chainrule.set_default_device(asked.device)
    return setting, (
        f"{jax.devices()[0].device_kind}; chainrule {chainrule.__version__}, JAX "
        f"{jax.__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    )


def _say(**told: Any) -> None:
    print(json.dumps(told), flush=True)


def work(asked: argparse.Namespace) -> None:
    """Compiles the rows; then measures each that is asked for by a line. Tells in lines of JSON."""
    setting, versions = _set_up(asked)
    _say(versions=versions)
    made: dict[str, Candidates] = {}
    for row in asked.rows:
        case = ROWS[row]
        made[row] = (case.ours if asked.worker == "ours" else case.torch)(setting)
        for name in list(made[row]):
            _begin(row, name, made[row])
    _say(ready=True)
    for asked_for in sys.stdin:
        row = asked_for.strip()
        times = max(EPOCH, ROWS[row].steps // 10) if setting.small else ROWS[row].steps
        turns = {name: partial(run, times) for name, run in made[row].items()}
        found = take_turns(turns, repeats=2 if setting.small else 7, seconds=asked.seconds)
        _say(row=row, times={k: (t.best / times, t.median / times) for k, t in found.items()})


def _begin(row: str, name: str, made: Candidates) -> None:
    """The first steps of a candidate, which compile; one of another library that fails is left out
    and told."""
    start = time.perf_counter()
    try:
        value = made[name](EPOCH)
    except Exception as error:  # another library's, on this machine
        if name == "chainrule":
            raise
        _say(told=f"{row}, {name}: {type(error).__name__}: {str(error)[:300]}")
        del made[name]
        return
    spent = time.perf_counter() - start
    _say(told=f"{row}, {name}: {value:.6g} after {EPOCH} steps, {spent:.1f} s")


# --- all of them ----------------------------------------------------------------------------------


class Worker:
    """A process that compiles some rows, and measures them when it is asked to."""

    def __init__(self, kind: str, rows: Sequence[str], options: Sequence[str]) -> None:
        self.kind, self.rows, self.versions = kind, rows, ""
        command = [sys.executable, __file__, "--worker", kind, *options, "--rows", *rows]
        env = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **os.environ}
        self.process: Any = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """What it tells, without what libraries print."""
        for text in self.process.stdout:
            if not text.startswith("{"):
                continue
            told = json.loads(text)
            if "told" in told:
                print(f"    {told['told']}", flush=True)
            self.versions = told.get("versions", self.versions)
            yield told

    def is_ready(self) -> bool:
        """Waits until it has compiled everything; False if it could not."""
        return any("ready" in told for told in self)

    def measure(self, row: str) -> dict[str, Times]:
        """The times of its candidates of this row, none if it has not got it."""
        if row not in self.rows or self.process.poll() is not None:
            return {}
        print(row, file=self.process.stdin, flush=True)
        found = next((told["times"] for told in self if "times" in told), {})
        return {name: Times(*times) for name, times in found.items()}

    def end(self) -> None:
        """Closes its input, at which it ends."""
        self.process.communicate()


def line(case: Case, times: dict[str, Times]) -> str:
    """The row of the table: microseconds a step, and the two ratios."""
    cells = [f"{case.title}"]
    pytorch = [t.median for name, t in times.items() if name.startswith(("PyTorch", "comp"))]
    columns = ("chainrule", "JAX by hand", "PyTorch eager", "compiled", "compiled, reduce-overhead")
    cells += [f"{times[n].median * 1e6:,.0f}" if n in times else "" for n in columns]
    ours = times["chainrule"].median
    hand = ours / times["JAX by hand"].median if "JAX by hand" in times else float("nan")
    cells += [f"{hand:.2f}", f"{case.aim:.2f}"]
    cells += [f"{min(pytorch) / ours:.2f}" if pytorch else ""]
    return "| " + " | ".join(cells) + " |"


HEAD = [
    "| microseconds a step | chainrule | JAX by hand | PyTorch eager | compiled | reduce-overhead "
    "| ours / JAX | wanted | PyTorch's best / ours |",
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
]


def _workers(asked: argparse.Namespace) -> list[Worker]:
    options = ["--device", asked.device, "--seconds", str(asked.seconds)]
    options += ["--small"] * asked.small + ["--no-compile"] * asked.no_compile
    workers = [Worker("ours", asked.rows, options)]
    if importlib.util.find_spec("torch"):
        wanted = {STEPS_OF.get(row, row) for row in asked.rows}
        kinds = [[row for row in kind if row in wanted] for kind in TOGETHER]
        workers += [Worker("torch", kind, options) for kind in kinds if kind]
    return workers


def table(asked: argparse.Namespace) -> Iterator[str]:
    """The lines of the page, each as soon as it is known."""
    workers = _workers(asked)
    ours, *theirs = workers
    if not ours.is_ready():
        for worker in workers:
            worker.process.kill()
        sys.exit("chainrule's rows could not be compiled")
    theirs = [worker for worker in theirs if worker.is_ready()]
    yield "- " + ", ".join(dict.fromkeys(w.versions for w in (ours, *theirs)))
    yield ""
    yield from HEAD
    seen: dict[str, dict[str, Times]] = {}
    for row in asked.rows:
        times = ours.measure(row)
        same = STEPS_OF.get(row, row)
        if same not in seen:
            seen[same] = {}
            for worker in theirs:
                seen[same].update(worker.measure(same))
        yield line(ROWS[row], {**seen[same], **times})
    for worker in workers:
        worker.end()


def main() -> None:
    """Measures rows, prints them, and writes the page if all were measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--seconds", type=float, default=0.3, help="of a turn")
    parser.add_argument("--out", type=Path, help="a page to write, instead of benchmarks/gpu.md")
    parser.add_argument("--worker", choices=["ours", "torch"], help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker is not None:
        work(asked)
        return
    whole = asked.rows == list(ROWS) and not asked.small
    page = asked.out or (PAGE if whole else None)
    lines = ["# Training on a GPU", ""]
    others = kept(page) if page is not None else ""  # parts that other programs write
    for text in table(asked):
        lines.append(text)
        print(text, flush=True)
        if page is not None:
            page.write_text("\n".join(lines) + "\n" + others)


if __name__ == "__main__":
    main()
