"""Softmax and cross-entropy, shifted by the largest logit so that nothing overflows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from chainrule.backend.xla_kernels.checks import check
from chainrule.backend.xla_kernels.special import sigmoid

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

Array = Any


def softmax(a: Array, dim: int) -> Array:
    """exp(a) / sum(exp(a)) along ``dim``"""
    if a.size == 0:
        return a
    p = jnp.exp(a - jnp.max(a, dim, keepdims=True))
    return p / jnp.sum(p, dim, keepdims=True)


def softmax_backward(g: Array, out: Array, dim: int) -> Array:
    """out * (g - sum(g * out))"""
    return out * (g - jnp.sum(g * out, dim, keepdims=True))


def log_softmax(a: Array, dim: int) -> Array:
    """a - log(sum(exp(a))) along ``dim``"""
    if a.size == 0:
        return a
    x = a - jnp.max(a, dim, keepdims=True)
    return x - jnp.log(jnp.sum(jnp.exp(x), dim, keepdims=True))


def log_softmax_backward(g: Array, out: Array, dim: int) -> Array:
    """g - exp(out) * sum(g)"""
    return g - jnp.exp(out) * jnp.sum(g, dim, keepdims=True)


# --- classes as integers --------------------------------------------------------------------------


def _classes(target: Array, classes: int, ignore_index: int, op: str) -> tuple[Array, Array]:
    """The targets with 0 in the place of those to be ignored, and which are kept."""
    target = jnp.asarray(target)
    kept = target != ignore_index
    safe = jnp.where(kept, target, 0)
    stray = (safe < 0) | (safe >= classes)

    def error() -> IndexError:
        which = ""
        if not isinstance(stray, jax.core.Tracer):
            which = f" {np.asarray(safe)[np.asarray(stray)].flat[0]}"
        return IndexError(
            f"{op}: target{which} is out of bounds; with {classes} classes a target must lie in "
            f"[0, {classes - 1}] or be ignore_index={ignore_index}"
        )

    if target.size:
        check(~jnp.any(stray), error)
    return safe, kept


def _one_hot(safe: Array, classes: int, dim: int) -> Array:
    """Where the class dimension has the number of the target."""
    position = safe.ndim + 1 + dim
    numbers = jnp.arange(classes, dtype=safe.dtype).reshape(-1, *[1] * (-dim - 1))
    return jnp.expand_dims(safe, position) == numbers


def _picked(x: Array, safe: Array, dim: int) -> Array:
    at = jnp.expand_dims(safe, dim)
    return jnp.squeeze(jnp.take_along_axis(x, at, dim, mode="clip"), dim)


def one_hot_classes(
    target: Array, classes: int, dim: int, ignore_index: int, dtype: Any, smoothing: float = 0.0
) -> Array:
    """1 at the target's class and 0 elsewhere along a new dimension; 0 for ignored targets.

    With ``smoothing`` so much of the 1 is the same for all classes.
    """
    safe, kept = _classes(target, classes, ignore_index, "cross_entropy")
    hot, kept = _one_hot(safe, classes, dim), jnp.expand_dims(kept, dim)
    if smoothing == 0.0:
        return (hot & kept).astype(dtype)
    spread = smoothing / max(classes, 1)
    return jnp.where(kept, jnp.where(hot, 1 - smoothing + spread, spread), 0.0).astype(dtype)


def negative_log_likelihood(a: Array, target: Array, dim: int, ignore_index: int) -> Array:
    """Minus the entry of each target's class along ``dim``; 0 for ignored targets."""
    safe, kept = _classes(target, a.shape[dim], ignore_index, "nll_loss")
    if safe.size == 0:
        return jnp.zeros(safe.shape, a.dtype)
    return jnp.where(kept, -_picked(a, safe, dim), jnp.zeros((), a.dtype))


# --- cross-entropy --------------------------------------------------------------------------------


