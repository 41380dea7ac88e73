"""Limiting the size of gradients before a step."""

from __future__ import annotations

import math
import operator
import types
import warnings
from collections.abc import Iterable
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.backend import K
from chainrule.backend.dtypes import float32, float64
from chainrule.linalg import vector_norm
from chainrule.ops.creation import zeros
from chainrule.ops.shape import stack
from chainrule.ops.promotion import promote, result_type
from chainrule.graph import Box
from chainrule.tensor import Tensor

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

Tensors = Tensor | Iterable[Tensor]


def _list(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: Tensors) -> list[Tensor]:
    return [p.grad for p in _list(parameters) if p.grad is not None]


def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The p-norm of all tensors as if they were one vector.

    >>> import chainrule
    >>> chainrule.nn.utils.get_total_norm([chainrule.ones(3), chainrule.ones(2, 3)])
    tensor(3.)
    """
    order, given = float(norm_type), _list(tensors)
    if not given:
        return zeros(())
    if order == 2 and all([_is_plain(t) for t in given]):
        total = _euclidean(given)
    else:
        with no_grad():
            norms = [vector_norm(t, order) for t in given]
            total = norms[0] if len(norms) == 1 else vector_norm(stack(promote(*norms)), order)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite "
            f"({float(total)}), so it cannot be clipped; look for the layer whose gradient is not "
            "finite, or set error_if_nonfinite=False to scale by that norm anyway"
        )
    return total


def _is_plain(t: Tensor) -> bool:
    return t.dtype in (float32, float64) and not isinstance(t.array, Box)


def _euclidean(tensors: list[Tensor]) -> Tensor:
    """The root of all squares: one pass over each tensor, nothing in between."""
    flat = [t.array.reshape(-1) for t in tensors]
    total = math.sqrt(sum([float(K.matmul(a, a)) for a in flat]))
    return Tensor(K.asarray(total, dtype=result_type(*tensors).array_dtype))


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiplies all gradients by min(1, max_norm / (total_norm + 1e-6)), in place."""
    factor = float(max_norm) / (float(total_norm) + 1e-6)
    if factor >= 1:  # false for NaN, which then is in every gradient
        return
    with no_grad():
        for g in _gradients(parameters):
            operator.imul(g, factor)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients down together so that their norm is at most ``max_norm``.

    Their direction stays. Returns the norm from before.

    Args:
        parameters: a tensor or several, whose ``grad`` is changed in place.
        max_norm: the largest norm allowed.
        norm_type: the order of the norm, for example 2 or ``float("inf")``.
        error_if_nonfinite: whether a norm of NaN or infinity is an error.
        foreach: without effect here.

    >>> import chainrule
    >>> w = chainrule.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> chainrule.nn.utils.clip_grad_norm_(w, 1.0), w.grad
    (tensor(10.), tensor([0.6000, 0.8000]))
    """
    generated = isinstance(parameters, types.GeneratorType)
    parameters = _list(parameters)
    if generated and not parameters:
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur", stacklevel=2
        )
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Moves every entry of every gradient into [-clip_value, clip_value], in place."""
    limit: Any = float(clip_value)
    with no_grad():
        for g in _gradients(parameters):
            g.clamp_(-limit, limit)
