"""Channels in another order, where PyTorch has them."""

from chainrule.nn import ChannelShuffle

__all__ = [
    "ChannelShuffle",
]
