"""Softmax and cross-entropy, shifted by the largest logit so that nothing overflows.

The backward kernels compute in a few passes what the rules in ``ops/layers/softmax.py`` say in
operations.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.backend.numpy_kernels.special import sigmoid
from chainrule.backend.numpy_kernels.operands import Result

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "binary_cross_entropy_with_logits_backward",
    "cross_entropy",
    "cross_entropy_and_softmax",
    "cross_entropy_backward",
    "log_softmax",
    "log_softmax_backward",
    "negative_log_likelihood",
    "one_hot_classes",
    "softmax",
    "softmax_backward",
]


def _wide(a: np.ndarray) -> np.ndarray:
    """float16 is summed as float32."""
    return a.astype(np.float32) if a.dtype.itemsize == 2 else a


# --- softmax --------------------------------------------------------------------------------------


def softmax(a: np.ndarray, dim: int) -> np.ndarray:
    """exp(a) / sum(exp(a)) along ``dim``"""
    if a.size == 0:
        return a.copy()
    x = _wide(a)
    out = x - np.maximum.reduce(x, axis=dim, keepdims=True)
    np.exp(out, out=out)
    out /= np.add.reduce(out, axis=dim, keepdims=True)
    return out.astype(a.dtype, copy=False)


def softmax_backward(g: np.ndarray, out: np.ndarray, dim: int) -> np.ndarray:
    """out * (g - sum(g * out))"""
    result = g * out
    mean = np.add.reduce(result, axis=dim, keepdims=True)
    np.subtract(g, mean, out=result)
    result *= out
    return result


def log_softmax(a: np.ndarray, dim: int) -> np.ndarray:
    """a - log(sum(exp(a))) along ``dim``"""
    if a.size == 0:
        return a.copy()
    x = _wide(a)
    out = x - np.maximum.reduce(x, axis=dim, keepdims=True)
    out -= np.log(np.add.reduce(np.exp(out), axis=dim, keepdims=True))
    return out.astype(a.dtype, copy=False)


def log_softmax_backward(g: np.ndarray, out: np.ndarray, dim: int) -> np.ndarray:
    """g - exp(out) * sum(g)"""
    result = np.exp(out)
    result *= np.add.reduce(g, axis=dim, keepdims=True)
    np.subtract(g, result, out=result)
    return result


# --- classes as integers --------------------------------------------------------------------------


def _classes(
    target: np.ndarray, classes: int, ignore_index: int, op: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """The targets with 0 in the place of those to be ignored, and which are kept (None: all)."""
    if target.size == 0:
        return target, None
    # Read as unsigned, negative numbers are huge: one pass finds both kinds of stray targets.
    unsigned = target.view(np.uint64) if target.dtype == np.int64 else target
    if np.maximum.reduce(unsigned, axis=None) < classes and not 0 <= ignore_index < classes:
        return target, None
    kept = target != ignore_index
    safe = np.where(kept, target, 0)
    stray = (safe < 0) | (safe >= classes)
    if (stray & kept).any():
        raise IndexError(
            f"{op}: target {safe[stray & kept].flat[0]} is out of bounds; with {classes} classes a "
            f"target must lie in [0, {classes - 1}] or be ignore_index={ignore_index}"
        )
    return safe, kept


def _over_classes(function: np.ufunc, x: np.ndarray, dim: int) -> np.ndarray:
    """A reduction along the class dimension, which stays with size 1."""
    if dim != -1 or x.ndim == 1 or not 1 < x.shape[-1] <= 8:
        return function.reduce(x, axis=dim, keepdims=True)
    # Column by column: a reduction would start anew for every row of a few numbers.
    out = function(x[..., 0], x[..., 1])
    for k in range(2, x.shape[-1]):
        function(out, x[..., k], out=out)
    return out[..., None]


def _picked(x: np.ndarray, target: np.ndarray, dim: int) -> np.ndarray:
    """The entry of each target's class along the class dimension."""
    if dim != -1 or target.ndim == 1:
        return x[_at(target, dim)]
    rows = x.reshape(-1, x.shape[-1])[_at(target.reshape(-1), -1)]
    return rows.reshape(target.shape)


