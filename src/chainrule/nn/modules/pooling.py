"""Pooling, where PyTorch has it."""

from chainrule.nn import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)
from chainrule.nn.layers.adaptive_pooling import (
    _AdaptiveAvgPool as _AdaptiveAvgPoolNd,
    _AdaptiveMaxPool as _AdaptiveMaxPoolNd,
    _MaxUnpool as _MaxUnpoolNd,
)
from chainrule.nn.layers.pooling import (
    _AvgPool as _AvgPoolNd,
    _LPPool as _LPPoolNd,
    _MaxPool as _MaxPoolNd,
)

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
    "_AdaptiveAvgPoolNd",
    "_AdaptiveMaxPoolNd",
    "_AvgPoolNd",
    "_LPPoolNd",
    "_MaxPoolNd",
    "_MaxUnpoolNd",
]
