"""Pooling to a size that is given, and max pooling undone."""

from __future__ import annotations

from chainrule.nn.layers.pooling import Maxima, Pool
from chainrule.ops.layers.avg_pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)
from chainrule.ops.layers.max_pool import (
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from chainrule.ops.layers.spatial import OutputSize, per_dim
from chainrule.tensor import Tensor
from chainrule.typing import Shape, Sizes

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _AdaptiveMaxPool(Pool):
    def __init__(self, output_size: OutputSize, return_indices: bool = False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Maxima:
        return self.function(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return self._shown("output_size")


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The maximum of each of ``output_size`` windows of a signal, whatever its size.

    y[i] = max over the elements from floor(i L / L_out) to ceil((i + 1) L / L_out)

    Shape: (N, C, L) or (C, L) -> the same with L_out.

    Args:
        output_size: how many windows.
        return_indices: also return where the maxima are, as :class:`MaxUnpool1d` takes them.

    >>> from chainrule import nn, ones
    >>> nn.AdaptiveMaxPool1d(8)(ones(1, 64, 10)).shape
    chainrule.Size([1, 64, 8])
    """

    nd, function = 1, staticmethod(adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The maximum of each of ``output_size`` windows of an image, whatever its size.

    y[i, j] = max over the rows from floor(i H / H_out) to ceil((i + 1) H / H_out), columns alike

    Shape: (N, C, H, W) or (C, H, W) -> the same with H_out, W_out.

    Args:
        output_size: how many windows, a number or (H_out, W_out); None keeps a size.
        return_indices: also return where the maxima are, as :class:`MaxUnpool2d` takes them.

    >>> from chainrule import nn, ones
    >>> nn.AdaptiveMaxPool2d((5, None))(ones(1, 64, 10, 9)).shape
    chainrule.Size([1, 64, 5, 9])
    """

    nd, function = 2, staticmethod(adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The maximum of each of ``output_size`` windows of a volume, whatever its size.

    y[h, i, j] = max over the layers from floor(h Z / Z_out) to ceil((h + 1) Z / Z_out), rows and
    columns alike

    Shape: (N, C, Z, H, W) or (C, Z, H, W) -> the same with Z_out, H_out, W_out.

    Args:
        output_size: how many windows, a number or (Z_out, H_out, W_out); None keeps a size.
        return_indices: also return where the maxima are, as :class:`MaxUnpool3d` takes them.

    >>> from chainrule import nn, ones
    >>> nn.AdaptiveMaxPool3d((2, None, 1))(ones(1, 64, 4, 10, 9)).shape
    chainrule.Size([1, 64, 2, 10, 1])
    """

    nd, function = 3, staticmethod(adaptive_max_pool3d)


class _AdaptiveAvgPool(Pool):
    def __init__(self, output_size: OutputSize):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self.function(input, self.output_size)

    def extra_repr(self) -> str:
        return self._shown("output_size")


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The average of each of ``output_size`` windows of a signal, whatever its size.

    y[i] = mean over the elements from floor(i L / L_out) to ceil((i + 1) L / L_out)

    Shape: (N, C, L) or (C, L) -> the same with L_out.

    Args:
        output_size: how many windows.

    >>> from chainrule import nn, ones
    >>> nn.AdaptiveAvgPool1d(8)(ones(1, 64, 10)).shape
    chainrule.Size([1, 64, 8])
    """

    nd, function = 1, staticmethod(adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The average of each of ``output_size`` windows of an image, whatever its size.

    y[i, j] = mean over the rows from floor(i H / H_out) to ceil((i + 1) H / H_out), columns alike

    Shape: (N, C, H, W) or (C, H, W) -> the same with H_out, W_out.

    Args:
        output_size: how many windows, a number or (H_out, W_out); None keeps a size.

    >>> from chainrule import nn, ones
    >>> nn.AdaptiveAvgPool2d((5, None))(ones(1, 64, 10, 9)).shape
    chainrule.Size([1, 64, 5, 9])
    """

    nd, function = 2, staticmethod(adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The average of each of ``output_size`` windows of a volume, whatever its size.

    y[h, i, j] = mean over the layers from floor(h Z / Z_out) to ceil((h + 1) Z / Z_out), rows and
    columns alike

    Shape: (N, C, Z, H, W) or (C, Z, H, W) -> the same with Z_out, H_out, W_out.

    Args:
        output_size: how many windows, a number or (Z_out, H_out, W_out); None keeps a size.

    >>> from chainrule import nn, ones
    >>> nn.AdaptiveAvgPool3d((2, None, 1))(ones(1, 64, 4, 10, 9)).shape
    chainrule.Size([1, 64, 2, 10, 1])
    """

    nd, function = 3, staticmethod(adaptive_avg_pool3d)


# --- max pooling undone ---------------------------------------------------------------------------


class _MaxUnpool(Pool):
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
    """A partial inverse of :class:`MaxPool1d`: maxima back in their places, zeros elsewhere.

    y = 0 but for y[indices[i]] = x[i], the indices counting the elements of a signal

    Shape: input and indices (N, C, L) or (C, L) -> the same with L_out:
    ``output_size`` where forward is given one, else the smallest that were pooled to this.

    Args:
        kernel_size, stride, padding: those of the pooling.

    >>> from chainrule import arange, nn
    >>> pool, unpool = nn.MaxPool1d(2, return_indices=True), nn.MaxUnpool1d(2)
    >>> unpool(*pool(arange(4.0).reshape(1, 4)))
    tensor([[0., 1., 0., 3.]])
    """

    nd, function = 1, staticmethod(max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """A partial inverse of :class:`MaxPool2d`: maxima back in their places, zeros elsewhere.

    y = 0 but for y[indices[i, j]] = x[i, j], the indices counting the elements of an image

    Shape: input and indices (N, C, H, W) or (C, H, W) -> the same with H_out, W_out:
    ``output_size`` where forward is given one, else the smallest that were pooled to this.

    Args:
        kernel_size, stride, padding: those of the pooling.

    >>> from chainrule import arange, nn
    >>> pool, unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
    >>> unpool(*pool(arange(8.0).reshape(1, 2, 4)))
    tensor([[[0., 0., 0., 0.],
             [0., 5., 0., 7.]]])
    """

    nd, function = 2, staticmethod(max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """A partial inverse of :class:`MaxPool3d`: maxima back in their places, zeros elsewhere.

    y = 0 but for y[indices[h, i, j]] = x[h, i, j], the indices counting the elements of a volume

    Shape: input and indices (N, C, Z, H, W) or (C, Z, H, W) -> the same with Z_out, H_out, W_out:
    ``output_size`` where forward is given one, else the smallest that were pooled to this.

    Args:
        kernel_size, stride, padding: those of the pooling.

    >>> from chainrule import arange, nn
    >>> pool, unpool = nn.MaxPool3d(2, return_indices=True), nn.MaxUnpool3d(2)
    >>> unpool(*pool(arange(64.0).reshape(1, 4, 4, 4))).shape
    chainrule.Size([1, 4, 4, 4])
    """

    nd, function = 3, staticmethod(max_unpool3d)