def _subtract_at(x: np.ndarray, target: np.ndarray, dim: int, value: np.ndarray | float) -> None:
    """Subtracts from the entry of each target's class in an array of this file's own."""
    if dim != -1 or target.ndim == 1:
        x[_at(target, dim)] -= value
    else:
        each = value.reshape(-1) if isinstance(value, np.ndarray) else value
        x.reshape(-1, x.shape[-1])[_at(target.reshape(-1), -1)] -= each


def _at(target: np.ndarray, dim: int) -> tuple[Any, ...]:
    """The index that picks each target's entry along the class dimension."""
    if target.ndim == 1:
        return (np.arange(target.shape[0]), target)
    index: list[Any] = list(np.ogrid[tuple(slice(n) for n in target.shape)])
    index.insert(target.ndim + 1 + dim, target)
    return tuple(index)


def one_hot_classes(
    target: np.ndarray,
    classes: int,
    dim: int,
    ignore_index: int,
    dtype: npt.DTypeLike,
    smoothing: float = 0.0,
) -> np.ndarray:
    """1 at the target's class and 0 elsewhere along a new dimension; 0 for ignored targets.

    With ``smoothing`` so much of the 1 is the same for all classes.
    """
    safe, kept = _classes(target, classes, ignore_index, "cross_entropy")
    position = target.ndim + 1 + dim
    shape = (*target.shape[:position], classes, *target.shape[position:])
    if smoothing == 0.0:
        out = np.zeros(shape, dtype)
        if target.size:
            out[_at(safe, dim)] = 1 if kept is None else kept
        return out
    out = np.full(shape, smoothing / max(classes, 1), dtype)
    if target.size:
        _subtract_at(out, safe, dim, smoothing - 1)
    if kept is not None:
        out *= np.expand_dims(kept, dim)
    return out


def negative_log_likelihood(
    a: np.ndarray, target: np.ndarray, dim: int, ignore_index: int
) -> np.ndarray:
    """Minus the entry of each target's class along ``dim``; 0 for ignored targets."""
    safe, kept = _classes(target, a.shape[dim], ignore_index, "nll_loss")
    if target.size == 0:
        return np.zeros(target.shape, a.dtype)
    picked = -a[_at(safe, dim)]
    return picked if kept is None else np.where(kept, picked, 0)


# --- cross-entropy --------------------------------------------------------------------------------


def cross_entropy_and_softmax(
    a: np.ndarray,
    target: np.ndarray,
    dim: int,
    ignore_index: int,
    reduction: str,
    within: int = 0,
) -> tuple[Result, np.ndarray]:
    """The loss, log(sum(exp(x))) - x[target] reduced, and softmax(x).

    The reduction is one for each entry of the first ``within`` dimensions.
    """
    safe, kept = _classes(target, a.shape[dim], ignore_index, "cross_entropy")
    if a.size == 0:
        losses, p = np.zeros(target.shape, a.dtype), a.copy()
    else:
        x = _wide(a)
        x = x - _over_classes(np.maximum, x, dim)
        p = np.exp(x)
        total = _over_classes(np.add, p, dim)
        p /= total
        losses = np.log(total).reshape(target.shape) - _picked(x, safe, dim)
        if kept is not None:
            losses = np.where(kept, losses, 0)
    loss = losses
    if within and reduction != "none":
        loss = np.add.reduce(losses, axis=tuple(range(within, losses.ndim)))
        if reduction == "mean":
            loss = loss / np.asarray(_counted(target, kept, within), loss.dtype)
    elif reduction != "none":
        loss = np.add.reduce(losses, axis=None)
    if reduction == "mean" and not within:
        count = target.size if kept is None else int(kept.sum())
        loss = loss / count if count else losses.dtype.type(np.nan)
    return (loss if losses.dtype is a.dtype else loss.astype(a.dtype)), p


