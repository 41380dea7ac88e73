"""Devices: what there is besides the CPU, and how arrays come to them and back.

Until a device is first used, nothing here costs anything. Then JAX is imported, and every kernel of
``K`` becomes a function that looks whether one of its arguments is a cell with an array on a device
(``backend/placed.py``); ``backend/dispatch.py`` says what it does then.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from chainrule.backend.placed import Place, Placed, compute

__all__ = [
    "KINDS",
    "NO_JAX",
    "OutOfDeviceMemory",
    "activate",
    "available",
    "bring",
    "count",
    "default_kind",
    "fetch",
    "find",
    "is_full",
    "is_imported",
    "jax",
    "of_kind",
    "out_of_memory",
    "put",
    "told",
]

# Names of kinds of devices, and JAX's names for them. "xla" is whatever JAX computes on.
KINDS = {"cuda": "gpu", "tpu": "tpu", "xla": ""}
NO_JAX = "devices besides the CPU need JAX: pip install 'chainrule[xla]'"

_jax: Any = None


def available(kind: str = "xla") -> bool:
    """Whether there is a device of this kind. Imports JAX, if it is installed."""
    return count(kind) > 0


def count(kind: str = "xla") -> int:
    """How many devices of a kind this process can use."""
    if kind != "xla" and not _has_plugin(kind):
        return 0
    try:
        return len(of_kind(kind)) if find_spec("jax") is not None else 0
    except RuntimeError:  # JAX's, where it finds none
        return 0


def _has_plugin(kind: str) -> bool:
    """Whether what JAX needs for a kind of devices is installed: programs ask whether there is a
    GPU wherever they run, and importing JAX to say no would take a second."""
    if _jax is not None:
        return True
    if kind == "tpu":
        return find_spec("libtpu") is not None
    spec = find_spec("jax_plugins")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    names = [name for folder in folders for name in os.listdir(folder)]
    return any(["cuda" in name or "rocm" in name for name in names])


def of_kind(kind: str) -> list[Any]:
    """JAX's devices of a kind that this process can use."""
    platform = KINDS[kind]
    return list(jax().local_devices(backend=platform) if platform else jax().local_devices())


def default_kind() -> str:
    """The kind of the devices that JAX computes on: "cuda", "tpu", or "xla", which is the CPU."""
    platform = jax().default_backend()
    return {name: kind for kind, name in KINDS.items()}.get(platform, "xla")


def jax() -> Any:
    """JAX, imported when it is first needed, with numbers of 64 bits.

    Raises:
        ImportError: it is not installed.
    """
    global _jax
    if _jax is None:
        try:
            _jax = import_module("jax")
        except ImportError:
            raise ImportError(NO_JAX) from None
        _jax.config.update("jax_enable_x64", True)
    return _jax


def is_imported() -> bool:
    """Whether JAX is: nobody has used a device otherwise."""
    return _jax is not None


def told(kind: str) -> str:
    """Why there is no device of a kind, in words that end an error."""
    if find_spec("jax") is None:
        return f"tensors live on 'cpu' ({NO_JAX})"
    there = default_kind()
    here = "the CPU" if there == "xla" else f"'{there}'"
    fix = "; for GPUs of NVIDIA: pip install 'jax[cuda13]'" if kind == "cuda" else ""
    return (
        f"tensors live on 'cpu' and on 'xla' (JAX finds no {KINDS[kind]}: its 'xla' is {here}{fix})"
    )


def find(kind: str, index: int | None) -> Place:
    """The device of this kind and number.

    Raises:
        RuntimeError: there is none, or JAX is not installed; says which there are.
    """
    there, number = count(kind), 0 if index is None else index
    if there == 0:
        raise RuntimeError(f"device: {kind!r} is not available; {told(kind)}")
    if not 0 <= number < there:
        raise RuntimeError(
            f"device: {kind}:{number} is not available; there {'is' if there == 1 else 'are'} "
            f"{there} of its kind, numbered from 0"
        )
    return Place(kind, number)


def put(a: Any, place: Place, model: Any = None) -> Placed:
    """A cell on a device with the numbers of an array of the host, or of another cell; ``model`` is
    a cell to lie on several devices with, if it does."""
    activate()
    return compute.put(a, place, model)


def bring(a: Any, place: Place) -> Placed:
    """The same for what the user moves to a device: among several processes, his share."""
    activate()
    return compute.bring(a, place)


def activate() -> None:
    """Has kernels look where their arguments are, from now on."""
    if not compute.is_active():
        import_module("chainrule.backend.dispatch").activate()


def fetch(cell: Placed) -> np.ndarray:
    """A copy on the host."""
    return compute.read(cell)


def is_full(error: Exception) -> bool:
    """Whether XLA says that memory ran out, also in what was computed before."""
    said = str(error)
    return "RESOURCE_EXHAUSTED" in said or "Out of memory" in said


def out_of_memory(what: str, said: str) -> MemoryError:
    """The error for a device whose memory is full."""
    return OutOfDeviceMemory(
        f"{what}: out of memory on the device; take a smaller batch, or recompute activations with "
        f"utils.checkpoint ({said.partition(chr(10))[0][:200]})"
    )


class OutOfDeviceMemory(MemoryError, RuntimeError):
    """A device has not the memory that was asked for: PyTorch's is a RuntimeError."""
