"""Looking inside: functions that show what happens and change nothing."""

from __future__ import annotations

from chainrule.inspect import textbook
from chainrule.inspect.autopsy import Autopsy, autopsy
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
    "invariance_table",
    "invariances",
    "symmetry",
    "textbook",
]
