"""Losses of predicted classes: two classes, many classes, and the errors they stand for."""

from __future__ import annotations

from chainrule.backend import dtypes
from chainrule.nn.losses.reduction import (
    Flag,
    Loss,
    check_same_shape,
    check_weight,
    reduced,
    reduction_of,
)
from chainrule.ops.layers import softmax as ops
from chainrule.ops.elementwise.functions import softplus
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.reduce.order import argmax
from chainrule.ops.core.promotion import cast
from chainrule.ops.index.subscript import numbers_of
from chainrule.tensor import Tensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "nll_loss",
    "perceptron_loss",
    "soft_margin_loss",
    "zero_one_loss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "NLLLoss",
    "PerceptronLoss",
    "SoftMarginLoss",
    "ZeroOneLoss",
]

# --- functions ------------------------------------------------------------------------------------


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """-(y log(x) + (1 - y) log(1 - x)); see :class:`chainrule.nn.BCELoss`."""
    reduction = reduction_of("binary_cross_entropy", reduction, size_average, reduce)
    check_same_shape("binary_cross_entropy", input=input, target=target)
    check_weight("binary_cross_entropy", "weight", weight, input.shape)
    return ops.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """-(y log(p) + (1 - y) log(1 - p)) with p = sigmoid(x), stable for any x; see
    :class:`chainrule.nn.BCEWithLogitsLoss`."""
    op = "binary_cross_entropy_with_logits"
    reduction = reduction_of(op, reduction, size_average, reduce)
    check_same_shape(op, input=input, target=target)
    check_weight(op, "weight", weight, input.shape)
    check_weight(op, "pos_weight", pos_weight, input.shape)
    return ops.binary_cross_entropy_with_logits(input, target, weight, reduction, pos_weight)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-y x)) with labels y = -1, 1; see :class:`chainrule.nn.SoftMarginLoss`."""
    reduction = reduction_of("soft_margin_loss", reduction, size_average, reduce)
    check_same_shape("soft_margin_loss", input=input, target=target)
    return reduced(softplus(-target * input), reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    ignore_index: int = -100,
    reduce: Flag = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-log(softmax(x)[target]); see :class:`chainrule.nn.CrossEntropyLoss`."""
    if size_average is not None or reduce is not None:
        reduction = reduction_of("cross_entropy", reduction, size_average, reduce)
    return ops.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    ignore_index: int = -100,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """-x[target], with x logarithms of probabilities; see :class:`chainrule.nn.NLLLoss`."""
    if size_average is not None or reduce is not None:
        reduction = reduction_of("nll_loss", reduction, size_average, reduce)
    return ops.nll_loss(input, target, weight, ignore_index, reduction)


def zero_one_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """1 where the class is wrong, 0 where it is right; see :class:`chainrule.nn.ZeroOneLoss`."""
    reduction_of("zero_one_loss", reduction)
    if isinstance(input, Tensor) and isinstance(target, Tensor) and input.ndim == target.ndim + 1:
        input = argmax(input, 1 if input.ndim > 1 else 0)
    check_same_shape("zero_one_loss", input=input, target=target)
    return reduced(cast(input != target, dtypes.get_default_dtype()), reduction)


def perceptron_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """max(0, -y x) with labels y = -1, 1; see :class:`chainrule.nn.PerceptronLoss`."""
    reduction_of("perceptron_loss", reduction)
    check_same_shape("perceptron_loss", input=input, target=target)
    _check_signs("perceptron_loss", target)
    # At x = 0, where every perceptron starts, clamp has the derivative that lets it learn.
    return reduced(clamp(-target * input, min=0.0), reduction)


def _check_signs(op: str, target: Tensor) -> None:
    numbers = numbers_of(target)
    if numbers is None:
        return
    wrong = (numbers != 1) & (numbers != -1)
    if wrong.any():
        raise ValueError(
            f"{op}: the labels in target must be -1 or 1, got {numbers[wrong].flat[0]}; labels 0 "
            "and 1 become these by 2 * target - 1"
        )


# --- two classes ----------------------------------------------------------------------------------


