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
    """A border of one value around (*, L): see :class:`ConstantPad2d`."""

    nd = 1


class ConstantPad2d(_ConstantPad):
    """A border of one value around (*, H, W), ``padding`` wide or (left, right, top, bottom).

    >>> from chainrule import nn, ones
    >>> nn.ConstantPad2d((1, 0, 0, 1), 7.0)(ones(1, 1, 2))
    tensor([[[7., 1., 1.],
             [7., 7., 7.]]])
    """

    nd = 2


class ConstantPad3d(_ConstantPad):
    """A border of one value around (*, D, H, W): see :class:`ConstantPad2d`."""

    nd = 3


class _ZeroPad(_Pad):
    mode, value = "constant", 0.0


class ZeroPad1d(_ZeroPad):
    """A border of zeros around (*, L): see :class:`ConstantPad2d`."""

    nd = 1


class ZeroPad2d(_ZeroPad):
    """A border of zeros around (*, H, W): see :class:`ConstantPad2d`."""

    nd = 2


class ZeroPad3d(_ZeroPad):
    """A border of zeros around (*, D, H, W): see :class:`ConstantPad2d`."""

    nd = 3


class _ReflectionPad(_Pad):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPad):
    """A border that mirrors (N, C, L) without its outermost elements.

    >>> from chainrule import arange, nn
    >>> nn.ReflectionPad1d(2)(arange(4.0).reshape(1, 4))
    tensor([[2., 1., 0., 1., 2., 3., 2., 1.]])
    """

    nd = 1


class ReflectionPad2d(_ReflectionPad):
    """A border that mirrors (N, C, H, W): see :class:`ReflectionPad1d`."""

    nd = 2


class ReflectionPad3d(_ReflectionPad):
    """A border that mirrors (N, C, D, H, W): see :class:`ReflectionPad1d`."""

    nd = 3


class _ReplicationPad(_Pad):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPad):
    """A border that repeats the outermost elements of (N, C, L).

    >>> from chainrule import arange, nn
    >>> nn.ReplicationPad1d(2)(arange(4.0).reshape(1, 4))
    tensor([[0., 0., 0., 1., 2., 3., 3., 3.]])
    """

    nd = 1


class ReplicationPad2d(_ReplicationPad):
    """A border that repeats the outermost elements of (N, C, H, W)."""

    nd = 2


class ReplicationPad3d(_ReplicationPad):
    """A border that repeats the outermost elements of (N, C, D, H, W)."""

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
    """A border that continues (N, C, L) from its other end.

    >>> from chainrule import arange, nn
    >>> nn.CircularPad1d(2)(arange(4.0).reshape(1, 4))
    tensor([[2., 3., 0., 1., 2., 3., 0., 1.]])
    """

    nd = 1


class CircularPad2d(_CircularPad):
    """A border that continues (N, C, H, W) from its other side."""

    nd = 2


class CircularPad3d(_CircularPad):
    """A border that continues (N, C, D, H, W) from its other side."""

    nd = 3
