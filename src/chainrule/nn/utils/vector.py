"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule.autograd.modes import no_grad
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The entries of all parameters, one after the other, in one vector; differentiable.

    >>> from chainrule import nn
    >>> nn.utils.parameters_to_vector(nn.Linear(3, 2).parameters()).shape
    chainrule.Size([8])
    """
    return cat([reshape(p, (-1,)) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copies the parts of a vector into the parameters, in place."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: expected a Tensor, got {type(vec).__name__}")
    held = list(parameters)
    wanted = sum(p.numel() for p in held)
    if vec.shape != (wanted,):
        raise RuntimeError(
            f"vector_to_parameters: the parameters have {wanted} elements together, the vector has "
            f"shape {tuple(vec.shape)}"
        )
    start = 0
    with no_grad():
        for p in held:
            p.copy_(reshape(vec[start : start + p.numel()], p.shape))
            start += p.numel()
