"""Apple's GPUs: none is used."""

from __future__ import annotations

from chainrule.absent import refused

__all__ = [
    "get_core_count",
    "get_name",
    "is_available",
    "is_built",
    "is_macos13_or_newer",
    "is_macos_or_newer",
]

_REASON = "chainrule computes on the CPU and uses no GPU; ask backends.mps.is_available() first"


def is_available() -> bool:
    """Whether tensors can live on an Apple GPU: never here.

    >>> import chainrule as torch
    >>> torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    device(type='cpu')
    """
    return False


def is_built() -> bool:
    """Whether the library was compiled for Apple's GPUs: it was not."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether Apple's GPU library is there, in this version: it is not."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Whether Apple's GPU library is there, in this version: it is not."""
    return False


get_name = refused("backends.mps.get_name", _REASON)
get_core_count = refused("backends.mps.get_core_count", _REASON)
