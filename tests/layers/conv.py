"""Records of convolutional layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from layers.record import Layer

__all__ = ["LAYERS"]

SPATIAL = {1: (9,), 2: (7, 6), 3: (5, 4, 5)}


def image(channels: int, nd: int, batch: bool = True) -> Any:
    lead = (2, channels) if batch else (channels,)
    return lambda r: (r.normal(size=(*lead, *SPATIAL[nd])),)


def conv(nd: int, note: str, *args: Any, batch: bool = True, **kwargs: Any) -> Layer:
    name = f"Conv{nd}d"
    return Layer(
        name, lambda nn: getattr(nn, name)(*args, **kwargs), image(args[0], nd, batch), note=note
    )


def transposed(nd: int, note: str, *args: Any, **kwargs: Any) -> Layer:
    name = f"ConvTranspose{nd}d"
    return Layer(name, lambda nn: getattr(nn, name)(*args, **kwargs), image(args[0], nd), note=note)


def in_each_dimension() -> list[Layer]:
    found = []
    for nd in (1, 2, 3):
        found += [
            conv(nd, "plain", 2, 3, 3),
            conv(nd, "all", 4, 6, 3, stride=2, padding=1, dilation=2 if nd < 3 else 1, groups=2),
            conv(nd, "same", 2, 2, 4 if nd < 3 else 2, padding="same", bias=False),
            conv(nd, "valid", 2, 2, 2, padding="valid"),
            conv(nd, "reflect", 2, 2, 3, padding=1, padding_mode="reflect"),
            conv(nd, "replicate", 2, 2, 3, padding="same", padding_mode="replicate"),
            conv(nd, "circular", 2, 2, 3, stride=2, padding=2, padding_mode="circular"),
            conv(nd, "no batch", 2, 3, 2, batch=False),
            transposed(nd, "plain", 2, 3, 3),
            transposed(nd, "all", 4, 6, 3, 2, 1, 1, 2, True, 2),
            transposed(nd, "no bias", 2, 3, 2, stride=2, bias=False),
        ]
    return found


def to_size(module: Any, x: Any) -> Any:
    return module(x, output_size=[14, 12])


def flipped(r: np.random.Generator) -> tuple[Any, ...]:
    return (r.normal(size=(2, 2, 6, 5)),)


LAYERS: list[Layer] = [
    *in_each_dimension(),
    conv(2, "pairs", 2, 3, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
    conv(2, "depthwise", 3, 6, 3, groups=3),
    Layer(
        "ConvTranspose2d",
        lambda nn: nn.ConvTranspose2d(2, 3, 3, 2, 1),
        image(2, 2),
        call=to_size,
        note="output size",
    ),
    Layer("Conv2d", lambda nn: nn.Conv2d(2, 3, 3, flip=True), flipped, torch=False, note="flip"),
]
