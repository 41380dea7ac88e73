"""Pooling layers: each output is the maximum, average or norm of a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from chainrule.nn.module.base import Module
from chainrule.ops.layers.pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from chainrule.ops.layers.spatial import per_dim
from chainrule.tensor import Tensor
from chainrule.typing import Shape, Sizes

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

OutputSize = int | None | Sequence[int | None]  # one for all dimensions or each; None keeps a size
# The maxima, or with return_indices also where they are.
Maxima = Tensor | tuple[Tensor, Tensor]


class _Pool(Module):
    nd: ClassVar[int]
    function: ClassVar[Callable[..., Any]]

    def _shown(self, *names: str) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)


# --- maxima ---------------------------------------------------------------------------------------


class _MaxPool(_Pool):
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
    """The maximum of each window of a signal (N, C, L): see :class:`MaxPool2d`."""

    nd, function = 1, staticmethod(max_pool1d)


class MaxPool2d(_MaxPool):
    """The maximum of each window: y[i, j] = max over a, b of x[i stride + a, j stride + b].

    Shape: (N, C, H, W) or (C, H, W) -> the same with H_out, W_out.

    Args:
        kernel_size: size of the window, a number or one for each dimension (so for the next three).
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
    """The maximum of each window of a volume (N, C, D, H, W): see :class:`MaxPool2d`."""

    nd, function = 3, staticmethod(max_pool3d)


class _AdaptiveMaxPool(_Pool):
    def __init__(self, output_size: OutputSize, return_indices: bool = False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Maxima:
        return self.function(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return self._shown("output_size")


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Max pooling of (N, C, L) to a given size: see :class:`AdaptiveMaxPool2d`."""

    nd, function = 1, staticmethod(adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Max pooling of (N, C, H, W) to ``output_size``, whatever H and W are (None keeps a size).

    >>> from chainrule import nn, ones
    >>> nn.AdaptiveMaxPool2d((5, None))(ones(1, 64, 10, 9)).shape
    chainrule.Size([1, 64, 5, 9])
    """

    nd, function = 2, staticmethod(adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Max pooling of (N, C, D, H, W) to a given size: see :class:`AdaptiveMaxPool2d`."""

    nd, function = 3, staticmethod(adaptive_max_pool3d)


class _MaxUnpool(_Pool):
    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0):
        super().__init__()
        name, nd = type(self).__name__, self.nd
        self.kernel_size = per_dim(name, "kernel_size", kernel_size, nd)
        self.stride = self.kernel_size if stride is None else per_dim(name, "stride", stride, nd)
        self.padding = per_dim(name, "padding", padding, nd)

    def forward(self, input: Tensor, indices: Tensor, output_size: Shape | None = None) -> Tensor:
        return self.function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        return self._shown("kernel_size", "stride", "padding")


class MaxUnpool1d(_MaxUnpool):
    """A partial inverse of :class:`MaxPool1d`: see :class:`MaxUnpool2d`."""

    nd, function = 1, staticmethod(max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """A partial inverse of :class:`MaxPool2d`: maxima back in their places, zeros elsewhere.

    >>> from chainrule import arange, nn
    >>> pool, unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
    >>> unpool(*pool(arange(8.0).reshape(1, 2, 4)))
    tensor([[[0., 0., 0., 0.],
             [0., 5., 0., 7.]]])
    """

    nd, function = 2, staticmethod(max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """A partial inverse of :class:`MaxPool3d`: see :class:`MaxUnpool2d`."""

    nd, function = 3, staticmethod(max_unpool3d)


# --- averages -------------------------------------------------------------------------------------


class _AvgPool(_Pool):
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
    """The average of each window of a signal (N, C, L): see :class:`AvgPool2d`."""

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
    """The average of each window: y[i, j] = mean over a, b of x[i stride + a, j stride + b].

    Shape: (N, C, H, W) or (C, H, W) -> the same with H_out, W_out.

    Args:
        kernel_size: size of the window, a number or one for each dimension (so for the next two).
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
    """The average of each window of a volume (N, C, D, H, W): see :class:`AvgPool2d`."""

    nd, function = 3, staticmethod(avg_pool3d)


class _AdaptiveAvgPool(_Pool):
    def __init__(self, output_size: OutputSize):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self.function(input, self.output_size)

    def extra_repr(self) -> str:
        return self._shown("output_size")


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Average pooling of (N, C, L) to a given size: see :class:`AdaptiveAvgPool2d`."""

    nd, function = 1, staticmethod(adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Average pooling of (N, C, H, W) to ``output_size``, whatever H and W are (None keeps a size).

    >>> from chainrule import nn, ones
    >>> nn.AdaptiveAvgPool2d(1)(ones(2, 64, 10, 9)).shape
    chainrule.Size([2, 64, 1, 1])
    """

    nd, function = 2, staticmethod(adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Average pooling of (N, C, D, H, W) to a given size: see :class:`AdaptiveAvgPool2d`."""

    nd, function = 3, staticmethod(adaptive_avg_pool3d)


# --- norms ----------------------------------------------------------------------------------------


class _LPPool(_Pool):
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
    """The p-norm of each window of a signal (N, C, L): see :class:`LPPool2d`."""

    nd, function = 1, staticmethod(lp_pool1d)


class LPPool2d(_LPPool):
    """The p-norm of each window: y = (sum of x ** p) ** (1 / p), between average and maximum.

    >>> from chainrule import nn, tensor
    >>> nn.LPPool2d(2, 2)(tensor([[[3.0, 0.0], [4.0, 0.0]]]))
    tensor([[[5.]]])
    """

    nd, function = 2, staticmethod(lp_pool2d)


class LPPool3d(_LPPool):
    """The p-norm of each window of a volume (N, C, D, H, W): see :class:`LPPool2d`."""

    nd, function = 3, staticmethod(lp_pool3d)
