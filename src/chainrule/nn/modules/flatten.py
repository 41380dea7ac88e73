"""Dimensions joined and split, where PyTorch has them."""

from chainrule.nn import Flatten, Unflatten

__all__ = [
    "Flatten",
    "Unflatten",
]
