"""Features of dates and times: elapsed time, and the cycles of year, month, week and day."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from chainrule.data.columns import Column, TableError
from chainrule.data.tabular.dates import FORMS, moments
from chainrule.data.tabular.features import Feature
from chainrule.data.tabular.packed_dates import DAY
from chainrule.data.tabular.shared import clipped, robust_scale
from chainrule.ops.elementwise.functions import cos, floor, sin
from chainrule.ops.elementwise.logic import isnan, where
from chainrule.ops.reduce.order import aminmax
from chainrule.ops.reduce.reductions import all as all_of
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor

__all__ = ["Duration", "Moment", "durations"]

MOST = 4  # columns of dates between which times are features
# How many waves of each cycle are features; three make any function of the day of the week.
WAVES = {"year": 3, "month": 1, "week": 3, "day": 2}


@dataclass
class Moment(Feature):
    """Elapsed time, scaled as numbers are, and sines and cosines of the cycles that occur.

    Cycles are by the clock that the values show, elapsed time by UTC where a zone is given.
    """

    form: str
    center: float
    spread: float
    cycles: list[str]

    kind = "date"
    kept: ClassVar[Mapping[str, str]] = {
        "form": "text",
        "center": "number",
        "spread": "number",
        "cycles": "texts",
    }

    @classmethod
    def fit(cls, column: Column, form: str) -> Self:
        """Learns the scale of elapsed time, and which cycles the training rows show."""
        local, utc = moments(column, form)
        gaps = isnan(local)
        local, utc = local[~gaps], utc[~gaps]
        if not len(local):
            raise TableError(
                f"column {column.name!r} cannot be used as a date: it has none; drop it"
            )
        low, high = (float(v) for v in aminmax(local))
        span = (high - low) / DAY
        day = floor(local / DAY)
        cycles = ["year"] * (span > 45) + ["month"] * (span > 20)
        cycles += ["week"] * bool(any_of(day != day[0]))
        cycles += ["day"] * bool(any_of(local - day * DAY != local[0] - day[0] * DAY))
        if form == "time":
            cycles = ["day"]
        center, spread = robust_scale(column.name, utc)
        return cls(column.name, bool(any_of(gaps)), form, center, spread, cycles)

    @property
    def plain_names(self) -> list[str]:
        waves = [(cycle, k) for cycle in self.cycles for k in range(1, WAVES[cycle] + 1)]
        return [
            f"{self.name} elapsed",
            *[f"{self.name} {wave} of {c} {k}" for c, k in waves for wave in ("sine", "cosine")],
        ]

    def values(self, column: Column) -> Tensor:
        local, utc = moments(column, self.form)
        gaps = isnan(local)
        columns = [clipped((utc - self.center) / self.spread)]
        for cycle in self.cycles:
            phase = _phase(where(gaps, 0.0, local), cycle) * (2 * math.pi)
            for k in range(1, WAVES[cycle] + 1):
                columns += [sin(phase * k), cos(phase * k)]
        return stack([where(gaps, 0.0, x) for x in columns], 1)

    def missing(self, column: Column) -> Tensor:
        return isnan(moments(column, self.form)[0])

    def check(self) -> None:
        if self.form not in FORMS or not self.spread > 0:
            raise ValueError(f"TableEncoder: dates {self.name!r} of the unknown form {self.form!r}")
        if len(set(self.cycles)) < len(self.cycles) or not set(self.cycles) <= set(WAVES):
            raise ValueError(f"TableEncoder: dates {self.name!r} with the cycles {self.cycles}")


@dataclass
class Duration(Feature):
    """The time from one column of dates to another, scaled as numbers are; 0 if one is missing."""

    start: str  # the column of the earlier one
    forms: list[str]
    center: float
    spread: float

    kind = "duration"
    kept: ClassVar[Mapping[str, str]] = {
        "start": "text",
        "forms": "texts",
        "center": "number",
        "spread": "number",
    }

    @classmethod
    def fit(cls, start: Column, end: Column, forms: list[str]) -> Self | None:
        """Learns the scale; None if the time is always the same, or never known."""
        seconds = _between(start, end, forms)
        seconds = seconds[~isnan(seconds)]
        if not len(seconds) or bool(all_of(seconds == seconds[0])):
            return None
        return cls(end.name, False, start.name, forms, *robust_scale(end.name, seconds))

    @property
    def plain_names(self) -> list[str]:
        return [f"{self.name} since {self.start}"]

    def of_both(self, start: Column, end: Column) -> Tensor:
        """The feature (N, 1) of two columns."""
        seconds = _between(start, end, self.forms)
        scaled = clipped((seconds - self.center) / self.spread)
        return stack([where(isnan(seconds), 0.0, scaled)], 1)

    def check(self) -> None:
        if len(self.forms) != 2 or not set(self.forms) <= set(FORMS) or not self.spread > 0:
            raise ValueError(f"TableEncoder: the time {self.plain_names[0]!r} has no known form")


def _between(start: Column, end: Column, forms: list[str]) -> Tensor:
    return moments(end, forms[1])[1] - moments(start, forms[0])[1]


def durations(dates: Sequence[Moment], table: Mapping[str, Column]) -> list[Duration]:
    """The times between the first few columns of dates, each pair in the order of the table."""
    known = [date for date in dates if date.form != "time"][:MOST]
    found = [
        Duration.fit(table[a.name], table[b.name], [a.form, b.form])
        for a, b in itertools.combinations(known, 2)
    ]
    return [duration for duration in found if duration is not None]


def _phase(local: Tensor, cycle: str) -> Tensor:
    """Where in a cycle seconds since 1970 are, from 0 to 1."""
    day = floor(local / DAY)
    if cycle == "day":
        return local / DAY - day
    if cycle == "week":
        return (day + 3) % 7 / 7  # from Monday; the first day of 1970 was a Thursday
    of_year, of_month = _civil(day)
    return of_year / 366 if cycle == "year" else of_month / 31


def _civil(day: Tensor) -> tuple[Tensor, Tensor]:
    """Days since the first of March, and since the first of the month, of days since 1970.

    Howard Hinnant's algorithm: in years that begin in March, the leap day is the last one.
    """
    shifted = day + 719468
    era = shifted % 146097
    year = floor((era - floor(era / 1460) + floor(era / 36524) - floor(era / 146096)) / 365)
    of_year = era - (365 * year + floor(year / 4) - floor(year / 100))
    month = floor((5 * of_year + 2) / 153)
    return of_year, of_year - floor((153 * month + 2) / 5)
