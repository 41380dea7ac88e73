"""Pooling layers: each output is the maximum, average or norm of a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from chainrule.nn.module.base import Module
from chainrule.ops.layers.avg_pool import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
)
from chainrule.ops.layers.max_pool import (
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from chainrule.ops.layers.spatial import per_dim
from chainrule.tensor import Tensor
from chainrule.typing import Sizes

__all__ = [
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
]

# The maxima, or with return_indices also where they are.
Maxima = Tensor | tuple[Tensor, Tensor]


class Pool(Module):
    """What all pooling layers have: how many dimensions, and the function that they call."""

    nd: ClassVar[int]
    function: ClassVar[Callable[..., Any]]

    def _shown(self, *names: str) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)


# --- maxima ---------------------------------------------------------------------------------------


class _MaxPool(Pool):
    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Maxima:
        return self.function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        return self._shown("kernel_size", "stride", "padding", "dilation", "ceil_mode")


class MaxPool1d(_MaxPool):
    """The maximum of each window of a signal.

    y[i] = max over a of x[stride * i + dilation * a]

    Shape: (N, C, L) or (C, L) -> the same with L_out, as ``conv_output_size`` says.

    Args:
        kernel_size: size of the window, a number, as the next three.
        stride: step from one window to the next; ``kernel_size`` if not given.
        padding: how many elements less than all others to add on each side, at most half a window.
        dilation: distance between the elements of a window.
        return_indices: also return where the maxima are, as :class:`MaxUnpool1d` takes them.
        ceil_mode: keep a last window that is partly outside.

    >>> from chainrule import arange, nn
    >>> nn.MaxPool1d(2)(arange(6.0).reshape(1, 6))
    tensor([[1., 3., 5.]])
    """

    nd, function = 1, staticmethod(max_pool1d)


class MaxPool2d(_MaxPool):
    """The maximum of each window of an image.

    y[i, j] = max over a, b of x[stride * i + dilation * a, stride * j + dilation * b]

    Shape: (N, C, H, W) or (C, H, W) -> the same with H_out, W_out, sizes as ``conv_output_size``
    says.

    Args:
        kernel_size: size of the window, a number or (kH, kW), as the next three.
        stride: step from one window to the next; ``kernel_size`` if not given.
        padding: how many elements less than all others to add on each side, at most half a window.
        dilation: distance between the elements of a window.
        return_indices: also return where the maxima are, as :class:`MaxUnpool2d` takes them.
        ceil_mode: keep a last window that is partly outside.

    >>> from chainrule import arange, nn
    >>> nn.MaxPool2d(2)(arange(16.0).reshape(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    nd, function = 2, staticmethod(max_pool2d)


class MaxPool3d(_MaxPool):
    """The maximum of each window of a volume.

    y[h, i, j] = max over a, b, c of
    x[stride * h + dilation * a, stride * i + dilation * b, stride * j + dilation * c]

    Shape: (N, C, Z, H, W) or (C, Z, H, W) -> the same with Z_out, H_out, W_out, sizes as
    ``conv_output_size`` says.

    Args:
        kernel_size: size of the window, a number or (kZ, kH, kW), as the next three.
        stride: step from one window to the next; ``kernel_size`` if not given.
        padding: how many elements less than all others to add on each side, at most half a window.
        dilation: distance between the elements of a window.
        return_indices: also return where the maxima are, as :class:`MaxUnpool3d` takes them.
        ceil_mode: keep a last window that is partly outside.

    >>> from chainrule import arange, nn
    >>> nn.MaxPool3d(2)(arange(64.0).reshape(1, 4, 4, 4)).shape
    chainrule.Size([1, 2, 2, 2])
    """

    nd, function = 3, staticmethod(max_pool3d)


# --- averages -------------------------------------------------------------------------------------


class _AvgPool(Pool):
    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        *,
        dilation: Sizes = 1,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override
        self.dilation = dilation

    def forward(self, input: Tensor) -> Tensor:
        return self.function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
            dilation=self.dilation,
        )

    def extra_repr(self) -> str:
        shown = self._shown("kernel_size", "stride", "padding")
        return shown if self.dilation == 1 else f"{shown}, dilation={self.dilation}"


class AvgPool1d(_AvgPool):
    """The average of each window of a signal.

    y[i] = mean over a of x[stride * i + dilation * a]

    Shape: (N, C, L) or (C, L) -> the same with L_out, as ``conv_output_size`` says.

    Args:
        kernel_size: size of the window, a number, as the next two.
        stride: step from one window to the next; ``kernel_size`` if not given.
        padding: how many zeros to add on each side, at most half a window.
        ceil_mode: keep a last window that is partly outside.
        count_include_pad: whether the zeros of the padding count as elements.
        dilation: distance between the elements of a window, which PyTorch has for maxima alone.

    >>> from chainrule import arange, nn
    >>> nn.AvgPool1d(2)(arange(6.0).reshape(1, 6))
    tensor([[0.5000, 2.5000, 4.5000]])
    """

    nd, function = 1, staticmethod(avg_pool1d)

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        *,
        dilation: Sizes = 1,
    ):
        kernel = per_dim("AvgPool1d", "kernel_size", kernel_size, 1)
        step = kernel if stride is None else per_dim("AvgPool1d", "stride", stride, 1)
        border = per_dim("AvgPool1d", "padding", padding, 1)
        super().__init__(kernel, step, border, ceil_mode, count_include_pad, dilation=dilation)

    def forward(self, input: Tensor) -> Tensor:
        return avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            dilation=self.dilation,
        )


