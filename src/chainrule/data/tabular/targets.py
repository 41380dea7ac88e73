"""From target columns to tensors, and from the outputs of a network back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from chainrule import nn
from chainrule.data.columns import NUMBER, Column, TableError
from chainrule.data.preprocess import Fittable, saved
from chainrule.data.table import Table
from chainrule.data.tabular.class_goals import Classes, Labels, Ranks
from chainrule.data.tabular.goals import Goal, Wanted
from chainrule.data.tabular.number_goals import Counts, Numbers, Quantiles, are_quantiles
from chainrule.data.tabular.number_goals import mark_of_target, read_as_numbers
from chainrule.data.tabular.labels import has_label_lists, is_yes_or_no
from chainrule.ops.elementwise.logic import isinf
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.tensor import Tensor

__all__ = ["TASKS", "TargetEncoder", "detect_task"]

FEW = 20  # distinct whole numbers up to which a target is taken for classes
RARE = 3  # members of a class, below which it cannot be split
KINDS: tuple[type[Goal], ...] = (Classes, Numbers, Labels, Counts, Quantiles, Ranks)
GOALS = {kind.task: kind for kind in KINDS}
TASKS = ("auto", *GOALS)
QUANTILES = (0.1, 0.5, 0.9)


def detect_task(target: Column | Table) -> str:
    """The task that a target column, or a table of several, is taken for.

    Text is for "classification", lists of labels ("red;blue") for "multilabel". Numbers, also with
    a currency, percent or thousands ("$1,234"), are classes if they are whole, few (at most 20
    different ones) and repeat (three times each, five on average), else for "regression". Several
    columns are for "multilabel" if all hold 0 and 1, for "regression" if all are numbers.
    """
    columns = [target] if isinstance(target, Column) else list(target)
    read = [c if mark_of_target(c) is None else read_as_numbers(c) for c in columns]
    for column in read:
        column.refuse_mixed()
    if len(columns) > 1:
        return _task_of_several(read)
    (column,) = read
    if column.kind != NUMBER:
        return "multilabel" if has_label_lists(column) else "classification"
    counts = column.counts()
    whole = all(v.is_integer() for v in counts)
    few = len(counts) <= FEW and sum(counts.values()) >= 5 * len(counts)
    if len(counts) > 2 and min(counts.values()) < RARE:  # as counts and measurements have them
        few = False
    return "classification" if whole and few else "regression"


def _task_of_several(columns: Sequence[Column]) -> str:
    if all(is_yes_or_no(c) for c in columns):
        return "multilabel"
    text = [c.name for c in columns if c.kind != NUMBER]
    if text:
        raise TableError(
            f"several targets are numbers, or all 0 and 1, but {text[0]!r} holds text; train a "
            "network for each target that is classes"
        )
    return "regression"


class TargetEncoder(Fittable):
    """Target columns as the numbers that a network learns, and its outputs back.

    ======================  ======================  ===================  ===========================
    task                    encoded                 outputs              predictions
    ======================  ======================  ===================  ===========================
    "classification"        class indices (N,)      a logit per class    classes
    "regression"            standardized (N, m)     m                    numbers
    "multilabel"            0 and 1 (N, L)          a logit per label    lists of labels
    "count"                 in means (N, 1)         log of the mean      expected counts
    "quantile"              standardized (N, 1)     one per quantile     numbers that do not cross
    "ordinal"               ranks (N,)              logits of P(y > k)   classes
    ======================  ======================  ===================  ===========================

    ``loss`` is the loss that fits: a name that a Trainer knows, or a module; ``metric`` the name of
    a metric. ``names`` are those of the columns.

    Args:
        task: one of these, or "auto" (see :func:`detect_task`).
        classes: the classes, labels or ranks in their order; by default those of the training rows.
        quantiles: which quantiles, for the task of that name.

    >>> from chainrule.data import Column
    >>> encoder = TargetEncoder().fit(Column("kind", "category", ["b", "a", "b"]))
    >>> encoder(Column("kind", "category", ["a", "b"])), encoder.classes
    (tensor([0, 1]), ['a', 'b'])
    >>> encoder.task, encoder.loss, encoder.metric, encoder.outputs
    ('classification', 'cross_entropy', 'accuracy', 2)
    """

    def __init__(
        self,
        task: str = "auto",
        *,
        classes: Sequence[str] | None = None,
        quantiles: Sequence[float] = QUANTILES,
    ):
        super().__init__()
        if task not in TASKS:
            raise ValueError(f"TargetEncoder: task must be one of {TASKS}, got {task!r}")
        if classes is not None and len(set(classes)) < max(2, len(classes)):
            raise ValueError(
                f"TargetEncoder: classes are different ones, two or more, got {classes}"
            )
        if not are_quantiles(list(quantiles)):
            raise ValueError(
                "TargetEncoder: quantiles are numbers between 0 and 1, from the lowest to the "
                f"highest, got {quantiles}"
            )
        self.wanted, self.asked = task, Wanted(classes, quantiles)
        self.goal: Goal | None = None

    def fit(self, target: Column | Table) -> Self:
        """Learns classes, or means and spreads, from the target columns of the training rows."""
        columns = _columns(target)
        for column in columns:
            _check(column)
            if not len(column):
                raise TableError(f"the target {column.name!r} has no rows")
        task = detect_task(target) if self.wanted == "auto" else self.wanted
        self.goal = GOALS[task].fitted(columns, self.asked)
        return self

    def forward(self, target: Column | Table) -> Tensor:
        """The encoded target of some rows: its column, or a table that holds its columns."""
        goal = self._fitted()
        if isinstance(target, Table):
            columns = [target[name] for name in goal.names]
        else:
            columns = [target]
        if len(columns) != len(goal.names):
            raise ValueError(f"TargetEncoder: expected a table with the columns {goal.names}")
        for column in columns:
            _check(column)
        return goal.encode(columns)

    def decode(self, output: Tensor) -> list[Any]:
        """Predictions from a network's outputs (N, outputs): see the table above."""
        goal = self._fitted()
        shape = tuple(output.shape)
        if shape[1:] != (goal.outputs,) and not (goal.outputs == 1 and len(shape) == 1):
            raise ValueError(
                f"TargetEncoder.decode: expected outputs of shape (N, {goal.outputs}), got {shape}"
            )
        return goal.decode(output.detach().reshape(-1, goal.outputs))

    def probabilities(self, output: Tensor) -> Tensor:
        """The probability of each class or label, from a network's outputs."""
        return self._fitted().probabilities(output)

    def columns(self, output: Tensor) -> dict[str, list[Any]]:
        """Predictions as columns of a table, by name."""
        rows, names = self.decode(output), self.columns_named()
        if len(names) == 1:
            return {names[0]: rows}
        return {name: [row[k] for row in rows] for k, name in enumerate(names)}

    def columns_named(self) -> list[str]:
        """The names of the columns of predictions: one, or one for each target or quantile."""
        goal = self._fitted()
        if len(self.quantiles) > 1:
            return [f"{goal.names[0]} {q:g}" for q in self.quantiles]
        return goal.names

    # --- what is known ----------------------------------------------------------------------------

    def _fitted(self) -> Goal:
        if self.goal is None:
            raise RuntimeError("TargetEncoder: not fitted; call fit(column) with the training rows")
        return self.goal

    @property
    def is_fitted(self) -> bool:
        """Whether ``fit`` has been called, or a fitted state loaded."""
        return self.goal is not None

    @property
    def task(self) -> str:
        """What is learned; before ``fit`` what was asked for."""
        return self.wanted if self.goal is None else self.goal.task

    @property
    def outputs(self) -> int:
        """How many outputs a network needs."""
        return self._fitted().outputs

    @property
    def loss(self) -> str | nn.Module:
        """The loss of outputs and encoded targets."""
        return self._fitted().loss

    @property
    def metric(self) -> str:
        """The name of the metric that tells most, of outputs and encoded targets."""
        return self._fitted().metric

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [] if self.goal is None else self.goal.names

    @property
    def classes(self) -> list[str]:
        """The classes, labels or ranks; none for numbers."""
        return [] if self.goal is None else self.goal.classes

    @property
    def quantiles(self) -> list[float]:
        """Which quantiles the outputs are; none for other tasks."""
        return list(getattr(self.goal, "quantiles", []))

    @property
    def means(self) -> list[float]:
        """The mean of each column of numbers; none for classes."""
        return list(getattr(self.goal, "means", []))

    @property
    def spreads(self) -> list[float]:
        """The scale of each column of numbers; none for classes."""
        return list(getattr(self.goal, "spreads", []))

    @property
    def mean(self) -> float:
        """The mean of one column of numbers."""
        return _single(self.means, 0.0)

    @property
    def spread(self) -> float:
        """The scale of one column of numbers."""
        return _single(self.spreads, 1.0)

    # --- files ------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Any]:
        state = {"task": self.task, "is_fitted": self.is_fitted}
        return state if self.goal is None else {**state, **self.goal.state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        task, fitted = saved("TargetEncoder", state, task="text", is_fitted="truth")
        if task not in TASKS or (fitted and task == "auto"):
            raise ValueError(f"TargetEncoder: the saved state has the unknown task {task!r}")
        self.goal = GOALS[task].of_state(state) if fitted else None

    def extra_repr(self) -> str:
        kind = "labels" if self.task == "multilabel" else "classes"
        return f"{self.task}, {len(self.classes)} {kind}" if self.classes else self.task


def _single(numbers: list[float], default: float) -> float:
    if len(numbers) > 1:
        raise ValueError(f"TargetEncoder: there are {len(numbers)} targets; use means and spreads")
    return numbers[0] if numbers else default


def _columns(target: Column | Table) -> list[Column]:
    return [target] if isinstance(target, Column) else list(target)


def _check(column: Column) -> None:
    if column.missing:
        raise TableError(
            f"the target {column.name!r} is missing in {column.missing} of "
            f"{len(column)} rows; drop these rows"
        )
    if column.kind == NUMBER and bool(any_of(isinf(column.numbers))):
        raise TableError(f"the target {column.name!r} has infinite values")
