"""A record for every instrument: how it is called on a network, and on which networks it works.

The records of a room stand in a file of their own, as ``RECORDS``; they are collected here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import looking
from looking.nets import NETS, Net

__all__ = ["RECORDS", "Record"]


@dataclass(frozen=True)
class Record:
    """``call(net)`` runs the instrument; ``refused`` are networks that it must refuse, each with
    a part of what it says."""

    call: Callable[[Net], Any]
    nets: tuple[str, ...] = tuple(NETS)
    refused: dict[str, str] = field(default_factory=dict)
    draws: bool = True  # whether its result has a plot


def _collected() -> dict[str, Record]:
    records: dict[str, Record] = {}
    for file in pkgutil.iter_modules(looking.__path__):
        if file.name.startswith("of_"):
            records |= importlib.import_module(f"looking.{file.name}").RECORDS
    return records


RECORDS = _collected()
