"""Convolutional layers in one, two and three dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

from chainrule.nn.init.tensors import uniform_
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.patterns import empty
from chainrule.ops.layers.conv import conv1d, conv2d, conv3d
from chainrule.ops.layers.spatial import padding_of, per_dim
from chainrule.ops.shape.padding import pad
from chainrule.ops.shape.rearrange import flip
from chainrule.tensor import Tensor
from chainrule.typing import DType, Device, MaybeNone, Sizes

__all__ = ["Conv1d", "Conv2d", "Conv3d", "convolve"]

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def convolve(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """True convolution, with the kernel flipped, in as many dimensions as ``weight`` says.

    y[n, o, i] = bias[o] + sum over c, k of weight[o, c, k] * x[n, c, i + R - 1 - k]

    for a kernel of size R; conv1d and its like, whose arguments these are, do not flip.

    >>> import chainrule
    >>> from chainrule.nn.functional import convolve
    >>> x, w = chainrule.tensor([[[0.0, 1.0, 0.0]]]), chainrule.tensor([[[1.0, 2.0, 3.0]]])
    >>> convolve(x, w, padding=1)
    tensor([[[1., 2., 3.]]])
    """
    nd = weight.ndim - 2
    if nd not in (1, 2, 3):
        raise RuntimeError(
            "convolve: expected weight of shape (C_out, C_in / groups, kernel in 1 to 3 "
            f"dimensions), but got {tuple(weight.shape)}"
        )
    function = (conv1d, conv2d, conv3d)[nd - 1]
    return function(input, _flipped(weight), bias, stride, padding, dilation, groups)


def _flipped(weight: Tensor) -> Tensor:
    return flip(weight, tuple(range(2, weight.ndim)))


class Convolutional(Module):
    """What all convolutional layers share: settings, parameters, printing."""

    nd: ClassVar[int]
    function: ClassVar[Callable[..., Tensor]]
    transposed: ClassVar[bool] = False

    weight: Parameter
    bias: Parameter | MaybeNone
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]
    dilation: tuple[int, ...]
    output_padding: tuple[int, ...]

    def _set(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes | str,
        output_padding: Sizes,
        dilation: Sizes,
        groups: int,
        padding_mode: str,
    ) -> None:
        """Keeps the settings, one number per dimension each."""
        name, nd = type(self).__name__, self.nd
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = per_dim(name, "kernel_size", kernel_size, nd)
        self.stride = per_dim(name, "stride", stride, nd)
        self.dilation = per_dim(name, "dilation", dilation, nd)
        self.padding = (
            padding if isinstance(padding, str) else per_dim(name, "padding", padding, nd)
        )
        self.output_padding = per_dim(name, "output_padding", output_padding, nd)
        self.padding_mode = padding_mode
        self._check(name)

    def _check(self, name: str) -> None:
        if self.groups <= 0:
            raise ValueError(f"{name}: groups must be a positive integer, got {self.groups}")
        for what in ("in_channels", "out_channels"):
            if getattr(self, what) % self.groups:
                raise ValueError(
                    f"{name}: {what} must be divisible by groups, got {what}={getattr(self, what)} "
                    f"and groups={self.groups}"
                )
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise ValueError(
                    f"{name}: invalid padding string {self.padding!r}, should be 'same' or 'valid'"
                )
            if self.padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError(
                    f"{name}: padding='same' is not supported for strided convolutions, got "
                    f"stride={self.stride}"
                )
        allowed = PADDING_MODES[:1] if self.transposed else PADDING_MODES
        if self.padding_mode not in allowed:
            raise ValueError(
                f"{name}: padding_mode must be one of {allowed}, got {self.padding_mode!r}"
            )

    def _make_parameters(self, bias: bool, device: Device | None, dtype: DType | None) -> None:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        shape = (first, second // self.groups, *self.kernel_size)
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(self.out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias from U(-b, b), b = 1 / sqrt(weight.shape[1] * kernel elements).

        This is PyTorch's choice: kaiming_uniform_ with a = sqrt(5).
        """
        fan_in = math.prod(self.weight.shape[1:])
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
        for p in (self.weight, self.bias):
            if p is not None:
                uniform_(p, -bound, bound)

    def extra_repr(self) -> str:
        s = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        none, ones = (0,) * self.nd, (1,) * self.nd
        for name, default in (
            ("padding", none),
            ("dilation", ones),
            ("output_padding", none),
            ("groups", 1),
        ):
            value = getattr(self, name)
            s += f", {name}={value}" if value != default else ""
        s += ", bias=False" if self.bias is None else ""
        return s + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")


