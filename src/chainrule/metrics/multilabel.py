"""Measures of predicted labels where a sample may have several, or none.

Outputs (N, L) are scores, one column for each label, or predicted labels (integers or truth
values); targets (N, L) are 0 and 1.
"""

from __future__ import annotations

from chainrule.metrics.labels import Scores, nan_of_nan, values_of
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = ["hamming_loss", "label_f1", "subset_accuracy"]

AVERAGES = ("micro", "macro", "samples")


@nan_of_nan
def hamming_loss(output: ArrayLike, target: ArrayLike, *, scores: Scores | None = None) -> float:
    """The fraction of labels that are wrong, over all samples and labels.

    ``scores`` says whether the outputs are "logits", cut at 0, or "probabilities", cut at 0.5;
    without it scores that all lie in [0, 1] are probabilities.

    >>> from chainrule import tensor
    >>> hamming_loss(tensor([[2.0, -1.0], [3.0, 1.0]]), tensor([[1, 1], [1, 1]]))
    0.25
    """
    given, true = labels_of("hamming_loss", output, target, scores)
    return float((given != true).double().mean())


@nan_of_nan
def subset_accuracy(output: ArrayLike, target: ArrayLike, *, scores: Scores | None = None) -> float:
    """The fraction of samples all of whose labels are right."""
    given, true = labels_of("subset_accuracy", output, target, scores)
    return float((given == true).all(dim=1).double().mean())


@nan_of_nan
def label_f1(
    output: ArrayLike,
    target: ArrayLike,
    average: str = "micro",
    *,
    scores: Scores | None = None,
) -> float:
    """F1 of the labels: 2 TP / (2 TP + FP + FN), 0 where there is none of all.

    Args:
        average: "micro" counts all labels together; "macro" is the mean over the labels, "samples"
            that over the samples.
    """
    if average not in AVERAGES:
        raise ValueError(f"label_f1: average must be one of {AVERAGES}, got {average!r}")
    given, true = labels_of("label_f1", output, target, scores)
    hits, both = (given & true).double(), given.double() + true.double()
    if average == "micro":
        hits, both = hits.sum().reshape(1), both.sum().reshape(1)
    else:
        dim = 0 if average == "macro" else 1
        hits, both = hits.sum(dim), both.sum(dim)
    return float(where(both > 0, 2 * hits / where(both > 0, both, 1.0), 0.0).mean())


def labels_of(
    name: str, output: ArrayLike, target: ArrayLike, scores: Scores | None = None
) -> tuple[Tensor, Tensor]:
    """The predicted and the true labels (N, L) as truth values, after checks."""
    values, labels = values_of(name, "output", output), values_of(name, "target", target)
    if values.ndim != 2 or values.shape != labels.shape or values.numel() == 0:
        raise ValueError(
            f"{name}: expected outputs and targets of one shape (N, L), got {tuple(values.shape)} "
            f"and {tuple(labels.shape)}"
        )
    for what, given in (("target", labels), ("output", values)):
        whole = what == "target" or not values.dtype.is_floating_point
        if whole and not bool(((given == 0) | (given == 1)).all()):
            raise ValueError(f"{name}: the labels of the {what} must be 0 and 1")
    if not values.dtype.is_floating_point:
        return values == 1, labels == 1
    possible = bool(((values >= 0) & (values <= 1)).all())
    if scores == "probabilities" and not possible:
        raise ValueError(f"{name}: probabilities lie in [0, 1]; for others say scores='logits'")
    if scores not in (None, "logits", "probabilities"):
        raise ValueError(
            f"{name}: scores must be 'logits', 'probabilities' or None, got {scores!r}"
        )
    cut = 0.0 if scores == "logits" or (scores is None and not possible) else 0.5
    return values > cut, labels == 1
