"""Dates and times in words: each different word is read once."""

from __future__ import annotations

import datetime
import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence

from chainrule.backend import dtypes
from chainrule.data.columns import DATE, NUMBER, Column, TableError
from chainrule.data.tabular.packed_dates import DAY, EPOCH, PACKED, of_numbers
from chainrule.data.tabular.shared import used_words
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import full
from chainrule.tensor import Tensor

__all__ = ["FORMS", "date_form", "moments", "reading_of"]

KEPT = 2**16  # words whose meaning is remembered: each is read once
SOME = 50  # words by which most columns are seen to be no dates

# How a column is read: words with the year first or the month named, words with the day or the
# month first, times of the day; numbers.
FORMS = ("iso", "dmy", "mdy", "time", *PACKED)

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

# Hours that a zone is ahead of UTC; where two have one name, that of RFC 2822 or the larger one.
_HOURS = {
    0.0: "Z UTC GMT WET",
    1.0: "BST WEST CET MEZ WAT",
    2.0: "CEST MESZ EET SAST CAT",
    3.0: "EEST MSK EAT TRT",
    5.0: "PKT",
    5.5: "IST",
    7.0: "WIB ICT",
    8.0: "SGT HKT AWST",
    9.0: "JST KST",
    9.5: "ACST",
    10.0: "AEST",
    11.0: "AEDT",
    12.0: "NZST",
    13.0: "NZDT",
    -3.0: "BRT ART ADT",
    -4.0: "AST EDT",
    -5.0: "EST CDT",
    -6.0: "CST MDT",
    -7.0: "MST PDT",
    -8.0: "PST AKDT",
    -9.0: "AKST",
    -10.0: "HST",
}
ZONES = {name: hours for hours, names in _HOURS.items() for name in names.split()}

_SECOND = r"(?P<second>\d{2}(?:[.,]\d{1,9})?)"
_HALF = r"(?P<half>[AaPp]\.?[Mm]\.?)"
_ZONE = (
    r"(?:(?P<zone>[A-Za-z]{1,4}(?:[+-]\d{1,2}(?::?\d{2})?)?|[+-]\d{2}(?::?\d{2})?(?::\d{2})?)"
    r"(?:\[[\w/+-]+\]| \([^)]*\))?)"  # the zone once more, by its name
)
_TIME = (
    rf"(?:(?:[T ]|, |:)"
    rf"(?:(?P<hour>\d{{1,2}}):(?P<minute>\d{{2}})(?::{_SECOND})?(?:\s?Uhr)?\s?{_HALF}?"
    rf"|(?P<hour_alone>\d{{2}})|(?P<hour_of_half>\d{{1,2}})\s?(?P<half_alone>[AaPp]\.?[Mm]\.?))"
    rf"\s?{_ZONE}?)?"
)
_WEEKDAY = r"(?:[^\W\d_]{2,10}\.?,? )?"
_MONTH = r"(?P<name>[^\W\d_]{3,10})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_LOCAL = re.compile(r"(?P<one>\d{1,2})([-/.])(?P<two>\d{1,2})\2(?P<year>\d{4}|\d{2})" + _TIME)
_WORDS = [
    re.compile(pattern)
    for pattern in (
        rf"(?P<year>\d{{4}})([-/.])(?P<month>\d{{1,2}})(?:\2(?P<day>\d{{1,2}}))?{_TIME}",
        rf"(?P<year>\d{{4}})年(?P<month>\d{{1,2}})月(?:(?P<day>\d{{1,2}})日)?{_TIME}",
        r"(?P<month>\d{1,2})[-/.](?P<year>\d{4})",
        rf"{_WEEKDAY}{_DAY}[ /-]?(?:de )?{_MONTH},?[ /-]?(?:de )?(?P<year>\d{{4}}|\d{{2}}){_TIME}",
        rf"{_WEEKDAY}{_MONTH}[ -](?:{_DAY},? )?(?P<year>\d{{4}}){_TIME}",
        rf"{_MONTH}(?:-| ?')(?P<year>\d{{2}})",  # of Excel: May-21
        rf"(?P<year>\d{{4}})[ /-]{_MONTH}(?:[ /-]{_DAY})?{_TIME}",
        rf"{_WEEKDAY}{_MONTH} {_DAY} (?P<hour>\d{{2}}):(?P<minute>\d{{2}}):{_SECOND}"
        rf"(?: {_ZONE})? (?P<year>\d{{4}})",  # of Unix
        rf"(?P<year>\d{{4}})-?W(?P<week>\d{{2}})(?:-?(?P<weekday>[1-7]))?{_TIME}",
        r"(?P<year>\d{4})[ -]?[QqTt](?P<quarter>[1-4])",
        r"[Qq](?P<quarter>[1-4])[ /-]?(?P<year>\d{4})",
        r"(?P<year>1[6-9]\d\d|2[01]\d\d)(?P<month>\d{2})(?P<day>\d{2})"
        rf"(?:[T ]?(?P<hour>\d{{2}})(?:(?P<minute>\d{{2}}){_SECOND}?)?\s?{_ZONE}?)?",
    )
]
_CLOCK = re.compile(rf"(?P<hour>\d{{1,2}}):(?P<minute>\d{{2}})(?::{_SECOND})?\s*{_HALF}?")
_NEVER = re.compile(r"0000-00-00(?: 00:00:00)?")  # of MySQL, for nothing

Reading = tuple[float, float]  # seconds since 1970 by the clock there, and its offset from UTC