class BCELoss(Loss):
    """The binary cross-entropy: loss = -weight (y log(x) + (1 - y) log(1 - x)).

    The logarithms are at least -100. For logits use BCEWithLogitsLoss, which is stable.

    Shape: input (*), target (*) -> () or, with reduction="none", (*).

    Args:
        weight: of each element, broadcast to (*).
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.BCELoss()(tensor([0.5, 0.5]), tensor([0.0, 1.0]))
    tensor(0.6931)
    """

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(Loss):
    """The binary cross-entropy of p = sigmoid(x), stable for any logit x.

    loss = -weight (pos_weight y log(p) + (1 - y) log(1 - p))

    Shape: input (*), target (*) -> () or, with reduction="none", (*).

    Args:
        weight: of each element, broadcast to (*).
        reduction: "mean" over all elements, "sum", or "none".
        pos_weight: of the positive examples of each class, broadcast to (*).

    >>> from chainrule import nn, tensor
    >>> nn.BCEWithLogitsLoss()(tensor([0.0, 1000.0]), tensor([0.0, 1.0]))
    tensor(0.3466)
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class SoftMarginLoss(Loss):
    """The logistic loss with labels -1 and 1: loss = log(1 + exp(-y x)).

    It is the binary cross-entropy of the logit x with the label (1 + y) / 2.

    Shape: input (*), target (*) -> () or, with reduction="none", (*).

    Args:
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.SoftMarginLoss()(tensor([0.0, 1000.0]), tensor([-1.0, 1.0]))
    tensor(0.3466)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return soft_margin_loss(input, target, reduction=self.reduction)


# --- many classes ---------------------------------------------------------------------------------


class CrossEntropyLoss(Loss):
    """The cross-entropy of softmax(x) with the target: loss = -log(softmax(x)[target]).

    Shape: input (N, C, *) or (C,), target (N, *) or () of class numbers, or probabilities in the
    shape of the input -> () or, with reduction="none", (N, *).

    Args:
        weight: of each class (C,); the mean is divided by the weights of the targets.
        ignore_index: a class number that does not count.
        reduction: "mean" over all elements, "sum", or "none".
        label_smoothing: how much of the uniform distribution is mixed into the target.

    >>> from chainrule import nn, tensor, zeros
    >>> nn.CrossEntropyLoss()(zeros(2, 4), tensor([0, 3]))
    tensor(1.3863)
    """

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Flag = None,
        ignore_index: int = -100,
        reduce: Flag = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return ops.cross_entropy(
            input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )


class NLLLoss(Loss):
    """Minus the log-probability of the target's class: loss = -weight[target] x[target].

    Shape: input (N, C, *) or (C,), logarithms of probabilities, target (N, *) or () -> () or, with
    reduction="none", (N, *).

    Args:
        weight: of each class (C,); the mean is divided by the weights of the targets.
        ignore_index: a class number that does not count.
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.NLLLoss()(tensor([[-0.5, -1.0]]), tensor([1]))
    tensor(1.)
    """

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Flag = None,
        ignore_index: int = -100,
        reduce: Flag = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return ops.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


# --- errors ---------------------------------------------------------------------------------------


class ZeroOneLoss(Loss):
    """The error rate: loss = 1 where the class is wrong, loss = 0 where it is right.

    It is constant nearly everywhere, so it has no gradient to learn from.

    Shape: input (N, C, *) of scores, of which the largest decides, or (N, *) of class numbers,
    target (N, *) -> () or, with reduction="none", (N, *).

    Args:
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.ZeroOneLoss()(tensor([[2.0, 1.0], [0.0, 1.0]]), tensor([0, 0]))
    tensor(0.5000)
    """

    def __init__(self, reduction: str = "mean"):
        super().__init__(reduction=reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return zero_one_loss(input, target, self.reduction)


class PerceptronLoss(Loss):
    """The perceptron criterion: loss = max(0, -y x), for the score x and the label y = -1, 1.

    Only examples on the wrong side count, by how far they are there; a score of 0 counts as wrong.

    Shape: input (*), target (*) -> () or, with reduction="none", (*).

    Args:
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.PerceptronLoss(reduction="sum")(tensor([2.0, 0.5]), tensor([1.0, -1.0]))
    tensor(0.5000)
    """

    def __init__(self, reduction: str = "mean"):
        super().__init__(reduction=reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return perceptron_loss(input, target, self.reduction)
