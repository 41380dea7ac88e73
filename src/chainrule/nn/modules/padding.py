"""Padding, where PyTorch has it."""

from chainrule.nn import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from chainrule.nn.layers.padding import (
    _CircularPad as _CircularPadNd,
    _ConstantPad as _ConstantPadNd,
    _ReflectionPad as _ReflectionPadNd,
    _ReplicationPad as _ReplicationPadNd,
)

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
    "_CircularPadNd",
    "_ConstantPadNd",
    "_ReflectionPadNd",
    "_ReplicationPadNd",
]