class _ConvNd(Convolutional):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        flip: bool = False,
    ):
        super().__init__()
        self._set(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            0,
            dilation,
            groups,
            padding_mode,
        )
        self.flip = flip
        self._make_parameters(bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        weight: Tensor = self.weight
        padding: Sizes | str = self.padding
        if self.flip:
            weight = _flipped(weight)
        if self.padding_mode != "zeros":
            input, padding = pad(input, self._border(), self.padding_mode), 0
        return self.function(
            input, weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def _border(self) -> list[int]:
        """(before, after) for the last dimension, then for the one before it, as ``pad`` wants."""
        name, (k, s, d) = type(self).__name__, (self.kernel_size, self.stride, self.dilation)
        before, both = padding_of(name, self.padding, k, s, d)
        pairs = [(b, t - b) for b, t in zip(before, both, strict=True)]
        return [n for pair in reversed(pairs) for n in pair]

    def extra_repr(self) -> str:
        return super().extra_repr() + (", flip=True" if self.flip else "")


class Conv1d(_ConvNd):
    """Convolution of signals: a kernel for each output channel, moved over all input channels.

    y[n, o, i] = bias[o] + sum over c, a of
    weight[o, c, a] * x[n, c, stride * i + dilation * a - padding]

    This is cross-correlation, as everywhere in deep learning; with ``flip`` it is convolution as
    mathematics has it, with the kernel flipped.

    Shape: (N, in_channels, L) -> (N, out_channels, L_out), or both without N; sizes as
    ``conv_output_size`` says.

    Args:
        in_channels, out_channels: numbers of channels.
        kernel_size: size of the kernel, a number, as the next three.
        stride: step from one output to the next.
        padding: how many elements to add on each side, "valid" (none) or "same" (to keep the size).
        dilation: distance between the elements that a kernel sees.
        groups: how many groups of channels are convolved apart.
        bias: whether to add a learned bias.
        padding_mode: what to pad with: "zeros", "reflect", "replicate" or "circular".
        flip: true convolution.

    >>> from chainrule import nn, ones
    >>> nn.Conv1d(3, 5, 4, stride=2)(ones(1, 3, 10)).shape
    chainrule.Size([1, 5, 4])
    """

    nd, function = 1, staticmethod(conv1d)


class Conv2d(_ConvNd):
    """Convolution of images: a kernel for each output channel, moved over all input channels.

    y[n, o, i, j] = bias[o] + sum over c, a, b of weight[o, c, a, b] *
    x[n, c, stride * i + dilation * a - padding, stride * j + dilation * b - padding]

    This is cross-correlation, as everywhere in deep learning; with ``flip`` it is convolution as
    mathematics has it, with the kernel flipped.

    Shape: (N, in_channels, H, W) -> (N, out_channels, H_out, W_out), or both without N; sizes as
    ``conv_output_size`` says.

    Args:
        in_channels, out_channels: numbers of channels.
        kernel_size: size of the kernel, a number or (kH, kW), as the next three.
        stride: step from one output to the next.
        padding: how many elements to add on each side, "valid" (none) or "same" (to keep the size).
        dilation: distance between the elements that a kernel sees.
        groups: how many groups of channels are convolved apart.
        bias: whether to add a learned bias.
        padding_mode: what to pad with: "zeros", "reflect", "replicate" or "circular".
        flip: true convolution.

    >>> from chainrule import nn, ones
    >>> layer = nn.Conv2d(3, 8, 3, padding="same", padding_mode="reflect")
    >>> layer(ones(2, 3, 28, 28)).shape
    chainrule.Size([2, 8, 28, 28])
    """

    nd, function = 2, staticmethod(conv2d)


class Conv3d(_ConvNd):
    """Convolution of volumes: a kernel for each output channel, moved over all input channels.

    y[n, o, h, i, j] = bias[o] + sum over c, a, b, d of weight[o, c, a, b, d] *
    x[n, c, stride * h + dilation * a - padding, stride * i + dilation * b - padding,
    stride * j + dilation * d - padding]

    This is cross-correlation, as everywhere in deep learning; with ``flip`` it is convolution as
    mathematics has it, with the kernel flipped.

    Shape: (N, in_channels, Z, H, W) -> (N, out_channels, Z_out, H_out, W_out), or both without N;
    sizes as ``conv_output_size`` says.

    Args:
        in_channels, out_channels: numbers of channels.
        kernel_size: size of the kernel, a number or (kZ, kH, kW), as the next three.
        stride: step from one output to the next.
        padding: how many elements to add on each side, "valid" (none) or "same" (to keep the size).
        dilation: distance between the elements that a kernel sees.
        groups: how many groups of channels are convolved apart.
        bias: whether to add a learned bias.
        padding_mode: what to pad with: "zeros", "reflect", "replicate" or "circular".
        flip: true convolution.

    >>> from chainrule import nn, ones
    >>> nn.Conv3d(1, 2, (1, 2, 3))(ones(1, 1, 4, 4, 4)).shape
    chainrule.Size([1, 2, 4, 3, 2])
    """

    nd, function = 3, staticmethod(conv3d)
