"""The records of every family: each module here has a list ``SAMPLES``; ``ALL`` is all of them."""

from __future__ import annotations

import importlib
import pkgutil

from samples.record import Sample

__all__ = ["ALL", "BY_FAMILY"]

BY_FAMILY: dict[str, list[Sample]] = {
    module.name: importlib.import_module(f"samples.{module.name}").SAMPLES
    for module in pkgutil.iter_modules(__path__)
    if module.name != "record"
}
ALL: list[Sample] = [sample for samples in BY_FAMILY.values() for sample in samples]
