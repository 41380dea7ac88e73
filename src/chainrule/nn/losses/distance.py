"""Distances between vectors, and the losses that arrange vectors by their distances."""

from __future__ import annotations

from collections.abc import Callable

from chainrule.ops.core.rounding import rounds_once
from chainrule.nn.module.base import Module
from chainrule.nn.losses.reduction import (
    Flag,
    Loss,
    at_least,
    check_same_shape,
    check_tensors,
    reduced,
    reduction_of,
)
from chainrule.ops.core.synonyms import numpy_names
from chainrule.ops.elementwise.functions import minimum, sqrt, square
from chainrule.ops.elementwise.logic import eq, where
from chainrule.ops.elementwise.options import clamp
from chainrule.backend.dtypes import bool_, int64
from chainrule.ops.core.promotion import broadcast_shapes, cast, promote
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.linalg.norms import norm
from chainrule.ops.shape.views import canonical_dim, expand
from chainrule.tensor import Tensor

__all__ = [
    "cosine_embedding_loss",
    "cosine_similarity",
    "pairwise_distance",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "PairwiseDistance",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]

Distance = Callable[[Tensor, Tensor], Tensor]

# --- distances ------------------------------------------------------------------------------------


@numpy_names
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (|x1| |x2|) along ``dim``, each norm at least ``eps``; the inputs broadcast.

    >>> from chainrule import nn, tensor
    >>> nn.functional.cosine_similarity(tensor([1.0, 0.0]), tensor([1.0, 1.0]), dim=0)
    tensor(0.7071)
    """
    check_tensors("cosine_similarity", x1=x1, x2=x2)
    x1, x2 = promote(x1, x2)
    if not x1.is_floating_point():
        raise RuntimeError(
            f"cosine_similarity: expected a floating type, got {x1.dtype}; convert with .float()"
        )
    d = canonical_dim("cosine_similarity", dim, max(x1.ndim, x2.ndim))
    shape = broadcast_shapes(x1.shape, x2.shape, op="cosine_similarity")
    both = [expand(x, shape) for x in (x1, x2)]
    # Divided before they are multiplied: neither overflows, and the result stays within [-1, 1].
    units = [x / at_least(eps, norm(x, 2, d, keepdim=True)) for x in both]
    return sum(units[0] * units[1], d)


@numpy_names
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """|x1 - x2 + eps|_p along the last dimension; the inputs broadcast.

    >>> from chainrule import nn, tensor
    >>> nn.functional.pairwise_distance(tensor([[3.0, 0.0]]), tensor([[0.0, 4.0]]))
    tensor([5.])
    """
    check_tensors("pairwise_distance", x1=x1, x2=x2)
    return norm(x1 - x2 + eps, p, -1, keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors: y = x1 . x2 / (|x1| |x2|).

    Shape: (*, D, *), (*, D, *) -> (*, *), D at dimension ``dim``.

    Args:
        dim: the dimension of the vectors.
        eps: the least a norm counts.

    >>> from chainrule import nn, tensor
    >>> nn.CosineSimilarity()(tensor([[1.0, 0.0]]), tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The distance between vectors: y = |x1 - x2 + eps|_p.

    Shape: (N, D) or (D,), the same -> (N,) or (); with keepdim, (N, 1) or (1,).

    Args:
        p: which norm.
        eps: keeps the derivative finite where the vectors are equal.
        keepdim: whether the last dimension stays, with size 1.

    >>> from chainrule import nn, tensor
    >>> nn.PairwiseDistance(p=1.0)(tensor([[3.0, 0.0]]), tensor([[0.0, 4.0]]))
    tensor([7.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


# --- losses ---------------------------------------------------------------------------------------


@rounds_once
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where y = 1, max(0, cos - margin) where y = -1; see
    :class:`chainrule.nn.CosineEmbeddingLoss`."""
    reduction = reduction_of("cosine_embedding_loss", reduction, size_average, reduce)
    check_tensors("cosine_embedding_loss", target=target)
    check_same_shape("cosine_embedding_loss", input1=input1, input2=input2)
    if input1.ndim not in (1, 2) or tuple(target.shape) != tuple(input1.shape)[:-1]:
        raise RuntimeError(
            "cosine_embedding_loss: expected inputs (N, D) with target (N,), or (D,) with (); got "
            f"inputs {tuple(input1.shape)} with target {tuple(target.shape)}"
        )
    input1, input2 = [cast(x, int64) if x.dtype is bool_ else x for x in (input1, input2)]
    tiny = 1e-12
    squares = [sum(square(x), -1) + tiny for x in (input1, input2)]
    cosine = sum(input1 * input2, -1) / sqrt(squares[0] * squares[1])
    near = where(eq(target, 1), 1 - cosine, 0.0)
    return reduced(near + where(eq(target, -1), clamp(cosine - margin, min=0.0), 0.0), reduction)


