"""The short way through attention in evaluation: there is one way only."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = True


def get_fastpath_enabled() -> bool:
    """What :func:`set_fastpath_enabled` set."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Sets whether the short way may be taken; it changes nothing."""
    global _enabled
    _enabled = bool(value)
