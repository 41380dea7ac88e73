"""Weights of the classes and of the rows of data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chainrule.data import Table, TableError
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.elementwise.logic import isinf
from chainrule.ops.reduce.order import amin
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.tensor import Tensor
from chainrule.train.batches import batches
from chainrule.typing import Labels

__all__ = ["class_weights", "row_weights"]

ClassWeight = str | Mapping[int, float] | Labels | None


def class_weights(given: ClassWeight, loader: Iterable[Any]) -> Tensor | None:
    """The weight of each class index: "balanced" is n / (number of classes * members of the class).

    Args:
        given: "balanced", a list with one weight for each class, a dictionary from class to weight,
            or None.
        loader: the training data, which "balanced" counts.
    """
    if given is None:
        return None
    if isinstance(given, str):
        if given != "balanced":
            raise ValueError(f"class_weight: expected 'balanced' or weights, got {given!r}")
        return _balanced(loader)
    if isinstance(given, Mapping):
        if not given or not all(isinstance(k, int) and k >= 0 for k in given):
            raise ValueError(f"class_weight: keys must be class indices, got {sorted(given)}")
        weights = [float(given.get(k, 1.0)) for k in range(max(given) + 1)]
    elif isinstance(given, (Sequence, Tensor)) or hasattr(given, "__array__"):
        weights = [float(w) for w in given]
    else:
        raise TypeError(
            f"class_weight: expected a list or a dictionary, got {type(given).__name__}"
        )
    if not weights or min(weights) < 0:
        raise ValueError(f"class_weight: weights must not be negative, got {given}")
    return tensor(weights)


def _balanced(loader: Iterable[Any]) -> Tensor:
    counts: dict[int, int] = {}
    for batch in batches(loader):
        if batch.target.dtype.is_floating_point or batch.target.ndim != 1:
            raise ValueError(
                "class_weight: 'balanced' needs targets that are class indices, one for each "
                f"sample, got {batch.target.dtype} of shape {tuple(batch.target.shape)}"
            )
        for k in batch.target.tolist():
            counts[k] = counts.get(k, 0) + 1
    total, classes = sum(counts.values()), len(counts)
    return tensor(
        [total / (classes * counts[k]) if k in counts else 1.0 for k in range(max(counts) + 1)]
    )


def row_weights(table: Table, name: str) -> Tensor:
    """The numbers of the column that says how much each row counts, after checks."""
    column = table[name]
    if column.kind != "number" or column.missing:
        what = f"is missing in {column.missing} rows" if column.missing else "holds text"
        raise TableError(f"column {name!r}, the weights of the rows, {what}")
    numbers = column.numbers
    if bool(any_of(isinf(numbers))) or float(amin(numbers)) < 0:
        raise TableError(f"column {name!r}: weights are finite and not negative")
    if not bool(any_of(numbers > 0)):
        raise TableError(f"column {name!r}: all weights are 0")
    return numbers
