"""From tables to tensors and back: what is fitted on the training rows and saved with the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from chainrule.backend import dtypes
from chainrule.data.preprocess import Fittable
from chainrule.data.table import CATEGORY, NUMBER, Column, Table, TableError
from chainrule.ops.creation.patterns import arange
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.elementwise.logic import isinf, isnan, where
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.core.promotion import cast
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
    values = target.present
    different = set(values)
    whole = all(float(v).is_integer() for v in different)
    few = len(different) <= FEW and len(values) >= 5 * len(different)
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
                categories = sorted(set(column.present))
                plan.append({"name": column.name, "kind": CATEGORY, "categories": categories})
        if not plan:
            why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
            raise TableError(f"no column is left to learn from ({why})")
        self.plan, self.left_out = plan, left_out
        return self

    def _useless(self, column: Column) -> str:
        """Why a column is left out, if it is."""
        column.refuse_mixed()
        present = column.present
        if not present:
            return "all values are missing"
        values = set(present)
        if math.inf in values or -math.inf in values:
            raise TableError(
                f"column {column.name!r} has infinite values; replace them, or leave them empty"
            )
        different, rows = len(values), len(column.values)
        if different == 1 and len(present) == rows:
            return "it has one value only"
        alone = len(present) >= 10 and different > 0.9 * len(present)  # names, for example
        if column.kind == CATEGORY and (different > self.max_categories or alone):
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
        features = [
            (_numbers if p["kind"] == NUMBER else _one_hot)(p, table[p["name"]]) for p in self.plan
        ]
        return cat(features, 1)

    def get_extra_state(self) -> dict[str, Any]:
        return {"plan": self.plan, "left_out": self.left_out}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.plan, self.left_out = state["plan"], state["left_out"]

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
    values = column.present
    if min(values) == max(values):  # their mean may be rounded, and then be none of them
        return values[0], 1.0
    numbers = tensor(values, dtype=dtypes.float64)
    center = mean(numbers).item()
    spread = sqrt(mean((numbers - center) ** 2)).item()
    if not math.isfinite(spread):
        raise TableError(
            f"column {column.name!r} has values that are too large to be scaled, up to "
            f"{max(values, key=abs):g}; divide them, or take logarithms"
        )
    return center, spread or 1.0


def _numbers(plan: dict[str, Any], column: Column) -> Tensor:
    """Standardized numbers, and where they were missing if the plan has a column for it."""
    if column.kind != NUMBER and column.present:
        row = next(i for i, v in enumerate(column.values) if v is not None)
        what = column.note or f"row {row + 1} has {column.values[row]!r}"
        raise TableError(f"column {column.name!r} was numbers in training, now {what}")
    found = [math.nan if v is None else v for v in column.values]
    values = reshape(tensor(found, dtype=dtypes.float64), (-1, 1))
    if bool(any_of(isinf(values))):
        raise TableError(f"column {column.name!r} has infinite values; replace them")
    gaps = isnan(values)
    scaled = where(gaps, 0.0, (values - plan["mean"]) / plan["spread"])
    both = [scaled, cast(gaps, scaled.dtype)] if plan["gaps"] else [scaled]
    return cast(cat(both, 1), dtypes.get_default_dtype())


def _one_hot(plan: dict[str, Any], column: Column) -> Tensor:
    """Zeros, and a one in the place of the category if it is known."""
    place = {c: i for i, c in enumerate(plan["categories"])}
    indices = tensor([place.get(v, -1) for v in column.as_category().values], dtype=dtypes.int64)
    return cast(reshape(indices, (-1, 1)) == arange(len(place)), dtypes.get_default_dtype())


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
        if not column.values:
            raise TableError(f"the target {column.name!r} has no rows")
        task = detect_task(column) if self.wanted == "auto" else self.wanted
        if task == "regression":
            column.refuse_mixed()
            if column.kind != NUMBER:
                raise TableError(
                    f"the target {column.name!r} is text, which cannot be predicted as a number; "
                    "use classification"
                )
        if len(set(column.values)) < 2:
            raise TableError(
                f"the target {column.name!r} is constant ({column.values[0]!r} in all "
                f"{len(column.values)} rows): there is nothing to learn"
            )
        if task == "regression":
            self.mean, self.spread = _moments(column)
        else:
            self.classes = _sorted(column.as_category().values)
        self.task, self.is_fitted = task, True
        return self

    @staticmethod
    def _check(column: Column) -> None:
        if column.missing:
            raise TableError(
                f"the target {column.name!r} is missing in {column.missing} of "
                f"{len(column.values)} rows; drop these rows"
            )
        if any(isinstance(v, float) and math.isinf(v) for v in column.values):
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
            numbers = reshape(tensor(column.values, dtype=dtypes.float64), (-1, 1))
            return cast((numbers - self.mean) / self.spread, dtypes.get_default_dtype())
        place = {c: i for i, c in enumerate(self.classes)}
        values = column.as_category().values
        unknown = sorted({v for v in values if v not in place})
        if unknown:
            raise TableError(
                f"the target {column.name!r} has classes that were not in training: "
                f"{_quoted(unknown)}"
            )
        return tensor([place[v] for v in values], dtype=dtypes.int64)

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
        self.task, self.classes = state["task"], list(state["classes"])
        self.mean, self.spread = float(state["mean"]), float(state["spread"])
        self.is_fitted = bool(state["is_fitted"])

    def extra_repr(self) -> str:
        if self.task == "classification":
            return f"classification, {len(self.classes)} classes"
        return self.task


def _sorted(values: Sequence[str]) -> list[str]:
    """Classes in order: of numbers if all are, else of text."""
    different = sorted(set(values))
    try:
        return sorted(different, key=float)
    except ValueError:
        return different
