"""The control of complexity: penalties, growing, pruning."""

from __future__ import annotations

from chainrule.regularize import prune
from chainrule.regularize.cascade import (
    CascadeFit,
    CascadeNetwork,
    CascadeStep,
    cascade_correlation,
    correlation,
)
from chainrule.regularize.flat import FlatMinimum, flat_box
from chainrule.regularize.matrices import Orthogonality, Spectral
from chainrule.regularize.normalized import Normalized
from chainrule.regularize.optimum import L2Optimum, l2_optimum
from chainrule.regularize.penalties import L1, L2, Cauchy, GroupLasso, WeightElimination
from chainrule.regularize.penalty import Penalty
from chainrule.regularize.priors import cauchy_prior, gaussian_prior, laplace_prior
from chainrule.regularize.prune import SelectInputs
from chainrule.regularize.selection import risk_bound, simplest_adequate
from chainrule.regularize.sharing import SoftWeightSharing
from chainrule.regularize.smoothing import Tikhonov
from chainrule.regularize.tiling import TilingFit, tiling

__all__ = [
    "CascadeFit",
    "CascadeNetwork",
    "CascadeStep",
    "TilingFit",
    "cascade_correlation",
    "correlation",
    "tiling",
    "Cauchy",
    "FlatMinimum",
    "GroupLasso",
    "L1",
    "L2",
    "L2Optimum",
    "Normalized",
    "Orthogonality",
    "Penalty",
    "SelectInputs",
    "SoftWeightSharing",
    "Spectral",
    "Tikhonov",
    "WeightElimination",
    "cauchy_prior",
    "flat_box",
    "gaussian_prior",
    "l2_optimum",
    "laplace_prior",
    "prune",
    "risk_bound",
    "simplest_adequate",
]
