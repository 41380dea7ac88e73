"""Losses of predicted numbers and of distributions over numbers.

The shapes of prediction and target must be equal: a loss does not broadcast.
"""

from __future__ import annotations

import math

from chainrule.nn.losses.reduction import (
    Loss,
    at_least,
    check_floating,
    check_same_shape,
    has_negative,
    reduced,
    reduction_of,
)
from chainrule.ops.layers.class_targets import REDUCTIONS
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.functions import clamp, exp, log, square, where, xlogy
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import unsqueeze
from chainrule.ops.layers.fused import squared_error
from chainrule.tensor import Tensor

__all__ = [
    "gaussian_nll_loss",
    "half_squared_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "GaussianNLLLoss",
    "HalfSquaredLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
]

Flag = bool | None

# --- functions ------------------------------------------------------------------------------------


def _difference(op: str, input: Tensor, target: Tensor) -> Tensor:
    check_same_shape(op, input=input, target=target)
    difference = input - target
    check_floating(op, "input and target", difference)
    return difference


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
    return _weighted_mean("l1_loss", abs(_difference("l1_loss", input, target)), weight, reduction)


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
    losses = square(_difference("mse_loss", input, target))
    return _weighted_mean("mse_loss", losses, weight, reduction)


def half_squared_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(x - y)^2 / 2; see :class:`chainrule.nn.HalfSquaredLoss`."""
    reduction_of("half_squared_loss", reduction)
    return 0.5 * reduced(square(_difference("half_squared_loss", input, target)), reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Squares below ``beta``, |x - y| above; see :class:`chainrule.nn.SmoothL1Loss`."""
    reduction = reduction_of("smooth_l1_loss", reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    difference = _difference("smooth_l1_loss", input, target)
    losses = abs(difference) if beta == 0 else _huber(difference, beta) / beta
    return reduced(losses, reduction)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Squares below ``delta``, a line above; see :class:`chainrule.nn.HuberLoss`."""
    reduction_of("huber_loss", reduction)
    if delta <= 0:
        raise RuntimeError(f"huber_loss: delta must be positive, got {delta}")
    losses = _huber(_difference("huber_loss", input, target), delta)
    if weight is not None:
        check_same_shape("huber_loss", input=losses, weight=weight)
        losses = losses * weight
    return reduced(losses, reduction)


def _huber(difference: Tensor, delta: float) -> Tensor:
    """d^2 / 2 for |d| <= delta, delta (|d| - delta / 2) beyond, in one formula for both."""
    inner = clamp(difference, -delta, delta)
    return inner * (difference - 0.5 * inner)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """-log of the normal density; see :class:`chainrule.nn.GaussianNLLLoss`."""
    reduction_of("gaussian_nll_loss", reduction)
    error = square(_difference("gaussian_nll_loss", input, target))
    var = _variance(input, var)
    variance = at_least(eps, var) if isinstance(var, Tensor) else max(var, eps)
    spread = log(variance) if isinstance(variance, Tensor) else math.log(variance)
    losses = 0.5 * (spread + error / variance)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


def _variance(input: Tensor, var: Tensor | float) -> Tensor | float:
    """The variance in a shape that broadcasts along one dimension at most."""
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError(f"gaussian_nll_loss: var must not be negative, got {var}")
        return var
    if has_negative(var):
        raise ValueError(
            "gaussian_nll_loss: var has negative entries; a variance is not negative, let the "
            "network put out its logarithm or pass it through softplus"
        )
    shape, given = tuple(input.shape), tuple(var.shape)
    if given == shape:
        return var
    if shape and given == shape[:-1]:
        return unsqueeze(var, -1)
    different = [b for a, b in zip(shape, given, strict=False) if a != b]
    if len(given) != len(shape) or different != [1]:
        raise ValueError(
            f"gaussian_nll_loss: var of shape {given} does not fit input of shape {shape}; it must "
            f"have that shape, {shape[:-1]}, or 1 in one of the dimensions"
        )
    return var


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Flag = None,
    eps: float = 1e-8,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """-log of the Poisson probability; see :class:`chainrule.nn.PoissonNLLLoss`."""
    reduction = reduction_of("poisson_nll_loss", reduction, size_average, reduce)
    check_same_shape("poisson_nll_loss", input=input, target=target)
    check_floating("poisson_nll_loss", "input", input)
    losses = exp(input) - target * input if log_input else input - target * log(input + eps)
    return reduced(losses + _stirling(target) if full else losses, reduction)


def _stirling(target: Tensor) -> Tensor:
    """log(y!) by Stirling's formula for y > 1, 0 below."""
    large = target > 1
    y = where(large, target, 1)
    return where(large, xlogy(y, y) - y + 0.5 * log(2 * math.pi * y), 0.0)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """q (log(q) - input), with q the target; see :class:`chainrule.nn.KLDivLoss`."""
    reduction = reduction_of("kl_div", reduction, size_average, reduce, KLDivLoss.reductions)
    check_same_shape("kl_div", input=input, target=target)
    if not (input.is_floating_point() and target.is_floating_point()):
        raise RuntimeError(
            f"kl_div: integers are not supported, got {input.dtype} and {target.dtype}; convert "
            "with .float()"
        )
    if not log_target and has_negative(target):
        raise ValueError(
            "kl_div: target has negative entries, which are no probabilities; pass "
            "log_target=True if it holds their logarithms"
        )
    if log_target:
        losses = exp(target) * (target - input)
    else:
        losses = xlogy(target, target) - target * input
    if reduction == "batchmean":
        return sum(losses) / (input.shape[0] if input.ndim else 1)
    return reduced(losses, reduction)


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
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class GaussianNLLLoss(Loss):
    """The target under a normal distribution: loss = (log(var) + (x - y)^2 / var) / 2.

    Shape: input (*), target (*), var (*) or with a dimension less or of size 1, or a number
    -> () or, with reduction="none", (*).

    Args:
        full: adds log(2 pi) / 2, which makes it minus the logarithm of the density.
        eps: a variance below counts as this (the gradient passes).
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.GaussianNLLLoss(full=True)(tensor([0.0]), tensor([0.0]), 1.0)
    tensor(0.9189)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(Loss):
    """Counts under a Poisson distribution: loss = exp(x) - y x, or x - y log(x + eps).

    Shape: input (*), target (*) -> () or, with reduction="none", (*).

    Args:
        log_input: whether the input is the logarithm of the rate (the first form).
        full: adds Stirling's formula for log(y!), y log(y) - y + log(2 pi y) / 2, where y > 1.
        eps: keeps the logarithm of the second form finite.
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.PoissonNLLLoss()(tensor([0.0]), tensor([3.0]))
    tensor(1.)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Flag = None,
        eps: float = 1e-8,
        reduce: Flag = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return poisson_nll_loss(
            log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction
        )


class KLDivLoss(Loss):
    """The divergence of the input from the target: loss = q (log(q) - x), with q the target.

    The input x holds logarithms of probabilities. "batchmean" is the divergence, averaged over the
    batch; "mean" divides it by the number of outcomes as well.

    Shape: input (*), target (*) -> () or, with reduction="none", (*).

    Args:
        reduction: "mean" over all elements, "batchmean", "sum", or "none".
        log_target: whether the target holds logarithms, too.

    >>> from chainrule import nn, tensor
    >>> p, q = tensor([[0.5, 0.5]]), tensor([[0.9, 0.1]])
    >>> nn.KLDivLoss(reduction="batchmean")(p.log(), q)
    tensor(0.3681)
    """

    reductions = (*REDUCTIONS, "batchmean")

    def __init__(
        self,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
        log_target: bool = False,
    ):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return kl_div(input, target, reduction=self.reduction, log_target=self.log_target)
