"""Curves over all thresholds of a score: receiver operating characteristic, precision and recall.

Points and order are scikit-learn's, with every distinct score kept as a threshold.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import NamedTuple

from chainrule.metrics.labels import classes_of, nan_of_nan, values_of
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = [
    "PrecisionRecallCurve",
    "RocCurve",
    "average_precision",
    "precision_recall_curve",
    "roc_curve",
]


class RocCurve(NamedTuple):
    """Of the samples below and in class 1 the shares with a score at or above each threshold."""

    false_positive_rate: Tensor
    true_positive_rate: Tensor
    thresholds: Tensor  # falling, from inf


class PrecisionRecallCurve(NamedTuple):
    """Precision and recall at each threshold, and at the end 1 and 0, which have none."""

    precision: Tensor
    recall: Tensor
    thresholds: Tensor  # rising


def roc_curve(output: ArrayLike, target: ArrayLike) -> RocCurve:
    """The shares of false and of true alarms for every threshold of a score of two classes.

    Args:
        output: one score for each sample, (N,) or (N, 1), or scores of two classes (N, 2).
        target: 0 and 1, -1 and +1, or one-hot rows.

    >>> from chainrule import tensor
    >>> curve = roc_curve(tensor([0.1, 0.4, 0.35, 0.8]), tensor([0, 0, 1, 1]))
    >>> curve.true_positive_rate
    tensor([0.0000, 0.5000, 0.5000, 1.0000, 1.0000], dtype=chainrule.float64)
    """
    scores, positive = _two_classes("roc_curve", output, target)
    hits, alarms, thresholds = _counts(scores, positive)
    zero, n1 = tensor([0.0]).double(), float(positive.sum())
    false = (alarms - hits) / (len(scores) - n1)
    above = tensor([math.inf]).double()
    return RocCurve(cat([zero, false]), cat([zero, hits / n1]), cat([above, thresholds]))


def precision_recall_curve(output: ArrayLike, target: ArrayLike) -> PrecisionRecallCurve:
    """Precision and recall of class 1 for every threshold of a score of two classes.

    Args:
        output: one score for each sample, (N,) or (N, 1), or scores of two classes (N, 2).
        target: 0 and 1, -1 and +1, or one-hot rows.
    """
    scores, positive = _two_classes("precision_recall_curve", output, target)
    hits, alarms, thresholds = _counts(scores, positive)
    one, zero = tensor([1.0]).double(), tensor([0.0]).double()
    precision, recall = hits / alarms, hits / float(positive.sum())
    return PrecisionRecallCurve(
        cat([precision.flip(0), one]), cat([recall.flip(0), zero]), thresholds.flip(0)
    )


@nan_of_nan
def average_precision(output: ArrayLike, target: ArrayLike) -> float:
    """The mean of the precisions at all thresholds, each weighted by the recall that it adds.

    For more than two classes: the mean over those that occur, each against the rest.
    """
    scores = values_of("average_precision", "output", output)
    if scores.ndim == 2 and scores.shape[1] > 2:
        _, true = classes_of("average_precision", scores, target)
        present = sorted(set(true.tolist()))
        each = [_average_precision(scores[:, k], true == k) for k in present]
        return functools.reduce(operator.add, each) / len(each)
    return _average_precision(scores, target)


def _average_precision(output: ArrayLike, target: ArrayLike) -> float:
    precision, recall, _ = precision_recall_curve(output, target)
    return float(((recall[:-1] - recall[1:]) * precision[:-1]).sum())


def _two_classes(name: str, output: ArrayLike, target: ArrayLike) -> tuple[Tensor, Tensor]:
    """One score for each sample, and whether it is of class 1."""
    scores = values_of(name, "output", output).double()
    if scores.ndim == 2 and scores.shape[1] > 2:
        raise ValueError(
            f"{name}: {scores.shape[1]} classes have no one curve; take one against the rest, "
            f"{name}(output[:, k], target == k)"
        )
    if not bool(scores.isfinite().all()):
        raise ValueError(f"{name}: scores must be finite; drop the samples that are not")
    _, classes = classes_of(name, scores, target, "logits")  # where they are cut is no matter
    if scores.ndim == 2:
        scores = scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores[:, 0]
    positive = classes.eq(1)
    if bool(positive.all()) or not bool(positive.any()):
        raise ValueError(f"{name}: needs samples of both classes; only one is in the targets")
    return scores.reshape(-1), positive


def _counts(scores: Tensor, positive: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For every distinct score, from the highest down: how many of class 1 and how many in all
    have it or a higher one."""
    order = scores.argsort(descending=True, stable=True)
    ranked, hits = scores[order], positive[order].double().cumsum(0)
    last = cat([ranked[1:] != ranked[:-1], tensor([True])])
    places = last.nonzero().reshape(-1)
    return hits[places], (places + 1).double(), ranked[places]
