"""Training: the loop and everything around it."""

from __future__ import annotations

from chainrule.train import metrics
from chainrule.train.attending import Doctor
from chainrule.train.automatic.folds import cross_validate_table
from chainrule.train.automatic.images import fit_images
from chainrule.train.automatic.settings import Settings
from chainrule.train.automatic.tables import fit_table
from chainrule.train.callbacks import (
    Callback,
    Checkpoint,
    EarlyStopping,
    GradientNorms,
    LambdaCallback,
)
from chainrule.train.complexity import (
    ComplexityCurve,
    OverfitCheck,
    complexity_curve,
    overfit_first,
)
from chainrule.train.cross_validation import CrossValidation, cross_validate
from chainrule.train.failures import FailureRate, binomial_interval, failure_rate
from chainrule.train.fitted import FittedNetwork
from chainrule.train.history import History
from chainrule.train.batched.fit import ManyFits, fit_many
from chainrule.train.report import html_report, text_report
from chainrule.train.risk import augmented_risk, empirical_risk
from chainrule.train.run_folder import RunFolder
from chainrule.train.sweep import grid, log_uniform, random_settings, sweep, uniform
from chainrule.train.trainer import DivergedError, Trainer

__all__ = [
    "Callback",
    "Checkpoint",
    "ComplexityCurve",
    "CrossValidation",
    "DivergedError",
    "Doctor",
    "EarlyStopping",
    "FailureRate",
    "FittedNetwork",
    "GradientNorms",
    "History",
    "LambdaCallback",
    "ManyFits",
    "OverfitCheck",
    "RunFolder",
    "Settings",
    "Trainer",
    "augmented_risk",
    "binomial_interval",
    "complexity_curve",
    "cross_validate",
    "cross_validate_table",
    "empirical_risk",
    "failure_rate",
    "fit_images",
    "fit_many",
    "fit_table",
    "grid",
    "html_report",
    "log_uniform",
    "metrics",
    "overfit_first",
    "random_settings",
    "sweep",
    "text_report",
    "uniform",
]
