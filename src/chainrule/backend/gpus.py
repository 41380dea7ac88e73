"""What is known of a device: its name, its memory, whether it has done all that it was given."""

from __future__ import annotations

from typing import Any, NamedTuple

from chainrule.backend import devices

__all__ = ["Properties", "capability", "memory", "name", "properties", "synchronize"]


class Properties(NamedTuple):
    """What a device is."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def _raw(kind: str, number: int) -> Any:
    place = devices.find(kind, number)
    return devices.of_kind(place.kind)[place.number]


def name(kind: str, number: int) -> str:
    """What its maker calls it."""
    return str(_raw(kind, number).device_kind)


def capability(kind: str, number: int) -> tuple[int, int]:
    """The generation of a GPU, as NVIDIA counts them; (0, 0) of what is none."""
    told = str(getattr(_raw(kind, number), "compute_capability", "0.0"))
    major, _, minor = told.partition(".")
    return int(major), int(minor or 0)


def memory(kind: str, number: int) -> dict[str, int]:
    """The account of its memory in bytes, by JAX's words; empty where it keeps none."""
    return dict(_raw(kind, number).memory_stats() or {})


def properties(kind: str, number: int) -> Properties:
    """What a device is."""
    raw, account = _raw(kind, number), memory(kind, number)
    cores = int(getattr(raw, "core_count", 0) or 0)
    limit = account.get("bytes_limit", 0)
    return Properties(name(kind, number), *capability(kind, number), limit, cores)


def synchronize(kind: str, number: int) -> None:
    """Waits until it has done what it was given, which it does in order."""
    jax = devices.jax()
    jax.block_until_ready(jax.device_put(0, _raw(kind, number)) + 1)
