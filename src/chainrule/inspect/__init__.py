"""Looking inside: functions that show what happens and change nothing."""

from __future__ import annotations

from chainrule.inspect import textbook
from chainrule.inspect.autopsy import Autopsy, autopsy
from chainrule.inspect.equivalent import flipped_units, permuted_units
from chainrule.inspect.invariances import (
    Invariances,
    invariance_table,
    invariances,
    symmetry,
)

__all__ = [
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
