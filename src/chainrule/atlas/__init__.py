"""The atlas: every figure, experiment, number, example and erratum of the courses, computed anew.

An entry is a function under ``@entry`` in a file of one of the folders ``figures``,
``experiments``, ``numbers``, ``examples`` and ``errata``; its verdict follows from numbers.
"""

from chainrule.atlas.core.claims import Judged, Number, Refuted, Statement, Unchecked, Wrong
from chainrule.atlas.core.keep import NOT_KEPT, Keep
from chainrule.atlas.core.registry import Entry, Outcome, choose, entries, entry
from chainrule.atlas.core.running import Record, compute, run
from chainrule.atlas.core.values import Failed, Forms, Spread, attempt

__all__ = [
    "NOT_KEPT",
    "Entry",
    "Failed",
    "Forms",
    "Judged",
    "Keep",
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
