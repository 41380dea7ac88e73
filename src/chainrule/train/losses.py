"""Losses by name, and the mean of a loss with weights."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any

from chainrule import nn
from chainrule.nn import functional as F
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.shape.views import flatten
from chainrule.tensor import Tensor
from chainrule.metrics.labels import Scores

__all__ = ["LOSSES", "WeightedLoss"]

# What the outputs are that a loss takes, as far as a loss says it.
_SCORES: list[tuple[Scores, tuple[Callable[..., Tensor], ...], tuple[type[nn.Module], ...]]] = [
    (
        "logits",
        (
            F.cross_entropy,
            F.nll_loss,
            F.binary_cross_entropy_with_logits,
            F.soft_margin_loss,
            F.multi_margin_loss,
            F.perceptron_loss,
        ),
        (
            nn.CrossEntropyLoss,
            nn.NLLLoss,
            nn.BCEWithLogitsLoss,
            nn.SoftMarginLoss,
            nn.MultiMarginLoss,
            nn.PerceptronLoss,
        ),
    ),
    ("probabilities", (F.binary_cross_entropy,), (nn.BCELoss,)),
    (
        "labels",
        (F.mse_loss, F.l1_loss, F.half_squared_loss, F.smooth_l1_loss, F.huber_loss),
        (nn.MSELoss, nn.L1Loss, nn.HalfSquaredLoss, nn.SmoothL1Loss, nn.HuberLoss),
    ),
]

# A name, or a function (a module, too) of an output and a target.
LossLike = str | Callable[..., Tensor]

LOSSES: dict[str, Callable[..., Tensor]] = {
    "cross_entropy": F.cross_entropy,
    "nll": F.nll_loss,
    "bce": F.binary_cross_entropy,
    "bce_with_logits": F.binary_cross_entropy_with_logits,
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "smooth_l1": F.smooth_l1_loss,
    "huber": F.huber_loss,
    "poisson_nll": F.poisson_nll_loss,
    "soft_margin": F.soft_margin_loss,
    "kl_div": F.kl_div,
}


class WeightedLoss:
    """The mean loss of a batch, each sample with a weight if there are any.

    With weights w: sum_i w_i l_i / sum_i w_i, where l_i is the mean over the sample's outputs.

    Args:
        loss: a name, a function ``loss(output, target)`` or a loss module.
    """

    def __init__(self, loss: LossLike):
        if isinstance(loss, str):
            if loss not in LOSSES:
                raise ValueError(
                    f"loss: unknown name {loss!r}; select from {sorted(LOSSES)}, or pass a "
                    "function loss(output, target) or a loss module"
                )
            loss = LOSSES[loss]
        if not callable(loss):
            raise TypeError(
                f"loss: expected a name, a function or a module, got {type(loss).__name__}"
            )
        self.loss = loss
        self.name = getattr(loss, "__name__", type(loss).__name__)
        self._each: Callable[..., Tensor] | None = None

    @property
    def scores(self) -> Scores | None:
        """What the outputs of a classifier are under this loss; None where that is not known."""
        for kind, functions, modules in _SCORES:
            if self.loss in functions or isinstance(self.loss, modules):
                return kind
        return None

    def __call__(self, output: Any, target: Any, weight: Tensor | None = None) -> Tensor:
        if weight is None:
            value = self.loss(output, target)
            if not isinstance(value, Tensor):
                raise TypeError(f"loss: {self.name} returned {type(value).__name__}, not a tensor")
            return value if value.ndim == 0 else mean(value)
        losses = self.each(output, target, weight.ndim)
        return sum(losses * weight) / sum(weight)

    def each(self, output: Any, target: Any, dims: int = 1) -> Tensor:
        """The loss of each sample; of each entry of the first ``dims`` dimensions, if given."""
        if self._each is None:
            self._each = _without_reduction(self.loss, self.name)
        losses = self._each(output, target)
        return losses if losses.ndim <= dims else mean(flatten(losses, dims), -1)


def _without_reduction(loss: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """The same loss for each sample: with ``reduction="none"``."""
    if isinstance(loss, nn.Module) and hasattr(loss, "reduction"):
        single = copy.copy(loss)
        single.reduction = "none"
        return single
    if not isinstance(loss, nn.Module) and "reduction" in inspect.signature(loss).parameters:
        return functools.partial(loss, reduction="none")
    raise ValueError(
        f"loss: {name} has no argument `reduction`, so its samples cannot have weights; give it "
        "one, with 'none' for the loss of each sample"
    )
