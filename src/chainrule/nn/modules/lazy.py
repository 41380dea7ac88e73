"""Modules that learn their sizes from the first input, where PyTorch has them."""

from chainrule.nn import LazyModuleMixin

__all__ = [
    "LazyModuleMixin",
]
