"""Dates and times as numbers: 20241231, or days, seconds and parts of them since some day."""

from __future__ import annotations

import datetime
import math

from chainrule.backend import dtypes
from chainrule.data.columns import NUMBER, Column, TableError
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import full
from chainrule.ops.elementwise.functions import floor
from chainrule.ops.reduce.order import aminmax
from chainrule.ops.reduce.reductions import all as all_of
from chainrule.tensor import Tensor

__all__ = ["DAY", "EPOCH", "PACKED", "form_of_numbers", "of_numbers"]

DAY = 86400.0
EPOCH = datetime.date(1970, 1, 1).toordinal()
EXCEL = (datetime.date(1899, 12, 30).toordinal() - EPOCH) * DAY  # the day 0 of its tables

# Numbers whose digits are those of a date, with how many there are behind the year.
DIGITS = {"ymdhms": 10, "ymdhm": 8, "ymd": 4, "ym": 2, "y": 0}
SINCE = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # parts of a second since 1970
UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
PACKED = (*DIGITS, *SINCE, "excel")
EXAMPLES = {
    "ymdhms": "20241231235959",
    "ymdhm": "202412312359",
    "ymd": "20241231",
    "ym": "202412",
    "y": "2024",
}
FIRST, LAST = 1900, 2100  # years


def form_of_numbers(column: Column, named: bool, said: bool = False) -> tuple[str, str] | None:
    """The form of numbers that are dates, and how it was found; None if they are not.

    Digits of a whole date are seen as such. Months like 202412, and seconds since 1970 or parts of
    them, are dates if the name says time (``named``); years and the days of Excel only if a person
    says that they are dates (``said``).
    """
    numbers = column.where_present().numbers
    if not len(numbers):
        return None
    low, high = (float(v) for v in aminmax(numbers))
    if said and low >= 1e4 and high < 1e5:
        return "excel", "all values are days since 1899-12-30, as in Excel"
    if not bool(all_of(numbers == floor(numbers))):
        return None
    for form, digits in DIGITS.items():
        if low >= FIRST * 10.0**digits and high < (LAST + 1) * 10.0**digits:
            may_be = said or digits >= 4 or (named and form == "ym")
            if may_be and all(_seconds(v, form) is not None for v in column.counts()):
                return form, f"all values are dates like {EXAMPLES[form]}"
    for form, parts in SINCE.items() if named or said else ():
        if low >= 1e8 * parts and high < 1e10 * parts:
            what = UNITS[form]
            return form, f"all values are {what} since 1970, as its name and their size say"
    return None


def _seconds(value: float, form: str) -> float | None:
    """Digits of a date as seconds since 1970, None if there is no such date."""
    if not value.is_integer():
        return None
    digits = str(int(value))
    year, rest = digits[:4], digits[4:]
    if len(rest) != DIGITS[form]:
        return None
    usual = ("01", "01", "00", "00", "00")
    month, day, hour, minute, second = [int(rest[2 * i : 2 * i + 2] or usual[i]) for i in range(5)]
    try:
        moment = datetime.datetime(int(year), month, day, hour, minute, second)
    except ValueError:
        return None
    return (moment - datetime.datetime(1970, 1, 1)).total_seconds()


def of_numbers(column: Column, form: str) -> Tensor:
    """The seconds since 1970 (N,) of a column of numbers, NaN where they are missing."""
    if column.kind != NUMBER:
        if column.missing == len(column):
            return full((len(column),), math.nan, dtype=dtypes.float64)
        raise TableError(
            f"column {column.name!r} was dates as numbers in training, now it has "
            f"{column.present[0]!r}"
        )
    numbers = column.numbers
    if form == "excel":
        return numbers * DAY + EXCEL
    if form in SINCE:
        return numbers / SINCE[form]
    seconds = {}
    for value in column.counts():
        found = _seconds(value, form)
        if found is None:
            raise TableError(
                f"column {column.name!r} is dates like {EXAMPLES[form]}, but has {value:.15g}"
            )
        seconds[value] = found
    text = column.as_category()
    known = [*[seconds.get(float(word), math.nan) for word in text.words], math.nan]
    return tensor(known, dtype=dtypes.float64)[text.codes.long()]
