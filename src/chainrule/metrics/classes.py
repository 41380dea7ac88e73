"""Measures of predicted classes: accuracies, the confusion matrix, precision and recall."""

from __future__ import annotations

from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.creation.patterns import arange
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor
from chainrule.metrics.labels import Scores, classes_of, nan_of_nan, values_of
from chainrule.typing import ArrayLike

__all__ = [
    "accuracy",
    "balanced_accuracy",
    "confusion_matrix",
    "error_rate",
    "f1",
    "precision",
    "recall",
    "top_k_accuracy",
    "top_k_error",
]


@nan_of_nan
def accuracy(output: ArrayLike, target: ArrayLike, *, scores: Scores | None = None) -> float:
    """The fraction of samples whose class is predicted right.

    Args:
        output: scores (N, K); one score for two classes (N, 1) or (N,); or predicted labels
            (integers).
        target: class indices, one-hot rows, or -1 and +1 for two classes.
        scores: what one score for two classes is: "logits", cut at 0; "probabilities", cut at 0.5;
            "labels", estimates of the labels, cut halfway between them. Without it, scores that all
            lie in [0, 1] are probabilities and others logits. A Trainer takes it from the loss.

    NaN if an output is NaN, as of all measures that are one number.

    >>> from chainrule import tensor
    >>> accuracy(tensor([[0.0, 1.0], [2.0, 1.0]]), tensor([1, 1]))
    0.5
    >>> accuracy(tensor([0.2, 0.7, 0.9, 0.4]), tensor([-1, 1, 1, -1]), scores="probabilities")
    1.0
    """
    predicted, true = classes_of("accuracy", output, target, scores)
    return float(predicted.eq(true).double().mean())


def error_rate(output: ArrayLike, target: ArrayLike, *, scores: Scores | None = None) -> float:
    """1 - accuracy."""
    return 1 - accuracy(output, target, scores=scores)


@nan_of_nan
def top_k_accuracy(output: ArrayLike, target: ArrayLike, k: int = 5) -> float:
    """The fraction of samples whose class is among the k largest scores.

    A score equal to that of the true class counts as larger only if its class comes later, as in
    scikit-learn.
    """
    scores = values_of("top_k_accuracy", "output", output)
    true = values_of("top_k_accuracy", "target", target).reshape(-1)
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
    output: ArrayLike,
    target: ArrayLike,
    num_classes: int | None = None,
    *,
    scores: Scores | None = None,
) -> Tensor:
    """Counts: the entry [i, j] is how many samples of class i were taken for class j.

    ``scores``: see accuracy. Labels -1 and +1 are the classes 0 and 1.

    >>> from chainrule import tensor
    >>> confusion_matrix(tensor([0, 1, 1]), tensor([0, 0, 1]))
    tensor([[1, 1],
            [0, 1]])
    """
    predicted, true = classes_of("confusion_matrix", output, target, scores)
    wide = as_tensor(output)
    known = int(wide.shape[1]) if wide.ndim == 2 and wide.dtype.is_floating_point else 0
    known = 2 if wide.dtype.is_floating_point and known < 2 else known
    k = num_classes or max(int(true.max()) + 1, int(predicted.max()) + 1, known)
    used = (int(min(true.min(), predicted.min())), int(max(true.max(), predicted.max())))
    if used[0] < 0 or used[1] >= k:
        raise ValueError(
            f"confusion_matrix: class indices must lie in [0, {k}), got {used[0]} to {used[1]}"
        )
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


def _counts(
    output: ArrayLike, target: ArrayLike, scores: Scores | None
) -> tuple[Tensor, Tensor, Tensor]:
    """For each class: how often rightly predicted, how often predicted, how often true."""
    matrix = confusion_matrix(output, target, scores=scores).double()
    return matrix.diagonal(), matrix.sum(dim=0), matrix.sum(dim=1)


def _default(average: str, support: Tensor) -> str:
    return ("binary" if support.shape[0] == 2 else "macro") if average == "auto" else average


@nan_of_nan
def precision(
    output: ArrayLike,
    target: ArrayLike,
    average: str | None = "auto",
    *,
    scores: Scores | None = None,
) -> float | Tensor:
    """Of the samples predicted as a class, the fraction that are of it.

    ``average``: "binary" (of class 1; the default for two classes), "macro" (the default for more),
    "weighted", "micro", or None for the numbers of all classes. ``scores``: see accuracy.
    """
    hits, predicted, true = _counts(output, target, scores)
    return _averaged("precision", hits, predicted, true, average and _default(average, true))


@nan_of_nan
def recall(
    output: ArrayLike,
    target: ArrayLike,
    average: str | None = "auto",
    *,
    scores: Scores | None = None,
) -> float | Tensor:
    """Of the samples of a class, the fraction predicted as it.

    ``average``, ``scores``: see precision.
    """
    hits, predicted, true = _counts(output, target, scores)
    average = average and _default(average, true)
    if average == "macro":  # a class that was only predicted counts, with recall 0
        each = where(true > 0, hits / true.clamp(min=1e-300), 0.0)
        return float(each[(true > 0) | (predicted > 0)].mean())
    return _averaged("recall", hits, true, true, average)


@nan_of_nan
def f1(
    output: ArrayLike,
    target: ArrayLike,
    average: str | None = "auto",
    *,
    scores: Scores | None = None,
) -> float | Tensor:
    """The harmonic mean of precision and recall. ``average``, ``scores``: see precision."""
    hits, predicted, true = _counts(output, target, scores)
    return _averaged("f1", 2 * hits, predicted + true, true, average and _default(average, true))


@nan_of_nan
def balanced_accuracy(
    output: ArrayLike, target: ArrayLike, *, scores: Scores | None = None
) -> float:
    """The mean recall of the classes that occur. ``scores``: see accuracy."""
    hits, _, true = _counts(output, target, scores)
    return float((hits[true > 0] / true[true > 0]).mean())
