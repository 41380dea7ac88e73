"""Peak memory of a piece of work: how far the resident pages of a fresh process grow."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["growth_of", "measured_apart"]

MEBIBYTE = 1 << 20


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise OSError(f"/proc/self/status has no {field}: memory is measured on Linux alone")


def growth_of(make: Callable[[bool], Callable[[], object]], steps: int = 2) -> float:
    """Mebibytes by which ``make(False)`` and a few calls of what it returns raise the peak.

    ``make(True)`` and its call come before, in small: code that is loaded when it is first used
    does not count, nor does memory that was free, which the C library gives back before. What the
    making itself needs (weights, data, states) does.
    """
    make(True)()
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):  # other C libraries keep nothing
        ctypes.CDLL(None).malloc_trim(0)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is resident
    work = make(False)
    for _ in range(steps):
        work()
    return (_status("VmHWM") - before) / MEBIBYTE


def load_products(lib: Any) -> None:
    """Products of several shapes: what they load when first called (BLAS, its module) is code."""
    for rows, inner, columns in ((512, 64, 16), (512, 512, 512), (64, 2000, 8)):
        lib.ones(rows, inner) @ lib.ones(inner, columns)


def measured_apart(program: str, library: str, *arguments: str, threads: int = 2) -> float:
    """What ``program.measured(lib, *arguments)`` returns in a process of its own."""
    code = [sys.executable, __file__, program, library, str(threads), *arguments]
    found = subprocess.run(code, capture_output=True, text=True, check=False)
    if found.returncode:
        raise RuntimeError(f"{' '.join(code)} failed:\n{found.stderr}")
    return float(json.loads(found.stdout.splitlines()[-1]))


def main() -> None:
    program, library, threads, *arguments = sys.argv[1:]
    lib: Any = importlib.import_module(library)
    lib.set_num_threads(int(threads))
    load_products(lib)
    print(json.dumps(importlib.import_module(program).measured(lib, *arguments)))


if __name__ == "__main__":
    main()
