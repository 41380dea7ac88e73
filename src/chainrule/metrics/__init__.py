"""Measures of how good predictions are. All are functions of (output, target).

Outputs of classifiers are scores, one column for each class (logits or probabilities), or one score
for two classes. Where predicted labels are at hand (integers), they are taken as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from chainrule.metrics.classes import (
    accuracy,
    balanced_accuracy,
    confusion_matrix,
    error_rate,
    f1,
    precision,
    recall,
    top_k_accuracy,
    top_k_error,
)
from chainrule.metrics.curves import average_precision, precision_recall_curve, roc_curve
from chainrule.metrics.labels import Scores, predicted_classes
from chainrule.metrics.multilabel import hamming_loss, label_f1, subset_accuracy
from chainrule.metrics.numbers import (
    explained_sum_of_squares,
    mae,
    max_error,
    mse,
    r2,
    residual_sum_of_squares,
    rmse,
)
from chainrule.metrics.ordered import (
    cohen_kappa,
    coverage,
    d2_poisson,
    d2_poisson_log,
    ordinal_accuracy,
    ordinal_mae,
    pinball,
    poisson_deviance,
    predicted_ranks,
)
from chainrule.metrics.scores import calibration_error, nll, reliability, roc_auc

__all__ = [
    "METRICS",
    "Metric",
    "MetricsLike",
    "accuracy",
    "average_precision",
    "balanced_accuracy",
    "calibration_error",
    "cohen_kappa",
    "confusion_matrix",
    "coverage",
    "d2_poisson",
    "d2_poisson_log",
    "error_rate",
    "explained_sum_of_squares",
    "f1",
    "hamming_loss",
    "label_f1",
    "mae",
    "max_error",
    "metric_functions",
    "mse",
    "nll",
    "ordinal_accuracy",
    "ordinal_mae",
    "pinball",
    "poisson_deviance",
    "precision",
    "precision_recall_curve",
    "predicted_classes",
    "predicted_ranks",
    "r2",
    "recall",
    "reliability",
    "residual_sum_of_squares",
    "rmse",
    "roc_auc",
    "roc_curve",
    "subset_accuracy",
    "top_k_accuracy",
    "top_k_error",
]

Metric = Callable[[Any, Any], Any]  # of an output and a target
# A metric or several, by their names, as functions, or as functions with names of their own.
MetricsLike = str | Metric | Iterable[str | Metric] | Mapping[str, Metric]

METRICS: dict[str, Metric] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "error_rate": error_rate,
    "top_5_accuracy": top_k_accuracy,
    "top_5_error": top_k_error,
    "precision": precision,
    "recall": recall,
    "f1": f1,
    "roc_auc": roc_auc,
    "average_precision": average_precision,
    "nll": nll,
    "calibration_error": calibration_error,
    "mse": mse,
    "rmse": rmse,
    "mae": mae,
    "r2": r2,
    "max_error": max_error,
    "hamming_loss": hamming_loss,
    "subset_accuracy": subset_accuracy,
    "label_f1": label_f1,
    "d2_poisson": d2_poisson,
    "d2_poisson_log": d2_poisson_log,
    "coverage": coverage,
    "ordinal_accuracy": ordinal_accuracy,
    "ordinal_mae": ordinal_mae,
}


# Those that have to know what a score is, and the ones of them that cut it.
_READ_SCORES = (nll, calibration_error)
_CUT_SCORES = (
    accuracy,
    balanced_accuracy,
    error_rate,
    precision,
    recall,
    f1,
    hamming_loss,
    subset_accuracy,
    label_f1,
)


def metric_functions(given: MetricsLike, scores: Scores | None = None) -> dict[str, Metric]:
    """Metrics by name, from names, functions, or a dictionary of functions.

    ``scores`` says to those of this module what the outputs are: see accuracy.
    """
    named = dict(given) if isinstance(given, Mapping) else _named(given)
    return {name: _told(metric, scores) for name, metric in named.items()}


def _told(metric: Metric, scores: Scores | None) -> Metric:
    takes = metric in _CUT_SCORES or (metric in _READ_SCORES and scores != "labels")
    if scores is None or not takes:
        return metric
    told: Callable[..., Any] = metric
    return functools.partial(told, scores=scores)


def _named(given: str | Metric | Iterable[str | Metric]) -> dict[str, Metric]:
    named: dict[str, Metric] = {}
    for metric in [given] if isinstance(given, str) or callable(given) else given:
        if isinstance(metric, str):
            if metric not in METRICS:
                raise ValueError(
                    f"metrics: unknown name {metric!r}; select from {sorted(METRICS)}, or pass a "
                    "function metric(output, target)"
                )
            named[metric] = METRICS[metric]
        elif callable(metric):
            named[getattr(metric, "__name__", type(metric).__name__)] = metric
        else:
            raise TypeError(f"metrics: expected names or functions, got {type(metric).__name__}")
    return named
