"""Records of the normalizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from layers.record import Layer

__all__ = ["LAYERS", "normal"]


def normal(*shape: int) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    """One input, neither centered nor of variance 1."""
    return lambda r: (1.5 * r.normal(size=shape) + 0.7,)


LAYERS: list[Layer] = [
    Layer("BatchNorm1d", lambda nn: nn.BatchNorm1d(3), normal(5, 3)),
    Layer("BatchNorm1d", lambda nn: nn.BatchNorm1d(3, eps=0.1), normal(4, 3, 2), note="sequence"),
    Layer(
        "BatchNorm1d",
        lambda nn: nn.BatchNorm1d(3, momentum=None),
        normal(5, 3),
        note="mean of all batches",
    ),
    Layer(
        "BatchNorm1d",
        lambda nn: nn.BatchNorm1d(3, affine=False),
        normal(5, 3),
        note="nothing learned",
    ),
    Layer("BatchNorm1d", lambda nn: nn.BatchNorm1d(3, bias=False), normal(5, 3), note="no bias"),
    Layer(
        "BatchNorm1d",
        lambda nn: nn.BatchNorm1d(3, track_running_stats=False),
        normal(5, 3),
        note="nothing kept",
    ),
    Layer("BatchNorm2d", lambda nn: nn.BatchNorm2d(2, momentum=0.3), normal(3, 2, 2, 3)),
    Layer("BatchNorm3d", lambda nn: nn.BatchNorm3d(2), normal(2, 2, 2, 1, 2)),
    Layer("SyncBatchNorm", lambda nn: nn.SyncBatchNorm(2), normal(3, 2, 4), torch=False),
    Layer("InstanceNorm1d", lambda nn: nn.InstanceNorm1d(2), normal(3, 2, 4)),
    Layer(
        "InstanceNorm1d",
        lambda nn: nn.InstanceNorm1d(2, affine=True),
        normal(2, 4),
        note="no batch, affine",
    ),
    Layer(
        "InstanceNorm2d",
        lambda nn: nn.InstanceNorm2d(2, affine=True, track_running_stats=True),
        normal(3, 2, 2, 3),
    ),
    Layer("InstanceNorm3d", lambda nn: nn.InstanceNorm3d(2), normal(2, 2, 2, 1, 2)),
    Layer("LayerNorm", lambda nn: nn.LayerNorm(4), normal(3, 4)),
    Layer("LayerNorm", lambda nn: nn.LayerNorm((2, 3), eps=0.1), normal(4, 2, 3), note="two dims"),
    Layer("LayerNorm", lambda nn: nn.LayerNorm(4, bias=False), normal(2, 3, 4), note="no bias"),
    Layer(
        "LayerNorm",
        lambda nn: nn.LayerNorm(4, elementwise_affine=False),
        normal(3, 4),
        note="nothing learned",
    ),
    Layer("RMSNorm", lambda nn: nn.RMSNorm(4), normal(3, 4)),
    Layer(
        "RMSNorm",
        lambda nn: nn.RMSNorm((2, 3), eps=0.1, elementwise_affine=False),
        normal(2, 2, 3),
        note="nothing learned",
    ),
    Layer("GroupNorm", lambda nn: nn.GroupNorm(2, 4), normal(3, 4, 2)),
    Layer(
        "GroupNorm",
        lambda nn: nn.GroupNorm(1, 3, affine=False),
        normal(2, 3, 2, 2),
        note="one group",
    ),
    Layer("GroupNorm", lambda nn: nn.GroupNorm(3, 6, bias=False), normal(4, 6), note="no space"),
    Layer("LocalResponseNorm", lambda nn: nn.LocalResponseNorm(3, alpha=0.5), normal(2, 5, 3)),
    Layer(
        "LocalResponseNorm",
        lambda nn: nn.LocalResponseNorm(2, k=2.0),
        normal(2, 3, 2, 2),
        note="even",
    ),
]
