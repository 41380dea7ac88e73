"""Losses that ask for a margin: between scores, between classes, between ranks."""

from __future__ import annotations

from chainrule.nn.losses.classes import binary_cross_entropy_with_logits
from chainrule.nn.losses.reduction import (
    Flag,
    Loss,
    check_integers,
    check_same_shape,
    check_tensors,
    check_weight,
    reduced,
    reduction_of,
)
from chainrule.ops.elementwise.functions import square
from chainrule.ops.elementwise.logic import eq, ne, where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.index.reading import gather, one_hot
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.reduce.scan import cumprod
from chainrule.ops.shape.views import reshape, unsqueeze
from chainrule.ops.index.subscript import numbers_of
from chainrule.tensor import Tensor

__all__ = [
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
]

# --- functions ------------------------------------------------------------------------------------


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """x where y = 1, max(0, margin - x) where y = -1; see
    :class:`chainrule.nn.HingeEmbeddingLoss`."""
    reduction = reduction_of("hinge_embedding_loss", reduction, size_average, reduce)
    check_same_shape("hinge_embedding_loss", input=input, target=target)
    far = where(ne(target, 1), clamp(margin - input, min=0.0), 0.0)
    return reduced(far + where(ne(target, -1), input, 0.0), reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -y (x1 - x2) + margin); see :class:`chainrule.nn.MarginRankingLoss`."""
    reduction = reduction_of("margin_ranking_loss", reduction, size_average, reduce)
    check_same_shape("margin_ranking_loss", input1=input1, input2=input2, target=target)
    return reduced(clamp(margin - target * (input1 - input2), min=0.0), reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """sum over i != y of max(0, margin - x[y] + x[i])^p / C; see
    :class:`chainrule.nn.MultiMarginLoss`."""
    op = "multi_margin_loss"
    reduction = reduction_of(op, reduction, size_average, reduce)
    _check_p(op, p)
    check_tensors(op, input=input, target=target)
    if isinstance(weight, Tensor) and weight.ndim != 1:
        raise ValueError(f"{op}: weight must be one-dimensional, got shape {tuple(weight.shape)}")
    input = input if input.ndim else reshape(input, (1,))  # one sample of one class
    _check_rows(op, input)
    if input.ndim == 1 and tuple(target.shape) == ():
        target = reshape(target, (1,))
        if reduction == "none":
            reduction = "sum"
    x = input if input.ndim == 2 else unsqueeze(input, 0)
    if tuple(target.shape) != tuple(x.shape[:1]):
        raise RuntimeError(
            f"{op}: for input of shape {tuple(input.shape)} the target must have shape "
            f"{(x.shape[0],)} (a class number for each sample), got {tuple(target.shape)}"
        )
    _check_classes(op, target, x.shape[1], lowest=0)
    own = eq(one_hot(target, x.shape[1]), 1)
    hinge = clamp(margin - gather(x, 1, unsqueeze(target, 1)) + x, min=0.0)
    losses = where(own, 0.0, hinge if p == 1 else square(hinge))
    if weight is not None:
        _check_class_weight(op, weight, x.shape[1])
        losses = losses * unsqueeze(weight[target], 1)
    return _over_samples(mean(losses, 1), reduction)


def _over_samples(losses: Tensor, reduction: str) -> Tensor:
    """The mean of no samples is 0 here, as in PyTorch."""
    return reduced(losses, "sum" if reduction == "mean" and 0 in losses.shape else reduction)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """sum over labels j and others i of max(0, 1 - x[j] + x[i]) / C; see
    :class:`chainrule.nn.MultiLabelMarginLoss`."""
    op = "multilabel_margin_loss"
    reduction = reduction_of(op, reduction, size_average, reduce)
    check_tensors(op, input=input, target=target)
    input, target = [x if x.ndim else reshape(x, (1,)) for x in (input, target)]
    _check_rows(op, input)
    if tuple(input.shape) != tuple(target.shape):
        raise RuntimeError(
            f"{op}: target of shape {tuple(target.shape)} must have the shape of input, "
            f"{tuple(input.shape)}: the labels of a sample, then -1 up to the number of classes"
        )
    classes = input.shape[-1]
    _check_classes(op, target, classes, lowest=-1)
    # A label counts up to the first -1.
    listed = eq(cumprod(cast(target >= 0, target.dtype), -1), 1)
    labels = where(listed, target, 0)
    chosen = eq(one_hot(labels, classes), 1) & unsqueeze(listed, -1)
    own = any_of(chosen, -2)
    hinge = clamp(1 - unsqueeze(gather(input, -1, labels), -1) + unsqueeze(input, -2), min=0.0)
    counts = unsqueeze(listed, -1) & ~unsqueeze(own, -2)
    return _over_samples(sum(where(counts, hinge, 0.0), (-2, -1)) / classes, reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes of -(y log(p) + (1 - y) log(1 - p)) with p = sigmoid(x); see
    :class:`chainrule.nn.MultiLabelSoftMarginLoss`."""
    op = "multilabel_soft_margin_loss"
    reduction = reduction_of(op, reduction, size_average, reduce)
    check_same_shape(op, input=input, target=target)
    check_weight(op, "weight", weight, input.shape)
    target = cast(target, input.dtype)
    losses = binary_cross_entropy_with_logits(input, target, weight, reduction="none")
    return reduced(mean(losses, -1), reduction)


