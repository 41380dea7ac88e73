"""From tables to tensors and back: what is fitted on the training rows and saved with the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.data.preprocess import Fittable, saved
from chainrule.data.columns import CATEGORY, NUMBER, Column, TableError
from chainrule.data.table import Table
from chainrule.ops.creation.patterns import arange, empty, full
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.elementwise.logic import isinf, isnan, where
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.order import argmax
from chainrule.ops.reduce.reductions import all as all_of
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor

__all__ = ["TableEncoder", "TargetEncoder", "detect_task"]

FEW = 20  # distinct whole numbers up to which a target is taken for classes


def detect_task(target: Column) -> str:
    """Whether a target column is for "classification" or "regression".

    Text is classes. Numbers are classes if they are whole, few (at most 20 different ones) and
    repeat (at least five times each on average).
    """
    target.refuse_mixed()
    if target.kind == CATEGORY:
        return "classification"
    counts = target.counts()
    whole = all(v.is_integer() for v in counts)
    few = len(counts) <= FEW and sum(counts.values()) >= 5 * len(counts)
    return "classification" if whole and few else "regression"


class TableEncoder(Fittable):
    """The features of a table as a tensor: numbers standardized, categories one-hot.

    A missing number becomes the mean, and a column says where that was done if it occurred in
    training. A category not seen in training becomes zeros. Columns without information (constant,
    empty, or text that is different in nearly every row) are left out; ``left_out`` says why.

    >>> from chainrule.data import Table
    >>> table = Table.from_dict({"x": [1.0, 3.0], "color": ["red", "blue"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.feature_names
    ['x', 'color=blue', 'color=red']
    >>> encoder(table)
    tensor([[-1.,  0.,  1.],
            [ 1.,  1.,  0.]])
    """

    def __init__(self, max_categories: int = 100):
        super().__init__()
        if max_categories < 2:
            raise ValueError(
                f"TableEncoder: max_categories must be at least 2, got {max_categories}"
            )
        self.max_categories = max_categories
        self.plan: list[dict[str, Any]] = []
        self.left_out: dict[str, str] = {}

    def fit(self, table: Table) -> Self:
        """Learns means, spreads and categories from the training rows."""
        if not len(table):
            raise TableError("TableEncoder.fit: the table has no rows")
        plan: list[dict[str, Any]] = []
        left_out: dict[str, str] = {}
        for column in table:
            reason = self._useless(column)
            if reason:
                left_out[column.name] = reason
            elif column.kind == NUMBER:
                plan.append(_plan_number(column))
            else:
                categories = sorted(column.counts())
                plan.append({"name": column.name, "kind": CATEGORY, "categories": categories})
        if not plan:
            why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
            raise TableError(f"no column is left to learn from ({why})")
        self.plan, self.left_out = plan, left_out
        return self

    def _useless(self, column: Column) -> str:
        """Why a column is left out, if it is."""
        column.refuse_mixed()
        rows, present = len(column), len(column) - column.missing
        if not present:
            return "all values are missing"
        if column.kind == NUMBER:
            if bool(any_of(isinf(column.numbers))):
                raise TableError(
                    f"column {column.name!r} has infinite values; replace them, or leave them empty"
                )
            return "it has one value only" if present == rows and _is_constant(column) else ""
        different = len(column.counts())
        if different == 1 and present == rows:
            return "it has one value only"
        alone = present >= 10 and different > 0.9 * present  # names, for example
        if different > self.max_categories or alone:
            return f"it is text with {different} different values in {rows} rows"
        return ""

    @property
    def feature_names(self) -> list[str]:
        """The names of the tensor's columns."""
        names: list[str] = []
        for p in self.plan:
            if p["kind"] == NUMBER:
                names += [p["name"], *([f"{p['name']} missing"] if p["gaps"] else [])]
            else:
                names += [f"{p['name']}={c}" for c in p["categories"]]
        return names

    def forward(self, table: Table, target: str | None = None) -> Tensor:
        """The features of the rows of a table (which may still hold the target's column)."""
        if not self.plan:
            raise RuntimeError("TableEncoder: not fitted; call fit(table) with the training rows")
        known = dict.fromkeys([*[p["name"] for p in self.plan], *self.left_out])
        missing = [p["name"] for p in self.plan if p["name"] not in table]
        unknown = [n for n in table.names if n not in known and n != target]
        if missing:
            raise TableError(f"columns that the model needs are missing: {_quoted(missing)}")
        if unknown:
            raise TableError(
                f"the model does not know the columns {_quoted(unknown)}; it was trained on "
                f"{_quoted(list(known))}"
            )
        return self._filled(table)

    @no_grad()
    def _filled(self, table: Table) -> Tensor:
        """The features, written column by column: nothing else of their size is made."""
        features = empty(len(table), len(self.feature_names), dtype=dtypes.get_default_dtype())
        start = 0
        for p in self.plan:
            block = (_numbers if p["kind"] == NUMBER else _one_hot)(p, table[p["name"]])
            features[:, start : start + block.shape[1]] = block
            start += block.shape[1]
        return features

    def get_extra_state(self) -> dict[str, Any]:
        return {"plan": self.plan, "left_out": self.left_out}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        plan, left_out = saved("TableEncoder", state, plan="dicts", left_out="dict")
        for column in plan:
            saved("TableEncoder", column, name="text", kind="text")
            if column["kind"] == NUMBER:
                saved("TableEncoder", column, mean="number", spread="number", gaps="truth")
            elif column["kind"] == CATEGORY:
                saved("TableEncoder", column, categories="texts")
            else:
                raise ValueError(f"TableEncoder: a column of the unknown kind {column['kind']!r}")
        self.plan, self.left_out = plan, left_out

    def extra_repr(self) -> str:
        return f"{len(self.plan)} columns -> {len(self.feature_names)} features"


def _plan_number(column: Column) -> dict[str, Any]:
    mean, spread = _moments(column)
    return {
        "name": column.name,
        "kind": NUMBER,
        "mean": mean,
        "spread": spread,
        "gaps": column.missing > 0,
    }


def _moments(column: Column) -> tuple[float, float]:
    """Mean and standard deviation of what is not missing (1 for a constant)."""
    numbers = column.where_present().numbers
    if _is_constant(column):  # their mean may be rounded, and then be none of them
        return float(numbers[0]), 1.0
    center = mean(numbers).item()
    spread = sqrt(mean((numbers - center) ** 2)).item()
    if not math.isfinite(spread):
        raise TableError(
            f"column {column.name!r} has values that are too large to be scaled, up to "
            f"{float(numbers[argmax(abs(numbers))]):g}; divide them, or take logarithms"
        )
    return center, spread or 1.0


def _is_constant(column: Column) -> bool:
    """Whether all that is not missing is the same, and there is something."""
    if column.kind != NUMBER:
        return len(column.counts()) == 1
    numbers = column.where_present().numbers
    return len(numbers) > 0 and bool(all_of(numbers == numbers[0]))


def _numbers(plan: dict[str, Any], column: Column) -> Tensor:
    """Standardized numbers, and where they were missing if the plan has a column for it."""
    if column.kind == NUMBER:
        values = reshape(column.numbers, (-1, 1))
    elif column.missing < len(column):
        row = int(argmax((~column.gaps()).int()))
        what = column.note or f"row {row + 1} has {column.take([row]).values[0]!r}"
        raise TableError(f"column {column.name!r} was numbers in training, now {what}")
    else:
        values = full((len(column), 1), math.nan, dtype=dtypes.float64)
    if bool(any_of(isinf(values))):
        raise TableError(f"column {column.name!r} has infinite values; replace them")
    gaps = isnan(values)
    scaled = where(gaps, 0.0, (values - plan["mean"]) / plan["spread"])
    both = [scaled, cast(gaps, scaled.dtype)] if plan["gaps"] else [scaled]
    return cat(both, 1)


def _one_hot(plan: dict[str, Any], column: Column) -> Tensor:
    """Zeros, and a one in the place of the category if it is known."""
    indices = _places(column.as_category(), plan["categories"])
    return reshape(indices, (-1, 1)) == arange(len(plan["categories"]))


def _places(column: Column, categories: Sequence[str]) -> Tensor:
    """The place of each row's text among the categories, -1 where it has none."""
    place = {c: i for i, c in enumerate(categories)}
    known = tensor([*[place.get(word, -1) for word in column.words], -1], dtype=dtypes.int64)
    return known[column.codes.long()]


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


class TargetEncoder(Fittable):
    """A target column as class indices or scaled numbers, and outputs of a network back.

    Args:
        task: "classification", "regression", or "auto" (see :func:`detect_task`).

    >>> from chainrule.data import Column
    >>> encoder = TargetEncoder().fit(Column("kind", "category", ["b", "a", "b"]))
    >>> encoder(Column("kind", "category", ["a", "b"])), encoder.classes
    (tensor([0, 1]), ['a', 'b'])
    """

    def __init__(self, task: str = "auto"):
        super().__init__()
        if task not in ("auto", "classification", "regression"):
            raise ValueError(
                "TargetEncoder: task must be 'auto', 'classification' or 'regression', got "
                f"{task!r}"
            )
        self.wanted = self.task = task
        self.classes: list[str] = []
        self.mean, self.spread = 0.0, 1.0
        self.is_fitted = False

    def fit(self, column: Column) -> Self:
        """Learns the classes, or mean and spread, from the training rows."""
        self._check(column)
        if not len(column):
            raise TableError(f"the target {column.name!r} has no rows")
        task = detect_task(column) if self.wanted == "auto" else self.wanted
        if task == "regression":
            column.refuse_mixed()
            if column.kind != NUMBER:
                raise TableError(
                    f"the target {column.name!r} is text, which cannot be predicted as a number; "
                    "use classification"
                )
        if _is_constant(column):
            raise TableError(
                f"the target {column.name!r} is constant ({column.take([0]).values[0]!r} in all "
                f"{len(column)} rows): there is nothing to learn"
            )
        if task == "regression":
            self.mean, self.spread = _moments(column)
        else:
            self.classes = _sorted(list(column.as_category().counts()))
        self.task, self.is_fitted = task, True
        return self

    @staticmethod
    def _check(column: Column) -> None:
        if column.missing:
            raise TableError(
                f"the target {column.name!r} is missing in {column.missing} of "
                f"{len(column)} rows; drop these rows"
            )
        if column.kind == NUMBER and bool(any_of(isinf(column.numbers))):
            raise TableError(f"the target {column.name!r} has infinite values")

    @property
    def outputs(self) -> int:
        """How many outputs a network needs."""
        self._need_fit()
        return 1 if self.task == "regression" else len(self.classes)

    def forward(self, column: Column) -> Tensor:
        """Class indices (N,), or standardized numbers (N, 1)."""
        self._need_fit()
        self._check(column)
        if self.task == "regression":
            if column.kind != NUMBER:
                raise TableError(f"the target {column.name!r} was numbers in training, now text")
            numbers = reshape(column.numbers, (-1, 1))
            return cast((numbers - self.mean) / self.spread, dtypes.get_default_dtype())
        text = column.as_category()
        unknown = sorted(set(text.counts()).difference(self.classes))
        if unknown:
            raise TableError(
                f"the target {column.name!r} has classes that were not in training: "
                f"{_quoted(unknown)}"
            )
        return _places(text, self.classes)

    def _need_fit(self) -> None:
        if not self.is_fitted:
            raise RuntimeError("TargetEncoder: not fitted; call fit(column) with the training rows")

    def decode(self, output: Tensor) -> list[Any]:
        """Labels, or numbers on the target's own scale, from a network's outputs (N, outputs)."""
        self._need_fit()
        shape = tuple(output.shape)
        if shape[1:] != (self.outputs,) and not (self.task == "regression" and len(shape) == 1):
            raise ValueError(
                f"TargetEncoder.decode: expected outputs of shape (N, {self.outputs}), got {shape}"
            )
        if self.task == "regression":
            return [v * self.spread + self.mean for v in output.detach().reshape(-1).tolist()]
        return [self.classes[i] for i in output.detach().argmax(1).tolist()]

    def get_extra_state(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "classes": self.classes,
            "mean": self.mean,
            "spread": self.spread,
            "is_fitted": self.is_fitted,
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        task, classes = saved("TargetEncoder", state, task="text", classes="texts")
        if task not in ("auto", "classification", "regression"):
            raise ValueError(f"TargetEncoder: the saved state has the unknown task {task!r}")
        mean, spread, fitted = saved(
            "TargetEncoder", state, mean="number", spread="number", is_fitted="truth"
        )
        self.task, self.classes = task, list(classes)
        self.mean, self.spread, self.is_fitted = float(mean), float(spread), fitted

    def extra_repr(self) -> str:
        if self.task == "classification":
            return f"classification, {len(self.classes)} classes"
        return self.task


def _sorted(different: list[str]) -> list[str]:
    """Classes in order: of numbers if all are, else of text."""
    different = sorted(different)
    try:
        return sorted(different, key=float)
    except ValueError:
        return different
