"""Targets given as class numbers: their checks, their one-hot vectors, their weights and counts."""

from __future__ import annotations

import math
from typing import Any

from chainrule.backend import K, dtypes
from chainrule.backend.placed import Placed
from chainrule.backend.recorded import thread
from chainrule.ops.core.arguments import same_place
from chainrule.ops.elementwise.logic import where
from chainrule.ops.core.promotion import cast
from chainrule.ops.core.primitive import Nondifferentiable, Primitive
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.shape.views import reshape, unsqueeze
from chainrule.graph import Box, Mode, mode
from chainrule.tensor import Tensor, check_layout
from chainrule.typing import Array, V, Value

__all__ = [
    "REDUCTIONS",
    "along_classes",
    "check_classes",
    "check_floating",
    "check_reduction",
    "check_same_shape",
    "check_tensors",
    "check_weight",
    "class_dim",
    "class_weights",
    "count",
    "counts",
    "is_floating",
    "mean_of",
    "nll",
    "none_ignored",
    "one_hot",
    "reduced",
]

_I64, _U8 = dtypes.int64.array_dtype, dtypes.uint8.array_dtype

_one_hot = Nondifferentiable("one_hot_classes", "carry")


class Likelihood(Primitive):
    """Minus the entry of each target's class, 0 for ignored targets; with ``smoothing`` so much of
    that is minus the mean over the classes."""

    def raw(self, x: Array, target: Array, smoothing: float = 0.0, **params: Any) -> Array:
        """Of arrays."""
        losses = K.negative_log_likelihood(x, target, **params)
        if smoothing == 0.0 or not x.size:
            return losses
        uniform = K.mean(x, (params["dim"],), False) * -smoothing
        losses = losses * (1 - smoothing) + uniform
        counted = K.ne(target, params["ignore_index"])
        return K.where(counted, losses, K.zeros((), x.dtype))


def _nll_gradient(g: V, x: V, target: V, dim: int, **params: Any) -> V:
    return one_hot(x, target, dim, **params) * -unsqueeze(g, dim)


nll = Likelihood(
    "negative_log_likelihood",
    lambda g, out, x, target, needs, **params: (_nll_gradient(g, x, target, **params), None),
    lambda tangents, out, x, target, **params: nll(tangents[0], target, **params),
    batch="carry",
    saves_out=False,
)


def one_hot(x: V, target: V, dim: int, ignore_index: int, **smoothing: float) -> V:
    """The targets as vectors along ``dim``, in the type of ``x``; zeros for ignored ones."""
    params = {"classes": x.shape[dim], "dim": dim, "ignore_index": ignore_index, **smoothing}
    return _one_hot(target, dtype=dtypes.to_array_dtype(x.dtype), **params)


def counts(x: Value, target: V, ignore_index: int) -> V:
    """1 for the targets that count and 0 for those to be ignored, in the type of ``x``."""
    return cast(target != ignore_index, x.dtype)


def count(x: Value, target: V, ignore_index: int) -> V:
    """How many targets count, in the type of ``x``."""
    return sum(counts(x, target, ignore_index))


def none_ignored(target: Value, ignore_index: int) -> bool:
    """Whether it is known that all targets count: their numbers can be read, now and for good."""
    a = target.array if isinstance(target, Tensor) else target
    if isinstance(a, (Box, Placed)) or mode.flags & Mode.TRACE:  # reading from a device takes long
        return False
    return not (a == ignore_index).any()


def reduced(losses: Tensor, target: Tensor, ignore_index: int, reduction: str) -> Tensor:
    """Losses, 0 for targets to be ignored, reduced: the mean is over the others."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return sum(losses)
    if thread.recorder is None and losses.numel() and none_ignored(target, ignore_index):
        return mean(losses)  # the numbers of a program that is repeated are others each time
    return mean_of(sum(losses), count(losses, target, ignore_index))


def mean_of(total: V, n: V) -> V:
    """total / n; NaN where nothing counts, but with the derivative 0 there, as in PyTorch."""
    nothing = n == 0
    return where(nothing, math.nan, total / where(nothing, 1.0, n))


def along_classes(weight: V, dim: int) -> V:
    """A vector over the classes as a tensor that broadcasts along ``dim``."""
    return reshape(weight, (-1, *[1] * (-dim - 1)))


def class_weights(x: V, target: V, weight: V, dim: int, ignore_index: int) -> V:
    """The weight of each target's class, 0 for ignored targets."""
    return sum(one_hot(x, target, dim, ignore_index) * along_classes(weight, dim), dim)


