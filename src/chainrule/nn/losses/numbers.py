"""Losses of predicted numbers.

The shapes of prediction and target must be equal: a loss does not broadcast.
"""

from __future__ import annotations

from chainrule.nn.losses.reduction import (
    Flag,
    Loss,
    check_same_shape,
    difference_of,
    reduced,
    reduction_of,
)
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.functions import square
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.layers.fused import squared_error
from chainrule.tensor import Tensor

__all__ = [
    "half_squared_loss",
    "huber_loss",
    "l1_loss",
    "mse_loss",
    "smooth_l1_loss",
    "HalfSquaredLoss",
    "HuberLoss",
    "L1Loss",
    "MSELoss",
    "SmoothL1Loss",
]

# --- functions ------------------------------------------------------------------------------------


def _weighted_mean(op: str, losses: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """The reduction of weighted losses: the mean is divided by the sum of the weights."""
    if weight is None:
        return reduced(losses, reduction)
    check_same_shape(op, input=losses, weight=weight)
    if reduction == "mean":
        return sum(losses * weight) / sum(weight)
    return reduced(losses * weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|x - y|; see :class:`chainrule.nn.L1Loss`."""
    reduction = reduction_of("l1_loss", reduction, size_average, reduce)
    losses = abs(difference_of("l1_loss", input, target, complex_numbers=True))
    return _weighted_mean("l1_loss", losses, weight, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(x - y)^2; see :class:`chainrule.nn.MSELoss`."""
    reduction = reduction_of("mse_loss", reduction, size_average, reduce)
    if weight is None and reduction != "none":
        loss = squared_error(input, target, reduction == "mean")
        if loss is not None:
            return loss
    losses = square(difference_of("mse_loss", input, target))
    return _weighted_mean("mse_loss", losses, weight, reduction)


def half_squared_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(x - y)^2 / 2; see :class:`chainrule.nn.HalfSquaredLoss`."""
    reduction_of("half_squared_loss", reduction)
    return 0.5 * reduced(square(difference_of("half_squared_loss", input, target)), reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d^2 / (2 beta) for |d| <= beta, |d| - beta / 2 beyond, with d = x - y; see
    :class:`chainrule.nn.SmoothL1Loss`."""
    reduction = reduction_of("smooth_l1_loss", reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    difference = difference_of("smooth_l1_loss", input, target)
    losses = abs(difference) if beta == 0 else _huber(difference, beta) / beta
    return reduced(losses, reduction)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """d^2 / 2 for |d| <= delta, delta (|d| - delta / 2) beyond, with d = x - y; see
    :class:`chainrule.nn.HuberLoss`."""
    reduction_of("huber_loss", reduction)
    if delta <= 0:
        raise RuntimeError(f"huber_loss: delta must be positive, got {delta}")
    losses = _huber(difference_of("huber_loss", input, target), delta)
    if weight is not None:
        check_same_shape("huber_loss", input=losses, weight=weight)
        losses = losses * weight
    return reduced(losses, reduction)


def _huber(difference: Tensor, delta: float) -> Tensor:
    """d^2 / 2 for |d| <= delta, delta (|d| - delta / 2) beyond, in one formula for both."""
    inner = clamp(difference, -delta, delta)
    return inner * (difference - 0.5 * inner)


# --- modules --------------------------------------------------------------------------------------


class L1Loss(Loss):
    """The absolute error: loss = |x - y|.

    Shape: input (*), target (*) -> () or, with reduction="none", (*).

    Args:
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.L1Loss()(tensor([1.0, 2.0]), tensor([1.0, 4.0]))
    tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return l1_loss(input, target, reduction=self.reduction)


class MSELoss(Loss):
    """The squared error: loss = (x - y)^2, by default its mean over all elements.

    Shape: input (*), target (*) -> () or, with reduction="none", (*).

    Args:
        reduction: "mean" over all elements, "sum" (the residual sum of squares; of a network that
            reproduces its input, the reconstruction error), or "none".

    >>> from chainrule import nn, tensor
    >>> nn.MSELoss()(tensor([1.0, 2.0]), tensor([1.0, 4.0]))
    tensor(2.)
    >>> nn.MSELoss()(tensor([[1.0], [2.0]]), tensor([1.0, 4.0]))
    Traceback (most recent call last):
        ...
    ValueError: mse_loss: input has shape (2, 1) but target has shape (2,); a loss does not
    broadcast, make the shapes equal: input.squeeze(-1) or target.unsqueeze(-1)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return mse_loss(input, target, reduction=self.reduction)


class HalfSquaredLoss(Loss):
    """Half the squared error, loss = (x - y)^2 / 2, whose derivative is x - y.

    Shape: input (*), target (*) -> () or, with reduction="none", (*).

    Args:
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.HalfSquaredLoss(reduction="sum")(tensor([1.0, 2.0]), tensor([1.0, 4.0]))
    tensor(2.)
    """

    def __init__(self, reduction: str = "mean"):
        super().__init__(reduction=reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return half_squared_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(Loss):
    """|d| - beta / 2 where |d| > beta, and d^2 / (2 beta) below, with d = x - y.

    Shape: input (*), target (*) -> () or, with reduction="none", (*).

    Args:
        reduction: "mean" over all elements, "sum", or "none".
        beta: where the parabola becomes a line; 0 gives the absolute error.

    >>> from chainrule import nn, tensor
    >>> nn.SmoothL1Loss(reduction="none")(tensor([0.5, 3.0]), tensor([0.0, 0.0]))
    tensor([0.1250, 2.5000])
    """

    def __init__(
        self,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """delta (|d| - delta / 2) where |d| > delta, and d^2 / 2 below, with d = x - y.

    Shape: input (*), target (*) -> () or, with reduction="none", (*).

    Args:
        reduction: "mean" over all elements, "sum", or "none".
        delta: where the parabola becomes a line.

    >>> from chainrule import nn, tensor
    >>> nn.HuberLoss(reduction="none", delta=2.0)(tensor([0.5, 3.0]), tensor([0.0, 0.0]))
    tensor([0.1250, 4.0000])
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        if not isinstance(delta, (int, float)):
            raise TypeError(f"HuberLoss: delta must be a float or int, got {delta!r}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return huber_loss(input, target, reduction=self.reduction, delta=self.delta)
