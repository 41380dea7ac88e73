"""Losses of predicted distributions over numbers: what they leave to be known of the target.

The shapes of prediction and target must be equal: a loss does not broadcast.
"""

from __future__ import annotations

import math

from chainrule.ops.core.rounding import rounds_once
from chainrule.nn.losses.reduction import (
    Flag,
    Loss,
    at_least,
    check_same_shape,
    difference_of,
    has_negative,
    reduced,
    reduction_of,
)
from chainrule.ops.layers.class_targets import REDUCTIONS
from chainrule.ops.elementwise.functions import exp, log, square, xlogy
from chainrule.ops.elementwise.logic import where
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import expand, unsqueeze
from chainrule.tensor import Tensor

__all__ = [
    "gaussian_nll_loss",
    "kl_div",
    "poisson_nll_loss",
    "GaussianNLLLoss",
    "KLDivLoss",
    "PoissonNLLLoss",
]


@rounds_once
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log(var) + (x - y)^2 / var) / 2; see :class:`chainrule.nn.GaussianNLLLoss`."""
    reduction_of("gaussian_nll_loss", reduction)
    shape, given = [x.array.shape if isinstance(x, Tensor) else () for x in (input, target)]
    if isinstance(target, Tensor) and not given:  # one number for all
        target = expand(target, shape)
    elif len(shape) == len(given) and 1 in given:  # what has size 1 repeats
        target = expand(target, [n if m == 1 else m for n, m in zip(shape, given, strict=True)])
    error = square(difference_of("gaussian_nll_loss", input, target))
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
    """exp(x) - y x, or x - y log(x + eps); see :class:`chainrule.nn.PoissonNLLLoss`."""
    reduction = reduction_of("poisson_nll_loss", reduction, size_average, reduce)
    check_same_shape("poisson_nll_loss", input=input, target=target)
    losses = exp(input) - target * input if log_input else input - target * log(input + eps)
    return reduced(losses + _stirling(target) if full else losses, reduction)


def _stirling(target: Tensor) -> Tensor:
    """log(y!) by Stirling's formula for y > 1, 0 below."""
    large = target > 1
    y = where(large, target, 1)
    return where(large, xlogy(y, y) - y + 0.5 * log(2 * math.pi * y), 0.0)


@rounds_once
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
