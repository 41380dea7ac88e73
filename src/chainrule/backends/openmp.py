"""OpenMP: the compiled kernels share their work among threads of a pool of their own instead."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether threads are OpenMP's: they are not. ``chainrule.set_num_threads`` sets how many."""
    return False
