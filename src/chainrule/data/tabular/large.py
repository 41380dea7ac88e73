"""Categories with many values: how often each occurs, what the target is there, and an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from chainrule.backend import dtypes
from chainrule.data.columns import Column
from chainrule.data.tabular.features import Feature
from chainrule.data.tabular.shared import places
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import arange, empty
from chainrule.ops.creation.sampling import randperm
from chainrule.ops.elementwise.functions import log1p, sqrt
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.reduce.order import amin
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.reduce.reductions import sum as sum_of
from chainrule.ops.reduce.sort import argsort, bincount
from chainrule.ops.shape.stacking import cat, stack
from chainrule.ops.shape.views import reshape
from chainrule.random import Generator
from chainrule.tensor import Tensor

__all__ = ["LargeCategory", "target_columns"]

MOST = 2**16  # words that are kept, the most frequent ones
TARGETS = 10  # columns of the target whose means are features
FAR = 10.0  # standard deviations; nearer, a mean stays as it is: the target is linear in it
FOLDS = 5  # of the training rows: a row's statistics are those of the other folds


def target_columns(target: Tensor) -> Tensor:
    """What means are taken of, (N, T): numbers, or truth values of the most frequent classes."""
    if target.is_floating_point():
        columns = cast(reshape(target, (target.shape[0], -1)), dtypes.float64)
        return columns[:, :TARGETS]
    often = bincount(target)
    if len(often) == 2:
        return cast(reshape(target, (-1, 1)), dtypes.float64)
    classes = argsort(-often, stable=True)[:TARGETS]
    return cast(reshape(target, (-1, 1)) == reshape(classes, (1, -1)), dtypes.float64)


@dataclass
class LargeCategory(Feature):
    """Scaled statistics of each known word, and of others and missing ones in the first row.

    ``statistics`` are (words + 1) x names, row by row: how often the word occurs, and the mean of
    the target where it does, drawn to the mean of all rows by as much as chance would explain.
    ``centers`` and ``spreads`` have scaled them.
    """

    words: list[str]
    statistics: list[float]
    centers: list[float]
    spreads: list[float]

    kind = "large category"
    kept: ClassVar[Mapping[str, str]] = {
        "words": "texts",
        "statistics": "numbers",
        "centers": "numbers",
        "spreads": "numbers",
    }

    @classmethod
    def fit(cls, column: Column, target: Tensor | None) -> Self:
        """Learns the words, and the statistics of the training rows."""
        often = column.counts()
        words = sorted(sorted(often), key=lambda word: -often[word])[:MOST]
        rows = places(column, words) + 1
        counts = bincount(rows, minlength=len(words) + 1)
        raw = [reshape(log1p(_but_others(counts).double()), (-1, 1))]
        if target is not None:
            raw.append(_means(rows, target_columns(target), len(words) + 1))
        table = cat(raw, 1)
        weights = reshape(counts.double() / max(1, len(column)), (-1, 1))
        centers = sum_of(table * weights, 0)
        spreads = sqrt(sum_of((table - centers) ** 2 * weights, 0))
        spreads = where(spreads > 1e-12, spreads, 1.0)
        return cls(
            column.name,
            column.missing > 0,
            words,
            reshape(table, (-1,)).tolist(),
            centers.tolist(),
            spreads.tolist(),
        )

    @property
    def index_size(self) -> int:
        """How many different indices there are: one for each word, and 0 for all else."""
        return len(self.words) + 1

    @property
    def plain_names(self) -> list[str]:
        count = len(self.centers) - 1
        means = [f"{self.name} mean target"] if count == 1 else []
        if count > 1:
            means = [f"{self.name} mean target {i}" for i in range(count)]
        return [f"{self.name} frequency", *means]

    def indices(self, column: Column) -> Tensor:
        """The index (N,) of each row's word, 0 if it is missing or was not seen in training."""
        return places(column.as_category(), self.words) + 1

    def values(self, column: Column) -> Tensor:
        table = reshape(tensor(self.statistics, dtype=dtypes.float64), (-1, len(self.centers)))
        return self._scaled(table)[self.indices(column)]

    def _scaled(self, table: Tensor) -> Tensor:
        centers, spreads = (tensor(v, dtype=dtypes.float64) for v in (self.centers, self.spreads))
        return clamp((table - centers) / spreads, -FAR, FAR)

    def training_block(self, column: Column, target: Tensor) -> Tensor:
        """The features of the training rows: a row's own target is not in its statistics."""
        block = self.block(column)
        rows, goals = self.indices(column), target_columns(target)
        order = randperm(len(column), generator=Generator().manual_seed(0))
        fold = empty(len(column), dtype=dtypes.int64)
        fold[order] = arange(len(column)) % FOLDS
        raw = empty(len(column), len(self.centers), dtype=dtypes.float64)
        raw[:] = tensor(self.centers, dtype=dtypes.float64)
        for k in range(FOLDS):
            inside, others = fold == k, fold != k
            if bool(inside.any()) and bool(others.any()):
                means = _means(rows[others], goals[others], len(self.words) + 1)
                raw[inside, 1:] = means[rows[inside]]
        block[:, 1 : len(self.centers)] = self._scaled(raw)[:, 1:]
        return block

    def check(self) -> None:
        columns, rows = len(self.centers), len(self.words) + 1
        fits = columns == len(self.spreads) and len(self.statistics) == columns * rows
        if not columns or not fits or not all(s > 0 for s in self.spreads):
            raise ValueError(f"TableEncoder: the statistics of {self.name!r} do not fit its words")


def _but_others(counts: Tensor) -> Tensor:
    """The counts of words; what was not seen in training is taken for as rare as the rarest word.

    Never would be far from all that the network has learned of, where each word is frequent.
    """
    rarest = amin(counts[1:]) if len(counts) > 1 else 0
    return where(arange(len(counts)) == 0, rarest, counts)


def _means(rows: Tensor, goals: Tensor, size: int) -> Tensor:
    """The mean of each goal by word (size, T), shrunk to the mean of all by empirical Bayes.

    A word with n rows counts n / (n + a), where a is the variance within words by that between
    them: few rows say little if rows of one word differ much. What was not seen has the mean.
    """
    counts = bincount(rows, minlength=size).double()
    found = []
    for goal in goals.unbind(1):
        center = mean(goal)
        sums = bincount(rows, goal - center, minlength=size)
        own = sums / where(counts > 0, counts, 1.0)
        groups, n = float((counts > 0).sum()), float(len(rows))
        between = float(sum_of(counts * own**2))
        within = (float(sum_of((goal - center) ** 2)) - between) / max(1.0, n - groups)
        spread = max((between - within * (groups - 1)) / n, 0.0)
        pull = min(max(within / spread, 0.1), 1e6) if spread > 0 else 1e6
        known = sums / (counts + pull)
        known = where(arange(size) == 0, 0.0, known)  # what is missing is not what is unseen
        found.append(known + center)
    return stack(found, 1)
