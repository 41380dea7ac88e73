"""Layers that normalize each channel, over the batch or over space, and keep running moments."""

from __future__ import annotations

import warnings
from typing import Any

from chainrule.backend import dtypes
from chainrule.nn.layers.norm_functions import batch_norm, instance_norm
from chainrule.nn.layers.norm_sample import Affine
from chainrule.nn.module.base import Module
from chainrule.ops.creation.patterns import ones, zeros
from chainrule.ops.shape.views import squeeze, unsqueeze
from chainrule.tensor import Tensor
from chainrule.typing import DType, Device, Factory, MaybeNone

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "SyncBatchNorm",
]


class _Running(Affine):
    """Normalization of channels that can keep running moments."""

    ndims: tuple[int, ...]
    num_features: int
    running_mean: Tensor | MaybeNone
    running_var: Tensor | MaybeNone
    num_batches_tracked: Tensor | MaybeNone

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
        momentum: Any = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches so far
                momentum = 1.0 / self.num_batches_tracked.double()
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
    """Normalization of signals or features by the moments of each channel over the batch.

    y = weight * (x - mean) / sqrt(var + eps) + bias

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
    """Normalization of images by the moments of each channel over the batch.

    y = weight * (x - mean) / sqrt(var + eps) + bias

    In training mean and var (biased) are those of the batch; in evaluation those that were
    averaged in training: running = (1 - momentum) * running + momentum * batch, the variance with
    n - 1 in its denominator.

    Shape: (N, C, H, W), the same out.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: weight of a new batch in the running moments; None for the mean of all batches.
        affine: whether to learn weight and bias.
        track_running_stats: whether to keep running moments; if not, evaluation uses the batch's.
        bias: whether to learn the bias, if affine.

    >>> from chainrule import nn, ones
    >>> nn.BatchNorm2d(3)(ones(2, 3, 4, 4)).shape
    chainrule.Size([2, 3, 4, 4])
    """

    ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalization of volumes by the moments of each channel over the batch.

    y = weight * (x - mean) / sqrt(var + eps) + bias

    In training mean and var (biased) are those of the batch; in evaluation those that were
    averaged in training: running = (1 - momentum) * running + momentum * batch, the variance with
    n - 1 in its denominator.

    Shape: (N, C, Z, H, W), the same out.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: weight of a new batch in the running moments; None for the mean of all batches.
        affine: whether to learn weight and bias.
        track_running_stats: whether to keep running moments; if not, evaluation uses the batch's.
        bias: whether to learn the bias, if affine.

    >>> from chainrule import nn, ones
    >>> nn.BatchNorm3d(3)(ones(2, 3, 4, 4, 4)).shape
    chainrule.Size([2, 3, 4, 4, 4])
    """

    ndims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization by the moments over all processes; here there is one.

    y = weight * (x - mean) / sqrt(var + eps) + bias, as :class:`BatchNorm1d` computes it.

    Shape: (N, C) or (N, C, *), the same out.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: weight of a new batch in the running moments; None for the mean of all batches.
        affine: whether to learn weight and bias.
        track_running_stats: whether to keep running moments; if not, evaluation uses the batch's.
        process_group: accepted for PyTorch's sake.
        bias: whether to learn the bias, if affine.

    >>> from chainrule import nn
    >>> net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(3)))
    >>> type(net[0]).__name__
    'SyncBatchNorm'
    """

    ndims = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: object = None,
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: object = None) -> Module:
        """A module with its batch normalizations, at any depth, as this class; same tensors."""
        out = module
        if isinstance(module, _BatchNorm):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.training = module.training
            out = made
        for name, child in module.named_children():
            out._modules[name] = cls.convert_sync_batchnorm(child, process_group)
        return out


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
    """Normalization of signals by the moments of each channel of each sample.

    y = weight * (x - mean) / sqrt(var + eps) + bias

    The moments are taken over space, in training and in evaluation, unless running ones are kept.

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
    """Normalization of images by the moments of each channel of each sample.

    y = weight * (x - mean) / sqrt(var + eps) + bias

    The moments are taken over space, in training and in evaluation, unless running ones are kept.

    Shape: (N, C, H, W) or (C, H, W), the same out.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: weight of a new batch in the running moments.
        affine: whether to learn weight and bias.
        track_running_stats: whether to keep running moments and use them in evaluation.
        bias: whether to learn the bias, if affine.

    >>> from chainrule import nn, ones
    >>> nn.InstanceNorm2d(3)(ones(2, 3, 4, 4)).shape
    chainrule.Size([2, 3, 4, 4])
    """

    ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalization of volumes by the moments of each channel of each sample.

    y = weight * (x - mean) / sqrt(var + eps) + bias

    The moments are taken over space, in training and in evaluation, unless running ones are kept.

    Shape: (N, C, Z, H, W) or (C, Z, H, W), the same out.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: weight of a new batch in the running moments.
        affine: whether to learn weight and bias.
        track_running_stats: whether to keep running moments and use them in evaluation.
        bias: whether to learn the bias, if affine.

    >>> from chainrule import nn, ones
    >>> nn.InstanceNorm3d(3)(ones(2, 3, 4, 4, 4)).shape
    chainrule.Size([2, 3, 4, 4, 4])
    """

    ndims = (4, 5)