class AvgPool2d(_AvgPool):
    """The average of each window of an image.

    y[i, j] = mean over a, b of x[stride * i + dilation * a, stride * j + dilation * b]

    Shape: (N, C, H, W) or (C, H, W) -> the same with H_out, W_out, sizes as ``conv_output_size``
    says.

    Args:
        kernel_size: size of the window, a number or (kH, kW), as the next two.
        stride: step from one window to the next; ``kernel_size`` if not given.
        padding: how many zeros to add on each side, at most half a window.
        ceil_mode: keep a last window that is partly outside.
        count_include_pad: whether the zeros of the padding count as elements.
        divisor_override: divide by this instead of the number of elements.
        dilation: distance between the elements of a window, which PyTorch has for maxima alone.

    >>> from chainrule import arange, nn
    >>> nn.AvgPool2d(2)(arange(16.0).reshape(1, 4, 4))
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """

    nd, function = 2, staticmethod(avg_pool2d)


class AvgPool3d(_AvgPool):
    """The average of each window of a volume.

    y[h, i, j] = mean over a, b, c of
    x[stride * h + dilation * a, stride * i + dilation * b, stride * j + dilation * c]

    Shape: (N, C, Z, H, W) or (C, Z, H, W) -> the same with Z_out, H_out, W_out, sizes as
    ``conv_output_size`` says.

    Args:
        kernel_size: size of the window, a number or (kZ, kH, kW), as the next two.
        stride: step from one window to the next; ``kernel_size`` if not given.
        padding: how many zeros to add on each side, at most half a window.
        ceil_mode: keep a last window that is partly outside.
        count_include_pad: whether the zeros of the padding count as elements.
        divisor_override: divide by this instead of the number of elements.
        dilation: distance between the elements of a window, which PyTorch has for maxima alone.

    >>> from chainrule import arange, nn
    >>> nn.AvgPool3d(2)(arange(64.0).reshape(1, 4, 4, 4)).shape
    chainrule.Size([1, 2, 2, 2])
    """

    nd, function = 3, staticmethod(avg_pool3d)


# --- norms ----------------------------------------------------------------------------------------


class _LPPool(Pool):
    def __init__(
        self,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self.function(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return self._shown("norm_type", "kernel_size", "stride", "ceil_mode")


class LPPool1d(_LPPool):
    """The p-norm of each window of a signal, between average and maximum.

    y[i] = (sum over a of x[stride * i + a]^p)^(1 / p) with p the norm_type

    Shape: (N, C, L) or (C, L) -> the same with L_out, as ``conv_output_size`` says.

    Args:
        norm_type: p.
        kernel_size: size of the window, a number, as the stride.
        stride: step from one window to the next; ``kernel_size`` if not given.
        ceil_mode: keep a last window that is partly outside.

    >>> from chainrule import nn, tensor
    >>> nn.LPPool1d(2, 2)(tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """

    nd, function = 1, staticmethod(lp_pool1d)


class LPPool2d(_LPPool):
    """The p-norm of each window of an image, between average and maximum.

    y[i, j] = (sum over a, b of x[stride * i + a, stride * j + b]^p)^(1 / p) with p the norm_type

    Shape: (N, C, H, W) or (C, H, W) -> the same with H_out, W_out, sizes as ``conv_output_size``
    says.

    Args:
        norm_type: p.
        kernel_size: size of the window, a number or (kH, kW), as the stride.
        stride: step from one window to the next; ``kernel_size`` if not given.
        ceil_mode: keep a last window that is partly outside.

    >>> from chainrule import nn, tensor
    >>> nn.LPPool2d(2, 2)(tensor([[[3.0, 0.0], [4.0, 0.0]]]))
    tensor([[[5.]]])
    """

    nd, function = 2, staticmethod(lp_pool2d)


class LPPool3d(_LPPool):
    """The p-norm of each window of a volume, between average and maximum.

    y[h, i, j] = (sum over a, b, c of x[stride * h + a, stride * i + b, stride * j + c]^p)^(1 / p)
    with p the norm_type

    Shape: (N, C, Z, H, W) or (C, Z, H, W) -> the same with Z_out, H_out, W_out, sizes as
    ``conv_output_size`` says.

    Args:
        norm_type: p.
        kernel_size: size of the window, a number or (kZ, kH, kW), as the stride.
        stride: step from one window to the next; ``kernel_size`` if not given.
        ceil_mode: keep a last window that is partly outside.

    >>> from chainrule import nn, tensor
    >>> nn.LPPool3d(2, 2)(tensor([[[[3.0, 0.0], [4.0, 0.0]]] * 2]))
    tensor([[[[7.0711]]]])
    """

    nd, function = 3, staticmethod(lp_pool3d)
