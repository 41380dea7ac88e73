"""The account of the memory of GPUs."""

from __future__ import annotations

from typing import Any

from chainrule.absent import refused, warn_once
from chainrule.backend import devices, gpus
from chainrule.cuda.places import is_initialized, needed

__all__ = [
    "OutOfMemoryError",
    "empty_cache",
    "ipc_collect",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]

OutOfMemoryError = devices.OutOfDeviceMemory


def empty_cache() -> None:
    """Hands memory of the GPU back: XLA keeps it for what comes."""


def ipc_collect() -> None:
    """Hands back memory of the GPU that other processes used: none is held."""


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The account of GPU memory, by JAX's words; empty where there is none."""
    return gpus.memory("cuda", needed("memory_stats", device)) if is_initialized() else {}


def memory_allocated(device: Any = None) -> int:
    """Bytes of GPU memory that tensors use."""
    return int(memory_stats(device).get("bytes_in_use", 0))


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes of GPU memory that were in use."""
    return int(memory_stats(device).get("peak_bytes_in_use", 0))


def memory_reserved(device: Any = None) -> int:
    """Bytes of GPU memory that are held."""
    account = memory_stats(device)
    return int(account.get("pool_bytes", account.get("bytes_reserved", 0)))


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes of GPU memory that were held."""
    account = memory_stats(device)
    return int(account.get("peak_pool_bytes", account.get("peak_bytes_reserved", 0)))


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The bytes of a GPU that are free, and all."""
    account = gpus.memory("cuda", needed("mem_get_info", device))
    limit = account.get("bytes_limit", 0)
    return limit - account.get("bytes_in_use", 0), limit


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The account of GPU memory as lines."""
    account = gpus.memory("cuda", needed("memory_summary", device))
    return "\n".join([f"{name:<32} {value:>20,}" for name, value in account.items()])


def reset_peak_memory_stats(device: object = None) -> None:
    """Starts the account of the most memory anew: XLA's goes on, so this changes nothing, and says
    so once."""
    if is_initialized():
        warn_once(
            "cuda.reset_peak_memory_stats: XLA's account of the most memory cannot start anew"
        )


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
set_per_process_memory_fraction = refused(
    "cuda.set_per_process_memory_fraction",
    "set XLA_PYTHON_CLIENT_MEM_FRACTION=0.5 before the first use of a GPU",
)
