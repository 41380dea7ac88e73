"""PyTorch's older place of ``func.functional_call``."""

from __future__ import annotations

from chainrule.autograd.functional_call import functional_call

__all__ = ["functional_call"]
