"""What a kind of target is for a network, and what all kinds share.

A goal is fitted on the target columns of the training rows. ``encode`` makes the tensor that the
loss compares outputs with; ``decode`` makes predictions of outputs (N, ``outputs``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from chainrule import nn
from chainrule.data.columns import Column, TableError
from chainrule.data.preprocess import saved
from chainrule.data.tabular.shared import is_constant, quoted
from chainrule.tensor import Tensor

__all__ = ["Goal", "Wanted", "one_of", "refuse_constant", "saved_names"]


class Goal:
    """The base class: names of the columns, and the classes, where there are any."""

    task: ClassVar[str]
    metric: ClassVar[str]  # of chainrule.metrics

    def __init__(self, names: Sequence[str], classes: Sequence[str] = ()):
        self.names, self.classes = list(names), list(classes)

    @classmethod
    def fitted(cls, columns: Sequence[Column], wanted: Wanted) -> Self:
        """The goal of these columns."""
        raise NotImplementedError

    @property
    def outputs(self) -> int:
        """How many outputs a network needs."""
        return len(self.classes)

    @property
    def loss(self) -> str | nn.Module:
        """The loss of outputs and encoded targets: a name that a Trainer knows, or a module."""
        raise NotImplementedError

    def encode(self, columns: Sequence[Column]) -> Tensor:
        """The targets as the loss takes them."""
        raise NotImplementedError

    def predicted(self, output: Tensor) -> Tensor:
        """What outputs (N, ``outputs``) predict, in numbers: of classes, truths, or values."""
        raise NotImplementedError

    def decode(self, output: Tensor) -> list[Any]:
        """What outputs (N, ``outputs``) predict, for each row."""
        raise NotImplementedError

    def probabilities(self, output: Tensor) -> Tensor:
        """The probability of each class or label, from outputs."""
        raise ValueError(f"predict_proba: a network for {self.task} predicts numbers, not classes")

    def state(self) -> dict[str, Any]:
        """What is saved."""
        return {"names": self.names, "classes": self.classes}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Self:
        """From what was saved, after checks."""
        return cls(*saved_names(state))


def saved_names(state: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Names of columns and classes that were saved, after checks."""
    names, classes = saved("TargetEncoder", state, names="texts", classes="texts")
    if not names:
        raise ValueError("TargetEncoder: the saved state names no column")
    if len(set(classes)) < len(classes):
        raise ValueError("TargetEncoder: the saved state has a class twice")
    return names, classes


class Wanted:
    """What was asked for beside the task: classes in their order, quantiles.

    ``marks`` are the decimal marks of columns that were numbers in words, where these were read
    before.
    """

    marks: Sequence[str] = ()

    def __init__(self, classes: Sequence[str] | None, quantiles: Sequence[float]):
        self.classes = None if classes is None else [str(c) for c in classes]
        self.quantiles = [float(q) for q in quantiles]


def one_of(columns: Sequence[Column], task: str) -> Column:
    """The one column of a target that cannot be several."""
    if len(columns) != 1:
        raise TableError(
            f"{task} has one target, got {quoted([c.name for c in columns])}; several targets are "
            "for regression (numbers) or multilabel (0 and 1); train a network for each of others"
        )
    return columns[0]


def refuse_constant(column: Column) -> None:
    """An error if there is nothing to learn."""
    if is_constant(column):
        raise TableError(
            f"the target {column.name!r} is constant ({column.take([0]).values[0]!r} in all "
            f"{len(column)} rows): there is nothing to learn"
        )
