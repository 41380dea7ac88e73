"""Which loss belongs to which output, and objectives made of several losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from chainrule.nn.losses.likelihoods import poisson_nll_loss
from chainrule.nn.losses.numbers import half_squared_loss
from chainrule.nn.losses.classes import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
)
from chainrule.ops.elementwise.functions import exp, sigmoid, xlogy
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import reshape
from chainrule.ops.layers.softmax import softmax
from chainrule.tensor import Tensor

__all__ = ["CANONICAL_LINKS", "weighted_sum"]

Function = Callable[[Tensor, Tensor], Tensor]


class CanonicalLink(NamedTuple):
    """The output of a network for a task: activation a = f(s) of the scores s, and the loss.

    With the loss that belongs to the activation, the derivative by the scores is delta = a - y.

    Attributes:
        task: what is predicted.
        link: the inverse of the activation, by its name in the theory of linear models.
        activation: a = f(s); classes are the last dimension.
        loss: of a and the target y, summed (class targets as probabilities or one-hot).
        loss_of_scores: the same of s and y, in one stable operation: what to train with.
        module: the name of the class in ``chainrule.nn`` that takes scores.

    >>> from chainrule import nn, tensor
    >>> link = nn.CANONICAL_LINKS["binary classification"]
    >>> link.module, link.delta(tensor([0.0]), tensor([1.0]))
    ('BCEWithLogitsLoss', tensor([-0.5000]))
    """

    task: str
    link: str
    activation: Callable[[Tensor], Tensor]
    loss: Function
    loss_of_scores: Function
    module: str

    def delta(self, scores: Tensor, target: Tensor) -> Tensor:
        """The derivative of the loss by the scores: prediction minus target."""
        return self.activation(scores) - target


def _identity(s: Tensor) -> Tensor:
    return s


def _of_classes(a: Tensor, y: Tensor) -> Tensor:
    return -sum(xlogy(y, a))


def _of_class_scores(s: Tensor, y: Tensor) -> Tensor:
    classes = s.shape[-1]
    return cross_entropy(reshape(s, (-1, classes)), reshape(y, (-1, classes)), reduction="sum")


CANONICAL_LINKS: dict[str, CanonicalLink] = {
    link.task: link
    for link in (
        CanonicalLink(
            "regression",
            "identity",
            _identity,
            lambda a, y: half_squared_loss(a, y, "sum"),
            lambda s, y: half_squared_loss(s, y, "sum"),
            "HalfSquaredLoss",
        ),
        CanonicalLink(
            "binary classification",
            "logit",
            sigmoid,
            lambda a, y: binary_cross_entropy(a, y, reduction="sum"),
            lambda s, y: binary_cross_entropy_with_logits(s, y, reduction="sum"),
            "BCEWithLogitsLoss",
        ),
        CanonicalLink(
            "multiclass classification",
            "log-ratio",
            lambda s: softmax(s, -1),
            _of_classes,
            _of_class_scores,
            "CrossEntropyLoss",
        ),
        CanonicalLink(
            "counts",
            "log",
            exp,
            lambda a, y: sum(a - xlogy(y, a)),
            lambda s, y: poisson_nll_loss(s, y, reduction="sum"),
            "PoissonNLLLoss",
        ),
    )
}


def weighted_sum(
    losses: Mapping[str, Tensor] | Sequence[Tensor],
    weights: Mapping[str, float] | Sequence[float] | None = None,
) -> Tensor:
    """sum of weights[t] * losses[t]: tasks, data and penalties in one objective.

    With names, a loss without a weight counts as it is; without names there is a weight for each.

    >>> from chainrule import nn, tensor
    >>> parts = {"risk": tensor(2.0), "penalty": tensor(30.0)}
    >>> nn.functional.weighted_sum(parts, {"penalty": 0.01})
    tensor(2.3000)
    """
    if weights is not None and isinstance(weights, Mapping) != isinstance(losses, Mapping):
        raise TypeError(
            "weighted_sum: losses and weights must both have names (dict) or neither (list), got "
            f"{type(losses).__name__} and {type(weights).__name__}"
        )
    if not losses:
        raise ValueError("weighted_sum: there must be at least one loss, got none")
    parts, factors = _by_name(losses), {} if weights is None else _by_name(weights)
    unknown = [name for name in factors if name not in parts]
    if unknown:
        raise ValueError(
            f"weighted_sum: weights are given for {unknown}, but the losses are called "
            f"{list(parts)}"
        )
    if weights is not None and not isinstance(weights, Mapping) and len(factors) != len(parts):
        raise ValueError(
            f"weighted_sum: {len(parts)} losses need {len(parts)} weights, got {len(factors)}"
        )
    first, *others = [part * factors.get(name, 1.0) for name, part in parts.items()]
    for other in others:
        first = first + other
    return first


def _by_name(values: Any) -> dict[Any, Any]:
    return dict(values) if isinstance(values, Mapping) else dict(enumerate(values))
