"""The atlas: every figure, experiment, number, example and erratum of the courses, computed anew.

An entry is a function under ``@entry`` in a file of one of the folders ``figures``,
``experiments``, ``numbers``, ``examples`` and ``errata``; its verdict follows from numbers.
"""

from chainrule.atlas.core.claims import Judged, Number, Refuted, Statement, Unchecked, Wrong
from chainrule.atlas.core.registry import Entry, Outcome, choose, entries, entry
from chainrule.atlas.core.running import Record, compute, run
from chainrule.atlas.core.values import Failed, Forms, Spread, attempt

__all__ = [
    "Entry",
    "Failed",
    "Forms",
    "Judged",
    "Number",
    "Outcome",
    "Record",
    "Refuted",
    "Spread",
    "Statement",
    "Unchecked",
    "Wrong",
    "attempt",
    "choose",
    "compute",
    "entries",
    "entry",
    "run",
]
