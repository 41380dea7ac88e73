"""Which rows are for training, validation and test: by classes, by groups, or in order of time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from chainrule.backend import dtypes
from chainrule.data import Column, GroupKFold, KFold, StratifiedKFold, Table, TableError
from chainrule.data import TimeSeriesSplit, train_test_split, train_validation_test_split
from chainrule.data.tabular.dates import date_form, moments, reading_of
from chainrule.data.tabular.numerals import decimal_mark, in_numbers
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import arange
from chainrule.ops.creation.sampling import randperm
from chainrule.ops.elementwise.logic import isnan
from chainrule.ops.reduce.sort import argsort
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.train.automatic.choice import Choice
from chainrule.train.automatic.settings import Settings

__all__ = ["fold_parts", "three_parts", "two_parts"]


def three_parts(table: Table, choice: Choice, settings: Settings) -> list[Tensor]:
    """The rows for training, validation and test."""
    sizes = (settings.validation_size, settings.test_size)
    generator = Generator().manual_seed(settings.seed)
    if choice.time is not None:
        cuts = _cut_by_time(table, choice, sizes)
        return [rows[randperm(len(rows), generator=generator)] for rows in cuts]
    if choice.group is not None:
        return _cut_by_group(table[choice.group], sizes, generator)
    return train_validation_test_split(
        arange(len(table)),
        validation_size=settings.validation_size,
        test_size=settings.test_size,
        random_state=settings.seed,
        stratify=_labels(table, choice, 3),
    )


def two_parts(
    table: Table, choice: Choice, settings: Settings, rows: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Of some rows those for training and for validation."""
    own, size = tensor(list(rows), dtype=dtypes.int64), settings.validation_size
    part = table.take(own)
    generator = Generator().manual_seed(settings.seed)
    if choice.time is not None:
        cuts = _cut_by_time(part, choice, (size,))
        train, held = [own[c[randperm(len(c), generator=generator)]] for c in cuts]
    elif choice.group is not None:
        train, held = [own[c] for c in _cut_by_group(part[choice.group], (size,), generator)]
    else:
        train, held = train_test_split(
            own, test_size=size, random_state=settings.seed, stratify=_labels(part, choice, 2)
        )
    return train, held


def fold_parts(
    table: Table, choice: Choice, settings: Settings, folds: int
) -> list[tuple[list[int], list[int]]]:
    """The rows to learn from and to score, for each fold."""
    numbers = list(range(len(table)))
    if choice.time is not None:
        order = argsort(_times(table, choice), stable=True).tolist()
        cuts = TimeSeriesSplit(folds).split(numbers)
        return [([order[i] for i in a.tolist()], [order[i] for i in b.tolist()]) for a, b in cuts]
    if choice.group is not None:
        splitter = GroupKFold(folds, shuffle=True, random_state=settings.seed)
        groups = table[choice.group].as_category().codes
        return [(a.tolist(), b.tolist()) for a, b in splitter.split(numbers, None, groups)]
    labels = _labels(table, choice, folds)
    kind = KFold if labels is None else StratifiedKFold
    even = kind(folds, shuffle=True, random_state=settings.seed)
    return [(a.tolist(), b.tolist()) for a, b in even.split(numbers, labels)]


def _labels(table: Table, choice: Choice, parts: int) -> list[str] | None:
    """The classes, for parts that hold each in its proportion; ranks if there are enough."""
    if choice.task not in ("classification", "ordinal"):
        return None
    labels = table[choice.targets[0]].as_category().values
    few = min(Counter(labels).values()) < max(parts, 3)
    return None if choice.task == "ordinal" and few else labels


# --- time -----------------------------------------------------------------------------------------


def _times(table: Table, choice: Choice) -> Tensor:
    times = times_of(table[choice.time or ""], choice.time_form)
    gaps = int(isnan(times).sum())
    if gaps:
        raise TableError(f"column {choice.time!r} cannot order {gaps} rows in time: they have none")
    return times


def times_of(column: Column, form: str | None = None) -> Tensor:
    """When each row was, as numbers that grow with time: numbers, or dates of any form.

    ``form`` is "dmy" or "mdy" if it was said which of day and month comes first.
    """
    if column.kind == "number":
        return column.numbers
    if column.kind == "date":
        return moments(column, "iso")[1]
    words = [str(word) for word in column.counts()]
    found = (form, "") if form else date_form(words)
    if found is not None:
        return moments(column, found[0])[1]
    mark = decimal_mark(words)
    if mark is not None:
        return in_numbers(column, mark)
    bad = [w for w in words if all(reading_of(w, f) is None for f in ("dmy", "mdy", "time"))]
    raise TableError(
        f"column {column.name!r} cannot order the rows in time: its values are neither numbers nor "
        "dates in one form, like 2024-05-31 12:30 or 31.5.2024; one of them is "
        f"{(bad or words)[0]!r}"
    )


def _cut_by_time(table: Table, choice: Choice, sizes: Sequence[float]) -> list[Tensor]:
    """Parts in the order of time, the last of these sizes; rows of one time stay together."""
    column, times = table[choice.time or ""], _times(table, choice)
    order = argsort(times, stable=True)
    ordered = times[order].tolist()
    cuts, end = [], len(ordered)
    for size in reversed(sizes):
        wanted = end - _count(size, len(ordered))
        start = max(wanted, 0)
        while start and ordered[start] == ordered[start - 1]:
            start -= 1
        if start == 0:  # too many rows of the first time: cut behind them
            start = next((i for i in range(1, end) if ordered[i] != ordered[0]), 0)
        if not 0 < start < end:
            raise TableError(
                f"column {column.name!r} cannot order the rows in time: {len(set(ordered))} "
                f"different times in {len(ordered)} rows are too few for {len(sizes) + 1} parts"
            )
        cuts.append(order[start:end])
        end = start
    return [order[:end], *reversed(cuts)]


def _count(size: float, rows: int) -> int:
    if isinstance(size, float) and not 0 < size < 1:
        raise ValueError(f"sizes of parts are fractions between 0 and 1, got {size}")
    return math.ceil(size * rows) if isinstance(size, float) else int(size)


# --- groups ---------------------------------------------------------------------------------------


def _cut_by_group(column: Column, sizes: Sequence[float], generator: Generator) -> list[Tensor]:
    """Parts that tear no group apart, the last of about these sizes, counted in rows."""
    codes = column.as_category().codes.tolist()
    members: dict[int, list[int]] = {}
    for row, code in enumerate(codes):
        members.setdefault(code, []).append(row)
    if len(members) < len(sizes) + 1:
        raise TableError(
            f"column {column.name!r} has {len(members)} groups; {len(sizes) + 1} are needed, one "
            "for each part of the split"
        )
    names = list(members)
    waiting = [names[i] for i in randperm(len(names), generator=generator).tolist()]
    parts: list[list[int]] = []
    for k, size in enumerate(reversed(sizes)):
        part: list[int] = []
        wanted = _count(size, len(codes))
        while len(part) < wanted and len(waiting) > len(sizes) - k:
            group = members[waiting[-1]]
            if part and len(part) + len(group) / 2 > wanted:
                break
            part += group
            waiting.pop()
        parts.append(part)
    parts.append([row for name in waiting for row in members[name]])
    found = [tensor(part, dtype=dtypes.int64) for part in reversed(parts)]
    return [part[randperm(len(part), generator=generator)] for part in found]
