"""NVIDIA's library of layers on a GPU: of its switches ``allow_tf32`` counts.

It says whether convolutions and recurrent layers of float32 may be computed in TF32 on a device, as
they are at first. The others can be set, and change nothing: XLA chooses.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from chainrule.backend.precision import current, set_levels
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
fp32_precision = "none"
if TYPE_CHECKING:
    allow_tf32: bool

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
    global enabled, benchmark, benchmark_limit, deterministic
    before = (enabled, benchmark, benchmark_limit, deterministic, _tf32_is_allowed())
    enabled = enabled if _enabled is None else _enabled
    benchmark = benchmark if _benchmark is None else _benchmark
    benchmark_limit = benchmark_limit if _benchmark_limit is None else _benchmark_limit
    deterministic = deterministic if _deterministic is None else _deterministic
    if _allow_tf32 is not None:
        _allow(_allow_tf32)
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


# --- the switch, as an attribute of this module ---------------------------------------------------


def _tf32_is_allowed() -> bool:
    return current().layers != "highest"


def _allow(allowed: bool) -> None:
    set_levels(layers="high" if allowed else "highest")


class _Module(ModuleType):
    @property
    def allow_tf32(self) -> bool:
        """Whether convolutions and recurrent layers of float32 may be computed in TF32."""
        return _tf32_is_allowed()

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        _allow(allowed)


sys.modules[__name__].__class__ = _Module
