"""Layers that multiply by weights: linear, bilinear and second-order units."""

from __future__ import annotations

import math

from chainrule.nn.init.tensors import uniform_
from chainrule.ops.core.rounding import rounds_once
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.patterns import empty, ones
from chainrule.ops.linalg.matmul import linear, matmul
from chainrule.ops.shape.views import reshape, squeeze, unsqueeze
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.typing import DType, Device, Factory, MaybeNone

__all__ = ["Bilinear", "Linear", "SecondOrder", "bilinear", "linear", "second_order"]


class Linear(Module):
    """An affine map: y = x A^T + b, with A the weight and b the bias.

    Shape: (*, in_features) -> (*, out_features).

    Args:
        in_features: size of each input.
        out_features: size of each output.
        bias: whether to add a learned b.

    >>> from chainrule import nn, ones
    >>> nn.Linear(3, 2)(ones(5, 3)).shape
    chainrule.Size([5, 2])
    """

    weight: Parameter
    bias: Parameter | MaybeNone

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        factory: Factory = {"device": device, "dtype": dtype}
        self.weight = Parameter(empty(out_features, in_features, **factory))
        if bias:
            self.bias = Parameter(empty(out_features, **factory))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias from U(-k, k), k = 1 / sqrt(in_features), as PyTorch does."""
        bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0.0
        for p in (self.weight, self.bias):
            if p is not None:
                uniform_(p, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        bias = self.bias is not None
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={bias}"


# --- products of inputs ---------------------------------------------------------------------------


@rounds_once
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[o] = sum over i, j of x1[i] weight[o, i, j] x2[j], plus bias[o].

    Shape: input1 (*, in1), input2 (*, in2), weight (out, in1, in2), bias (out), output (*, out).
    """
    if weight.ndim != 3:
        raise RuntimeError(
            f"bilinear: weight must have shape (out, in1, in2), got {tuple(weight.shape)}"
        )
    n_out, n1, n2 = weight.shape
    if input1.shape[:-1] != input2.shape[:-1] or not input1.ndim or not input2.ndim:
        raise RuntimeError(
            "bilinear: batch dimensions of input1 and input2 do not match, got "
            f"{tuple(input1.shape)} and {tuple(input2.shape)}"
        )
    for name, given, wanted in (("input1", input1, n1), ("input2", input2, n2)):
        if given.shape[-1] != wanted:
            raise RuntimeError(
                f"bilinear: the last dimension of {name} must be {wanted} for a weight of shape "
                f"{tuple(weight.shape)}, got {name} of shape {tuple(given.shape)}"
            )
    forms = linear(input2, reshape(weight, (n_out * n1, n2)))
    forms = reshape(forms, (*input2.shape[:-1], n_out, n1))
    out = squeeze(matmul(forms, unsqueeze(input1, -1)), -1)
    return out if bias is None else out + bias


def second_order(input: Tensor, weight: Tensor) -> Tensor:
    """s[i] = sum over j1, j2 of weight[i, j1, j2] a[j1] a[j2], where a is ``input`` with a[0] = 1
    put in front: so weight[i, 0, 0] is a bias, and the rest of its row and column are linear.

    Shape: input (*, in), weight (out, in + 1, in + 1), output (*, out).
    """
    one = ones(*input.shape[:-1], 1, dtype=input.dtype, device=input.device)
    a = cat([one, input], -1)
    return bilinear(a, a, weight)


class Bilinear(Module):
    """A form that is linear in each of two inputs: y[o] = x1^T A[o] x2 + b[o].

    Shape: (*, in1_features), (*, in2_features) -> (*, out_features).

    Args:
        in1_features, in2_features: sizes of the inputs.
        out_features: size of each output.
        bias: whether to add a learned b.

    >>> from chainrule import nn, ones
    >>> nn.Bilinear(2, 3, 4)(ones(5, 2), ones(5, 3)).shape
    chainrule.Size([5, 4])
    """

    weight: Parameter
    bias: Parameter | MaybeNone

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Bilinear: in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        factory: Factory = {"device": device, "dtype": dtype}
        self.weight = Parameter(empty(out_features, in1_features, in2_features, **factory))
        if bias:
            self.bias = Parameter(empty(out_features, **factory))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias from U(-k, k), k = 1 / sqrt(in1_features), as PyTorch does."""
        bound = 1 / math.sqrt(self.in1_features)
        for p in (self.weight, self.bias):
            if p is not None:
                uniform_(p, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class SecondOrder(Module):
    """Second-order units: s[i] = sum over j1, j2 of w[i, j1, j2] a[j1] a[j2], with a[0] = 1.

    One such unit computes XOR or any other quadratic form, bias and linear terms included.

    Shape: (*, in_features) -> (*, out_features).

    Args:
        in_features: size of each input.
        out_features: number of units.

    >>> from chainrule import nn, ones
    >>> layer = nn.SecondOrder(3, 2)
    >>> layer(ones(5, 3)).shape, layer.weight.shape
    (chainrule.Size([5, 2]), chainrule.Size([2, 4, 4]))
    """

    weight: Parameter

    def __init__(
        self,
        in_features: int,
        out_features: int,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        shape = (out_features, in_features + 1, in_features + 1)
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weights from U(-k, k), k = 1 / (in_features + 1): one over the root of how many."""
        bound = 1 / (self.in_features + 1)
        uniform_(self.weight, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return second_order(input, self.weight)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"