@functools.cache
def _readers(form: str) -> list[tuple[re.Pattern[str], Callable[[re.Match[str]], Reading | None]]]:
    if form == "time":
        return [(_CLOCK, lambda m: _clock(m.groupdict()))]
    day, month = ("two", "one") if form == "mdy" else ("one", "two")
    local = lambda m: _reading({**m.groupdict(), "day": m[day], "month": m[month]})  # noqa: E731
    first, *others = [(p, lambda m: _reading(m.groupdict())) for p in _WORDS]
    return [first, (_LOCAL, local), *others]  # the usual ones first


Parts = Mapping[str, str | None]  # of a word, by what they are


def _reading(found: Parts) -> Reading | None:
    clock = _clock(found)
    try:
        days = _date(found).toordinal() - EPOCH
    except (ValueError, KeyError):
        return None
    return None if clock is None else (days * DAY + clock[0], clock[1])


def _date(found: Parts) -> datetime.date:
    """The date that the parts of a word say; ValueError or KeyError if there is none."""
    year = int(found["year"] or 0)
    if len(found["year"] or "") == 2:
        year += 1900 if year > 68 else 2000
    if found.get("week"):
        return datetime.date.fromisocalendar(
            year, int(found["week"] or 0), int(found["weekday"] or 1)
        )
    if found.get("quarter"):
        return datetime.date(year, 3 * int(found["quarter"] or 0) - 2, 1)
    named = found.get("name")
    month = MONTHS[named.lower()] if named else int(found["month"] or 0)
    return datetime.date(year, month, int(found.get("day") or 1))


def _clock(found: Parts) -> Reading | None:
    """Seconds of the day, and of the zone."""
    told = found.get("hour") or found.get("hour_alone") or found.get("hour_of_half")
    if told is None:
        return 0.0, 0.0
    hour, minute = int(told), int(found.get("minute") or 0)
    second = float((found.get("second") or "0").replace(",", "."))
    half = found.get("half") or found.get("half_alone")
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half[0] in "pP" else 0)
    is_end = hour == 24 and minute == second == 0  # of the day
    if (hour > 23 and not is_end) or minute > 59 or second >= 61:
        return None
    offset = _offset(found.get("zone") or "")
    return None if offset is None else (hour * 3600.0 + minute * 60.0 + second, offset)


def _offset(zone: str) -> float | None:
    """The seconds that a zone is ahead of UTC, like "", "Z", "CET", "+02:00" or "UTC+2"."""
    if not zone:
        return 0.0
    name, sign, more = re.split(r"([+-])", f"{zone}+0", maxsplit=1)[:3]
    if name and name.upper() not in ZONES:
        return None
    digits = more.removesuffix("+0").replace(":", "")
    seconds = int(digits[:2] or 0) * 3600.0 + int(digits[2:4] or 0) * 60.0
    return ZONES.get(name.upper(), 0.0) * 3600.0 + (-seconds if sign == "-" else seconds)


def _iso(word: str) -> Reading | None:
    """The usual words of files, ten times as fast as by patterns."""
    if len(word) not in (10, 16, 19) or word[4] != "-" or word[7] != "-":
        return None
    try:
        when = datetime.datetime.fromisoformat(word)
    except ValueError:
        return None
    if when.tzinfo is not None:
        return None
    clock = when.hour * 3600.0 + when.minute * 60.0 + when.second
    return (when.toordinal() - EPOCH) * DAY + clock, 0.0


@functools.lru_cache(KEPT)
def reading_of(word: str, form: str) -> Reading | None:
    """A word as seconds since 1970 and the zone's offset, None if it is no date of that form.

    >>> reading_of("31.12.1970 01:00", "dmy")
    (31453200.0, 0.0)
    >>> reading_of("Thu, 1 Jan 1970 01:00 CET", "iso"), reading_of("1970-W01-4T02", "iso")
    ((3600.0, 3600.0), (7200.0, 0.0))
    """
    if form != "time" and (quick := _iso(word)) is not None:
        return quick
    text = " ".join(word.split())
    if form != "time" and _NEVER.fullmatch(text):
        return math.nan, 0.0
    for pattern, read in _readers(form):
        m = pattern.fullmatch(text)
        if m is not None and (found := read(m)) is not None:
            return found
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


# --- the moments of a column ----------------------------------------------------------------------


def moments(column: Column, form: str) -> tuple[Tensor, Tensor]:
    """Seconds since 1970 by the clock there and by UTC (N,), NaN where they are missing."""
    if column.kind == DATE:
        return column.numbers, column.numbers - column.ahead
    if form in PACKED:
        local = of_numbers(column, form)
        return local, local
    if column.kind == NUMBER:
        if column.missing < len(column):
            column = column.as_category()
        else:
            none = full((len(column),), math.nan, dtype=dtypes.float64)
            return none, none
    return _of_words(column, form)


def _of_words(column: Column, form: str) -> tuple[Tensor, Tensor]:
    words, places = used_words(column)
    seconds: list[float] = []
    offsets: list[float] = []
    for word in words:
        found = (math.nan, 0.0) if word is None else reading_of(str(word), form)
        if found is None:
            raise _no_date(column, str(word))
        seconds.append(found[0])
        offsets.append(found[1])
    local = tensor(seconds, dtype=dtypes.float64)[places]
    return local, local - tensor(offsets, dtype=dtypes.float64)[places]


def _no_date(column: Column, word: str) -> TableError:
    row = column.values.index(word) + 1
    return TableError(
        f"column {column.name!r} is dates, but row {row} has {word!r}; mend it, leave it empty, or "
        "use the column as a category or as text"
    )
