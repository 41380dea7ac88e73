"""Layers that move elements between channels and space: windows as columns, shuffled pixels."""

from __future__ import annotations

from chainrule.nn.module.base import Module
from chainrule.ops.layers.columns import col2im as fold
from chainrule.ops.layers.columns import im2col as unfold
from chainrule.ops.shape.views import permute, reshape
from chainrule.tensor import Tensor
from chainrule.typing import Sizes

__all__ = [
    "ChannelShuffle",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unfold",
    "channel_shuffle",
    "fold",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
]


# --- windows --------------------------------------------------------------------------------------


class Unfold(Module):
    """The windows of images as columns.

    y[n, (c, a, b), (i, j)] = x[n, c, stride * i + dilation * a - padding,
    stride * j + dilation * b - padding]

    Shape: (N, C, H, W) -> (N, C * kH * kW, number of windows), or both without N.

    Args:
        kernel_size, dilation, padding, stride: the windows, as those of a convolution.

    >>> from chainrule import nn, ones
    >>> nn.Unfold((2, 3))(ones(2, 5, 3, 4)).shape
    chainrule.Size([2, 30, 4])
    """

    def __init__(
        self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Unfold):
    """Columns added up into images: the transpose of :class:`Unfold`.

    y[n, c, k, l] = sum of x[n, (c, a, b), (i, j)] over all i, j, a, b with
    k = stride * i + dilation * a - padding, l = stride * j + dilation * b - padding

    Shape: (N, C * kH * kW, number of windows) -> (N, C, H, W), or both without N.

    Args:
        output_size: (H, W).
        kernel_size, dilation, padding, stride: the windows, as those of a convolution.

    >>> from chainrule import nn, ones
    >>> nn.Fold((3, 4), (2, 3))(ones(2, 30, 4)).shape
    chainrule.Size([2, 5, 3, 4])
    """

    def __init__(
        self,
        output_size: Sizes,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        stride: Sizes = 1,
    ):
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, {super().extra_repr()}"


# --- pixels ---------------------------------------------------------------------------------------


def _need_image(op: str, input: Tensor) -> tuple[int, int, int]:
    if input.ndim < 3:
        raise RuntimeError(
            f"{op}: expects input to have at least 3 dimensions (*, C, H, W), but got shape "
            f"{tuple(input.shape)}"
        )
    c, h, w = input.shape[-3:]
    return c, h, w


def _need_positive(op: str, name: str, value: int) -> None:
    if value <= 0:
        raise RuntimeError(f"{op}: expects {name} to be positive, got {value}")


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels become pixels: (*, C r r, H, W) -> (*, C, H r, W r) with r the ``upscale_factor``.

    y[c, h r + i, w r + j] = x[c r r + i r + j, h, w]
    """
    op, r = "pixel_shuffle", upscale_factor
    channels, h, w = _need_image(op, input)
    _need_positive(op, "upscale_factor", r)
    if channels % (r * r):
        raise RuntimeError(
            f"{op}: expects the number of channels to be divisible by the square of upscale_factor "
            f"({r}), but got input of shape {tuple(input.shape)}"
        )
    lead, c = tuple(input.shape[:-3]), channels // (r * r)
    apart = reshape(input, (*lead, c, r, r, h, w))
    n = len(lead)
    mixed = permute(apart, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape(mixed, (*lead, c, h * r, w * r))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of pixel_shuffle: (*, C, H r, W r) -> (*, C r r, H, W).

    y[c r r + i r + j, h, w] = x[c, h r + i, w r + j] with r the ``downscale_factor``
    """
    op, r = "pixel_unshuffle", downscale_factor
    c, high, wide = _need_image(op, input)
    _need_positive(op, "downscale_factor", r)
    if high % r or wide % r:
        raise RuntimeError(
            f"{op}: expects height and width to be divisible by downscale_factor ({r}), but got "
            f"input of shape {tuple(input.shape)}"
        )
    lead, h, w = tuple(input.shape[:-3]), high // r, wide // r
    apart = reshape(input, (*lead, c, h, r, w, r))
    n = len(lead)
    mixed = permute(apart, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape(mixed, (*lead, c * r * r, h, w))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of (N, C, *) in a new order, one from each of ``groups`` groups in turn.

    y[i groups + g] = x[g C / groups + i]
    """
    op, shape = "channel_shuffle", tuple(input.shape)
    if len(shape) < 3:
        raise RuntimeError(f"{op}: expects input with > 2 dimensions, but got shape {shape}")
    _need_positive(op, "groups", groups)
    n, c, *rest = shape
    if c % groups:
        raise RuntimeError(
            f"{op}: number of channels must be divisible by groups, got {c} channels and {groups} "
            "groups"
        )
    apart = reshape(input, (n, groups, c // groups, *rest))
    return reshape(permute(apart, (0, 2, 1, *range(3, len(shape) + 1))), shape)


class PixelShuffle(Module):
    """Channels become pixels: y[c, h r + i, w r + j] = x[c r r + i r + j, h, w].

    Shape: (*, C r r, H, W) -> (*, C, H r, W r) with r the upscale_factor.

    Args:
        upscale_factor: r.

    >>> from chainrule import nn, ones
    >>> nn.PixelShuffle(3)(ones(1, 9, 4, 4)).shape
    chainrule.Size([1, 1, 12, 12])
    """

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Pixels become channels: y[c r r + i r + j, h, w] = x[c, h r + i, w r + j].

    Shape: (*, C, H r, W r) -> (*, C r r, H, W) with r the downscale_factor.

    Args:
        downscale_factor: r.

    >>> from chainrule import nn, ones
    >>> nn.PixelUnshuffle(3)(ones(1, 1, 12, 12)).shape
    chainrule.Size([1, 9, 4, 4])
    """

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels in a new order, one from each group in turn: y[i groups + g] = x[g C / groups + i].

    Shape: (N, C, *), the same out.

    Args:
        groups: how many groups there are.

    >>> from chainrule import arange, nn
    >>> nn.ChannelShuffle(2)(arange(4.0).reshape(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