def cross_entropy_and_softmax(
    a: Array, target: Array, dim: int, ignore_index: int, reduction: str, within: int = 0
) -> tuple[Array, Array]:
    """The loss, log(sum(exp(x))) - x[target] reduced, and softmax(x).

    The reduction is one for each entry of the first ``within`` dimensions.
    """
    safe, kept = _classes(target, a.shape[dim], ignore_index, "cross_entropy")
    if a.size == 0:
        losses, p = jnp.zeros(safe.shape, a.dtype), a
    else:
        x = a - jnp.max(a, dim, keepdims=True)
        p = jnp.exp(x)
        total = jnp.sum(p, dim, keepdims=True)
        p = p / total
        losses = jnp.squeeze(jnp.log(total), dim) - _picked(x, safe, dim)
        losses = jnp.where(kept, losses, jnp.zeros((), a.dtype))
    if reduction == "none":
        return losses, p
    axes = tuple(range(within, losses.ndim))
    loss = jnp.sum(losses, axes)
    if reduction == "mean":
        loss = loss / jnp.sum(kept, axes).astype(a.dtype)
    return loss, p


def cross_entropy(
    a: Array, target: Array, dim: int, ignore_index: int, reduction: str, within: int = 0
) -> Array:
    """The loss of ``cross_entropy_and_softmax``."""
    return cross_entropy_and_softmax(a, target, dim, ignore_index, reduction, within)[0]


def cross_entropy_backward(
    g: Array,
    p: Array,
    target: Array,
    dim: int,
    ignore_index: int,
    reduction: str,
    within: int = 0,
    into: None = None,
) -> Array:
    """(softmax - one_hot) * g, for the softmax ``p`` of the logits.

    It goes ``into`` no array: those of JAX do not change.
    """
    safe, kept = _classes(target, p.shape[dim], ignore_index, "cross_entropy")
    g = jnp.asarray(g)
    scale = g
    if reduction == "mean":
        axes = tuple(range(within, safe.ndim))
        scale = g / jnp.maximum(jnp.sum(kept, axes), 1).astype(g.dtype)
    if reduction != "none":
        scale = scale.reshape(*scale.shape, *[1] * (safe.ndim - within))
    scale = jnp.where(kept, scale, jnp.zeros((), g.dtype))
    out = (p - _one_hot(safe, p.shape[dim], dim)) * jnp.expand_dims(scale, dim)
    return out.astype(g.dtype)


def binary_cross_entropy_with_logits(x: Array, y: Array) -> Array:
    """log(1 + exp(x)) - x y, without overflow."""
    return jnp.log1p(jnp.exp(-jnp.abs(x))) + jnp.maximum(x, 0) - x * y


def binary_cross_entropy_with_logits_backward(g: Array, x: Array, y: Array) -> Array:
    """(sigmoid(x) - y) * g, the gradient of x."""
    return g * (sigmoid(x) - y)


def binary_cross_entropy(x: Array, y: Array) -> Array:
    """-(y log x + (1 - y) log(1 - x)), the logarithms at least -100."""
    for name, a in (("input", x), ("target", y)):
        error = _outside_of_probabilities(name, jnp.asarray(a))
        # Written so that NaN, which compares false, is refused too.
        check(jnp.all((a >= 0) & (a <= 1)), error)
    log_x, log_1x = jnp.maximum(jnp.log(x), -100), jnp.maximum(jnp.log1p(-x), -100)
    return (y - 1) * log_1x - y * log_x


def _outside_of_probabilities(name: str, a: Array) -> Any:
    def error() -> RuntimeError:
        found = ""
        if not isinstance(a, jax.core.Tracer):
            found = f", got values from {a.min()} to {a.max()}"
        return RuntimeError(
            f"binary_cross_entropy: all elements of {name} should be between 0 and 1{found}; for "
            "logits use binary_cross_entropy_with_logits"
        )

    return error
