"""Columns whose values may mean something else than what they are taken for."""

from __future__ import annotations

from collections.abc import Iterator

from chainrule import nn
from chainrule.data import Column, Table
from chainrule.data.columns import is_code
from chainrule.data.tabular.dates import moments, reading_of
from chainrule.data.tabular.features import Number, numbers_of
from chainrule.data.tabular.moments import Moment
from chainrule.data.tabular.numerals import numeral
from chainrule.data.tabular.roles import CATEGORY, DROP, TEXT
from chainrule.ops.elementwise.logic import isnan
from chainrule.ops.reduce.order import aminmax

__all__ = ["as_it_is_read", "doubtful_columns"]

MOSTLY = 0.8  # share of values that are dates or numbers, from which the others are mistakes
WORDS = 2000  # different words that are looked at
# What stands for a missing number where a cell could not be empty.
CODES = {sign * float("9" * digits) for sign in (1, -1) for digits in range(2, 8)}
OFTEN, ENOUGH = 3, 10  # rows with such a number, and with others


def as_it_is_read(column: Column, inputs: nn.Module) -> Column:
    """A column of dates, or of numbers in words, as numbers; others as they are."""
    feature = next((f for f in inputs.features if f.name == column.name), None)
    if isinstance(feature, Moment):
        return Column.of_numbers(column.name, moments(column, feature.form)[1])
    if isinstance(feature, Number) and column.kind != "number":
        return Column.of_numbers(column.name, numbers_of(column, feature.mark))
    return column


def doubtful_columns(table: Table, inputs: nn.Module) -> Iterator[str]:
    """Sentences about columns that a person should look at, where nobody said what they are."""
    for name, role in inputs.roles.items():
        if role.given or name not in table:
            continue
        if role.kind in (CATEGORY, TEXT, DROP):
            yield from _nearly(table[name], role.kind)
    for feature in inputs.features:
        if isinstance(feature, Number):
            yield from _codes(as_it_is_read(table[feature.name], inputs))


def _nearly(column: Column, kind: str) -> Iterator[str]:
    """Dates or numbers but for a few values, which make it text."""
    if column.kind in ("number", "date") or column.typed:
        return
    counts = dict(list(column.counts().items())[:WORDS])
    total = sum(counts.values())
    if total < ENOUGH or any(map(is_code, counts)):
        return
    for what, forms, read in (
        ("dates", ("dmy", "mdy"), reading_of),
        ("numbers", (".", ","), numeral),
    ):
        for form in forms:
            bad = [word for word in counts if read(str(word), form) is None]
            good = total - sum([counts[word] for word in bad])
            if bad and good >= MOSTLY * total:
                as_what = "left out" if kind == DROP else f"taken for {kind}"
                yield (
                    f"column {column.name!r} is {as_what}, but {good / total:.0%} of its values "
                    f"are {what}: {bad[0]!r} is none. Mend or empty such cells, or say what it is "
                    f"with --categorical {column.name!r} or --drop {column.name!r}"
                )
                return


def _codes(column: Column) -> Iterator[str]:
    """A number like -999, far from all others."""
    numbers = column.numbers[~isnan(column.numbers)]
    if len(numbers) < ENOUGH:
        return
    for value in {float(end) for end in aminmax(numbers)} & CODES:
        others = numbers[numbers != value]
        times = len(numbers) - len(others)
        if times < OFTEN or len(others) < ENOUGH:
            continue
        low, high = (float(end) for end in aminmax(others))
        gap = max(low - value, value - high)
        if gap > high - low > 0:
            yield (
                f"column {column.name!r} is {value:g} in {times:,} rows and from {low:g} to "
                f"{high:g} in the others: if {value:g} stands for a missing value, leave these "
                "cells empty"
            )
