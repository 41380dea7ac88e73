"""Intel's library of layers: not used, its switches change nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = [
    "allow_tf32",
    "deterministic",
    "enabled",
    "flags",
    "is_acl_available",
    "is_available",
    "set_flags",
]

enabled = True
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether the library computes layers: never here."""
    return False


def is_acl_available() -> bool:
    """Whether the library for Arm computes layers: never here."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
) -> tuple[bool, bool, bool]:
    """Sets those that are given; returns what they were."""
    global enabled, deterministic, allow_tf32
    before = (enabled, deterministic, allow_tf32)
    enabled = enabled if _enabled is None else _enabled
    deterministic = deterministic if _deterministic is None else _deterministic
    allow_tf32 = allow_tf32 if _allow_tf32 is None else _allow_tf32
    return before


@contextlib.contextmanager
def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True
) -> Iterator[None]:
    """A block with these settings."""
    before = set_flags(enabled, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
