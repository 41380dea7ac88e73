"""Looking inside: functions that show what happens and change nothing."""

from __future__ import annotations

from chainrule.inspect.core.registry import INSTRUMENTS, Instrument
from chainrule.inspect.health.autopsy import Autopsy, autopsy
from chainrule.inspect.structure.counting import Count, count
from chainrule.inspect.structure.drawing import draw
from chainrule.inspect.structure.receptive import ReceptiveField, receptive_field
from chainrule.inspect.structure.scene import Drawing
from chainrule.inspect.structure.summary import Summary, summary
from chainrule.inspect.surfaces.hidden import HiddenSpace, hidden_space
from chainrule.inspect.surfaces.landscapes import Landscape, WeightPath, landscape, surface
from chainrule.inspect.surfaces.lines import LossLine, loss_line
from chainrule.inspect.surfaces.paths import OptimizerPaths, optimizer_paths
from chainrule.inspect.surfaces.regions import Regions, regions
from chainrule.inspect.theory import textbook
from chainrule.inspect.theory.equivalent import flipped_units, permuted_units
from chainrule.inspect.theory.invariances import (
    Invariances,
    invariance_table,
    invariances,
    symmetry,
)
from chainrule.inspect.training.series import Series, Watched
from chainrule.inspect.training.statistics import Statistics
from chainrule.inspect.training.watch import Watch, activations, watch

__all__ = [
    "activations",
    "Autopsy",
    "autopsy",
    "Count",
    "count",
    "draw",
    "Drawing",
    "flipped_units",
    "hidden_space",
    "HiddenSpace",
    "Instrument",
    "INSTRUMENTS",
    "invariance_table",
    "Invariances",
    "invariances",
    "Landscape",
    "landscape",
    "loss_line",
    "LossLine",
    "optimizer_paths",
    "OptimizerPaths",
    "permuted_units",
    "receptive_field",
    "ReceptiveField",
    "Regions",
    "regions",
    "Series",
    "Statistics",
    "Summary",
    "summary",
    "surface",
    "symmetry",
    "textbook",
    "Watch",
    "watch",
    "Watched",
    "WeightPath",
]
