"""Looking inside: functions that show what happens and change nothing."""

from __future__ import annotations

from chainrule.inspect.attribution.attribute import Attribution, attribute
from chainrule.inspect.attribution.maps import (
    Deconvnet,
    FeatureMaps,
    Filters,
    deconvnet,
    feature_maps,
    filters,
)
from chainrule.inspect.attribution.maximization import Dream, Maximized, deep_dream, maximize
from chainrule.inspect.core.registry import INSTRUMENTS, Instrument
from chainrule.inspect.health.autopsy import Autopsy, autopsy
from chainrule.inspect.health.diagnosis import Diagnosis
from chainrule.inspect.health.doctor import doctor
from chainrule.inspect.health.findings import Finding, RULES, Rule
from chainrule.inspect.health.jacobians import LayerGain, LayerJacobians, layer_jacobians
from chainrule.inspect.health.observing import HealthWarning, Visit, examining
from chainrule.inspect.health.preflight import Preflight, preflight
from chainrule.inspect.results.calibration import Calibration, calibration
from chainrule.inspect.results.confusion import Confusion, confusion
from chainrule.inspect.results.dependence import PartialDependence, partial_dependence
from chainrule.inspect.results.fits import RegressionFit, regression_fit
from chainrule.inspect.results.folds import Folds, folds
from chainrule.inspect.results.importance import PermutationImportance, permutation_importance
from chainrule.inspect.results.learning import (
    LearningCurves,
    Schedules,
    learning_curves,
    schedules,
)
from chainrule.inspect.results.residuals import Residuals, residuals
from chainrule.inspect.results.sheets import (
    AugmentationSheet,
    DataSheet,
    Reconstructions,
    augmentation_sheet,
    data_sheet,
    reconstructions,
)
from chainrule.inspect.results.thresholds import PrecisionRecall, Roc, precision_recall, roc
from chainrule.inspect.results.worst import Case, TopLosses, top_losses
from chainrule.inspect.steps.backprop import BackPropagation, back_propagation
from chainrule.inspect.steps.convolution import ConvolutionSteps, convolution_steps
from chainrule.inspect.structure.counting import Count, count
from chainrule.inspect.structure.drawing import draw
from chainrule.inspect.structure.graphs import ComputationGraph, make_dot
from chainrule.inspect.structure.receptive import ReceptiveField, receptive_field
from chainrule.inspect.structure.scene import Drawing
from chainrule.inspect.structure.summary import Summary, summary
from chainrule.inspect.structure.wiring import wiring
from chainrule.inspect.surfaces.hidden import HiddenSpace, hidden_space
from chainrule.inspect.surfaces.landscapes import Landscape, WeightPath, landscape, surface
from chainrule.inspect.surfaces.lines import LossLine, loss_line
from chainrule.inspect.surfaces.paths import OptimizerPaths, optimizer_paths
from chainrule.inspect.surfaces.regions import Regions, regions
from chainrule.inspect.theory import textbook
from chainrule.inspect.theory.activations import (
    ActivationCurves,
    MomentMap,
    activation_curves,
    moment_map,
)
from chainrule.inspect.theory.equivalent import flipped_units, permuted_units
from chainrule.inspect.theory.invariances import (
    Invariances,
    invariance_table,
    invariances,
    symmetry,
)
from chainrule.inspect.theory.normalization import NormalizationGroups, normalization_groups
from chainrule.inspect.training.cockpit import Cockpit, Flight, cockpit
from chainrule.inspect.training.gradient_flow import GradientFlow, gradient_flow
from chainrule.inspect.training.initial_weights import WeightHistograms, weight_histograms
from chainrule.inspect.training.normality import Normality, normality
from chainrule.inspect.training.series import Series, Watched
from chainrule.inspect.training.statistics import Statistics
from chainrule.inspect.training.through_time import ThroughTime, through_time
from chainrule.inspect.training.variance import VariancePropagation, variance_propagation
from chainrule.inspect.training.watch import Watch, activations, watch

__all__ = [
    "ActivationCurves",
    "Attribution",
    "AugmentationSheet",
    "Autopsy",
    "BackPropagation",
    "Calibration",
    "Case",
    "Cockpit",
    "ComputationGraph",
    "Confusion",
    "ConvolutionSteps",
    "Count",
    "DataSheet",
    "Deconvnet",
    "Diagnosis",
    "Drawing",
    "Dream",
    "FeatureMaps",
    "Filters",
    "Finding",
    "Flight",
    "Folds",
    "GradientFlow",
    "HealthWarning",
    "HiddenSpace",
    "INSTRUMENTS",
    "Instrument",
    "Invariances",
    "Landscape",
    "LayerGain",
    "LayerJacobians",
    "LearningCurves",
    "LossLine",
    "Maximized",
    "MomentMap",
    "Normality",
    "NormalizationGroups",
    "OptimizerPaths",
    "PartialDependence",
    "PermutationImportance",
    "PrecisionRecall",
    "Preflight",
    "RULES",
    "ReceptiveField",
    "Reconstructions",
    "Regions",
    "RegressionFit",
    "Residuals",
    "Roc",
    "Rule",
    "Schedules",
    "Series",
    "Statistics",
    "Summary",
    "ThroughTime",
    "TopLosses",
    "VariancePropagation",
    "Visit",
    "Watch",
    "Watched",
    "WeightHistograms",
    "WeightPath",
    "activation_curves",
    "activations",
    "attribute",
    "augmentation_sheet",
    "autopsy",
    "back_propagation",
    "calibration",
    "cockpit",
    "confusion",
    "convolution_steps",
    "count",
    "data_sheet",
    "deconvnet",
    "deep_dream",
    "doctor",
    "draw",
    "examining",
    "feature_maps",
    "filters",
    "flipped_units",
    "folds",
    "gradient_flow",
    "hidden_space",
    "invariance_table",
    "invariances",
    "landscape",
    "layer_jacobians",
    "learning_curves",
    "loss_line",
    "make_dot",
    "maximize",
    "moment_map",
    "normality",
    "normalization_groups",
    "optimizer_paths",
    "partial_dependence",
    "permutation_importance",
    "permuted_units",
    "precision_recall",
    "preflight",
    "receptive_field",
    "reconstructions",
    "regions",
    "regression_fit",
    "residuals",
    "roc",
    "schedules",
    "summary",
    "surface",
    "symmetry",
    "textbook",
    "through_time",
    "top_losses",
    "variance_propagation",
    "watch",
    "weight_histograms",
    "wiring",
]
