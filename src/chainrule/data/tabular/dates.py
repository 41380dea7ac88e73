"""Dates and times in words or numbers: each different word is read once."""

from __future__ import annotations

import datetime
import functools
import math
import re
from collections.abc import Callable, Sequence

from chainrule.backend import dtypes
from chainrule.data.columns import DATE, NUMBER, Column, TableError
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import full
from chainrule.ops.elementwise.functions import floor
from chainrule.ops.elementwise.logic import isnan, where
from chainrule.ops.reduce.order import aminmax
from chainrule.ops.reduce.reductions import all as all_of
from chainrule.tensor import Tensor

__all__ = ["DAY", "FORMS", "date_form", "form_of_numbers", "moments", "reading_of"]

DAY = 86400.0
KEPT = 2**16  # words whose meaning is remembered: each is read once
SOME = 50  # words by which most columns are seen to be no dates
EPOCH = datetime.date(1970, 1, 1).toordinal()

# How a column is read: words with the year first or the month named, words with the day or the
# month first, times of the day; numbers like 20241231, seconds or milliseconds since 1970.
FORMS = ("iso", "dmy", "mdy", "time", "ymd", "s", "ms")

MONTHS = {
    name: i + 1
    for names in (
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "january february march april may june july august september october november december",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "jän feb mär apr mai jun jul aug sept okt nov dez",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
        "dicembre",
        "januari februari maart april mei juni juli augustus september oktober november december",
    )
    for i, name in enumerate(names.split())
}

_TIME = (
    r"(?:(?:[T ]|, )\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d{1,9})?))?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?"
    r"\s*(?P<zone>Z|z|UTC|GMT|[+-]\d{2}(?::?\d{2})?(?::\d{2})?)?)?"
)
_ISO = re.compile(r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})(?:\2(?P<day>\d{1,2}))?" + _TIME)
_LOCAL = re.compile(r"(?P<one>\d{1,2})([-/.])(?P<two>\d{1,2})\2(?P<year>\d{4}|\d{2})" + _TIME)
_WEEKDAY = r"(?:[^\W\d_]{2,10}\.?,? )?"
_NAMED = re.compile(
    _WEEKDAY + r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?[ -](?P<name>[^\W\d_]{3,10})\.?,?[ -]"
    r"(?P<year>\d{4}|\d{2})" + _TIME
)
_FIRST = re.compile(
    _WEEKDAY + r"(?P<name>[^\W\d_]{3,10})\.? (?:(?P<day>\d{1,2})(?:st|nd|rd|th)?,? )?"
    r"(?P<year>\d{4})" + _TIME
)
_CLOCK = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:\.\d{1,9})?))?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?(?P<zone>)"
)

Reading = tuple[float, float]  # seconds since 1970 by the clock there, and its offset from UTC


def _named(m: re.Match[str]) -> Reading | None:
    month = MONTHS.get(m["name"].lower())
    return None if month is None else _reading(m, m["year"], month, m["day"])


@functools.cache
def _readers(form: str) -> list[tuple[re.Pattern[str], Callable[[re.Match[str]], Reading | None]]]:
    if form == "time":
        return [(_CLOCK, _clock)]
    day, month = ("two", "one") if form == "mdy" else ("one", "two")
    return [
        (_ISO, lambda m: _reading(m, m["year"], m["month"], m["day"])),
        (_LOCAL, lambda m: _reading(m, m["year"], m[month], m[day])),
        (_NAMED, _named),
        (_FIRST, _named),
    ]


def _reading(m: re.Match[str], year: str, month: str | int, day: str | None) -> Reading | None:
    full_year = int(year)
    if len(year) == 2:
        full_year += 1900 if full_year > 68 else 2000
    clock = _clock(m)
    try:
        days = datetime.date(full_year, int(month), int(day or 1)).toordinal() - EPOCH
    except ValueError:
        return None
    return None if clock is None else (days * DAY + clock[0], clock[1])