@rounds_once
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(a, p) - d(a, n) + margin); see :class:`chainrule.nn.TripletMarginLoss`."""
    reduction = reduction_of("triplet_margin_loss", reduction, size_average, reduce)
    check_same_shape("triplet_margin_loss", anchor=anchor, positive=positive, negative=negative)

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, p, eps)

    return _triplet(
        "triplet_margin_loss", (anchor, positive, negative), distance, margin, swap, reduction
    )


@rounds_once
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Distance | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(a, p) - d(a, n) + margin) with any distance d; see
    :class:`chainrule.nn.TripletMarginWithDistanceLoss`."""
    op = "triplet_margin_with_distance_loss"
    reduction_of(op, reduction)
    check_tensors(op, anchor=anchor, positive=positive, negative=negative)
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplet(op, (anchor, positive, negative), distance, margin, swap, reduction)


def _triplet(
    op: str,
    triplet: tuple[Tensor, Tensor, Tensor],
    distance: Distance,
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    _check_margin(op, margin)
    anchor, positive, negative = triplet
    near, far = distance(anchor, positive), distance(anchor, negative)
    check_same_shape(op, **{"the distance to positive": near, "the distance to negative": far})
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced(clamp(margin + near - far, min=0.0), reduction)


def _check_margin(op: str, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{op}: margin must be greater than 0, got {margin}")


class CosineEmbeddingLoss(Loss):
    """How far the angle between vectors is from what a label y asks for.

    loss = 1 - cos(x1, x2) where y = 1, loss = max(0, cos(x1, x2) - margin) where y = -1

    Shape: input1 (N, D) or (D,), input2 the same, target (N,) or () -> () or, with
    reduction="none", (N,).

    Args:
        margin: how similar unlike vectors may be.
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> nn.CosineEmbeddingLoss()(tensor([[1.0, 0.0]]), tensor([[1.0, 1.0]]), tensor([-1.0]))
    tensor(0.7071)
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
        return cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class TripletMarginLoss(Loss):
    """An anchor should be nearer to a positive than to a negative by a margin.

    loss = max(0, d(a, p) - d(a, n) + margin), with d(x, y) = |x - y + eps|_p

    Shape: anchor (N, D) or (D,), positive and negative the same -> () or, with reduction="none",
    (N,).

    Args:
        margin: how much farther the negative should be than the positive.
        p: which norm.
        eps: keeps the derivative finite where vectors are equal.
        swap: uses d(p, n) where it is smaller than d(a, n).
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> a, p, n = tensor([[0.0, 0.0]]), tensor([[3.0, 4.0]]), tensor([[0.0, 2.0]])
    >>> nn.TripletMarginLoss()(a, p, n)
    tensor(4.0000)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        _check_margin("TripletMarginLoss", margin)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return triplet_margin_loss(
            anchor,
            positive,
            negative,
            self.margin,
            self.p,
            self.eps,
            self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(Loss):
    """A triplet loss with any distance d: loss = max(0, d(a, p) - d(a, n) + margin).

    Shape: anchor (N, *), positive and negative the same -> () or, with reduction="none", the shape
    of the distances.

    Args:
        distance_function: d, by default the Euclidean distance.
        margin: how much farther the negative should be than the positive.
        swap: uses d(p, n) where it is smaller than d(a, n).
        reduction: "mean" over all elements, "sum", or "none".

    >>> from chainrule import nn, tensor
    >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(p=1.0))
    >>> loss(tensor([[0.0, 0.0]]), tensor([[3.0, 4.0]]), tensor([[0.0, 2.0]]))
    tensor(6.0000)
    """

    def __init__(
        self,
        *,
        distance_function: Distance | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ):
        super().__init__(reduction=reduction)
        _check_margin("TripletMarginWithDistanceLoss", margin)
        self.distance_function = (
            PairwiseDistance() if distance_function is None else distance_function
        )
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
