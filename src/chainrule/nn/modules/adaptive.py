"""The softmax that spends little on rare classes, where PyTorch has it."""

from chainrule.nn import AdaptiveLogSoftmaxWithLoss

__all__ = [
    "AdaptiveLogSoftmaxWithLoss",
]
