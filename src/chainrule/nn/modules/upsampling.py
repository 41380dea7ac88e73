"""Upsampling, where PyTorch has it."""

from chainrule.nn import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d

__all__ = [
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]
