"""Features of columns: numbers, truth values, few categories, and categories with an order.

A feature is fitted on the training rows of one column, says the names of what it makes, and makes
a block (N, names) of the rows of any table. Its fields are what is saved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from chainrule.backend import dtypes
from chainrule.data.columns import CATEGORY, MIXED, NUMBER, Column, TableError, number_in
from chainrule.data.preprocess import saved
from chainrule.data.tabular.numerals import in_numbers
from chainrule.data.tabular.shared import clipped, places, quoted, robust_scale
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import arange, full
from chainrule.ops.elementwise.logic import isinf, isnan, where
from chainrule.ops.reduce.order import argmax
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor

__all__ = ["Boolean", "Feature", "Number", "OneHot", "Ordinal", "numbers_of"]


@dataclass
class Feature:
    """What is made of one column; ``gaps`` says whether a last column tells where it is missing."""

    name: str
    gaps: bool

    kind: ClassVar[str]
    kept: ClassVar[Mapping[str, str]] = {}  # the other fields, with their kinds in a file

    @property
    def names(self) -> list[str]:
        """The names of the columns of a block."""
        return [*self.plain_names, *([f"{self.name} missing"] if self.gaps else [])]

    @property
    def plain_names(self) -> list[str]:
        """The names of what is made of values."""
        return [self.name]

    def block(self, column: Column) -> Tensor:
        """The features (N, names) of a column."""
        found = self.values(column)
        if not self.gaps:
            return found
        return cat([found, cast(reshape(self.missing(column), (-1, 1)), found.dtype)], 1)

    def values(self, column: Column) -> Tensor:
        """The features without the one that says what is missing."""
        raise NotImplementedError(type(self).__name__)

    def missing(self, column: Column) -> Tensor:
        """Where values are missing."""
        return column.gaps()

    def state(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Self:
        """From plain values of a file, which may hold anything."""
        fields = {"name": "text", "gaps": "truth", **cls.kept}
        feature = cls(**dict(zip(fields, saved("TableEncoder", state, **fields), strict=True)))
        feature.check()
        return feature

    def check(self) -> None:
        """An error if fields do not belong together."""


def numbers_of(column: Column, mark: str = "") -> Tensor:
    """The numbers of a column that was numbers in training; with a decimal mark, of its words."""
    if column.kind in (CATEGORY, MIXED) and (mark or _are_plain(column)):
        return in_numbers(column, mark or ".")
    if column.kind == NUMBER:
        if bool(any_of(isinf(column.numbers))):
            raise TableError(f"column {column.name!r} has infinite values; replace them")
        return column.numbers
    if column.missing < len(column):
        row = int(argmax((~column.gaps()).int()))
        what = column.note or f"row {row + 1} has {column.take([row]).values[0]!r}"
        raise TableError(f"column {column.name!r} was numbers in training, now {what}")
    return full((len(column),), math.nan, dtype=dtypes.float64)


def _are_plain(column: Column) -> bool:
    """Whether words are numbers all the same, like 007."""
    used = [str(word) for word in column.counts()]
    return bool(used) and all(number_in(word) is not None for word in used)


@dataclass
class Number(Feature):
    """Numbers less their median, by their spread, smoothly clipped; the median where missing."""

    center: float
    spread: float
    mark: str  # the decimal one of numbers that are written with other signs, else ""

    kind = "number"
    kept: ClassVar[Mapping[str, str]] = {"center": "number", "spread": "number", "mark": "text"}

    @classmethod
    def fit(cls, column: Column, mark: str = "") -> Self:
        """Learns median and spread of what is not missing."""
        numbers = numbers_of(column, mark)
        numbers = numbers[~isnan(numbers)]
        return cls(column.name, column.missing > 0, *robust_scale(column.name, numbers), mark)

    def values(self, column: Column) -> Tensor:
        numbers = numbers_of(column, self.mark)
        scaled = clipped((numbers - self.center) / self.spread)
        return reshape(where(isnan(numbers), 0.0, scaled), (-1, 1))

    def missing(self, column: Column) -> Tensor:
        return isnan(numbers_of(column, self.mark))

    def check(self) -> None:
        if not self.spread > 0:
            raise ValueError(f"TableEncoder: the spread of {self.name!r} is {self.spread}")
        if self.mark not in ("", ".", ","):
            raise ValueError(f"TableEncoder: {self.name!r} has the decimal mark {self.mark!r}")


@dataclass
class Boolean(Feature):
    """1 for what means true, -1 for what means false, 0 where it is missing or neither."""

    true: list[str]
    false: list[str]

    kind = "boolean"
    kept: ClassVar[Mapping[str, str]] = {"true": "texts", "false": "texts"}

    def values(self, column: Column) -> Tensor:
        text = column.as_category()
        size = {**dict.fromkeys(self.false, -1.0), **dict.fromkeys(self.true, 1.0)}
        known = [*[size.get(word.lower(), 0.0) for word in map(str, text.words)], 0.0]
        return reshape(tensor(known, dtype=dtypes.float64)[text.codes.long()], (-1, 1))


@dataclass
class OneHot(Feature):
    """Zeros, and a one in the place of the category if it is known."""

    words: list[str]

    kind = "one-hot"
    kept: ClassVar[Mapping[str, str]] = {"words": "texts"}

    @classmethod
    def fit(cls, column: Column) -> Self:
        """Learns which categories there are."""
        return cls(column.name, column.missing > 0, sorted(column.counts()))

    @property
    def plain_names(self) -> list[str]:
        return [f"{self.name}={word}" for word in self.words]

    def values(self, column: Column) -> Tensor:
        indices = places(column.as_category(), self.words)
        return cast(reshape(indices, (-1, 1)) == arange(len(self.words)), dtypes.float64)


@dataclass
class Ordinal(Feature):
    """The place of a value in the order, from -1 for the first to 1 for the last; 0 for others."""

    order: list[str]

    kind = "ordinal"
    kept: ClassVar[Mapping[str, str]] = {"order": "texts"}

    @classmethod
    def fit(cls, column: Column, order: list[str]) -> Self:
        """Takes the order, if it has all values of the training rows."""
        others = sorted(set(column.counts()).difference(order))
        if others:
            raise TableError(
                f"column {column.name!r} has values that its order lacks: {quoted(others)}; the "
                f"order is {quoted(order)}"
            )
        return cls(column.name, column.missing > 0, order)

    def values(self, column: Column) -> Tensor:
        last = len(self.order) - 1
        sizes = tensor([*[2 * i / last - 1 for i in range(last + 1)], 0.0], dtype=dtypes.float64)
        return reshape(sizes[places(column.as_category(), self.order)], (-1, 1))

    def check(self) -> None:
        if len(self.order) < 2:
            raise ValueError(f"TableEncoder: the order of {self.name!r} is {self.order}")
