"""Layers that normalize each channel, over the batch or over space, and keep running moments."""

from __future__ import annotations

import math
import warnings
from typing import TypeVar

from chainrule.autograd.forward_ad import Dual
from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.nn.layers.norm_sample import Affine, check_type
from chainrule.ops.creation.patterns import ones, zeros
from chainrule.ops.elementwise.functions import rsqrt
from chainrule.ops.core.inplace import assign
from chainrule.ops.layers.norm import normalized, normalized_with_statistics
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.shape.views import reshape, squeeze, unsqueeze
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType, Factory

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "batch_norm",
    "instance_norm",
]

T = TypeVar("T", Tensor, None, Tensor | None)


# --- functions ------------------------------------------------------------------------------------


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
    _check_channels("batch_norm", input, running_mean, running_var, weight, bias)
    if not training:
        if eps < 0.0:
            raise ValueError(f"batch_norm: eps must be non-negative, but got {eps}")
        return _with_running_moments(
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
        return _with_running_moments(
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


def _with_running_moments(
    op: str,
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
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
    return input * _per_channel(scale, input.ndim) + _per_channel(shift, input.ndim)


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


# --- layers ---------------------------------------------------------------------------------------


class _Running(Affine):
    """Normalization of channels that can keep running moments."""

    ndims: tuple[int, ...]
    num_features: int
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._make_affine(num_features, affine, bias, device, dtype)
        factory: Factory = {"device": device, "dtype": dtype}
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, **factory) if tracked else None)
        self.register_buffer("running_var", ones(num_features, **factory) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", zeros((), dtype=dtypes.int64) if tracked else None
        )
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forgets the moments seen so far: mean 0, variance 1."""
        for moment, value in (
            (self.running_mean, 0),
            (self.running_var, 1),
            (self.num_batches_tracked, 0),
        ):
            if moment is not None and self.track_running_stats:
                moment.fill_(value)

    def reset_parameters(self) -> None:
        """Resets the running moments, the factor to 1 and the shift to 0."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self.ndims:
            expected = " or ".join(f"{n}D" for n in self.ndims)
            raise ValueError(
                f"{type(self).__name__}: expected {expected} input (got {input.ndim}D input of "
                f"shape {tuple(input.shape)})"
            )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_Running):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches so far
                momentum = 1.0 / self.num_batches_tracked.item()
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        tracked = not self.training or self.track_running_stats
        return batch_norm(
            input,
            self.running_mean if tracked else None,
            self.running_var if tracked else None,
            self.weight,
            self.bias,
            use_batch,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """y = weight * (x - mean) / sqrt(var + eps) + bias, with the moments of each channel.

    In training mean and var (biased) are those of the batch; in evaluation those that were
    averaged in training: running = (1 - momentum) * running + momentum * batch, the variance with
    n - 1 in its denominator.

    Shape: (N, C) or (N, C, L), the same out.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: weight of a new batch in the running moments; None for the mean of all batches.
        affine: whether to learn weight and bias.
        track_running_stats: whether to keep running moments; if not, evaluation uses the batch's.
        bias: whether to learn the bias, if affine.

    >>> from chainrule import nn, tensor
    >>> nn.BatchNorm1d(1)(tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    """

    ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """:class:`BatchNorm1d` for images: (N, C, H, W) -> (N, C, H, W)."""

    ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """:class:`BatchNorm1d` for volumes: (N, C, D, H, W) -> (N, C, D, H, W)."""

    ndims = (5,)


class _InstanceNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        unbatched = input.ndim == self.ndims[0]
        self._check_features(input, 0 if unbatched else 1)
        out = instance_norm(
            unsqueeze(input, 0) if unbatched else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return squeeze(out, 0) if unbatched else out

    def _check_features(self, input: Tensor, dim: int) -> None:
        c = input.shape[dim]
        if c == self.num_features:
            return
        text = (
            f"{type(self).__name__}: expected input's size at dim={dim} to match num_features "
            f"({self.num_features}), but got: {c}."
        )
        if self.affine:
            raise ValueError(text)
        warnings.warn(text + " It is not used because affine=False", stacklevel=4)


class InstanceNorm1d(_InstanceNorm):
    """y = weight * (x - mean) / sqrt(var + eps) + bias, with the moments of each sample's channel.

    They are taken over space, in training and in evaluation, unless running moments are kept.

    Shape: (N, C, L) or (C, L), the same out.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: weight of a new batch in the running moments.
        affine: whether to learn weight and bias.
        track_running_stats: whether to keep running moments and use them in evaluation.
        bias: whether to learn the bias, if affine.

    >>> from chainrule import nn, tensor
    >>> nn.InstanceNorm1d(1)(tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """:class:`InstanceNorm1d` for images: (N, C, H, W) or (C, H, W), the same out."""

    ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """:class:`InstanceNorm1d` for volumes: (N, C, D, H, W) or (C, D, H, W), the same out."""

    ndims = (4, 5)