def _counted(target: np.ndarray, kept: np.ndarray | None, within: int) -> np.ndarray | int:
    """How many targets count, for each entry of the first dimensions."""
    if kept is None:
        return math.prod(target.shape[within:])
    return kept.sum(axis=tuple(range(within, target.ndim)))


def cross_entropy(
    a: np.ndarray,
    target: np.ndarray,
    dim: int,
    ignore_index: int,
    reduction: str,
    within: int = 0,
) -> Result:
    """The loss of ``cross_entropy_and_softmax``."""
    return cross_entropy_and_softmax(a, target, dim, ignore_index, reduction, within)[0]


def _backward_within(
    g: np.ndarray,
    p: np.ndarray,
    target: np.ndarray,
    kept: np.ndarray | None,
    dim: int,
    reduction: str,
    within: int,
) -> np.ndarray:
    """The gradient of reductions for each entry of the first dimensions."""
    if reduction == "mean":
        g = g / np.maximum(_counted(target, kept, within), 1).astype(g.dtype)
    out = p.astype(g.dtype)
    if out.size:
        _subtract_at(out, target, dim, 1)
    out *= g.reshape(*g.shape, *[1] * (p.ndim - within))
    return out if kept is None else np.where(np.expand_dims(kept, dim), out, 0)


def cross_entropy_backward(
    g: np.ndarray,
    p: np.ndarray,
    target: np.ndarray,
    dim: int,
    ignore_index: int,
    reduction: str,
    within: int = 0,
    into: np.ndarray | None = None,
) -> np.ndarray:
    """(softmax - one_hot) * g, for the softmax ``p`` of the logits.

    The result goes ``into`` an array of its shape and type, which may be ``p``.
    """
    found = _cross_entropy_backward(g, p, target, dim, ignore_index, reduction, within, into)
    if into is None or found is into:
        return found
    into[...] = found
    return into


def _cross_entropy_backward(
    g: np.ndarray,
    p: np.ndarray,
    target: np.ndarray,
    dim: int,
    ignore_index: int,
    reduction: str,
    within: int,
    into: np.ndarray | None,
) -> np.ndarray:
    safe, kept = _classes(target, p.shape[dim], ignore_index, "cross_entropy")
    if within and reduction != "none":
        return _backward_within(g, p, safe, kept, dim, reduction, within)
    scale: np.ndarray | float = g
    if reduction == "mean":
        # In Python: a division of arrays of no dimensions costs more than the rest.
        count = target.size if kept is None else int(kept.sum())
        scale = g.item() / max(count, 1)
    elif reduction == "sum":
        scale = g.item()
    if kept is not None:
        scale = np.where(kept, scale, 0).astype(p.dtype, copy=False)
    spread = np.expand_dims(scale, dim) if isinstance(scale, np.ndarray) else scale
    out = np.multiply(p, spread, out=into) if into is not None else p * spread
    if out.size:
        _subtract_at(out, safe, dim, scale)
    return out if out.dtype is g.dtype else out.astype(g.dtype)


def binary_cross_entropy_with_logits(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)) - x y, without overflow."""
    out = np.asarray(np.abs(x))
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.log1p(out, out=out)
    out += np.maximum(x, 0)
    return out - x * y


def binary_cross_entropy_with_logits_backward(
    g: np.ndarray, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """(sigmoid(x) - y) * g, the gradient of x."""
    return g * (sigmoid(x) - y)


def binary_cross_entropy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """-(y log x + (1 - y) log(1 - x)), the logarithms at least -100."""
    for name, a in (("input", x), ("target", y)):
        # Written so that NaN, which compares false, is refused too.
        if not np.all((a >= 0) & (a <= 1)):
            raise RuntimeError(
                f"binary_cross_entropy: all elements of {name} should be between 0 and 1, got "
                f"values from {a.min()} to {a.max()}; for logits use "
                "binary_cross_entropy_with_logits"
            )
    with np.errstate(divide="ignore"):
        log_x, log_1x = np.maximum(np.log(x), -100), np.maximum(np.log1p(-x), -100)
    return (y - 1) * log_1x - y * log_x
