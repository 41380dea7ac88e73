"""Records of pooling layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from layers.record import Layer

__all__ = ["LAYERS"]

SPATIAL = {1: (9,), 2: (6, 7), 3: (4, 5, 4)}


def distinct(*shape: int) -> Any:
    """Values without ties, far enough apart for differences."""

    def inputs(r: np.random.Generator) -> tuple[Any, ...]:
        n = int(np.prod(shape))
        return (r.permutation(np.linspace(-2.0, 2.0, n)).reshape(shape),)

    return inputs


def positive(*shape: int) -> Any:
    return lambda r: (r.uniform(0.5, 2.0, size=shape),)


def record(name: str, nd: int, note: str, *args: Any, **kwargs: Any) -> Layer:
    make = positive if name.startswith("LP") else distinct
    full = f"{name}{nd}d"
    return Layer(
        full, lambda nn: getattr(nn, full)(*args, **kwargs), make(2, 2, *SPATIAL[nd]), note=note
    )


def maxima(nd: int) -> Any:
    """Numbers, and the places they come from: one in each window of two elements a side."""

    def inputs(r: np.random.Generator) -> tuple[Any, ...]:
        size = [n // 2 for n in SPATIAL[nd]]
        corners = np.meshgrid(*[2 * np.arange(n) for n in size], indexing="ij")
        inside = [c + r.integers(0, 2, c.shape) for c in corners]
        index = np.ravel_multi_index(inside, SPATIAL[nd])
        return (r.normal(size=(2, 2, *size)), np.broadcast_to(index, (2, 2, *size)).copy())

    return inputs


def to_size(module: Any, x: Any, index: Any) -> Any:
    return module(x, index, output_size=SPATIAL[x.ndim - 2])


def in_each_dimension() -> list[Layer]:
    found = []
    for nd in (1, 2, 3):
        found += [
            record("MaxPool", nd, "plain", 2),
            record("MaxPool", nd, "all", 3, 2, 1, 1, False, True),
            record("AvgPool", nd, "plain", 2),
            record("AvgPool", nd, "all", 3, 2, 1, True, False),
            record("LPPool", nd, "plain", 2, 3, 2),
            record("AdaptiveMaxPool", nd, "plain", 3),
            record("AdaptiveAvgPool", nd, "plain", 3),
            Layer(
                f"MaxUnpool{nd}d",
                lambda nn, nd=nd: getattr(nn, f"MaxUnpool{nd}d")(2),
                maxima(nd),
                call=to_size,
            ),
        ]
    return found


LAYERS: list[Layer] = [
    *in_each_dimension(),
    record("MaxPool", 2, "dilated", (2, 3), (1, 2), (1, 0), (2, 1)),
    record("AvgPool", 2, "divisor", (2, 3), 1, divisor_override=5),
    record("AdaptiveAvgPool", 2, "None", (3, None)),
    Layer(
        "AvgPool2d",
        lambda nn: nn.AvgPool2d(2, 1, dilation=2),
        distinct(2, 2, 6, 7),
        torch=False,
        note="dilated",
    ),
    Layer(
        "MaxPool2d",
        lambda nn: nn.MaxPool2d(2, return_indices=True),
        distinct(1, 2, 4, 4),
        pick=lambda out: out[0],
        note="indices",
    ),
]
