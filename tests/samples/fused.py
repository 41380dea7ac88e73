"""Records of operations that are one node where they are applied one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample

__all__ = ["SAMPLES"]


def normals(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    return lambda r: tuple(r.normal(size=shape) for shape in shapes)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "sigmoid": sigmoid, "tanh": np.tanh}


def activated(name: str) -> list[Sample]:
    """f(x @ w.T + b) with and without b."""
    f = ACTIVATIONS[name]

    def reference(x: Any, w: Any, b: Any = 0.0) -> Any:
        return f(x @ w.T + b)

    def torch_call(torch: Any, *layer: Any) -> Any:
        return getattr(torch, name)(torch.nn.functional.linear(*layer))

    sizes = {"": ((5, 3), (4, 3), (4,)), "no bias": ((5, 3), (4, 3)), "one": ((1, 1), (1, 1), (1,))}
    return [
        Sample(
            f"ops.layers.fused.linear_{name}",
            normals(*shapes),
            {},
            reference,
            torch_call=torch_call,
            note=note,
        )
        for note, shapes in sizes.items()
    ]


def squared(note: str, *shape: int) -> Sample:
    """A third of the sum of the squared differences."""
    return Sample(
        "ops.layers.fused.squared_errors",
        normals(shape, shape),
        {"scale": 1 / 3},
        lambda x, y, scale: scale * ((x - y) ** 2).sum(),
        torch_call=lambda torch, x, y, scale: scale * ((x - y) ** 2).sum(),
        note=note,
    )


def convolved(x: Any, w: Any, b: Any, stride: Any, size: Any, **rest: Any) -> Any:
    """The sum that defines it, without padding, dilation and groups."""
    out = np.zeros((x.shape[0], w.shape[0], *size))
    for i, j in np.ndindex(*size):
        rows, columns = i * stride[0], j * stride[1]
        window = x[:, :, rows : rows + w.shape[2], columns : columns + w.shape[3]]
        out[:, :, i, j] = np.einsum("ncij,ocij->no", window, w) + b
    return out


def torch_convolution(torch: Any, x: Any, w: Any, b: Any, size: Any, **settings: Any) -> Any:
    return torch.nn.functional.conv2d(x, w, b, **settings)


def convolution(note: str, w: tuple[int, ...], **settings: Any) -> Sample:
    plain = settings["padding"] == (0, 0) and settings["groups"] == 1
    return Sample(
        "ops.layers.conv_primitives.biased_convolution",
        normals((2, 4, 5, 4), w, w[:1]),
        {"dilation": (1, 1)} | settings,
        convolved if plain else None,
        torch_call=torch_convolution,
        note=note,
    )


SAMPLES: list[Sample] = [
    *[sample for name in ACTIVATIONS for sample in activated(name)],
    squared("", 3, 4),
    squared("one", 1),
    convolution("", (3, 4, 2, 3), size=(4, 2), stride=(1, 1), padding=(0, 0), groups=1),
    convolution("stride", (3, 4, 2, 2), size=(2, 2), stride=(2, 2), padding=(0, 0), groups=1),
    convolution("groups", (6, 2, 3, 3), size=(5, 4), stride=(1, 1), padding=(1, 1), groups=2),
]
