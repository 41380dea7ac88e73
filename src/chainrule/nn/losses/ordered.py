"""Losses of predicted quantiles and of predicted ranks."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.backend import dtypes
from chainrule.nn.losses.classes import binary_cross_entropy_with_logits
from chainrule.nn.losses.reduction import (
    Loss,
    check_floating,
    check_integers,
    check_tensors,
    reduced,
    reduction_of,
)
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import arange
from chainrule.ops.elementwise.functions import relu
from chainrule.ops.index.subscript import numbers_of
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import unsqueeze
from chainrule.tensor import Tensor

__all__ = ["ordinal_loss", "pinball_loss", "OrdinalLoss", "PinballLoss"]


def pinball_loss(
    input: Tensor, target: Tensor, quantiles: Sequence[float], reduction: str = "mean"
) -> Tensor:
    """q d for d >= 0 and (q - 1) d below, with d = y - x; see :class:`chainrule.nn.PinballLoss`."""
    op = "pinball_loss"
    reduction_of(op, reduction)
    check_tensors(op, input=input, target=target)
    levels = _levels(op, quantiles)
    shape, given = tuple(input.shape), tuple(target.shape)
    if not shape or shape[-1] != len(levels):
        raise ValueError(
            f"{op}: input of shape {shape} must have {len(levels)} columns at the end, one for "
            f"each of the quantiles {levels}"
        )
    if given not in (shape[:-1], (*shape[:-1], 1)):
        raise ValueError(
            f"{op}: input of shape {shape} needs a target of shape {shape[:-1]} or "
            f"{(*shape[:-1], 1)}, one number for all quantiles, got {given}"
        )
    check_floating(op, "input", input)
    y = target if len(given) == len(shape) else unsqueeze(target, -1)
    difference = y - input
    losses = difference * tensor(levels, dtype=difference.dtype, device=difference.device) + relu(
        -difference
    )
    return reduced(losses, reduction)


def _levels(op: str, quantiles: Sequence[float]) -> list[float]:
    levels = [float(q) for q in quantiles]
    if not levels or not all(0 < q < 1 for q in levels):
        raise ValueError(f"{op}: quantiles lie between 0 and 1, at least one, got {levels}")
    return levels


def ordinal_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """-sum_k log P(1[y > k]), P(y > k) = sigmoid(x_k); see :class:`chainrule.nn.OrdinalLoss`."""
    op = "ordinal_loss"
    reduction_of(op, reduction)
    check_tensors(op, input=input, target=target)
    shape, given = tuple(input.shape), tuple(target.shape)
    if len(shape) < 1 or given != shape[:-1]:
        raise ValueError(
            f"{op}: input of shape {shape} needs a target of shape {shape[:-1]}, the rank of each "
            f"sample, got {given}"
        )
    check_floating(op, "input", input)
    check_integers(op, "target", target)
    ranks = numbers_of(target)
    if ranks is not None and ranks.size and not 0 <= ranks.min() <= ranks.max() <= shape[-1]:
        raise ValueError(
            f"{op}: ranks for {shape[-1]} thresholds are 0 to {shape[-1]}, got ranks from "
            f"{ranks.min()} to {ranks.max()}"
        )
    above = cast(
        unsqueeze(target, -1) > arange(shape[-1], dtype=dtypes.int64, device=target.device),
        input.dtype,
    )
    losses = binary_cross_entropy_with_logits(input, above, reduction="none")
    return reduced(sum(losses, -1), reduction)


# --- modules --------------------------------------------------------------------------------------


class PinballLoss(Loss):
    """The error of quantiles: loss_k = q_k d where d = y - x_k >= 0, and (q_k - 1) d below.

    Its mean is least where x_k is the q_k-quantile of y (Koenker and Bassett, 1978); for q = 1/2
    it is half the absolute error.

    Shape: input (*, K), target (*) or (*, 1) -> () or, with reduction="none", (*, K).

    Args:
        quantiles: K numbers between 0 and 1.
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.PinballLoss([0.1, 0.9], reduction="none")(tensor([[1.0, 1.0]]), tensor([3.0]))
    tensor([[0.2000, 1.8000]])
    """

    def __init__(self, quantiles: Sequence[float], reduction: str = "mean"):
        super().__init__(reduction=reduction)
        self.quantiles = _levels("PinballLoss", quantiles)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return pinball_loss(input, target, self.quantiles, self.reduction)

    def extra_repr(self) -> str:
        return f"quantiles={self.quantiles}"


class OrdinalLoss(Loss):
    """Ranks 0, ..., K by cumulative logits: loss = -sum_k log P(1[y > k]), P(y > k) = sigmoid(x_k).

    Each of the K thresholds is a question with two answers: is the rank above it? A prediction
    that is wrong by several ranks misses as many of them (Niu and others, 2016).

    Shape: input (*, K), target (*) of whole numbers 0 to K -> () or, with reduction="none", (*).

    Args:
        reduction: "mean" over the samples, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.OrdinalLoss(reduction="none")(tensor([[9.0, 9.0, -9.0]]), tensor([0])).round()
    tensor([18.])
    """

    def __init__(self, reduction: str = "mean"):
        super().__init__(reduction=reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return ordinal_loss(input, target, self.reduction)
