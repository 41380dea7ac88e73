"""Records of the links that pass a layer by."""

from __future__ import annotations

from layers.norm import normal
from layers.record import Layer

__all__ = ["LAYERS"]

LAYERS: list[Layer] = [
    Layer("Residual", lambda nn: nn.Residual(nn.Linear(3, 3)), normal(4, 3), torch=False),
    Layer(
        "Residual",
        lambda nn: nn.Residual(nn.Linear(3, 2), nn.Linear(3, 2, bias=False)),
        normal(4, 3),
        torch=False,
        note="projection",
    ),
    Layer("ResidualBlock", lambda nn: nn.ResidualBlock(2, 2), normal(2, 2, 3, 3), torch=False),
    Layer(
        "ResidualBlock",
        lambda nn: nn.ResidualBlock(2, 3, stride=2),
        normal(2, 2, 4, 4),
        torch=False,
        note="downsample",
    ),
    Layer("Highway", lambda nn: nn.Highway(3), normal(4, 3), torch=False),
    Layer("SkipConcat", lambda nn: nn.SkipConcat(nn.Linear(3, 2)), normal(4, 3), torch=False),
]
