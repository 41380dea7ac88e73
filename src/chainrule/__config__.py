"""What is installed, as PyTorch's ``torch.__config__`` tells it."""

from __future__ import annotations

from chainrule.backend.threads import get_num_threads
from chainrule.cli.installation import info

__all__ = ["parallel_info", "show"]


def show() -> str:
    """What ``chainrule info`` prints: versions, kernels and threads."""
    return info() + "\n"


def parallel_info() -> str:
    """How many threads compute.

    >>> print(parallel_info())
    threads of an operation: ...
    """
    return f"threads of an operation: {get_num_threads()}\n"
