"""NVIDIA's library of layers on a GPU: its switches can be set, and change nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from chainrule.tensor import Tensor

__all__ = [
    "allow_tf32",
    "benchmark",
    "benchmark_limit",
    "deterministic",
    "enabled",
    "flags",
    "is_acceptable",
    "is_available",
    "set_flags",
    "version",
]

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True
fp32_precision = "none"

Flags = tuple[bool, bool, int | None, bool, bool]


def is_available() -> bool:
    """Whether the library is there: never here."""
    return False


def version() -> int | None:
    """The version of the library: none."""
    return None


def is_acceptable(tensor: Tensor) -> bool:
    """Whether the library can compute with this tensor: never here."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
) -> Flags:
    """Sets those that are given; returns what they were."""
    global enabled, benchmark, benchmark_limit, deterministic, allow_tf32
    before = (enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    enabled = enabled if _enabled is None else _enabled
    benchmark = benchmark if _benchmark is None else _benchmark
    benchmark_limit = benchmark_limit if _benchmark_limit is None else _benchmark_limit
    deterministic = deterministic if _deterministic is None else _deterministic
    allow_tf32 = allow_tf32 if _allow_tf32 is None else _allow_tf32
    return before


@contextlib.contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """A block with these settings.

    >>> import chainrule as torch
    >>> with torch.backends.cudnn.flags(benchmark=True):
    ...     torch.backends.cudnn.benchmark
    True
    >>> torch.backends.cudnn.benchmark
    False
    """
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
