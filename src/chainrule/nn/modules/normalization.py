"""Normalization of single samples, where PyTorch has it."""

from chainrule.nn import GroupNorm, LayerNorm, LocalResponseNorm, RMSNorm

__all__ = [
    "GroupNorm",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]
