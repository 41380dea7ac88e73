"""Normalization of each channel, over the batch or over space, with running moments."""

from __future__ import annotations

import math
from typing import TypeVar

from chainrule.autograd.forward_ad import Dual
from chainrule.autograd.modes import no_grad
from chainrule.nn.layers.norm_sample import check_type
from chainrule.ops.core.inplace import assign
from chainrule.ops.elementwise.functions import rsqrt
from chainrule.ops.layers.norm import (
    Limits,
    normalized,
    normalized_with_statistics,
    scaled_channels,
)
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor

__all__ = ["batch_norm", "instance_norm", "with_running_moments"]

T = TypeVar("T", Tensor, None, Tensor | None)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """weight * (x - mean) / sqrt(var + eps) + bias, with the moments of each channel.

    In training they are those of the batch, and the running ones are moved towards them (the
    variance with n - 1 in its denominator); else they are the running ones.
    """
    if isinstance(input, Tensor) and not input.array.size:
        return _of_nothing(input, weight, bias)
    _check_channels("batch_norm", input, running_mean, running_var, weight, bias)
    if not training:
        if eps < 0.0:
            raise ValueError(f"batch_norm: eps must be non-negative, but got {eps}")
        return with_running_moments(
            "batch_norm", input, running_mean, running_var, weight, bias, eps
        )
    if eps <= 0.0:
        raise ValueError(f"batch_norm: eps must be positive during training, but got {eps}")
    shape, ndim = input.shape, input.ndim
    count = math.prod(shape) // shape[1] if shape[1] else 0
    if count < 2:
        raise ValueError(
            "batch_norm: Expected more than 1 value per channel when training, got input size "
            f"{tuple(shape)}: the variance of {count} is not defined. Use a larger batch (drop the "
            "last incomplete one), or eval()"
        )
    dim = (*range(-ndim, 1 - ndim), *range(2 - ndim, 0))
    w, b = _per_channel(weight, ndim), _per_channel(bias, ndim)
    if running_mean is None and running_var is None:
        return normalized(input, w, b, dim=dim, eps=eps)
    out, center, spread = normalized_with_statistics(input, w, b, dim=dim, eps=eps)
    _move(running_mean, center, momentum)
    _move(running_var, spread * (count / (count - 1)), momentum)
    return out


def _of_nothing(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """An empty batch stays empty, the running moments where they are; parameters get zeros."""
    out = input * 1
    for t in (weight, bias):
        if t is not None:
            out = out + sum(t) * 0
    return out


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """weight * (x - mean) / sqrt(var + eps) + bias, with the moments of each sample's channel.

    The running moments, if there are some, are moved towards the mean over the batch.
    """
    _check_channels("instance_norm", input, running_mean, running_var, weight, bias)
    if not use_input_stats:
        return with_running_moments(
            "instance_norm", input, running_mean, running_var, weight, bias, eps
        )
    count = math.prod(input.shape[2:])
    if count == 1:
        raise ValueError(
            "instance_norm: Expected more than 1 spatial element when training, got input size "
            f"{tuple(input.shape)}; batch_norm or layer_norm normalize what has no space"
        )
    dim = tuple(range(2 - input.ndim, 0))
    w, b = _per_channel(weight, input.ndim), _per_channel(bias, input.ndim)
    out, center, spread = normalized_with_statistics(input, w, b, dim=dim, eps=eps)
    if running_mean is not None or running_var is not None:
        rows = (input.shape[0], input.shape[1])
        _move(running_mean, mean(reshape(center, rows), 0), momentum)
        _move(running_var, mean(reshape(spread, rows), 0) * (count / max(count - 1, 1)), momentum)
    return out


def _per_channel(t: T, ndim: int) -> T:
    """A vector along dimension 1 of a tensor with so many dimensions; None if there is none."""
    return t if t is None or ndim == 2 else reshape(t, (-1, *[1] * (ndim - 2)))


def with_running_moments(
    op: str,
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    limits: Limits = (None, None),
) -> Tensor:
    """weight * (x - mean) / sqrt(var + eps) + bias with given moments, held between the limits."""
    if running_mean is None or running_var is None:
        name = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(
            f"{op}: {name} must be defined in evaluation mode; normalize with the moments of the "
            "input (training=True), or pass it"
        )
    scale = rsqrt(running_var + eps)
    if weight is not None:
        scale = scale * weight
    shift = -running_mean * scale
    if bias is not None:
        shift = shift + bias
    return scaled_channels(input, scale, shift, limits)


def _move(running: Tensor | None, value: Tensor, momentum: float) -> None:
    """Moves a running moment the part ``momentum`` of the way to a value."""
    if running is None:
        return
    # What is kept is a number, not a function: it has no tangent.
    while isinstance(value.array, Dual) and not isinstance(running.array, Dual):
        value = value.array.primal
    with no_grad():
        assign(running, running * (1 - momentum) + value.detach() * momentum, "batch_norm")


def _check_channels(
    op: str,
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
) -> None:
    check_type(op, input, running_mean, running_var, weight, bias)
    if input.ndim < 2:
        raise IndexError(
            f"{op}: Dimension out of range: expected an input (N, C, ...) with channels in "
            f"dimension 1, got shape {tuple(input.shape)}"
        )
    c = input.shape[1]
    names = ("running_mean", "running_var", "weight", "bias")
    for name, t in zip(names, (running_mean, running_var, weight, bias), strict=True):
        if t is not None and t.array.shape != (c,):
            raise RuntimeError(
                f"{op}: {name} should contain {c} elements not {t.array.size}: the input of shape "
                f"{tuple(input.shape)} has {c} channels in dimension 1"
            )
