"""Softmax and the cross-entropies: where stability needs more than a composition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from sys import getrefcount
from typing import Any

from chainrule.backend import K, dtypes
from chainrule.backend.placed import Placed
from chainrule.backend.recorded import thread
from chainrule.ops.core.synonyms import numpy_names
from chainrule.ops.core.batching import spread
from chainrule.ops.layers.class_targets import (
    REDUCTIONS,
    along_classes,
    check_classes,
    check_floating,
    check_reduction,
    check_same_shape,
    check_tensors,
    check_weight,
    class_dim,
    class_weights,
    counts,
    is_floating,
    mean_of,
    nll,
    none_ignored,
    one_hot,
    reduced,
)
from chainrule.ops.elementwise.functions import exp, log, log1p, sigmoid, softplus
from chainrule.ops.elementwise.logic import where
from chainrule.ops.core.pointwise import F32, F64, binary
from chainrule.ops.core.promotion import cast
from chainrule.ops.core.apply import apply
from chainrule.ops.core.recording import two
from chainrule.ops.core.primitive import Op, Primitive
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.shape.views import canonical_dim, reshape, unsqueeze
from chainrule.graph import Edges, Mode, Node, Saved, mode
from chainrule.tensor import Tensor
from chainrule.typing import Array, DType, Gradients, Tangents, V, Value

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "log_softmax",
    "nll_loss",
    "softmax",
]
METHODS = ("log_softmax", "softmax")
INPLACE: tuple[str, ...] = ()


_I64 = dtypes.int64.array_dtype


# --- softmax --------------------------------------------------------------------------------------


class FromOutput(Primitive):
    """An operation of one input whose rules read its output alone."""

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        return (None,)


def _softmax_differential(d: V, out: V, dim: int) -> V:
    """The Jacobian diag(out) - out out^T is symmetric: one rule for both modes."""
    if not isinstance(d, Tensor):
        return K.softmax_backward(d, out, dim)
    return out * (d - sum(d * out, dim, keepdim=True))


def _log_softmax_transpose(g: V, out: V, dim: int) -> V:
    if not isinstance(g, Tensor):
        return K.log_softmax_backward(g, out, dim)
    return g - exp(out) * sum(g, dim, keepdim=True)


_softmax = FromOutput(
    "softmax",
    lambda g, out, _, needs, dim: (_softmax_differential(g, out, dim),),
    lambda tangents, out, _, dim: _softmax_differential(tangents[0], out, dim),
    batch="carry",
)
_log_softmax = FromOutput(
    "log_softmax",
    lambda g, out, _, needs, dim: (_log_softmax_transpose(g, out, dim),),
    lambda tangents, out, _, dim: tangents[0] - sum(exp(out) * tangents[0], dim, True),
    batch="carry",
)


@numpy_names
def softmax(input: V, dim: int, dtype: DType | None = None) -> V:
    """exp(x) / sum(exp(x)) along ``dim``: positive numbers that sum to 1.

    >>> import chainrule
    >>> chainrule.softmax(chainrule.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return _along(_softmax, input, dim, dtype)


@numpy_names
def log_softmax(input: V, dim: int, dtype: DType | None = None) -> V:
    """log(softmax(x)) along ``dim``, exact where softmax is close to 0."""
    return _along(_log_softmax, input, dim, dtype)


def _along(op: Primitive, input: V, dim: int, dtype: DType | None) -> V:
    if dtype is not None:
        input = cast(input, dtype)
    check_floating(op.name, input)
    ndim = input.ndim
    d = canonical_dim(op.name, dim, ndim)
    if ndim == 0:
        return reshape(op(reshape(input, (1,)), dim=-1), ())
    return op(input, dim=d)


# --- many classes ---------------------------------------------------------------------------------


class CrossEntropy(Op):
    """-log(softmax(x)[target]) for integer targets, as one node.

    The forward pass keeps the softmax, so that an ordinary backward pass is one kernel,
    (softmax - one_hot) * g. Where the gradient is differentiated again, the same is written in
    operations on x. With ``within``, which vmap sets, the reduction is one for each entry of so
    many dimensions in front.
    """

    @staticmethod
    def raw_and_saved(x: Array, target: Array, **params: Any) -> tuple[Array, Array]:
        """The loss of arrays, and the softmax that the backward pass reads if it is saved."""
        return K.cross_entropy_and_softmax(x, target, **params)

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        x, target, *kept = node.saved
        params = node.params
        if not tensors:
            p = kept[0].array if kept else K.softmax(x.array, params["dim"])
            if p.nbytes >= LARGE and kept and _takes_softmax(node, g):
                return K.cross_entropy_backward(g, p, target.array, **params, into=p), None
            return K.cross_entropy_backward(g, p, target.array, **params), None
        d, reduction, within = params["dim"], params["reduction"], params.get("within", 0)
        if reduction == "mean":
            n = _how_many(x, target, params["ignore_index"], within)
            g = g / (n if n.__class__ is int else where(n == 0, 1.0, n))
        delta = _delta(x, target, d, params["ignore_index"])
        if reduction == "none":
            return delta * unsqueeze(g, d), None
        if within:
            g = reshape(g, (*g.shape, *[1] * (x.ndim - within)))
        return delta * g, None

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Value | None:
        if tangents[0] is None:
            return None
        x, target = inputs
        dim, ignore_index, reduction = params["dim"], params["ignore_index"], params["reduction"]
        change = sum(_delta(x, target, dim, ignore_index) * tangents[0], dim)
        if reduction == "none":
            return change
        within = params.get("within", 0)
        total = _total(change, within)
        if reduction == "sum":
            return total
        n = _how_many(x, target, ignore_index, within)
        return total / n if n.__class__ is int else mean_of(total, n)


def _total(x: V, within: int) -> V:
    """The sum over all dimensions but the first ``within``."""
    dims = tuple(range(within - x.ndim, 0))
    return sum(x, dims) if dims else x


def _how_many(x: Value, target: V, ignore_index: int, within: int) -> int | V:
    """The number of targets that count; an int where all do and there are some."""
    n = math.prod(target.shape[within:])
    if n and none_ignored(target, ignore_index):
        return n
    return _total(counts(x, target, ignore_index), within)


def _delta(x: V, target: V, dim: int, ignore_index: int) -> V:
    """softmax(x) - one_hot(target), 0 for ignored targets: the derivative of the loss by x."""
    p = softmax(x, dim)
    if not none_ignored(target, ignore_index):
        p = unsqueeze(counts(x, target, ignore_index), dim) * p
    return p - one_hot(x, target, dim, ignore_index)


def _batched_cross_entropy(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """One more dimension in front within which to reduce."""
    x, target = (v if m else spread(v, size) for v, m in zip(values, mapped, strict=True))
    if params["reduction"] == "none":
        return op(x, target, **params)
    return op(x, target, **(params | {"within": params.get("within", 0) + 1}))


LARGE = 1 << 22  # bytes of a softmax whose memory the gradient takes


def _takes_softmax(node: Node, g: Any) -> bool:
    """Whether a gradient may take the memory of the softmax that a node of cross-entropy keeps, and
    has taken it: another pass makes the softmax anew. Nobody else may have it, and no program be
    recorded, which would compute with it again."""
    kept = node.saved
    p = kept[2]
    if p.array.__class__ is not K.Array or g.dtype != p.array.dtype or thread.recorder is not None:
        return False
    if (getrefcount(kept), getrefcount(p), getrefcount(p.array)) != _ALONE:
        return False
    node.saved = kept[:2]
    return True


# References where nobody else has the softmax: to the list of what is saved from the node, the walk
# and here; to the tensor from the list, the walk, which looked at it last, the rule and here; to
# the array from the tensor and the rule; and one for who counts.
_ALONE = (4, 5, 3)
_cross_entropy = CrossEntropy("cross_entropy", _batched_cross_entropy)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross-entropy of the logits ``input`` (N, C, ...) with ``target``.

    ``target`` holds class numbers (N, ...) or, in the shape of ``input``, the probabilities of the
    classes. ``weight`` (C,) rescales the classes; targets equal to ``ignore_index`` do not count.
    ``label_smoothing`` mixes that much of the uniform distribution into the target.

    >>> import chainrule
    >>> logits = chainrule.tensor([[0.0, 0.0], [0.0, 0.0]])
    >>> chainrule.cross_entropy(logits, chainrule.tensor([0, 1]))
    tensor(0.6931)
    """
    if weight is None and label_smoothing == 0.0 and mode.flags & ~Mode.AUTOCAST <= 1:
        out = _plain(input, target, ignore_index, reduction)
        if out is not None:
            return out
    check_tensors("cross_entropy", input, target, weight)
    check_reduction("cross_entropy", reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(
            f"cross_entropy: label_smoothing must be between 0.0 and 1.0, got {label_smoothing}"
        )
    check_floating("cross_entropy", input)
    if tuple(input.shape) == tuple(target.shape) and input.ndim:
        return _soft_cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)
    target, dim = check_classes("cross_entropy", input, target, weight)
    if weight is None and label_smoothing == 0.0:
        params = {"dim": dim, "ignore_index": ignore_index, "reduction": reduction}
        return apply(_cross_entropy, (input, target), params)
    logp = log_softmax(input, dim)
    if weight is None:
        losses = nll(logp, target, dim=dim, ignore_index=ignore_index, smoothing=label_smoothing)
        return reduced(losses, target, ignore_index, reduction)
    loss = nll_loss(logp, target, weight, ignore_index, reduction)
    if label_smoothing == 0.0:
        return loss
    smooth = _smooth_part(logp, target, weight, dim, ignore_index, reduction)
    return (1 - label_smoothing) * loss + (label_smoothing / input.shape[dim]) * smooth


def _plain(input: Tensor, target: Tensor, ignore_index: int, reduction: str) -> Tensor | None:
    """The commonest case, (N, C) logits and class numbers, written out: one kernel, one node."""
    if not (isinstance(input, Tensor) and isinstance(target, Tensor)):
        return None
    x, t = input.array, target.array
    if x.ndim != 2 or x.dtype not in (F32, F64) or t.dtype != _I64 or t.shape != x.shape[:1]:
        return None
    if (x.__class__ is Placed) is not (t.__class__ is Placed):  # refused below
        return None
    if reduction not in REDUCTIONS:
        return None
    loss, p = K.cross_entropy_and_softmax(x, t, -1, ignore_index, reduction)
    params = {"dim": -1, "ignore_index": ignore_index, "reduction": reduction}
    return two(_cross_entropy, input, target, loss, mode.flags & ~Mode.AUTOCAST, params, p)


def _smooth_part(
    logp: Tensor, target: Tensor, weight: Tensor, dim: int, ignore_index: int, reduction: str
) -> Tensor:
    """What the uniform distribution costs: -sum over the classes, for the targets that count."""
    losses = where(target == ignore_index, 0.0, -sum(logp * along_classes(weight, dim), dim))
    if reduction == "none":
        return losses
    if reduction == "sum":
        return sum(losses)
    return mean_of(sum(losses), sum(class_weights(logp, target, weight, dim, ignore_index)))


def _soft_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """Cross-entropy with probabilities as targets."""
    if not is_floating(target):
        raise RuntimeError(
            "cross_entropy: expected a floating point target for class probabilities (target has "
            f"the shape of input, {tuple(input.shape)}), got {target.dtype}; class numbers have "
            "no class dimension"
        )
    if ignore_index >= 0:
        raise RuntimeError(
            "cross_entropy: ignore_index is not supported for floating point targets"
        )
    dim = class_dim(input)
    classes = input.shape[dim]
    check_weight("cross_entropy", input, weight, classes)
    if label_smoothing > 0.0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    logp = log_softmax(input, dim)
    if weight is not None:
        logp = logp * along_classes(weight, dim)
    losses = -sum(logp * target, dim)
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum(losses)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """-weight[target] * input[target]: the loss of log-probabilities ``input`` (N, C, ...).

    The mean is weighted: the sum is divided by the weights of the targets that count.
    """
    check_tensors("nll_loss", input, target, weight)
    check_reduction("nll_loss", reduction)
    target, dim = check_classes("nll_loss", input, target, weight)
    losses = nll(input, target, dim=dim, ignore_index=ignore_index)
    if weight is None:
        return reduced(losses, target, ignore_index, reduction)
    weights = class_weights(input, target, weight, dim, ignore_index)
    losses = losses * weights
    if reduction == "mean":
        return mean_of(sum(losses), sum(weights))
    return losses if reduction == "none" else sum(losses)


# --- two classes ----------------------------------------------------------------------------------

_bce_with_logits = binary(
    "binary_cross_entropy_with_logits",
    lambda d, x, y: _logits_change(d, x, y),
    lambda d, x: -d * x,
    "log(1 + exp(x)) - x y",
)
# The slopes are PyTorch's: the one by x is not cut off where the logarithm is.
_bce = binary(
    "binary_cross_entropy",
    lambda d, x, y: d * ((x - y) / _at_least((1 - x) * x, 1e-12)),
    lambda d, x: d * (_at_least(log1p(-x), -100.0) - _at_least(log(x), -100.0)),
    "-(y log(x) + (1 - y) log(1 - x))",
)


def _logits_change(d: V, x: V, y: V) -> V:
    if not isinstance(d, Tensor):
        return K.binary_cross_entropy_with_logits_backward(d, x, y)
    return d * (sigmoid(x) - y)


def _at_least(x: V, limit: float) -> V:
    return where(x < limit, limit, x)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The binary cross-entropy of sigmoid(input) with ``target``, stable for any logit.

    loss = -weight * (pos_weight * y * log(sigmoid(x)) + (1 - y) * log(1 - sigmoid(x)))

    >>> import chainrule
    >>> x = chainrule.tensor([0.0, 1000.0])
    >>> chainrule.binary_cross_entropy_with_logits(x, chainrule.tensor([1.0, 1.0]), reduction="sum")
    tensor(0.6931)
    """
    check_same_shape("binary_cross_entropy_with_logits", input, target, reduction)
    if not is_floating(target):
        raise RuntimeError(
            f"binary_cross_entropy_with_logits: the target must be floating point, got "
            f"{target.dtype}; convert it with .float()"
        )
    if pos_weight is None:
        losses = _bce_with_logits(input, target)
    else:
        losses = (1 - target) * input + (1 + (pos_weight - 1) * target) * softplus(-input)
    return _weighted(losses, weight, reduction)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The binary cross-entropy of the probabilities ``input`` with ``target``.

    loss = -weight * (y * log(x) + (1 - y) * log(1 - x)), each logarithm at least -100.
    """
    check_same_shape("binary_cross_entropy", input, target, reduction)
    check_floating("binary_cross_entropy", input)
    if input.dtype != target.dtype:
        raise RuntimeError(
            f"binary_cross_entropy: expected the target to be {input.dtype} like the input, found "
            f"{target.dtype}; convert one of them"
        )
    return _weighted(_bce(input, target), weight, reduction)


def _weighted(losses: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is not None:
        losses = losses * weight
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum(losses)
