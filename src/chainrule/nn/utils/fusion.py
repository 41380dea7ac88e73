"""Batch normalization in evaluation, folded into the layer before it."""

from __future__ import annotations

import copy
from typing import TypeVar

from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.ops.elementwise.functions import rsqrt
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]

M = TypeVar("M", bound=Module)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the layer that does both: with s = bn_w / sqrt(bn_rv + bn_eps), they are
    s conv_w and s (conv_b - bn_rm) + bn_b."""
    scale = rsqrt(bn_rv + bn_eps) if bn_w is None else bn_w * rsqrt(bn_rv + bn_eps)
    sizes = [1] * conv_w.ndim
    sizes[1 if transpose else 0] = -1
    bias = -bn_rm * scale if conv_b is None else (conv_b - bn_rm) * scale
    bias = bias if bn_b is None else bias + bn_b
    weight = conv_w * reshape(scale, sizes)
    return Parameter(weight.detach(), conv_w.requires_grad), Parameter(bias.detach())


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the layer that does both: with s = bn_w / sqrt(bn_rv + bn_eps), they are
    s linear_w and s (linear_b - bn_rm) + bn_b."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_conv_bn_eval(conv: M, bn: Module, transpose: bool = False) -> M:
    """A copy of ``conv`` that computes y = bn(conv(x)) as in evaluation.

    >>> from chainrule import nn, ones
    >>> conv, bn = nn.Conv2d(1, 2, 3).eval(), nn.BatchNorm2d(2).eval()
    >>> x = ones(1, 1, 5, 5)
    >>> nn.utils.fuse_conv_bn_eval(conv, bn)(x).allclose(bn(conv(x)), atol=1e-6)
    True
    """
    if conv.training or bn.training:
        raise RuntimeError("fusion: both modules must be in evaluation mode; call eval() first")
    if bn.running_mean is None or bn.running_var is None:
        raise RuntimeError("fusion: the normalization keeps no running mean and variance")
    if bn.num_features != getattr(conv, "out_features", getattr(conv, "out_channels", None)):
        raise RuntimeError(
            f"fusion: the normalization is of {bn.num_features} features, which is not what {conv} "
            "gives"
        )
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        conv.weight,
        conv.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    return fused


def fuse_linear_bn_eval(linear: M, bn: Module) -> M:
    """A copy of ``linear`` that computes y = bn(linear(x)) as in evaluation."""
    return fuse_conv_bn_eval(linear, bn)
