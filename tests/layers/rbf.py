"""Records of the radial basis functions."""

from __future__ import annotations

from layers.norm import normal
from layers.record import Layer

__all__ = ["LAYERS"]

LAYERS: list[Layer] = [
    Layer("RBF", lambda nn: nn.RBF(3, 4), normal(5, 3), torch=False),
    Layer("RBF", lambda nn: nn.RBF(3, 2, bias=True), normal(5, 3), torch=False, note="phi_0"),
    Layer("RBFNetwork", lambda nn: nn.RBFNetwork(3, 4, 2), normal(5, 3), torch=False),
]