# --- checks ---------------------------------------------------------------------------------------

REDUCTIONS = ("mean", "sum", "none")


def check_reduction(op: str, reduction: str) -> None:
    """Refuses a reduction that no loss knows."""
    if reduction not in REDUCTIONS:
        raise ValueError(
            f"{op}: {reduction!r} is not a valid value for reduction; use one of {REDUCTIONS}"
        )


def check_tensors(op: str, input: object, target: object, weight: object = None) -> None:
    """Refuses arguments that are no tensors; a weight may be None."""
    for name, x in (("input", input), ("target", target), ("weight", weight)):
        if not isinstance(x, Tensor) and not (name == "weight" and x is None):
            check_layout(op, x)
            raise TypeError(f"{op}(): argument {name!r} must be Tensor, not {type(x).__name__}")
    same_place(op, input, target, weight)


def check_same_shape(op: str, input: Tensor, target: Tensor, reduction: str) -> None:
    """Refuses targets in another shape than the input."""
    check_tensors(op, input, target)
    check_reduction(op, reduction)
    if tuple(input.shape) != tuple(target.shape):
        raise ValueError(
            f"{op}: target size {tuple(target.shape)} must be the same as input size "
            f"{tuple(input.shape)}; reshape or unsqueeze the target"
        )


def class_dim(input: Tensor) -> int:
    """The class dimension, counted from the end: the second, or the only one."""
    return 1 - input.ndim if input.ndim > 1 else -1


def check_weight(op: str, input: Tensor, weight: Tensor | None, classes: int) -> None:
    """Refuses weights that are not one for each class, in the type of the input."""
    if weight is None:
        return
    if tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"{op}: the weight tensor should be defined for all {classes} classes, shape "
            f"({classes},), but has shape {tuple(weight.shape)}"
        )
    if weight.dtype != input.dtype:
        raise RuntimeError(
            f"{op}: expected the weight to be {input.dtype} like the input, found {weight.dtype}"
        )


def check_classes(
    op: str, input: Tensor, target: Tensor, weight: Tensor | None
) -> tuple[Tensor, int]:
    """The target in the shape of the input without its class dimension, and that dimension."""
    if input.ndim == 0:
        raise ValueError(f"{op}: expected an input of 1 or more dimensions, got 0")
    dim = class_dim(input)
    shape, got = tuple(input.shape), tuple(target.shape)
    if input.ndim == 1 and got == (1,):
        target, got = reshape(target, ()), ()
    expected = () if input.ndim == 1 else (shape[0], *shape[2:])
    if got and expected and got[0] != expected[0]:
        raise ValueError(
            f"{op}: expected input batch_size ({shape[0]}) to match target batch_size ({got[0]})"
        )
    if got != expected:
        raise RuntimeError(
            f"{op}: for an input of shape {shape} the target must have shape {expected} (class "
            f"numbers) or {shape} (class probabilities), got {got}"
        )
    if target.array.dtype not in (_I64, _U8):
        raise RuntimeError(
            f"{op}: expected class numbers of type int64 or uint8, but got {target.dtype}; convert "
            "them with .long()"
        )
    check_weight(op, input, weight, shape[dim])
    return cast(target, dtypes.int64), dim


def is_floating(x: Value) -> bool:
    """Whether the elements are floating-point numbers (not complex ones)."""
    d = (x.array if isinstance(x, Tensor) else x).dtype
    return d.kind == "f" or K.is_narrow(d)


def check_floating(op: str, input: Value) -> None:
    """Refuses integers, booleans and complex numbers."""
    if not is_floating(input):
        raise NotImplementedError(
            f"{op}: not implemented for {input.dtype}; convert with .float() or pass dtype="
        )
