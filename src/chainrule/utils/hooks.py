"""What registering a hook returns."""

from __future__ import annotations

from chainrule.autograd.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
