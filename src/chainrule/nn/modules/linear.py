"""Linear layers, where PyTorch has them."""

from chainrule.nn import Bilinear, Identity, LazyLinear, Linear

__all__ = [
    "Bilinear",
    "Identity",
    "LazyLinear",
    "Linear",
]
