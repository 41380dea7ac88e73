"""Pruning: masks, what to prune, and smaller networks made of what is left.

:func:`magnitude`, :func:`structured`, :func:`obd` and :func:`obs` hold weights at zero by masks;
:func:`skeletonize` and :func:`remove_units` do so with whole units and inputs; :func:`iterate`
prunes step by step with retraining; :func:`compact` cuts out what does nothing.
"""

from chainrule.regularize.prune.choosing import Step
from chainrule.regularize.prune.compact import SelectInputs, compact
from chainrule.regularize.prune.damage import obd, obd_saliency
from chainrule.regularize.prune.magnitude import magnitude, structured
from chainrule.regularize.prune.masks import Mask, masks, remove, set_masks, sparsity
from chainrule.regularize.prune.schedule import PruningTable, iterate, sparsities
from chainrule.regularize.prune.speed import Speedup, speedup
from chainrule.regularize.prune.surgeon import obs, obs_cost
from chainrule.regularize.prune.units import (
    Unit,
    remove_units,
    skeletonize,
    unit_relevance,
    units,
)

__all__ = [
    "Mask",
    "PruningTable",
    "SelectInputs",
    "Speedup",
    "Step",
    "Unit",
    "compact",
    "iterate",
    "magnitude",
    "masks",
    "obd",
    "obd_saliency",
    "obs",
    "obs_cost",
    "remove",
    "remove_units",
    "set_masks",
    "skeletonize",
    "sparsities",
    "sparsity",
    "speedup",
    "structured",
    "unit_relevance",
    "units",
]
