"""Channels for pixels, where PyTorch has them."""

from chainrule.nn import PixelShuffle, PixelUnshuffle

__all__ = [
    "PixelShuffle",
    "PixelUnshuffle",
]
