"""Schedules of the learning rate, with PyTorch's names."""

from __future__ import annotations

from chainrule.optim.lr_scheduler.analysis import RobbinsMonro, preview, robbins_monro
from chainrule.optim.lr_scheduler.base import LRScheduler
from chainrule.optim.lr_scheduler.chained import ChainedScheduler, SequentialLR, WarmupLR
from chainrule.optim.lr_scheduler.cyclic import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from chainrule.optim.lr_scheduler.decay import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    HalveEvery,
    InverseTimeLR,
    LinearDecayLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from chainrule.optim.lr_scheduler.functions import LambdaLR, MultiplicativeLR, batch_scaled_lr
from chainrule.optim.lr_scheduler.plateau import HalveOnPlateau, ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "HalveEvery",
    "HalveOnPlateau",
    "InverseTimeLR",
    "LRScheduler",
    "LambdaLR",
    "LinearDecayLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "RobbinsMonro",
    "SequentialLR",
    "StepLR",
    "WarmupLR",
    "batch_scaled_lr",
    "preview",
    "robbins_monro",
]
