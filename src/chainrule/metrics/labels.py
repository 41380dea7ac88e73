"""Which class an output names, and which one a target: what outputs and labels may look like.

A classifier puts out scores, one column for each class (logits or probabilities), or one score for
two classes. Labels are class indices, rows with one entry for each class (one-hot, or
probabilities), or -1 and +1 for two classes. Outputs that are integers are predicted labels.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar, cast as typed

from chainrule.backend import dtypes
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import as_tensor
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = [
    "Scores",
    "are_probabilities",
    "classes_of",
    "nan_of_nan",
    "predicted_classes",
    "values_of",
]

M = TypeVar("M", bound=Callable[..., Any])

# What outputs with a point are: arguments of a sigmoid or softmax, its values, or estimates of the
# labels themselves (of a network fitted to them by least squares).
Scores: TypeAlias = Literal["logits", "probabilities", "labels"]


def values_of(name: str, what: str, given: ArrayLike) -> Tensor:
    """An output or a target as a tensor without a graph; ``name`` is for messages."""
    several = isinstance(given, dict) or (
        isinstance(given, (tuple, list)) and any(isinstance(p, Tensor) and p.ndim for p in given)
    )
    if several:
        raise TypeError(
            f"{name}: the {what} is a {type(given).__name__} of several tensors, and which one is "
            f'meant is not known; give a function, such as metrics={{"{name}": lambda output, '
            f"target: {name}(output[0], target)}}"
        )
    return as_tensor(given).detach()


def nan_of_nan(measure: M) -> M:
    """Has a number that measures outputs be NaN where one of them is: it names no class.

    A training whose outputs become NaN thus shows NaN beside its loss and goes on to say why.
    """

    @functools.wraps(measure)
    def measured(output: ArrayLike, target: ArrayLike, *args: Any, **options: Any) -> Any:
        if _has_nan(values_of(measure.__name__, "output", output)):
            return math.nan
        return measure(output, target, *args, **options)

    return typed(M, measured)


def _has_nan(values: Tensor) -> bool:
    return values.dtype.is_floating_point and bool(values.isnan().any())


def predicted_classes(output: ArrayLike, scores: Scores | None = None) -> Tensor:
    """The class that each output names: its largest score; or for one score, whether it is high.

    One score for two classes names class 1 where it is positive, if it is a logit, and where it is
    above one half, if it is a probability. Which of the two ``scores`` says; without it scores that
    all lie in [0, 1] are probabilities.

    >>> from chainrule import tensor
    >>> predicted_classes(tensor([[0.1, 2.0, 0.3], [1.0, 0.0, 0.0]]))
    tensor([1, 0])
    >>> predicted_classes(tensor([0.1, 0.9])), predicted_classes(tensor([0.1, -0.9]))
    (tensor([0, 1]), tensor([1, 0]))
    """
    values = values_of("predicted_classes", "output", output)
    return _predicted("predicted_classes", values, scores, None)


def classes_of(
    name: str, output: ArrayLike, target: ArrayLike, scores: Scores | None = None
) -> tuple[Tensor, Tensor]:
    """The predicted and the true class of each sample, after checks; ``name`` is for messages."""
    values, labels = values_of(name, "output", output), values_of(name, "target", target)
    if not values.dtype.is_floating_point:
        predicted, true = _as_given(name, cast(_column(values), dtypes.int64), labels)
    else:
        true, coding = _true(name, labels, _columns(name, values))
        predicted = _predicted(name, values, scores, coding)
    if predicted.shape != true.shape or true.numel() == 0:
        raise ValueError(
            f"{name}: expected predictions and targets of one length, at least one, got "
            f"{tuple(values.shape)} and {tuple(labels.shape)}"
        )
    return predicted, true


def are_probabilities(scores: Tensor) -> bool:
    """Whether all scores can be probabilities: in [0, 1], and several of a row summing to 1."""
    outside = (scores < 0) | (scores > 1)
    if bool(outside.any()):
        return False
    if scores.ndim < 2 or scores.shape[1] == 1:
        return True
    return bool(((scores.double().sum(dim=1) - 1).abs() < 1e-5).all())


# --- outputs --------------------------------------------------------------------------------------

_Coding: TypeAlias = Literal["0/1", "-1/+1", "1"]  # of two classes; "1" where only that was seen


def _column(values: Tensor) -> Tensor:
    return values.reshape(-1) if values.ndim == 2 and values.shape[1] == 1 else values


def _columns(name: str, values: Tensor) -> int:
    """How many scores a sample has."""
    if values.ndim == 2:
        return int(values.shape[1])
    if values.ndim > 2 and values.numel() != values.shape[0]:
        raise ValueError(
            f"{name}: expected scores of shape (N, K), (N, 1) or (N,), got {tuple(values.shape)}; "
            "bring the classes to the last axis and flatten the others"
        )
    return 1


def _predicted(name: str, values: Tensor, scores: Scores | None, coding: _Coding | None) -> Tensor:
    if scores not in (None, "logits", "probabilities", "labels"):
        raise ValueError(
            f"{name}: scores must be 'logits', 'probabilities', 'labels' or None, got {scores!r}"
        )
    if not values.dtype.is_floating_point:
        return cast(_column(values), dtypes.int64)
    if _has_nan(values):
        raise ValueError(
            f"{name}: outputs that are NaN name no class; drop these samples, or find where the "
            "NaN comes from with inspect.autopsy"
        )
    if _columns(name, values) > 1:
        return values.argmax(dim=1)
    column = values.reshape(-1)
    return cast(column > _cut(name, column, scores, coding), dtypes.int64)


def _cut(name: str, column: Tensor, scores: Scores | None, coding: _Coding | None) -> float:
    """Above which score the class is 1."""
    possible = are_probabilities(column)
    if scores == "probabilities" and not possible:
        raise ValueError(
            f"{name}: probabilities lie in [0, 1], got scores from {float(column.min()):.4g} to "
            f"{float(column.max()):.4g}; for others say scores='logits'"
        )
    if scores == "logits" or (scores is None and not possible):
        return 0.0
    if scores == "labels" and coding in ("0/1", "-1/+1"):
        return 0.5 if coding == "0/1" else 0.0
    unclear = scores == "labels" or (scores is None and coding == "-1/+1")
    if unclear and bool(((column > 0) & (column <= 0.5)).any()):
        seen = {"1": "+1 alone", "-1/+1": "-1 and +1"}.get(coding or "", "unknown coding")
        raise ValueError(
            f"{name}: scores between 0 and one half beside labels of {seen} can be read in two "
            "ways; say scores='probabilities' to cut them at 0.5, or scores='logits' to cut at 0"
        )
    return 0.5


# --- targets --------------------------------------------------------------------------------------


def _true(name: str, labels: Tensor, columns: int) -> tuple[Tensor, _Coding | None]:
    """Class indices, and for one score how the two classes were written."""
    if labels.ndim == 2 and labels.shape[1] > 1:
        if int(labels.shape[1]) != max(2, columns):
            raise ValueError(
                f"{name}: rows of {columns} scores and targets of {labels.shape[1]} columns do not "
                "fit together"
            )
        return _largest(name, labels), "0/1"
    true = _whole(name, labels.reshape(-1))
    if true.numel() == 0:
        return true, None
    low, high = int(true.min()), int(true.max())
    if columns <= 2 and low == -1 and bool(((true == -1) | (true == 1)).all()):
        return (true + 1) // 2, "-1/+1"
    classes = max(2, columns)
    if low < 0 or high >= classes:
        two = "0 and 1, or -1 and +1" if classes == 2 else f"0 to {classes - 1}"
        shown = "one score" if columns == 1 else f"{columns} scores"
        raise ValueError(
            f"{name}: the labels of samples with {shown} must be {two}, got labels from {low} to "
            f"{high}; leave out samples without a class, and number the classes from 0"
        )
    return true, "1" if low == 1 else "0/1"


def _largest(name: str, rows: Tensor) -> Tensor:
    """The class of rows with one entry for each class."""
    tied = (rows == rows.max(dim=1, keepdim=True)[0]).sum(dim=1) > 1
    if bool((tied & ((rows.double().sum(dim=1) - 1).abs() > 1e-4)).any()):
        raise ValueError(
            f"{name}: a row of the target of shape {tuple(rows.shape)} names no class or several: "
            "its largest entry occurs twice; for several labels of a sample measure each column"
        )
    return rows.argmax(dim=1)


def _whole(name: str, labels: Tensor) -> Tensor:
    if labels.dtype.is_floating_point:
        odd = (labels != labels.round()) | ~labels.isfinite()
        if bool(odd.any()):
            raise ValueError(
                f"{name}: labels must be whole numbers, got {float(labels[odd][0]):.4g}; a target "
                "that is a probability or another number has no class"
            )
    return cast(labels, dtypes.int64)


def _as_given(name: str, predicted: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Predicted and true labels, those of -1 and +1 as 0 and 1."""
    several = labels.ndim == 2 and labels.shape[1] > 1
    true = _largest(name, labels) if several else _whole(name, labels.reshape(-1))
    if min([int(t.min()) for t in (predicted, true) if t.numel()], default=0) != -1:
        return predicted, true
    seen = set(predicted.tolist()) | set(true.tolist())
    if not seen <= {-1, 0, 1}:
        return predicted, true
    if 0 in seen:
        raise ValueError(
            f"{name}: predictions {sorted(set(predicted.tolist()))} and targets "
            f"{sorted(set(true.tolist()))} mix labels 0 and 1 with labels -1 and +1; write both in "
            "one way"
        )
    return (predicted + 1) // 2, (true + 1) // 2
