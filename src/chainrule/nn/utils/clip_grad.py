"""Limiting the size of gradients before a step."""

from __future__ import annotations

import math
import operator
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.backend import K
from chainrule.backend.dtypes import float32, float64
from chainrule.linalg import vector_norm
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.core.inplace import touch, touch_all
from chainrule.ops.shape.stacking import stack
from chainrule.ops.core.promotion import promote, result_type
from chainrule.graph import Box
from chainrule.tensor import Tensor, of_array

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
    """The p-norm of all tensors as if they were one vector: (sum of |t|^p)^(1 / p).

    >>> import chainrule
    >>> chainrule.nn.utils.get_total_norm([chainrule.ones(3), chainrule.ones(2, 3)])
    tensor(3.)
    """
    order, given = float(norm_type), _list(tensors)
    if not given:
        return zeros(())
    if order in (2, math.inf) and all([_is_plain(t) for t in given]):
        arrays, dtype = [t.array for t in given], result_type(*given).array_dtype
        total = of_array(K.norm_of_all(arrays, order, dtype, K.total_norm))
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


def _can_write(t: Tensor) -> bool:
    """Whether a gradient is an array of its own, without history: what backward() leaves."""
    return _is_plain(t) and t._node is None and t._view is None and K.is_contiguous(t.array)


def _each(gradients: list[Tensor], change: Callable[[Tensor], Any]) -> list[Any]:
    """The arrays to write in one call, after the gradients that need more than that."""
    plain = [_can_write(g) for g in gradients]
    with no_grad():
        for g, is_plain in zip(gradients, plain, strict=True):
            if is_plain:
                touch(g)
            else:
                change(g)
    return [g.array for g, is_plain in zip(gradients, plain, strict=True) if is_plain]


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiplies all gradients by min(1, max_norm / (total_norm + 1e-6)), in place."""
    limit, gradients = float(max_norm), _gradients(parameters)
    if _is_plain(total_norm) and all([_can_write(g) for g in gradients]):
        touch_all(gradients)
        K.write_clipped([g.array for g in gradients], total_norm.array, limit, K.write_scaled)
        return
    factor = limit / (float(total_norm) + 1e-6)
    if factor >= 1:  # false for NaN, which then is in every gradient
        return
    arrays = _each(gradients, lambda g: operator.imul(g, factor))
    K.write_scaled(arrays, factor)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients down together so that their norm is at most ``max_norm``.

    grad = grad * min(1, max_norm / (norm + 1e-6)): their direction stays. Returns the norm from
    before.

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
    """grad = min(max(grad, -clip_value), clip_value) for every entry, in place."""
    limit: Any = float(clip_value)
    arrays = _each(_gradients(parameters), lambda g: g.clamp_(-limit, limit))
    K.write_clamped(arrays, -limit, limit)
