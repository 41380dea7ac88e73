"""Measures of how good predictions are. All are functions of (output, target).

Outputs of classifiers are scores, one column for each class (logits or probabilities), or one
column or vector of scores for two classes, where a positive logit means class 1. Where predicted
labels are at hand (integers), they are taken as they are.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from chainrule.backend import dtypes
from chainrule.ops.creation.patterns import arange, zeros
from chainrule.ops.elementwise.logic import where
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.shape.stacking import cat
from chainrule.ops.layers.softmax import log_softmax, softmax
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = [
    "METRICS",
    "accuracy",
    "balanced_accuracy",
    "calibration_error",
    "confusion_matrix",
    "error_rate",
    "explained_sum_of_squares",
    "f1",
    "mae",
    "max_error",
    "metric_functions",
    "mse",
    "nll",
    "precision",
    "predicted_classes",
    "r2",
    "recall",
    "residual_sum_of_squares",
    "rmse",
    "roc_auc",
    "top_k_accuracy",
    "top_k_error",
]

Metric = Callable[[Any, Any], Any]  # of an output and a target
# A metric or several, by their names, as functions, or as functions with names of their own.
MetricsLike = str | Metric | Iterable[str | Metric] | Mapping[str, Metric]

# --- classes --------------------------------------------------------------------------------------


def predicted_classes(output: ArrayLike) -> Tensor:
    """The class that each output names: its largest score, or for one score whether it is positive.

    >>> from chainrule import tensor
    >>> predicted_classes(tensor([[0.1, 2.0, 0.3], [1.0, 0.0, 0.0]]))
    tensor([1, 0])
    """
    output = as_tensor(output).detach()
    if not output.dtype.is_floating_point:
        return cast(output, dtypes.int64)
    if output.ndim == 2 and output.shape[1] > 1:
        return output.argmax(dim=1)
    return cast(output.reshape(-1) > 0, dtypes.int64)


def _classes(name: str, output: ArrayLike, target: ArrayLike) -> tuple[Tensor, Tensor]:
    """Predicted and true class indices, after checks."""
    predicted, true = predicted_classes(output), as_tensor(target).detach()
    if true.ndim == 2 and true.dtype.is_floating_point and true.shape[1] > 1:
        true = true.argmax(dim=1)  # one-hot, or probabilities
    true = cast(true.reshape(-1), dtypes.int64)
    if predicted.shape != true.shape or true.numel() == 0:
        raise ValueError(
            f"{name}: expected predictions and targets of one length, at least one, got "
            f"{tuple(as_tensor(output).shape)} and {tuple(as_tensor(target).shape)}"
        )
    return predicted, true


def accuracy(output: ArrayLike, target: ArrayLike) -> float:
    """The fraction of samples whose class is predicted right.

    >>> from chainrule import tensor
    >>> accuracy(tensor([[0.0, 1.0], [2.0, 1.0]]), tensor([1, 1]))
    0.5
    """
    predicted, true = _classes("accuracy", output, target)
    return float(predicted.eq(true).double().mean())


def error_rate(output: ArrayLike, target: ArrayLike) -> float:
    """1 - accuracy."""
    return 1 - accuracy(output, target)


def top_k_accuracy(output: ArrayLike, target: ArrayLike, k: int = 5) -> float:
    """The fraction of samples whose class is among the k largest scores.

    A score equal to that of the true class counts as larger only if its class comes later, as in
    scikit-learn.
    """
    scores, true = as_tensor(output).detach(), as_tensor(target).detach().reshape(-1)
    if scores.ndim != 2 or scores.shape[0] != true.shape[0] or not 1 <= k <= scores.shape[1]:
        raise ValueError(
            f"top_k_accuracy: expected scores (N, K) with K >= k = {k} and N targets, got "
            f"{tuple(scores.shape)} and {tuple(true.shape)}"
        )
    own = scores.gather(1, true.reshape(-1, 1))
    later = arange(scores.shape[1]).reshape(1, -1) > true.reshape(-1, 1)
    ahead = (scores > own) | ((scores == own) & later)
    return float((ahead.sum(dim=1) < k).double().mean())


def top_k_error(output: ArrayLike, target: ArrayLike, k: int = 5) -> float:
    """1 - top_k_accuracy."""
    return 1 - top_k_accuracy(output, target, k)


def confusion_matrix(
    output: ArrayLike, target: ArrayLike, num_classes: int | None = None
) -> Tensor:
    """Counts: the entry [i, j] is how many samples of class i were taken for class j.

    >>> from chainrule import tensor
    >>> confusion_matrix(tensor([0, 1, 1]), tensor([0, 0, 1]))
    tensor([[1, 1],
            [0, 1]])
    """
    predicted, true = _classes("confusion_matrix", output, target)
    wide = as_tensor(output)
    known = int(wide.shape[1]) if wide.ndim == 2 and wide.dtype.is_floating_point else 0
    k = num_classes or max(int(true.max()) + 1, int(predicted.max()) + 1, known)
    if int(true.max()) >= k or int(predicted.max()) >= k or int(true.min()) < 0:
        raise ValueError(f"confusion_matrix: class indices must lie in [0, {k})")
    return (true * k + predicted).bincount(minlength=k * k).reshape(k, k)


def _averaged(
    name: str, numerator: Tensor, denominator: Tensor, support: Tensor, average: str | None
) -> float | Tensor:
    """A ratio for each class (0 where there is nothing to divide by), and its average."""
    each = where(denominator > 0, numerator / denominator.clamp(min=1e-300), 0.0)
    if average is None:
        return each
    if average == "binary":
        if each.shape[0] != 2:
            raise ValueError(
                f"{name}: average='binary' is for two classes, got {each.shape[0]}; use 'macro', "
                "'weighted' or 'micro'"
            )
        return float(each[1])
    if average == "macro":
        present = (support > 0) | (denominator > 0)
        return float(each[present].mean())
    if average == "weighted":
        return float((each * support).sum() / support.sum())
    if average == "micro":
        return float(numerator.sum() / denominator.sum())
    raise ValueError(
        f"{name}: average must be 'binary', 'macro', 'weighted', 'micro' or None, got {average!r}"
    )


def _counts(output: ArrayLike, target: ArrayLike) -> tuple[Tensor, Tensor, Tensor]:
    """For each class: how often rightly predicted, how often predicted, how often true."""
    matrix = confusion_matrix(output, target).double()
    return matrix.diagonal(), matrix.sum(dim=0), matrix.sum(dim=1)


def _default(average: str, support: Tensor) -> str:
    return ("binary" if support.shape[0] == 2 else "macro") if average == "auto" else average


def precision(output: ArrayLike, target: ArrayLike, average: str | None = "auto") -> float | Tensor:
    """Of the samples predicted as a class, the fraction that are of it.

    ``average``: "binary" (of class 1; the default for two classes), "macro" (the default for more),
    "weighted", "micro", or None for the numbers of all classes.
    """
    hits, predicted, true = _counts(output, target)
    return _averaged("precision", hits, predicted, true, average and _default(average, true))


def recall(output: ArrayLike, target: ArrayLike, average: str | None = "auto") -> float | Tensor:
    """Of the samples of a class, the fraction predicted as it. ``average``: see precision."""
    hits, predicted, true = _counts(output, target)
    average = average and _default(average, true)
    if average == "macro":  # a class that was only predicted counts, with recall 0
        each = where(true > 0, hits / true.clamp(min=1e-300), 0.0)
        return float(each[(true > 0) | (predicted > 0)].mean())
    return _averaged("recall", hits, true, true, average)


def f1(output: ArrayLike, target: ArrayLike, average: str | None = "auto") -> float | Tensor:
    """The harmonic mean of precision and recall. ``average``: see precision."""
    hits, predicted, true = _counts(output, target)
    return _averaged("f1", 2 * hits, predicted + true, true, average and _default(average, true))


def balanced_accuracy(output: ArrayLike, target: ArrayLike) -> float:
    """The mean recall of the classes that occur."""
    hits, _, true = _counts(output, target)
    return float((hits[true > 0] / true[true > 0]).mean())


# --- scores ---------------------------------------------------------------------------------------


def roc_auc(output: ArrayLike, target: ArrayLike) -> float:
    """The probability that a sample of class 1 gets a higher score than one of class 0.

    Ties count half. For more classes: the mean over the classes, each against the rest.
    """
    scores, true = as_tensor(output).detach().double(), as_tensor(target).detach().reshape(-1)
    if scores.ndim == 2 and scores.shape[1] > 2:
        present = sorted(set(true.tolist()))
        each = [_auc(scores[:, k], true == k) for k in present]
        return functools.reduce(operator.add, each) / len(each)
    if scores.ndim == 2:
        scores = scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores[:, 0]
    return _auc(scores, true.eq(1))


def _auc(scores: Tensor, positive: Tensor) -> float:
    n1 = int(positive.sum())
    n0 = int(positive.numel()) - n1
    if n0 == 0 or n1 == 0:
        raise ValueError("roc_auc: needs samples of both classes; only one is in the targets")
    _, place, counts = scores.unique(return_inverse=True, return_counts=True)
    last = counts.cumsum(dim=0).double()
    rank = (last - (counts.double() - 1) / 2)[place]  # tied scores share the mean of their ranks
    return float((rank[positive].sum() - n1 * (n1 + 1) / 2) / (n0 * n1))


def _probabilities(name: str, output: ArrayLike) -> Tensor:
    """Scores as probabilities (N, K): those that sum to 1 are taken as they are."""
    scores = as_tensor(output).detach().double()
    if scores.ndim == 1 or scores.shape[1] == 1:
        p = scores.reshape(-1, 1)
        if not bool(((p >= 0) & (p <= 1)).all()):
            p = p.sigmoid()
        return cat([1 - p, p], 1)
    if scores.ndim != 2:
        raise ValueError(f"{name}: expected scores (N, K), got {tuple(scores.shape)}")
    total = scores.sum(dim=1)
    if bool((scores >= 0).all()) and bool(((total - 1).abs() < 1e-5).all()):
        return scores
    return softmax(scores, 1)


def nll(output: ArrayLike, target: ArrayLike) -> float:
    """The mean negative logarithm of the probability of the true class; takes logits."""
    scores = as_tensor(output).detach().double()
    _, true = _classes("nll", output, target)
    if scores.ndim == 1 or scores.shape[1] == 1:
        signed = where(true.eq(1), scores.reshape(-1), -scores.reshape(-1))
        return float((-signed.sigmoid().log()).mean())
    return float(-log_softmax(scores, 1).gather(1, true.reshape(-1, 1)).mean())


def calibration_error(output: ArrayLike, target: ArrayLike, bins: int = 15) -> float:
    """The expected calibration error: sum over bins of n_b/N |accuracy_b - confidence_b|.

    The bins divide [0, 1], the confidence of the predicted class; Guo et al., 2017. Takes
    probabilities (rows that sum to 1), or logits.
    """
    if bins < 1:
        raise ValueError(f"calibration_error: bins must be positive, got {bins}")
    _, true = _classes("calibration_error", output, target)
    p = _probabilities("calibration_error", output)
    confidence, predicted = p.max(dim=1)
    hit = (predicted == true).double()
    which = cast((confidence * bins).ceil() - 1, dtypes.int64).clamp(0, bins - 1)
    gap = zeros(bins, dtype=dtypes.float64).index_add(0, which, hit - confidence)
    return float(gap.abs().sum() / true.shape[0])


# --- numbers --------------------------------------------------------------------------------------


def _numbers(name: str, output: ArrayLike, target: ArrayLike) -> tuple[Tensor, Tensor]:
    predicted, true = as_tensor(output).detach().double(), as_tensor(target).detach().double()
    if predicted.shape != true.shape or true.numel() == 0:
        raise ValueError(
            f"{name}: expected predictions and targets of one shape, at least one, got "
            f"{tuple(predicted.shape)} and {tuple(true.shape)}"
        )
    return predicted, true


def mse(output: ArrayLike, target: ArrayLike) -> float:
    """The mean squared error."""
    predicted, true = _numbers("mse", output, target)
    return float(mean((predicted - true) ** 2))


def rmse(output: ArrayLike, target: ArrayLike) -> float:
    """The root of the mean squared error, averaged over several outputs."""
    predicted, true = _numbers("rmse", output, target)
    return float(mean((predicted - true) ** 2, 0).sqrt().mean())


def mae(output: ArrayLike, target: ArrayLike) -> float:
    """The mean absolute error."""
    predicted, true = _numbers("mae", output, target)
    return float((predicted - true).abs().mean())


def max_error(output: ArrayLike, target: ArrayLike) -> float:
    """The largest absolute error."""
    predicted, true = _numbers("max_error", output, target)
    return float((predicted - true).abs().max())


def residual_sum_of_squares(output: ArrayLike, target: ArrayLike) -> float:
    """RSS: the sum of (target - output)^2."""
    predicted, true = _numbers("residual_sum_of_squares", output, target)
    return float(sum((true - predicted) ** 2))


def explained_sum_of_squares(output: ArrayLike, target: ArrayLike) -> float:
    """ESS: the sum of (output - mean target)^2."""
    predicted, true = _numbers("explained_sum_of_squares", output, target)
    return float(sum((predicted - mean(true, 0, keepdim=True)) ** 2))


def r2(output: ArrayLike, target: ArrayLike) -> float:
    """1 - RSS / the sum of (target - mean target)^2, averaged over several outputs."""
    predicted, true = _numbers("r2", output, target)
    predicted, true = (t.reshape(t.shape[0] if t.ndim else 1, -1) for t in (predicted, true))
    rss = sum((true - predicted) ** 2, 0)
    total = sum((true - mean(true, 0, keepdim=True)) ** 2, 0)
    perfect = where(rss == 0, 1.0, 0.0)  # of a constant target: 1 if hit, else 0
    return float(where(total > 0, 1 - rss / where(total > 0, total, 1.0), perfect).mean())


# --- by name --------------------------------------------------------------------------------------

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
    "nll": nll,
    "calibration_error": calibration_error,
    "mse": mse,
    "rmse": rmse,
    "mae": mae,
    "r2": r2,
    "max_error": max_error,
}


def metric_functions(given: MetricsLike) -> dict[str, Metric]:
    """Metrics by name, from names, functions, or a dictionary of functions."""
    if isinstance(given, Mapping):
        return dict(given)
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
