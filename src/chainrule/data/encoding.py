"""From tables to tensors and back: what is fitted on the training rows and saved with the model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.data.preprocess import Fittable, saved
from chainrule.data.columns import CATEGORY, NUMBER, Column, TableError
from chainrule.data.table import Table
from chainrule.data.tabular.features import Feature
from chainrule.data.tabular.guessing import guess_roles
from chainrule.data.tabular.large import LargeCategory
from chainrule.data.tabular.making import make_feature, restored_feature
from chainrule.data.tabular.roles import DROP, Role, Roles, given_roles
from chainrule.data.tabular.shared import is_constant, places, quoted
from chainrule.ops.creation.patterns import empty
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.elementwise.logic import isinf
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.order import argmax
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.shape.views import reshape
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
    """The features of a table as a tensor (N, F): numbers scaled, categories one-hot, and more.

    Each column has a role, in ``roles`` with the reason: what was said about it, or else a guess
    by its values. Numbers are scaled by median and quartiles and smoothly clipped to [-3, 3]. Few
    categories are one-hot; of many the features are how often each occurs and the mean of the
    target there. A column says where a value is missing if that occurred in training; a category
    not seen in training is zeros, or the mean of all. Columns without information are left out;
    ``left_out`` says why.

    Args:
        roles: by column "number", "category", "ordinal" (or its values in their order), "date",
            "text", "boolean" or "drop", in the place of the guess.
        max_categories: how many categories are one-hot at most.
        indices: whether the last features are, for each column with more categories, their
            numbers from 1, for an embedding; 0 is a value not seen in training, or missing.

    >>> from chainrule.data import Table
    >>> table = Table.from_dict({"x": [1.0, 3.0], "color": ["red", "blue"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.feature_names
    ['x', 'color=blue', 'color=red']
    >>> encoder(table)
    tensor([[-0.9487,  0.0000,  1.0000],
            [ 0.9487,  1.0000,  0.0000]])
    """

    def __init__(
        self, roles: Roles | None = None, max_categories: int = 12, *, indices: bool = False
    ):
        super().__init__()
        if max_categories < 2:
            raise ValueError(
                f"TableEncoder: max_categories must be at least 2, got {max_categories}"
            )
        self.given = given_roles(roles)
        self.max_categories, self.with_indices = max_categories, indices
        self.features: list[Feature] = []
        self.roles: dict[str, Role] = {}

    def fit(
        self, table: Table, target: Tensor | None = None, guesses: Mapping[str, Role] | None = None
    ) -> Self:
        """Learns from the training rows what the features need.

        Args:
            table: the training rows, without the target's column.
            target: their encoded target, class numbers (N,) or numbers (N, m); with it the mean
                of the target is a feature of large categories.
            guesses: roles found on more rows than these (see ``guess_roles``); what a person said
                goes before them.
        """
        if not len(table):
            raise TableError("TableEncoder.fit: the table has no rows")
        if target is not None and len(target) != len(table):
            raise ValueError(
                f"TableEncoder.fit: the table has {len(table)} rows, the target {len(target)}"
            )
        roles = guess_roles(table, self.given, guesses)
        features: list[Feature] = []
        for column in table:
            made = make_feature(column, roles[column.name], target, self.max_categories)
            if isinstance(made, Role):
                roles[column.name] = made
            else:
                features.append(made)
        if not features:
            why = "; ".join(f"{name}: {role.reason}" for name, role in roles.items())
            raise TableError(f"no column is left to learn from ({why})")
        self.features, self.roles = features, roles
        return self

    def fit_transform(
        self, table: Table, target: Tensor | None = None, guesses: Mapping[str, Role] | None = None
    ) -> Tensor:
        """The features of the training rows, where no row's own target is in its statistics."""
        self.fit(table, target, guesses)
        return self._filled(table, target)

    @property
    def left_out(self) -> dict[str, str]:
        """The columns that are left out, and why."""
        return {name: role.reason for name, role in self.roles.items() if role.kind == DROP}

    @property
    def columns(self) -> list[str]:
        """The columns that features are made of."""
        return [feature.name for feature in self.features]

    @property
    def _indexed(self) -> list[LargeCategory]:
        found = [f for f in self.features if isinstance(f, LargeCategory)]
        return found if self.with_indices else []

    @property
    def feature_names(self) -> list[str]:
        """The names of the tensor's columns."""
        plain = [name for feature in self.features for name in feature.names]
        return [*plain, *[f"{feature.name} index" for feature in self._indexed]]

    @property
    def sources(self) -> list[str]:
        """The column of the table behind each feature."""
        plain = [feature.name for feature in self.features for _ in feature.names]
        return [*plain, *[feature.name for feature in self._indexed]]

    @property
    def index_sizes(self) -> list[int]:
        """How many different numbers the last features have that are indices of categories."""
        return [feature.index_size for feature in self._indexed]

    def forward(self, table: Table, target: str | None = None) -> Tensor:
        """The features of the rows of a table (which may still hold the target's column)."""
        if not self.features:
            raise RuntimeError("TableEncoder: not fitted; call fit(table) with the training rows")
        missing = [name for name in self.columns if name not in table]
        unknown = [n for n in table.names if n not in self.roles and n != target]
        if missing:
            raise TableError(f"columns that the model needs are missing: {quoted(missing)}")
        if unknown:
            raise TableError(
                f"the model does not know the columns {quoted(unknown)}; it was trained on "
                f"{quoted(list(self.roles))}"
            )
        return self._filled(table)

    @no_grad()
    def _filled(self, table: Table, target: Tensor | None = None) -> Tensor:
        """The features, written column by column: nothing else of their size is made.

        With the target, the rows are those of training.
        """
        features = empty(len(table), len(self.feature_names), dtype=dtypes.get_default_dtype())
        start = 0
        for feature in self.features:
            column = table[feature.name]
            if target is not None and isinstance(feature, LargeCategory):
                block = feature.training_block(column, target)
            else:
                block = feature.block(column)
            features[:, start : start + block.shape[1]] = block
            start += block.shape[1]
        for i, feature in enumerate(self._indexed):
            features[:, start + i] = feature.indices(table[feature.name])
        return features

    def get_extra_state(self) -> dict[str, Any]:
        return {
            "features": [feature.state() for feature in self.features],
            "roles": {name: role.told() for name, role in self.roles.items()},
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        features, told = saved("TableEncoder", state, features="dicts", roles="dict")
        made = [restored_feature(feature) for feature in features]
        roles = {str(name): Role.restored(role) for name, role in told.items()}
        stray = [f.name for f in made if f.name not in roles or roles[f.name].kind == DROP]
        if stray or len({f.name for f in made}) < len(made):
            raise ValueError("TableEncoder: the saved features and roles are of different columns")
        self.features, self.roles = made, roles

    def extra_repr(self) -> str:
        return f"{len(self.features)} columns -> {len(self.feature_names)} features"


def _moments(column: Column) -> tuple[float, float]:
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
        if is_constant(column):
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
                f"{quoted(unknown)}"
            )
        return places(text, self.classes)

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
