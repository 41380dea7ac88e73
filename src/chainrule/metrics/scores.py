"""Measures of the scores themselves: their order, their likelihood, their calibration."""

from __future__ import annotations

import functools
import operator
from typing import NamedTuple

from chainrule.backend import dtypes
from chainrule.nn.functional import softplus
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.elementwise.logic import where
from chainrule.ops.layers.softmax import log_softmax, softmax
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.metrics.labels import (
    Scores,
    are_probabilities,
    classes_of,
    nan_of_nan,
    values_of,
)
from chainrule.typing import ArrayLike

__all__ = [
    "Reliability",
    "binned",
    "calibration_error",
    "nll",
    "probabilities",
    "reliability",
    "roc_auc",
]


@nan_of_nan
def roc_auc(output: ArrayLike, target: ArrayLike) -> float:
    """The probability that a sample of class 1 gets a higher score than one of class 0.

    Ties count half. For more classes: the mean over the classes, each against the rest.
    """
    scores = values_of("roc_auc", "output", output).double()
    _, true = classes_of("roc_auc", scores, target, "logits")  # where they are cut is no matter
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


def _are_probabilities(name: str, scores: Tensor, kind: Scores | None) -> bool:
    """Whether to take scores (N, K) as probabilities, else as logits."""
    if scores.ndim > 2:
        raise ValueError(f"{name}: expected scores (N, K), got {tuple(scores.shape)}")
    if kind not in (None, "logits", "probabilities"):
        raise ValueError(f"{name}: scores must be 'logits' or 'probabilities', got {kind!r}")
    if kind == "probabilities" and not are_probabilities(scores):
        raise ValueError(
            f"{name}: probabilities lie in [0, 1] and sum to 1 in each row; for others say "
            "scores='logits'"
        )
    return kind == "probabilities" or (kind is None and are_probabilities(scores))


@nan_of_nan
def nll(output: ArrayLike, target: ArrayLike, *, scores: Scores | None = None) -> float:
    """The mean negative logarithm of the probability of the true class.

    Args:
        output: scores (N, K), or one score for two classes.
        target: see accuracy.
        scores: "logits" or "probabilities". Without it, scores in [0, 1] whose rows sum to 1, if
            there are several in a row, are probabilities.

    >>> from chainrule import tensor
    >>> nll(tensor([-800.0, 800.0]), tensor([1, 1]))
    400.0
    """
    given = values_of("nll", "output", output).double()
    _, true = classes_of("nll", output, target, scores)
    plain = _are_probabilities("nll", given, scores)
    if given.ndim == 1 or given.shape[1] == 1:
        column, positive = given.reshape(-1), true.eq(1)
        if plain:
            return float(-where(positive, column, 1 - column).log().mean())
        return float(softplus(where(positive, -column, column)).mean())
    logs = given.log() if plain else log_softmax(given, 1)
    return float(-logs.gather(1, true.reshape(-1, 1)).mean())


@nan_of_nan
def calibration_error(
    output: ArrayLike, target: ArrayLike, bins: int = 15, *, scores: Scores | None = None
) -> float:
    """The expected calibration error: sum over bins of n_b/N |accuracy_b - confidence_b|.

    The bins divide [0, 1], the confidence of the predicted class; Guo et al., 2017. Takes
    probabilities or logits; ``scores``: see nll.
    """
    found = reliability(output, target, bins, scores=scores)
    gap = (found.hits - found.confidences).abs() * found.counts
    return float(gap[found.counts > 0].sum() / found.counts.sum())


class Reliability(NamedTuple):
    """How often predictions of about one confidence are right: for each bin the mean confidence,
    the share that is right (both NaN in an empty bin), and the number of samples."""

    confidences: Tensor
    hits: Tensor
    counts: Tensor


def reliability(
    output: ArrayLike, target: ArrayLike, bins: int = 15, *, scores: Scores | None = None
) -> Reliability:
    """The reliability curve of the predicted class: confidence against accuracy in equal bins.

    Takes probabilities or logits; ``scores``: see nll.

    >>> from chainrule import tensor
    >>> reliability(tensor([0.9, 0.8, 0.3]), tensor([1, 0, 0]), bins=2).counts
    tensor([0, 3])
    """
    if bins < 1:
        raise ValueError(f"reliability: bins must be positive, got {bins}")
    _, true = classes_of("reliability", output, target, scores)
    p = probabilities("reliability", output, scores)
    confidence, predicted = p.max(dim=1)
    return binned(confidence, (predicted == true).double(), bins)


def binned(confidence: Tensor, hit: Tensor, bins: int) -> Reliability:
    """Means over bins (0, 1/bins], ... of confidences and of what came true."""
    which = cast((confidence * bins).ceil() - 1, dtypes.int64).clamp(0, bins - 1)
    counts = which.bincount(minlength=bins)
    sums = [
        zeros(bins, dtype=dtypes.float64).index_add(0, which, v.double()) for v in (confidence, hit)
    ]
    return Reliability(sums[0] / counts.double(), sums[1] / counts.double(), counts)


def probabilities(name: str, output: ArrayLike, kind: Scores | None) -> Tensor:
    """Scores as probabilities (N, K)."""
    scores = values_of(name, "output", output).double()
    plain = _are_probabilities(name, scores, kind)
    if scores.ndim == 1 or scores.shape[1] == 1:
        p = scores.reshape(-1, 1) if plain else scores.reshape(-1, 1).sigmoid()
        return cat([1 - p, p], 1)
    return scores if plain else softmax(scores, 1)
