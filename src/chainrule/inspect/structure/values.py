"""Tensors in a few words."""

from __future__ import annotations

from chainrule.autograd.modes import no_grad
from chainrule.nn.module.base import Module
from chainrule.nn.utils.parametrize import type_before_parametrizations
from chainrule.tensor import Tensor

__all__ = ["class_name", "shape_text", "value_text"]


def class_name(module: Module) -> str:
    """The class of a module, as it was before a parametrization changed it."""
    return type_before_parametrizations(module).__name__


def shape_text(t: Tensor) -> str:
    """The shape as a tuple.

    >>> from chainrule import ones
    >>> shape_text(ones(2, 3))
    '(2, 3)'
    """
    return str(tuple(t.shape))


@no_grad()
def value_text(t: Tensor) -> str:
    """Shape, type and range of values.

    >>> from chainrule import tensor
    >>> value_text(tensor([1.0, 2.0, 6.0]))
    '(3,) float32, from 1 to 6, mean 3'
    """
    told = f"{shape_text(t)} {str(t.dtype).rpartition('.')[2]}"
    if not t.numel() or t.dtype.is_complex:
        return told
    if not t.dtype.is_floating_point:
        if str(t.dtype).endswith("bool"):
            return told
        return f"{told}, from {t.min().item()} to {t.max().item()}"
    x = t.detach().double().reshape(-1)
    finite = x.isfinite()
    lost = x.numel() - int(finite.sum().item())
    if lost == x.numel():
        return f"{told}, no finite value"
    x = x[finite] if lost else x
    if x.numel() == 1 and not lost:
        return f"{told}, {x.item():.4g}"
    told += f", from {x.min().item():.4g} to {x.max().item():.4g}, mean {x.mean().item():.4g}"
    return f"{told}, {lost} not finite" if lost else told
