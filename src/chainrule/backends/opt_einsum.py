"""The library that finds an order for the products of ``einsum``: not called."""

from __future__ import annotations

from chainrule.absent import refused

__all__ = ["enabled", "get_opt_einsum", "is_available", "set_flags", "strategy"]

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Whether ``chainrule.einsum`` calls the library: it does not."""
    return False


def get_opt_einsum() -> None:
    """The library, None where it is not called."""


set_flags = refused(
    "backends.opt_einsum.set_flags", "chainrule.einsum does not call opt_einsum; leave this out"
)
