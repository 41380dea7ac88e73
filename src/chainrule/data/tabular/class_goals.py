"""Goals that are classes: one of several, one in an order, several at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from chainrule import nn
from chainrule.backend import dtypes
from chainrule.data.columns import NUMBER, Column, TableError
from chainrule.data.preprocess import saved
from chainrule.data.tabular.goals import Goal, Wanted, one_of, refuse_constant, saved_names
from chainrule.data.tabular.labels import is_yes_or_no, label_rows, truths
from chainrule.data.tabular.scales import known_order
from chainrule.data.tabular.shared import places, quoted
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import ones, zeros
from chainrule.ops.elementwise.functions import sigmoid
from chainrule.ops.layers.softmax import softmax
from chainrule.ops.reduce.scan import cummin
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor

__all__ = ["Classes", "Labels", "Ranks"]


class Classes(Goal):
    """One of several classes: indices (N,), a logit for each."""

    task, metric = "classification", "accuracy"

    @classmethod
    def fitted(cls, columns: Sequence[Column], wanted: Wanted) -> Self:
        column = one_of(columns, cls.task)
        if wanted.classes is None:
            refuse_constant(column)
        return cls([column.name], wanted.classes or in_order(column))

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Self:
        names, classes = saved_names(state)
        if len(classes) < 2:
            raise ValueError(f"TargetEncoder: {cls.task} has two classes or more, got {classes}")
        return cls(names, classes)

    @property
    def loss(self) -> str | nn.Module:
        return "cross_entropy"

    def encode(self, columns: Sequence[Column]) -> Tensor:
        (column,) = columns
        text = column.as_category()
        unknown = sorted(set(text.counts()).difference(self.classes))
        if unknown:
            raise TableError(
                f"the target {column.name!r} has classes that were not in training: "
                f"{quoted(unknown)}"
            )
        return places(text, self.classes)

    def predicted(self, output: Tensor) -> Tensor:
        return output.argmax(1)

    def decode(self, output: Tensor) -> list[Any]:
        return [self.classes[i] for i in self.predicted(output).tolist()]

    def probabilities(self, output: Tensor) -> Tensor:
        return softmax(output, 1)


def in_order(column: Column) -> list[str]:
    """The classes of a column in order: of numbers if all are, else of text."""
    different = sorted(column.as_category().counts())
    try:
        return sorted(different, key=float)
    except ValueError:
        return different


MANY_RANKS = 100


class Ranks(Classes):
    """One of several classes that have an order: indices (N,), a logit of P(y > k) for each cut."""

    task, metric = "ordinal", "ordinal_mae"

    @classmethod
    def fitted(cls, columns: Sequence[Column], wanted: Wanted) -> Self:
        column = one_of(columns, cls.task)
        if wanted.classes is not None:
            return super().fitted(columns, wanted)
        different = len(column.counts())
        if different > MANY_RANKS:
            raise TableError(
                f"the target {column.name!r} has {different} different values, too many for ranks "
                f"(at most {MANY_RANKS}); use regression"
            )
        if column.kind != NUMBER:
            column.refuse_mixed()
            order = list(map(str, column.words)) if column.ordered else known_order(column.counts())
            if order is not None:
                return cls([column.name], order)
            raise TableError(
                f"the target {column.name!r} is text, whose order is not known: name its values "
                f"from the lowest to the highest ({quoted(in_order(column)[:6])}), by --levels or "
                "classes=[...]"
            )
        return super().fitted(columns, wanted)

    @property
    def outputs(self) -> int:
        return len(self.classes) - 1

    @property
    def loss(self) -> str | nn.Module:
        return nn.OrdinalLoss()

    def predicted(self, output: Tensor) -> Tensor:
        return cast(output > 0, dtypes.int64).cumprod(1).sum(1)

    def probabilities(self, output: Tensor) -> Tensor:
        """Differences of P(y > k), which is made to fall: the least of the cuts up to k."""
        above = cummin(sigmoid(output), 1)[0]
        edge = (output.shape[0], 1)
        ends = [ones(edge, dtype=above.dtype), above, zeros(edge, dtype=above.dtype)]
        steps = cat(ends, 1)
        return steps[:, :-1] - steps[:, 1:]


class Labels(Goal):
    """Several labels at once: truths (N, L) as 0 and 1, a logit for each.

    They stand in one column as lists ("red;blue"), or in a column of 0 and 1 for each.
    """

    task, metric = "multilabel", "label_f1"

    def __init__(self, names: Sequence[str], classes: Sequence[str], separator: str = ""):
        super().__init__(names, classes)
        self.separator = separator  # none: each label has a column

    @classmethod
    def fitted(cls, columns: Sequence[Column], wanted: Wanted) -> Self:
        names = [c.name for c in columns]
        if len(columns) == 1:
            separator, rows = label_rows(columns[0])
            found = sorted({label for row in rows for label in row})
            if not found or all(len(row) == len(found) for row in rows):
                raise TableError(
                    f"the target {columns[0].name!r} has the same labels in all "
                    f"{len(columns[0])} rows: there is nothing to learn"
                )
            return cls(names, wanted.classes or found, separator)
        for column in columns:
            if not is_yes_or_no(column):
                raise TableError(
                    f"the target {column.name!r} holds more than 0 and 1; several targets for "
                    "multilabel are columns of 0 and 1"
                )
            if wanted.classes is None:
                refuse_constant(column)
        return cls(names, names)

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Self:
        (separator,) = saved("TargetEncoder", state, separator="text")
        names, classes = saved_names(state)
        if not classes or (separator and len(names) != 1) or (not separator and names != classes):
            raise ValueError("TargetEncoder: the labels of the saved state fit no columns")
        return cls(names, classes, separator)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "separator": self.separator}

    @property
    def loss(self) -> str | nn.Module:
        return "bce_with_logits"

    def encode(self, columns: Sequence[Column]) -> Tensor:
        if not self.separator:
            return stack([truths(c) for c in columns], 1)
        (column,) = columns
        _, rows = label_rows(column, self.separator)
        unknown = sorted({label for row in rows for label in row}.difference(self.classes))
        if unknown:
            raise TableError(
                f"the target {column.name!r} has labels that were not in training: "
                f"{quoted(unknown)}"
            )
        kind = dtypes.get_default_dtype()
        return tensor([[float(c in row) for c in self.classes] for row in rows], dtype=kind)

    def predicted(self, output: Tensor) -> Tensor:
        return cast(output > 0, dtypes.int64)

    def decode(self, output: Tensor) -> list[Any]:
        chosen = self.predicted(output).tolist()
        if not self.separator:
            return chosen
        return [
            self.separator.join(c for c, yes in zip(self.classes, row, strict=True) if yes)
            for row in chosen
        ]

    def probabilities(self, output: Tensor) -> Tensor:
        return sigmoid(output)
