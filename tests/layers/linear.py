"""Records of layers that multiply by weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from layers.record import Layer

__all__ = ["LAYERS"]


def normal(*shapes: tuple[int, ...]) -> Any:
    return lambda r: tuple(r.normal(size=shape) for shape in shapes)


def apart(r: np.random.Generator) -> tuple[Any, ...]:
    """Far from where two pieces of a maximum are equal, most likely."""
    return (3 * r.normal(size=(4, 3)),)


LINKS = [(0, 2), (1, 2), (2, 3), (0, 3), (1, 4), (2, 4)]

LAYERS: list[Layer] = [
    Layer("Linear", lambda nn: nn.Linear(3, 2), normal((4, 3))),
    Layer("Linear", lambda nn: nn.Linear(3, 2, bias=False), normal((3,)), note="no batch or bias"),
    Layer("Linear", lambda nn: nn.Linear(3, 2), normal((2, 4, 3)), note="3 dimensions"),
    Layer(
        "FeedbackLinear",
        lambda nn: nn.FeedbackLinear(3, 2),
        normal((4, 3)),
        torch=False,
        exact=False,
    ),
    Layer("Bilinear", lambda nn: nn.Bilinear(3, 2, 4), normal((5, 3), (5, 2))),
    Layer(
        "Bilinear",
        lambda nn: nn.Bilinear(3, 2, 4, bias=False),
        normal((2, 3, 3), (2, 3, 2)),
        note="3 dimensions, no bias",
    ),
    Layer("SecondOrder", lambda nn: nn.SecondOrder(3, 2), normal((4, 3)), torch=False),
    Layer("Maxout", lambda nn: nn.Maxout(3, 2, 4), apart, torch=False),
    Layer("UnitGraph", lambda nn: nn.UnitGraph(LINKS), normal((4, 2)), torch=False),
]