def _check_p(op: str, p: int) -> None:
    if p not in (1, 2):
        raise ValueError(f"{op}: only p == 1 and p == 2 are supported, got {p}")


def _check_rows(op: str, input: Tensor) -> None:
    if input.ndim not in (1, 2) or not input.shape[-1]:
        raise RuntimeError(
            f"{op}: expected input (N, C) or (C,) with C > 0, got shape {tuple(input.shape)}"
        )


def _check_classes(op: str, target: Tensor, classes: int, lowest: int) -> None:
    check_integers(op, "target", target)
    numbers = numbers_of(target)
    if numbers is None:
        return
    wrong = (numbers < lowest) | (numbers >= classes)
    if wrong.any():
        raise RuntimeError(
            f"{op}: target {numbers[wrong].flat[0]} is out of range; with {classes} classes it "
            f"must lie in [{lowest}, {classes - 1}]"
        )


def _check_class_weight(op: str, weight: Tensor, classes: int) -> None:
    check_tensors(op, weight=weight)
    if weight.shape[0] != classes:
        raise RuntimeError(
            f"{op}: weight must have a number for each of the {classes} classes, got "
            f"{weight.shape[0]}"
        )


# --- modules --------------------------------------------------------------------------------------


class HingeEmbeddingLoss(Loss):
    """Like pairs near, unlike ones apart; x is usually a distance.

    loss = x where y = 1, loss = max(0, margin - x) where y = -1

    Shape: input (*), target (*) -> () or, with reduction="none", (*).

    Args:
        margin: how far apart unlike pairs should be.
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.HingeEmbeddingLoss(reduction="none")(tensor([0.3, 0.3]), tensor([1.0, -1.0]))
    tensor([0.3000, 0.7000])
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class MarginRankingLoss(Loss):
    """An order of two scores: loss = max(0, -y (x1 - x2) + margin).

    y = 1 asks for x1 to be larger, y = -1 for x2.

    Shape: input1 (*), input2 (*), target (*) -> () or, with reduction="none", (*).

    Args:
        margin: by how much the one should be larger.
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.MarginRankingLoss()(tensor([1.0]), tensor([3.0]), tensor([1.0]))
    tensor(2.)
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class MultiMarginLoss(Loss):
    """The class y should exceed all others by a margin.

    loss = sum over i != y of weight[y] max(0, margin - x[y] + x[i])^p / C

    Shape: input (N, C) or (C,), target (N,) or () -> () or, with reduction="none", (N,).

    Args:
        p: 1 or 2.
        margin: by how much the score of the class should exceed the others.
        weight: of each class (C,).
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.MultiMarginLoss()(tensor([[0.1, 0.2, 0.4, 0.8]]), tensor([3]))
    tensor(0.3250)
    """

    weight: Tensor | None

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        _check_p("MultiMarginLoss", p)
        self.p = p
        self.margin = margin
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return multi_margin_loss(
            input, target, self.p, self.margin, self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(Loss):
    """All labels should exceed all other classes by 1.

    loss = sum over labels j and other classes i of max(0, 1 - x[j] + x[i]) / C

    Shape: input (N, C) or (C,), target the same: the labels of a sample, then -1 -> () or, with
    reduction="none", (N,).

    Args:
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> x = tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> nn.MultiLabelMarginLoss()(x, tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(Loss):
    """The binary cross-entropy of p = sigmoid(x), averaged over the classes.

    loss = mean over the classes of -weight (y log(p) + (1 - y) log(1 - p))

    Shape: input (N, C), target (N, C) of zeros and ones -> () or, with reduction="none", (N,).

    Args:
        weight: of each class (C,).
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.MultiLabelSoftMarginLoss()(tensor([[0.0, 0.0]]), tensor([[1.0, 0.0]]))
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
        return multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)
