"""The command line: ``chainrule info`` says what is installed and in use."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from importlib import metadata

from chainrule import backend

__all__ = ["info", "main"]

# What the usual BLAS libraries under NumPy read, first the one that all of them understand.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed (run from its sources?)" if package == "chainrule" else "missing"


def _kernels() -> str:
    """Which kernels compute, and why those."""
    asked = os.environ.get("CHAINRULE_KERNELS")
    if asked == backend.current():
        why = f"CHAINRULE_KERNELS={asked}"
    elif len(backend.available()) == 1:
        why = "the only ones installed"
    else:
        why = "the default"
    return f"{backend.current()} ({why}; available: {', '.join(backend.available())})"


def _threads() -> str:
    """How many threads the array library may use, and who says so."""
    for name in _THREAD_VARIABLES:
        if name in os.environ:
            return f"{os.environ[name]} ({name})"
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{usable} (the processors this program may use)"


def info() -> str:
    """What ``chainrule info`` prints: versions, kernels and threads.

    >>> print(info())
    chainrule ...
    Python    ...
    NumPy     ...
    SciPy     ...
    kernels   ...
    threads   ...
    """
    rows = {
        "chainrule": _version("chainrule"),
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "NumPy": _version("numpy"),
        "SciPy": _version("scipy"),
        "kernels": _kernels(),
        "threads": _threads(),
    }
    return "\n".join(f"{name:<9} {value}" for name, value in rows.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="chainrule", description="Neural networks in Python, with every derivative in sight."
    )
    parser.add_argument("--version", action="version", version=f"chainrule {_version('chainrule')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("info", help="say what is installed, and which kernels compute and why")
    parser.parse_args(arguments)
    print(info())
    return 0
