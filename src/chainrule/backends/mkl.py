"""Intel's library of linear algebra: NumPy's and SciPy's own are used."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether the compiled kernels call the library: never here."""
    return False
