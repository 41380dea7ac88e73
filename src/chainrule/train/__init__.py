"""Training: the loop and everything around it."""

from __future__ import annotations

from chainrule.train import metrics
from chainrule.train.automatic import (
    FittedNetwork, Settings, cross_validate_table, fit_table,
)  # fmt: skip
from chainrule.train.callbacks import (
    Callback, Checkpoint, EarlyStopping, GradientNorms, LambdaCallback,
)  # fmt: skip
from chainrule.train.cross_validation import CrossValidation, cross_validate
from chainrule.train.history import History
from chainrule.train.report import html_report, text_report
from chainrule.train.sweep import grid, log_uniform, random_settings, sweep, uniform
from chainrule.train.trainer import DivergedError, Trainer

__all__ = [
    "Callback", "Checkpoint", "CrossValidation", "DivergedError", "EarlyStopping", "FittedNetwork",
    "GradientNorms", "History", "LambdaCallback", "Settings", "Trainer", "cross_validate",
    "cross_validate_table", "fit_table", "grid", "html_report", "log_uniform", "metrics",
    "random_settings", "sweep", "text_report", "uniform",
]  # fmt: skip
