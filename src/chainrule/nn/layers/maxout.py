"""Maxout: the largest of several linear functions."""

from __future__ import annotations


from chainrule.nn.layers.linear import Linear
from chainrule.nn.module.base import Module
from chainrule.ops.reduce.order import max as largest
from chainrule.ops.shape.views import canonical_dim, reshape
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType

__all__ = ["Maxout", "maxout"]


def maxout(input: Tensor, num_pieces: int | None = None, dim: int = -1) -> Tensor:
    """The maximum of each group of ``num_pieces`` neighbors along a dimension, which shrinks so.

    Without ``num_pieces`` it is the maximum over the whole dimension, rho(x) = max_i x_i, and the
    dimension goes. The derivative is 1 at the maximum (the first, if several are equal) and 0
    elsewhere.

    >>> import chainrule
    >>> from chainrule.nn.functional import maxout
    >>> x = chainrule.tensor([1.0, 4.0, 3.0, 2.0])
    >>> maxout(x), maxout(x, 2)
    (tensor(4.), tensor([4., 3.]))
    """
    d = canonical_dim("maxout", dim, input.ndim)
    if num_pieces is None:
        return largest(input, d)[0]
    n = input.shape[d]
    if num_pieces < 1 or n % num_pieces:
        raise RuntimeError(
            f"maxout: size {n} at dimension {d + input.ndim} of input {tuple(input.shape)} is not "
            f"a multiple of num_pieces={num_pieces}"
        )
    at = d + input.ndim
    lead, rest = tuple(input.shape[:at]), tuple(input.shape[at + 1 :])
    groups = reshape(input, (*lead, n // num_pieces, num_pieces, *rest))
    return largest(groups, d)[0]


class Maxout(Module):
    """A layer of maxout units: y[o] = max over k of (W x + b)[o, k], a learned convex function.

    Shape: (*, in_features) -> (*, out_features).

    Args:
        in_features: size of each input.
        out_features: number of units.
        num_pieces: how many linear functions each unit takes the largest of.
        bias: whether each of them adds a learned b.

    >>> from chainrule import nn, ones
    >>> nn.Maxout(3, 4, num_pieces=2)(ones(5, 3)).shape
    chainrule.Size([5, 4])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        num_pieces: int = 2,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        if num_pieces < 1:
            raise ValueError(f"Maxout: num_pieces must be at least 1, got {num_pieces}")
        self.out_features = out_features
        self.num_pieces = num_pieces
        self.linear = Linear(in_features, out_features * num_pieces, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return maxout(self.linear(input), self.num_pieces)

    def extra_repr(self) -> str:
        return f"out_features={self.out_features}, num_pieces={self.num_pieces}"
