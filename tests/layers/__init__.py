"""The records of every family of layers: each module here has a list ``LAYERS``."""

from __future__ import annotations

import importlib
import pkgutil

from layers.record import Layer

__all__ = ["ALL", "BY_FAMILY"]

BY_FAMILY: dict[str, list[Layer]] = {
    module.name: importlib.import_module(f"layers.{module.name}").LAYERS
    for module in pkgutil.iter_modules(__path__)
    if module.name != "record"
}
ALL: list[Layer] = [layer for layers in BY_FAMILY.values() for layer in layers]
