"""Activations of several numbers together, along a dimension."""

from __future__ import annotations

from chainrule.nn.activations import functions as F
from chainrule.nn.activations.base import Activation, Plain
from chainrule.tensor import Tensor

__all__ = ["GLU", "LogSoftmax", "Softmax", "Softmax2d", "Softmin"]


class Softmax(Activation, function=F.softmax):
    """Positive numbers that sum to 1: y = exp(x) / sum(exp(x)) along ``dim``.

    Shape: (*), the same out.

    Args:
        dim: the dimension along which the results sum to 1.

    >>> from chainrule import nn, tensor
    >>> nn.Softmax(dim=-1)(tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    dim: int | None

    def __init__(self, dim: int | None = None):
        super().__init__(dim=dim)


class Softmin(Activation, function=F.softmin):
    """Softmax with the sign turned: y = exp(-x) / sum(exp(-x)) along ``dim``.

    Shape: (*), the same out.

    Args:
        dim: the dimension along which the results sum to 1.

    >>> from chainrule import nn, tensor
    >>> nn.Softmin(dim=-1)(tensor([0.0, 1.0]))
    tensor([0.7311, 0.2689])
    """

    dim: int | None

    def __init__(self, dim: int | None = None):
        super().__init__(dim=dim)


class LogSoftmax(Activation, function=F.log_softmax):
    """The logarithm of softmax: y = x - log(sum(exp(x))) along ``dim``.

    Shape: (*), the same out.

    Args:
        dim: the dimension along which the exponentials of the results sum to 1.

    >>> from chainrule import nn, tensor
    >>> nn.LogSoftmax(dim=-1)(tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """

    dim: int | None

    def __init__(self, dim: int | None = None):
        super().__init__(dim=dim)


class Softmax2d(Plain):
    """Softmax over the channels of images: y[c] = exp(x[c]) / sum over k of exp(x[k]).

    Shape: (N, C, H, W) or (C, H, W), the same out.

    >>> from chainrule import nn, ones
    >>> nn.Softmax2d()(ones(1, 2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got shape {tuple(input.shape)}"
            )
        return F.softmax(input, -3)


class GLU(Activation, function=F.glu):
    """A gated linear unit: y = a sigmoid(b), where a and b are the halves of x along ``dim``.

    Shape: (*, 2 D, *) -> (*, D, *), D at ``dim``.

    Args:
        dim: the dimension that is halved.

    >>> from chainrule import nn, tensor
    >>> nn.GLU()(tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    dim: int

    def __init__(self, dim: int = -1):
        super().__init__(dim=dim)