def _clock(m: re.Match[str]) -> Reading | None:
    """Seconds of the day, and of the zone."""
    if m["hour"] is None:
        return 0.0, 0.0
    hour, minute = int(m["hour"]), int(m["minute"])
    second = float((m["second"] or "0").replace(",", "."))
    if m["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if m["half"][0] in "pP" else 0)
    if hour > 23 or minute > 59 or second >= 61:
        return None
    zone = m["zone"] or ""
    offset = 0.0
    if zone[:1] in ("+", "-"):
        digits = zone[1:].replace(":", "")
        offset = int(digits[:2]) * 3600.0 + int(digits[2:4] or 0) * 60.0
        offset = -offset if zone[0] == "-" else offset
    return hour * 3600.0 + minute * 60.0 + second, offset


@functools.lru_cache(KEPT)
def reading_of(word: str, form: str) -> Reading | None:
    """A word as seconds since 1970 and the zone's offset, None if it is no date of that form.

    >>> reading_of("31.12.1970 01:00", "dmy")
    (31453200.0, 0.0)
    """
    text = word.strip()
    for pattern, read in _readers(form):
        m = pattern.fullmatch(text)
        if m is not None:
            return read(m)
    return None


# --- which form a column has ----------------------------------------------------------------------


def date_form(words: Sequence[str]) -> tuple[str, str] | None:
    """The form in which all words are dates, and how it was found; None if they are not.

    Where all are like 05/04/2024, the order of day and month is that in which all are dates; if
    both are, dots and dashes stand for the day first, slashes for the month first.
    """
    if not words or not any(c.isdigit() for c in words[0]):
        return None
    for form in ("dmy", "mdy", "time"):
        if all(reading_of(w, form) is not None for w in words[:SOME]):
            break
    else:
        return None
    local = [w for w in words if _LOCAL.fullmatch(w.strip())]
    if form == "time":
        return _checked(words, "time", "all values are times of the day")
    if not local:
        return _checked(words, "iso", "all values are dates")
    return _ordered(words, local)


def _checked(words: Sequence[str], form: str, why: str) -> tuple[str, str] | None:
    return (form, why) if all(reading_of(w, form) is not None for w in words) else None


def _ordered(words: Sequence[str], local: Sequence[str]) -> tuple[str, str] | None:
    """The order of day and month, by what cannot be a month."""
    first = next((w for w in local if reading_of(w, "mdy") is None), None)
    second = next((w for w in local if reading_of(w, "dmy") is None), None)
    if first is not None and second is not None:
        return None
    if first is not None:
        return _checked(words, "dmy", f"they are dates with the day first, as in {first!r}")
    if second is not None:
        return _checked(words, "mdy", f"they are dates with the month first, as in {second!r}")
    form = "mdy" if "/" in local[0] else "dmy"
    what, other = ("month", "dmy") if form == "mdy" else ("day", "mdy")
    why = (
        f"all values are dates; {local[0]!r} is read with the {what} first, no value decides it "
        f"(the role 'date {other}' is the other order)"
    )
    return _checked(words, form, why)


def form_of_numbers(column: Column, named: bool) -> tuple[str, str] | None:
    """The form of numbers that are dates: 20241231, or seconds since 1970 if the name says time."""
    numbers = column.where_present().numbers
    if not len(numbers) or not bool(all_of(numbers == floor(numbers))):
        return None
    low, high = (float(v) for v in aminmax(numbers))
    if low >= 19000101 and high <= 21001231:
        different = [str(int(v)) for v in column.counts()]
        if all(_days(word) is not None for word in different):
            return "ymd", "all values are dates like 20241231"
        return None
    if named and low >= 1e8 and high < 1e10:
        return "s", "all values are seconds since 1970, as its name and their size say"
    if named and low >= 1e11 and high < 1e13:
        return "ms", "all values are milliseconds since 1970, as its name and their size say"
    return None


def _days(word: str) -> int | None:
    try:
        return datetime.date(int(word[:4]), int(word[4:6]), int(word[6:])).toordinal() - EPOCH
    except ValueError:
        return None


# --- the moments of a column ----------------------------------------------------------------------


def moments(column: Column, form: str) -> tuple[Tensor, Tensor]:
    """Seconds since 1970 by the clock there and by UTC (N,), NaN where they are missing."""
    if column.kind == DATE:
        return column.numbers, column.numbers
    if form in ("ymd", "s", "ms"):
        local = _of_numbers(column, form)
        return local, local
    if column.kind == NUMBER:
        if column.missing < len(column):
            column = column.as_category()
        else:
            none = full((len(column),), math.nan, dtype=dtypes.float64)
            return none, none
    return _of_words(column, form)


def _of_words(column: Column, form: str) -> tuple[Tensor, Tensor]:
    used = column.counts()
    seconds: list[float] = []
    offsets: list[float] = []
    for word in column.words:
        found = reading_of(str(word), form) if word in used else (math.nan, 0.0)
        if found is None:
            raise _no_date(column, word)
        seconds.append(found[0])
        offsets.append(found[1])
    codes = column.codes.long()
    local = tensor([*seconds, math.nan], dtype=dtypes.float64)[codes]
    return local, local - tensor([*offsets, 0.0], dtype=dtypes.float64)[codes]


def _no_date(column: Column, word: str) -> TableError:
    row = column.values.index(word) + 1
    return TableError(
        f"column {column.name!r} is dates, but row {row} has {word!r}; mend it, leave it empty, or "
        "use the column as a category or as text"
    )


def _of_numbers(column: Column, form: str) -> Tensor:
    if column.kind != NUMBER:
        if column.missing == len(column):
            return full((len(column),), math.nan, dtype=dtypes.float64)
        raise TableError(
            f"column {column.name!r} was dates as numbers in training, now it has "
            f"{column.present[0]!r}"
        )
    numbers = column.numbers
    if form != "ymd":
        return numbers / (1000.0 if form == "ms" else 1.0)
    days = {}
    for value in column.counts():
        found = _days(str(int(value))) if value == math.floor(value) else None
        if found is None:
            raise TableError(f"column {column.name!r} is dates like 20241231, but has {value:g}")
        days[value] = found * DAY
    text = column.as_category()
    known = [*[days[float(word)] for word in text.words], math.nan]
    return where(isnan(numbers), math.nan, cast(tensor(known), dtypes.float64)[text.codes.long()])
