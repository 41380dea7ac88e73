"""PyTorch's other names for functions of this room, and the distances of all pairs."""

from __future__ import annotations

from chainrule.linalg import vector_norm
from chainrule.nn.layers.folding import channel_shuffle
from chainrule.nn.layers.upsample import Factors, interpolate
from chainrule.ops.layers.max_pool import (
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from chainrule.ops.layers.spatial import OutputSize
from chainrule.ops.creation.patterns import triu_indices
from chainrule.tensor import Tensor
from chainrule.typing import Sizes

__all__ = [
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d_with_indices",
    "max_pool1d_with_indices",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "native_channel_shuffle",
    "pdist",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows, (0, 1), (0, 2), ..., (1, 2), ...

    Shape: (N, D) -> (N (N - 1) / 2).

    >>> from chainrule import nn, tensor
    >>> nn.functional.pdist(tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if input.ndim != 2:
        raise RuntimeError(f"pdist: only 2D tensors are supported, got {tuple(input.shape)}")
    i, j = triu_indices(input.shape[0], input.shape[0], 1)
    return vector_norm(input[i] - input[j], p, dim=-1)


def upsample(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: Factors | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The old name of :func:`interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: Sizes | None = None, scale_factor: Factors | None = None
) -> Tensor:
    """:func:`interpolate` with ``mode="nearest"``."""
    return interpolate(input, size, scale_factor)


def upsample_bilinear(
    input: Tensor, size: Sizes | None = None, scale_factor: Factors | None = None
) -> Tensor:
    """:func:`interpolate` with ``mode="bilinear"`` and aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Another name of :func:`channel_shuffle`."""
    return channel_shuffle(input, groups)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> tuple[Tensor, Tensor]:
    """:func:`max_pool1d` and where the maxima are."""
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices=True)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> tuple[Tensor, Tensor]:
    """:func:`max_pool2d` and where the maxima are."""
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices=True)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> tuple[Tensor, Tensor]:
    """:func:`max_pool3d` and where the maxima are."""
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices=True)


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: bool = True
) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool1d` and where the maxima are."""
    return adaptive_max_pool1d(input, output_size, return_indices=True)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: bool = True
) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool2d` and where the maxima are."""
    return adaptive_max_pool2d(input, output_size, return_indices=True)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: bool = True
) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool3d` and where the maxima are."""
    return adaptive_max_pool3d(input, output_size, return_indices=True)
