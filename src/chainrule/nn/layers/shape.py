"""Layers that change the shape alone, or nothing."""

from __future__ import annotations

from typing import TypeVar

from chainrule.nn.module.base import Module
from chainrule.ops.shape.rearrange import unflatten
from chainrule.ops.shape.views import flatten
from chainrule.tensor import Tensor
from chainrule.typing import Shape

__all__ = ["Flatten", "Identity", "Unflatten"]

T = TypeVar("T")


class Identity(Module):
    """Gives back its input: y = x.

    Shape: (*), the same out.

    Args:
        args, kwargs: anything; they are ignored.

    >>> from chainrule import nn, ones
    >>> nn.Identity(54, unused=True)(ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: object, **kwargs: object):
        super().__init__()

    def forward(self, input: T) -> T:
        return input


class Flatten(Module):
    """Several dimensions as one: y[n, i * W + j] = x[n, i, j] for the last two, and so for more.

    Shape: (N, *) -> (N, product of *) by default.

    Args:
        start_dim, end_dim: the first and the last of the dimensions; 0 is the batch.

    >>> from chainrule import nn, ones
    >>> nn.Flatten()(ones(2, 3, 4)).shape
    chainrule.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dimension as several: y[n, i, j] = x[n, i * W + j] for two of sizes (H, W).

    Shape: (*, size of dim, *) -> (*, *unflattened_size, *).

    Args:
        dim: the dimension.
        unflattened_size: the sizes, whose product is its own; one may be -1.

    >>> from chainrule import nn, ones
    >>> nn.Unflatten(1, (3, 4))(ones(2, 12)).shape
    chainrule.Size([2, 3, 4])
    """

    def __init__(self, dim: int, unflattened_size: Shape):
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(
                f"Unflatten: dim must be an int (named dimensions are not supported), got {dim!r}"
            )
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "Unflatten: unflattened_size must be a tuple of ints, found type "
                f"{type(unflattened_size).__name__}"
            )
        for i, n in enumerate(unflattened_size):
            if not isinstance(n, int):
                raise TypeError(
                    f"Unflatten: unflattened_size must be a tuple of ints, but found element of "
                    f"type {type(n).__name__} at pos {i}"
                )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
