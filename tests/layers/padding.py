"""Records of padding layers."""

from __future__ import annotations

from typing import Any

from layers.record import Layer

__all__ = ["LAYERS"]

SPATIAL = {1: (5,), 2: (4, 5), 3: (4, 3, 4)}
UNEVEN = {1: (2, 1), 2: (1, 2, 0, 1), 3: (1, 0, 2, 1, 0, 2)}


def image(nd: int) -> Any:
    return lambda r: (r.normal(size=(2, 2, *SPATIAL[nd])),)


def record(name: str, nd: int, note: str, *args: Any) -> Layer:
    full = f"{name}{nd}d"
    return Layer(full, lambda nn: getattr(nn, full)(*args), image(nd), note=note)


LAYERS: list[Layer] = [
    layer
    for nd in (1, 2, 3)
    for name in ("ConstantPad", "ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad")
    for value in [(3.5,) if name == "ConstantPad" else ()]
    for layer in (
        record(name, nd, "even", 2 if nd < 3 else 1, *value),
        record(name, nd, "uneven", UNEVEN[nd], *value),
    )
]
