"""Transposed convolutional layers in one, two and three dimensions."""

from __future__ import annotations

from chainrule.nn.layers.conv import Convolutional
from chainrule.ops.layers.conv import conv_transpose1d, conv_transpose2d, conv_transpose3d
from chainrule.ops.layers.spatial import transposed_size
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType, Shape, Sizes

__all__ = ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _ConvTransposeNd(Convolutional):
    transposed = True

    padding: tuple[int, ...]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self._set(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            output_padding,
            dilation,
            groups,
            padding_mode,
        )
        self._make_parameters(bias, device, dtype)

    def forward(self, input: Tensor, output_size: Shape | None = None) -> Tensor:
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        return self.function(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )

    def _extra(self, input: Tensor, output_size: Shape) -> tuple[int, ...]:
        """The output padding that gives this output size."""
        name, nd = type(self).__name__, self.nd
        leading = input.ndim - nd
        wanted = tuple(output_size)
        if len(wanted) == leading + nd:
            wanted = wanted[leading:]
        if len(wanted) != nd:
            raise ValueError(
                f"{name}: for {input.ndim}D input, output_size must have {nd} or {leading + nd} "
                f"elements, got {tuple(output_size)}"
            )
        sizes = tuple(input.shape[leading:])
        settings = zip(
            sizes, self.kernel_size, self.stride, self.padding, self.dilation, strict=True
        )
        least = tuple([transposed_size(i, k, s, p, 0, d) for i, k, s, p, d in settings])
        extra = tuple([w - n for w, n in zip(wanted, least, strict=True)])
        if any(not 0 <= e < s for e, s in zip(extra, self.stride, strict=True)):
            most = tuple([n + s - 1 for n, s in zip(least, self.stride, strict=True)])
            raise ValueError(
                f"{name}: requested an output size of {wanted}, but valid sizes range from {least} "
                f"to {most} for an input of shape {tuple(input.shape)}"
            )
        return extra


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of a convolution of signals: its gradient by the input.

    y[n, o, k] = bias[o] + sum of weight[c, o, a] * x[n, c, i] over all c, i, a with
    k = stride * i + dilation * a - padding

    Shape: (N, in_channels, L) -> (N, out_channels, L_out), or both without N; sizes as
    ``conv_transpose_output_size`` says, or ``output_size`` where forward is given one.

    Args:
        in_channels, out_channels: numbers of channels.
        kernel_size, stride, padding, dilation: those of the convolution that it transposes.
        output_padding: added to one side of the output's size, which is ambiguous when stride > 1.
        groups: how many groups of channels are convolved apart.
        bias: whether to add a learned bias.
        padding_mode: "zeros".

    >>> from chainrule import nn, ones
    >>> nn.ConvTranspose1d(5, 3, 4, stride=2)(ones(1, 5, 4)).shape
    chainrule.Size([1, 3, 10])
    """

    nd, function = 1, staticmethod(conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of a convolution of images: its gradient by the input.

    y[n, o, k, l] = bias[o] + sum of weight[c, o, a, b] * x[n, c, i, j] over all c, i, j, a, b with
    k = stride * i + dilation * a - padding, l = stride * j + dilation * b - padding

    Shape: (N, in_channels, H, W) -> (N, out_channels, H_out, W_out), or both without N; sizes as
    ``conv_transpose_output_size`` says, or ``output_size`` where forward is given one.

    Args:
        in_channels, out_channels: numbers of channels.
        kernel_size, stride, padding, dilation: those of the convolution that it transposes.
        output_padding: added to one side of the output's size, which is ambiguous when stride > 1.
        groups: how many groups of channels are convolved apart.
        bias: whether to add a learned bias.
        padding_mode: "zeros".

    >>> from chainrule import nn, ones
    >>> down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
    >>> up = nn.ConvTranspose2d(8, 3, 3, stride=2, padding=1)
    >>> x = ones(1, 3, 12, 12)
    >>> up(down(x), output_size=x.shape).shape
    chainrule.Size([1, 3, 12, 12])
    """

    nd, function = 2, staticmethod(conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of a convolution of volumes: its gradient by the input.

    y[n, o, k, l, m] = bias[o] + sum of weight[c, o, a, b, d] * x[n, c, h, i, j] over all c, h, i,
    j, a, b, d with k = stride * h + dilation * a - padding, l and m likewise of i, b and j, d

    Shape: (N, in_channels, Z, H, W) -> (N, out_channels, Z_out, H_out, W_out), or both without N;
    sizes as ``conv_transpose_output_size`` says, or ``output_size`` where forward is given one.

    Args:
        in_channels, out_channels: numbers of channels.
        kernel_size, stride, padding, dilation: those of the convolution that it transposes.
        output_padding: added to one side of the output's size, which is ambiguous when stride > 1.
        groups: how many groups of channels are convolved apart.
        bias: whether to add a learned bias.
        padding_mode: "zeros".

    >>> from chainrule import nn, ones
    >>> nn.ConvTranspose3d(2, 1, (1, 2, 3))(ones(1, 2, 4, 3, 2)).shape
    chainrule.Size([1, 1, 4, 4, 4])
    """

    nd, function = 3, staticmethod(conv_transpose3d)
