"""Goals that are numbers: measured, counted, or quantiles of what is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from chainrule import nn
from chainrule.backend import dtypes
from chainrule.data.columns import DATE, NUMBER, Column, TableError
from chainrule.data.preprocess import saved
from chainrule.data.tabular.dates import date_form
from chainrule.data.tabular.goals import Goal, Wanted, one_of, refuse_constant, saved_names
from chainrule.data.tabular.numerals import decimal_mark, in_numbers
from chainrule.data.tabular.shared import is_constant
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.reduce.order import argmax
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.elementwise.functions import exp
from chainrule.ops.reduce.order import amin
from chainrule.ops.reduce.sort import sort
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor

__all__ = ["Counts", "Numbers", "Quantiles", "are_quantiles", "mark_of_target", "read_as_numbers"]


def mark_of_target(column: Column) -> str | None:
    """The decimal mark of a target that is numbers in words, like "$1,234" or "12 %"."""
    if column.kind in (NUMBER, DATE) or column.typed:
        return None
    return decimal_mark([str(word) for word in column.counts()])


def read_as_numbers(column: Column) -> Column:
    """The same target as numbers, where it is numbers or such in words."""
    if column.kind == NUMBER:
        return column
    mark = mark_of_target(column)
    if mark is not None:
        return Column.of_numbers(column.name, in_numbers(column, mark))
    column.refuse_mixed()
    if column.kind == DATE or date_form([str(word) for word in column.counts()]):
        raise TableError(
            f"the target {column.name!r} is dates, which cannot be predicted as numbers; give the "
            "time until then, like days from another date"
        )
    raise TableError(
        f"the target {column.name!r} is text, which cannot be predicted as a number; use "
        "classification"
    )


class Numbers(Goal):
    """One number or several, standardized (N, m).

    ``marks`` has the decimal mark of each column that was words in training, "" of the others.
    """

    task, metric = "regression", "r2"

    def __init__(self, names: Sequence[str], means: Sequence[float], spreads: Sequence[float]):
        super().__init__(names)
        self.means, self.spreads = list(means), list(spreads)
        self.marks = [""] * len(self.names)

    @classmethod
    def fitted(cls, columns: Sequence[Column], wanted: Wanted) -> Self:
        read = [read_as_numbers(c) for c in columns]
        for column in read:
            refuse_constant(column)
        pairs = [moments(c) for c in read]
        goal = cls([c.name for c in read], [m for m, _ in pairs], [s for _, s in pairs])
        goal.marks = list(wanted.marks) or [mark_of_target(c) or "" for c in columns]
        return goal

    def numbers(self, columns: Sequence[Column]) -> list[Tensor]:
        """The numbers of the target columns at another time, as they were written in training."""
        return [_numbers_then(c, mark) for c, mark in zip(columns, self.marks, strict=True)]

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Self:
        means, spreads = saved("TargetEncoder", state, means="numbers", spreads="numbers")
        names, _ = saved_names(state)
        if not len(names) == len(means) == len(spreads) or min(spreads) <= 0:
            raise ValueError(
                f"TargetEncoder: the saved state has {len(names)} names, means {means} and spreads "
                f"{spreads}; each name has one of both, and spreads are positive"
            )
        goal = cls(names, [float(m) for m in means], [float(s) for s in spreads])
        if "marks" in state:  # which older files lack
            (goal.marks,) = saved("TargetEncoder", state, marks="texts")
        if len(goal.marks) != len(names) or not set(goal.marks) <= {"", ".", ","}:
            raise ValueError(
                f"TargetEncoder: the saved state has the decimal marks {goal.marks!r:.60}"
            )
        return goal

    def state(self) -> dict[str, Any]:
        more = {"means": self.means, "spreads": self.spreads, "marks": self.marks}
        return {**super().state(), **more}

    @property
    def outputs(self) -> int:
        return len(self.names)

    @property
    def loss(self) -> str | nn.Module:
        return "mse"

    def encode(self, columns: Sequence[Column]) -> Tensor:
        parts = zip(self.numbers(columns), self.means, self.spreads, strict=True)
        scaled = [reshape((x - m) / s, (-1, 1)) for x, m, s in parts]
        return cast(scaled[0] if len(scaled) == 1 else cat(scaled, 1), dtypes.get_default_dtype())

    def predicted(self, output: Tensor) -> Tensor:
        means, spreads = (tensor(v, dtype=dtypes.float64) for v in (self.means, self.spreads))
        return cast(output, dtypes.float64) * spreads + means

    def decode(self, output: Tensor) -> list[Any]:
        found = self.predicted(output)
        return (found[:, 0] if self.outputs == 1 else found).tolist()


def _numbers_then(column: Column, mark: str) -> Tensor:
    if column.kind == NUMBER:
        return column.numbers
    if not mark or column.kind == DATE:
        raise TableError(f"the target {column.name!r} was numbers in training, now text")
    return in_numbers(column, mark)


class Quantiles(Numbers):
    """Quantiles of one number: standardized (N, 1), an output for each quantile."""

    task, metric = "quantile", "coverage"

    def __init__(
        self,
        names: Sequence[str],
        means: Sequence[float],
        spreads: Sequence[float],
        quantiles: Sequence[float] = (),
    ):
        super().__init__(names, means, spreads)
        self.quantiles = list(quantiles)

    @classmethod
    def fitted(cls, columns: Sequence[Column], wanted: Wanted) -> Self:
        one_of(columns, cls.task)
        goal = super().fitted(columns, wanted)
        goal.quantiles = wanted.quantiles
        return goal

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Self:
        (quantiles,) = saved("TargetEncoder", state, quantiles="numbers")
        goal = super().of_state(state)
        if len(goal.names) != 1 or not are_quantiles(quantiles):
            raise ValueError(
                f"TargetEncoder: the saved state has the quantiles {quantiles!r:.60} of "
                f"{len(goal.names)} columns"
            )
        goal.quantiles = [float(q) for q in quantiles]
        return goal

    def state(self) -> dict[str, Any]:
        return {**super().state(), "quantiles": self.quantiles}

    @property
    def outputs(self) -> int:
        return len(self.quantiles)

    @property
    def loss(self) -> str | nn.Module:
        return nn.PinballLoss(self.quantiles)

    def predicted(self, output: Tensor) -> Tensor:
        """Numbers that do not cross: the outputs of a row in order (Chernozhukov, 2010)."""
        return super().predicted(sort(output, 1)[0])


def are_quantiles(given: Sequence[float]) -> bool:
    """Whether these are numbers between 0 and 1, at least one, each larger than the one before."""
    inside = bool(given) and all(0 < q < 1 for q in given)
    return inside and list(given) == sorted(set(given))


class Counts(Numbers):
    """A count: (N, 1) in units of its mean, the logarithm of the expected one as the output.

    In these units the Poisson loss is the same up to a factor and a constant, and a network that
    puts out 0 predicts the mean.
    """

    task, metric = "count", "d2_poisson_log"

    @classmethod
    def fitted(cls, columns: Sequence[Column], wanted: Wanted) -> Self:
        column = read_as_numbers(one_of(columns, cls.task))
        numbers = column.numbers
        refuse_constant(column)
        if float(amin(numbers)) < 0 or not bool((numbers == numbers.floor()).all()):
            raise TableError(
                f"the target {column.name!r} is not a count: counts are whole numbers, not "
                "negative; use regression"
            )
        goal = cls([column.name], [0.0], [moments(column)[0]])
        goal.marks = list(wanted.marks) or [mark_of_target(columns[0]) or ""]
        return goal

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Self:
        goal = super().of_state(state)
        if len(goal.names) != 1 or goal.means != [0.0]:
            raise ValueError("TargetEncoder: the saved state of a count has another mean than 0")
        return goal

    @property
    def loss(self) -> str | nn.Module:
        return "poisson_nll"

    def encode(self, columns: Sequence[Column]) -> Tensor:
        if float(amin(self.numbers(columns)[0])) < 0:
            raise TableError(f"the target {columns[0].name!r} has negative counts")
        return super().encode(columns)

    def predicted(self, output: Tensor) -> Tensor:
        largest = math.log(1e300 / self.spreads[0])  # still a number
        return super().predicted(exp(cast(output, dtypes.float64).clamp(max=largest)))


def moments(column: Column) -> tuple[float, float]:
    """Mean and standard deviation of what is not missing (1 for a constant)."""
    numbers = column.where_present().numbers
    if is_constant(column):  # their mean may be rounded, and then be none of them
        return float(numbers[0]), 1.0
    center = mean(numbers).item()
    spread = sqrt(mean((numbers - center) ** 2)).item()
    if not math.isfinite(spread):
        raise TableError(
            f"column {column.name!r} has values that are too large to be scaled, up to "
            f"{float(numbers[argmax(abs(numbers))]):g}; divide them, or take logarithms"
        )
    return center, spread or 1.0
