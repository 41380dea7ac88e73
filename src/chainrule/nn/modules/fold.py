"""Patches of images, where PyTorch has them."""

from chainrule.nn import Fold, Unfold

__all__ = [
    "Fold",
    "Unfold",
]
