"""Padding layers: a border around signals, images and volumes."""

from __future__ import annotations

from typing import ClassVar

from chainrule.nn.module.base import Module
from chainrule.ops.shape.padding import pad
from chainrule.ops.layers.spatial import per_dim
from chainrule.tensor import Tensor
from chainrule.typing import Sizes

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
    "pad",
]


class _Pad(Module):
    """Pads the last ``nd`` dimensions. ``padding`` is a number for all sides or lists (before,
    after) for the last dimension, then for the one before it."""

    nd: ClassVar[int]
    mode: ClassVar[str]

    padding: tuple[int, ...]

    def __init__(self, padding: Sizes):
        super().__init__()
        self.padding = per_dim(type(self).__name__, "padding", padding, 2 * self.nd)

    def forward(self, input: Tensor) -> Tensor:
        return pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Sizes, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A border of one value around signals.

    y[i] = x[i - left] inside, y[i] = value on the border

    Shape: (*, L) -> (*, left + L + right).

    Args:
        padding: width of the border, one for all sides or (left, right).
        value: what stands there.

    >>> from chainrule import nn, ones
    >>> nn.ConstantPad1d((1, 2), 7.0)(ones(1, 2))
    tensor([[7., 1., 1., 7., 7.]])
    """

    nd = 1


class ConstantPad2d(_ConstantPad):
    """A border of one value around images.

    y[i, j] = x[i - top, j - left] inside, y[i, j] = value on the border

    Shape: (*, H, W) -> (*, top + H + bottom, left + W + right).

    Args:
        padding: width of the border, one for all sides or (left, right, top, bottom).
        value: what stands there.

    >>> from chainrule import nn, ones
    >>> nn.ConstantPad2d((1, 0, 0, 1), 7.0)(ones(1, 1, 2))
    tensor([[[7., 1., 1.],
             [7., 7., 7.]]])
    """

    nd = 2


class ConstantPad3d(_ConstantPad):
    """A border of one value around volumes.

    y[h, i, j] = x[h - front, i - top, j - left] inside, y[h, i, j] = value on the border

    Shape: (*, Z, H, W) -> (*, front + Z + back, top + H + bottom, left + W + right).

    Args:
        padding: width of the border, one for all sides or (left, right, top, bottom, front, back).
        value: what stands there.

    >>> from chainrule import nn, ones
    >>> nn.ConstantPad3d(1, 7.0)(ones(1, 2, 2, 2)).shape
    chainrule.Size([1, 4, 4, 4])
    """

    nd = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Sizes):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ZeroPad1d(_ZeroPad):
    """A border of zeros around signals.

    y[i] = x[i - left] inside, y[i] = 0 on the border

    Shape: (*, L) -> (*, left + L + right).

    Args:
        padding: width of the border, one for all sides or (left, right).

    >>> from chainrule import nn, ones
    >>> nn.ZeroPad1d((1, 2))(ones(1, 2))
    tensor([[0., 1., 1., 0., 0.]])
    """

    nd = 1


class ZeroPad2d(_ZeroPad):
    """A border of zeros around images.

    y[i, j] = x[i - top, j - left] inside, y[i, j] = 0 on the border

    Shape: (*, H, W) -> (*, top + H + bottom, left + W + right).

    Args:
        padding: width of the border, one for all sides or (left, right, top, bottom).

    >>> from chainrule import nn, ones
    >>> nn.ZeroPad2d((1, 0, 0, 1))(ones(1, 1, 2))
    tensor([[[0., 1., 1.],
             [0., 0., 0.]]])
    """

    nd = 2


class ZeroPad3d(_ZeroPad):
    """A border of zeros around volumes.

    y[h, i, j] = x[h - front, i - top, j - left] inside, y[h, i, j] = 0 on the border

    Shape: (*, Z, H, W) -> (*, front + Z + back, top + H + bottom, left + W + right).

    Args:
        padding: width of the border, one for all sides or (left, right, top, bottom, front, back).

    >>> from chainrule import nn, ones
    >>> nn.ZeroPad3d(1)(ones(1, 2, 2, 2)).shape
    chainrule.Size([1, 4, 4, 4])
    """

    nd = 3


class _ReflectionPad(_Pad):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPad):
    """A border that mirrors signals without their outermost elements.

    y[i] = x[r(i - left)] with r(k) = L - 1 - |L - 1 - |k||

    Shape: (N, C, L) or (C, L) -> (*, left + L + right).

    Args:
        padding: width of the border, one for all sides or (left, right).

    >>> from chainrule import arange, nn
    >>> nn.ReflectionPad1d(2)(arange(4.0).reshape(1, 4))
    tensor([[2., 1., 0., 1., 2., 3., 2., 1.]])
    """

    nd = 1


class ReflectionPad2d(_ReflectionPad):
    """A border that mirrors images without their outermost elements.

    y[i, j] = x[r(i - top), r(j - left)] with r(k) = n - 1 - |n - 1 - |k||, n the size

    Shape: (N, C, H, W) or (C, H, W) -> (*, top + H + bottom, left + W + right).

    Args:
        padding: width of the border, one for all sides or (left, right, top, bottom).

    >>> from chainrule import arange, nn
    >>> nn.ReflectionPad2d(1)(arange(4.0).reshape(1, 2, 2))
    tensor([[[3., 2., 3., 2.],
             [1., 0., 1., 0.],
             [3., 2., 3., 2.],
             [1., 0., 1., 0.]]])
    """

    nd = 2


class ReflectionPad3d(_ReflectionPad):
    """A border that mirrors volumes without their outermost elements.

    y[h, i, j] = x[r(h - front), r(i - top), r(j - left)] with r(k) = n - 1 - |n - 1 - |k||, n the
    size

    Shape: (N, C, Z, H, W) or (C, Z, H, W) -> (*, front + Z + back, top + H + bottom, left + W +
    right).

    Args:
        padding: width of the border, one for all sides or (left, right, top, bottom, front, back).

    >>> from chainrule import arange, nn
    >>> nn.ReflectionPad3d(1)(arange(8.0).reshape(1, 2, 2, 2)).shape
    chainrule.Size([1, 4, 4, 4])
    """

    nd = 3


class _ReplicationPad(_Pad):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPad):
    """A border that repeats the outermost elements of signals.

    y[i] = x[min(max(i - left, 0), L - 1)]

    Shape: (N, C, L) or (C, L) -> (*, left + L + right).

    Args:
        padding: width of the border, one for all sides or (left, right).

    >>> from chainrule import arange, nn
    >>> nn.ReplicationPad1d(2)(arange(4.0).reshape(1, 4))
    tensor([[0., 0., 0., 1., 2., 3., 3., 3.]])
    """

    nd = 1


class ReplicationPad2d(_ReplicationPad):
    """A border that repeats the outermost elements of images.

    y[i, j] = x[min(max(i - top, 0), H - 1), min(max(j - left, 0), W - 1)]

    Shape: (N, C, H, W) or (C, H, W) -> (*, top + H + bottom, left + W + right).

    Args:
        padding: width of the border, one for all sides or (left, right, top, bottom).

    >>> from chainrule import arange, nn
    >>> nn.ReplicationPad2d(1)(arange(4.0).reshape(1, 2, 2))
    tensor([[[0., 0., 1., 1.],
             [0., 0., 1., 1.],
             [2., 2., 3., 3.],
             [2., 2., 3., 3.]]])
    """

    nd = 2


class ReplicationPad3d(_ReplicationPad):
    """A border that repeats the outermost elements of volumes.

    y[h, i, j] = x[r(h - front), r(i - top), r(j - left)] with r(k) = min(max(k, 0), n - 1), n the
    size

    Shape: (N, C, Z, H, W) or (C, Z, H, W) -> (*, front + Z + back, top + H + bottom, left + W +
    right).

    Args:
        padding: width of the border, one for all sides or (left, right, top, bottom, front, back).

    >>> from chainrule import arange, nn
    >>> nn.ReplicationPad3d(1)(arange(8.0).reshape(1, 2, 2, 2)).shape
    chainrule.Size([1, 4, 4, 4])
    """

    nd = 3


class _CircularPad(_Pad):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (self.nd + 1, self.nd + 2):
            raise ValueError(
                f"{type(self).__name__}: expected {self.nd + 1}D or {self.nd + 2}D input, got "
                f"shape {tuple(input.shape)}"
            )
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """A border that continues signals from the other side.

    y[i] = x[(i - left) mod L]

    Shape: (N, C, L) or (C, L) -> (*, left + L + right).

    Args:
        padding: width of the border, one for all sides or (left, right).

    >>> from chainrule import arange, nn
    >>> nn.CircularPad1d(2)(arange(4.0).reshape(1, 4))
    tensor([[2., 3., 0., 1., 2., 3., 0., 1.]])
    """

    nd = 1


class CircularPad2d(_CircularPad):
    """A border that continues images from the other side.

    y[i, j] = x[(i - top) mod H, (j - left) mod W]

    Shape: (N, C, H, W) or (C, H, W) -> (*, top + H + bottom, left + W + right).

    Args:
        padding: width of the border, one for all sides or (left, right, top, bottom).

    >>> from chainrule import arange, nn
    >>> nn.CircularPad2d(1)(arange(4.0).reshape(1, 2, 2))
    tensor([[[3., 2., 3., 2.],
             [1., 0., 1., 0.],
             [3., 2., 3., 2.],
             [1., 0., 1., 0.]]])
    """

    nd = 2


class CircularPad3d(_CircularPad):
    """A border that continues volumes from the other side.

    y[h, i, j] = x[(h - front) mod Z, (i - top) mod H, (j - left) mod W]

    Shape: (N, C, Z, H, W) or (C, Z, H, W) -> (*, front + Z + back, top + H + bottom, left + W +
    right).

    Args:
        padding: width of the border, one for all sides or (left, right, top, bottom, front, back).

    >>> from chainrule import arange, nn
    >>> nn.CircularPad3d(1)(arange(8.0).reshape(1, 2, 2, 2)).shape
    chainrule.Size([1, 4, 4, 4])
    """

    nd = 3
