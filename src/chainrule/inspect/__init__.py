"""Looking inside: functions that show what happens and change nothing."""

from __future__ import annotations

from chainrule.inspect.core.registry import INSTRUMENTS, Instrument
from chainrule.inspect.theory import textbook
from chainrule.inspect.health.autopsy import Autopsy, autopsy
from chainrule.inspect.theory.equivalent import flipped_units, permuted_units
from chainrule.inspect.theory.invariances import (
    Invariances,
    invariance_table,
    invariances,
    symmetry,
)

__all__ = [
    "INSTRUMENTS",
    "Instrument",
    "Autopsy",
    "Invariances",
    "autopsy",
    "flipped_units",
    "invariance_table",
    "invariances",
    "permuted_units",
    "symmetry",
    "textbook",
]
