"""Records of pooling layers."""

from __future__ import annotations

import importlib
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


def fractional(nd: int, note: str, kernel_size: Any, **kwargs: Any) -> Layer:
    """With the random numbers given: those of one sample and two planes."""

    def make(nn: Any) -> Any:
        tensor = importlib.import_module(nn.__name__.partition(".")[0]).tensor
        samples = tensor([[[0.1, 0.8, 0.4][:nd], [0.6, 0.3, 0.99][:nd]]])
        kind = getattr(nn, f"FractionalMaxPool{nd}d")
        return kind(kernel_size, _random_samples=samples, **kwargs)

    sizes = (9, 7) if nd == 2 else (5, 6, 4)
    return Layer(f"FractionalMaxPool{nd}d", make, distinct(1, 2, *sizes), note=note)


LAYERS: list[Layer] = [
    fractional(2, "size", 2, output_size=(4, 3)),
    fractional(2, "ratio", (3, 2), output_ratio=(0.5, 0.7)),
    fractional(3, "size", 2, output_size=(3, 1, 2)),
    fractional(3, "ratio", (2, 3, 1), output_ratio=0.6),
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
