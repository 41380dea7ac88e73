"""What is installed: versions, kernels, instructions, threads and devices."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from chainrule import backend
from chainrule.backend import devices, gpus, instructions

__all__ = ["facts", "info", "version"]

# What the usual BLAS libraries under NumPy read, first the one that all of them understand.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def version(package: str) -> str:
    """The version of an installed package."""
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
        why = f"compiled ones: {backend.why_not_native}"
    else:
        why = "the default"
    return f"{backend.current()} ({why}; available: {', '.join(backend.available())})"


def _instructions() -> str:
    """Which instructions the compiled kernels use, and who says so."""
    native = backend.native_module()
    if native is None or backend.current() != "native":
        return "those of NumPy (compiled kernels are not in use)"
    asked = os.environ.get("CHAINRULE_ISA")
    why = f"CHAINRULE_ISA={asked}" if asked == native.get_isa() else "the default"
    return f"{native.get_isa()} ({why}; available: {', '.join(instructions.supported(native))})"


def _threads() -> str:
    """How many threads the array library may use, and who says so."""
    for name in _THREAD_VARIABLES:
        if name in os.environ:
            return f"{os.environ[name]} ({name})"
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{usable} (the processors this program may use)"


def _devices() -> str:
    """Where tensors can live, and what is there; imports JAX, if it is installed."""
    if not devices.available():
        return f"cpu ({devices.NO_JAX})"
    kinds = [kind for kind in devices.KINDS if kind != "xla" and devices.available(kind)]
    found = ["cpu"]
    for kind in kinds or ["xla"]:
        names = [gpus.name(kind, i) for i in range(devices.count(kind))]
        found += [f"{kind}:{i} ({name})" for i, name in enumerate(names)]
    return f"{', '.join(found)}; JAX {version('jax')}"


def facts() -> dict[str, str]:
    """What :func:`info` prints, by name."""
    return {
        "chainrule": version("chainrule"),
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "NumPy": version("numpy"),
        "SciPy": version("scipy"),
        "kernels": _kernels(),
        "vectors": _instructions(),
        "threads": _threads(),
        "devices": _devices(),
    }


def info() -> str:
    """What ``chainrule info`` prints: versions, kernels, instructions, threads and devices.

    >>> print(info())
    chainrule ...
    Python    ...
    NumPy     ...
    SciPy     ...
    kernels   ...
    vectors   ...
    threads   ...
    devices   cpu...
    """
    rows = facts()
    return "\n".join(f"{name:<9} {value}" for name, value in rows.items())
