"""Rows of JSON: what is wrong with them, by row, column and rule, and the table that they are."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from chainrule.data import Column, Table
from chainrule.data.columns import CATEGORY, DATE, NUMBER, meaning
from chainrule.data.tabular.dates import reading_of
from chainrule.data.tabular.numerals import numeral
from chainrule.data.tabular.packed_dates import PACKED
from chainrule.serve.pictures import IMAGE, content_of, example_picture, takes_images
from chainrule.train import FittedNetwork

__all__ = [
    "Wanted",
    "answers",
    "example",
    "has_intervals",
    "ignored",
    "table_of",
    "wanted",
    "wrong_with",
]

SHOWN = 20  # mistakes that are listed at most
RULES = {
    NUMBER: "must be a finite number, or null where it is missing",
    "boolean": "must be true, false, a text that means one of them, or null where it is missing",
    DATE: "must be a date as in training, or null where it is missing",
    IMAGE: "must be a text, the file of an image in base64",
}
# How dates are written in an example, by their form in training.
WRITTEN = {
    "iso": "%Y-%m-%d",
    "dmy": "%d.%m.%Y",
    "mdy": "%m/%d/%Y",
    "time": "%H:%M",
    "ymd": "%Y%m%d",
}
TEXTS = "must be a text, a number, true or false, or null where it is missing"

Row = Mapping[str, Any]


class Wanted(NamedTuple):
    """What a column of the network is, and how its numbers or dates are written."""

    kind: str
    form: str = ""  # the decimal mark of numbers with other signs, the form of dates

    @property
    def rule(self) -> str:
        """What a value must be, in words."""
        return RULES.get(self.kind, TEXTS)

    @property
    def is_number(self) -> bool:
        """Whether the network reads numbers there."""
        return self.kind == NUMBER or (self.kind == DATE and self.form in PACKED)


def wanted(network: FittedNetwork) -> dict[str, Wanted]:
    """What each column of a network is; the row of one for images holds one."""
    if takes_images(network):
        return {IMAGE: Wanted(IMAGE)}
    written: dict[str, str] = {}
    for feature in network.inputs.features:  # a column may have several; one says how it is written
        written[feature.name] = (
            getattr(feature, "mark", "")
            or getattr(feature, "form", "")
            or (written.get(feature.name, ""))
        )
    return {name: Wanted(kind, written.get(name, "")) for name, kind in network.columns.items()}


def wrong_with(rows: Sequence[Any], columns: Mapping[str, Wanted]) -> list[dict[str, Any]]:
    """The mistakes in rows, each with its row (from 0), its column and the rule.

    >>> wrong_with([{"x": 1}, {"x": "big"}, {}], {"x": Wanted("number")})[0]["row"]
    1
    """
    found: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            rule = f"a row must be an object with the columns as names, got {_shown(row)}"
            found.append({"row": number, "column": None, "rule": rule})
            continue
        for name, kind in columns.items():
            if name not in row:
                rule = "is missing; send null if the value is not known"
                found.append({"row": number, "column": name, "rule": rule})
            elif not _fits(row[name], kind):
                rule = f"{kind.rule}, got {_shown(row[name])}"
                found.append({"row": number, "column": name, "rule": rule})
        if len(found) >= SHOWN:
            break
    return found[:SHOWN]


def _fits(value: Any, kind: Wanted) -> bool:
    if kind.kind == IMAGE:
        return content_of(value) is not None
    if value is None:
        return True
    if kind.is_number:
        return not isinstance(value, bool) and _number(value, kind) is not None
    if isinstance(value, float):
        return math.isfinite(value)
    if kind.kind == DATE and isinstance(value, str):
        return meaning(value) is None or reading_of(value, kind.form) is not None
    return isinstance(value, (str, int))


def _number(value: Any, kind: Wanted) -> float | None:
    """A JSON value as a finite number, NaN for a text that says it is missing; else None."""
    if not isinstance(value, (int, float, str)):
        return None
    meant = meaning(value)
    if meant is None and isinstance(value, str):
        return math.nan
    if isinstance(value, str) and kind.kind == NUMBER and kind.form:
        meant = numeral(value, kind.form)
    return meant if isinstance(meant, float) and math.isfinite(meant) else None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def ignored(rows: Sequence[Row], network: FittedNetwork) -> list[str]:
    """The names in rows that the network does not know."""
    names = list(dict.fromkeys([name for row in rows for name in row]))
    if takes_images(network):
        return [name for name in names if name != IMAGE]
    return network.unknown_columns(names)


def table_of(rows: Sequence[Row], columns: Mapping[str, Wanted]) -> Table:
    """Rows that are right as a table.

    What a column holds follows from the network, not from the rows, so that the answer for a row
    does not depend on the rows that it is joined with.
    """
    return Table(
        [_column(name, kind, [row[name] for row in rows]) for name, kind in columns.items()]
    )


def _column(name: str, kind: Wanted, values: list[Any]) -> Column:
    if kind.is_number:
        return Column(name, NUMBER, [math.nan if v is None else _number(v, kind) for v in values])
    return Column(name, CATEGORY, [_word(v) for v in values])


def _word(value: Any) -> str | None:
    """A value as a text, as tables have it: whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = None if value is None else str(value).strip()
    return None if text is None or meaning(text) is None else text


def has_intervals(network: FittedNetwork) -> bool:
    """Whether it can say how far off its numbers may be."""
    return network.task == "regression" and "errors" in network.about.get("calibration", {})


def answers(
    network: FittedNetwork, table: Table | list[bytes], probabilities: bool, interval: float | None
) -> list[dict[str, Any]]:
    """For each row what is to be said of it: the prediction, and what else was asked for.

    Of several targets the prediction has a value for each, by name.
    """
    output = network.outputs(table)
    columns = network.target.columns(output)
    names, rows = list(columns), zip(*columns.values(), strict=True)
    found: list[dict[str, Any]] = [
        {"prediction": _plain(row[0] if len(names) == 1 else dict(zip(names, row, strict=True)))}
        for row in rows
    ]
    if probabilities:
        classes = network.about["classes"]
        for answer, p in zip(found, network.probabilities(output).tolist(), strict=True):
            answer["probabilities"] = dict(zip(classes, p, strict=True))
    if interval is not None:
        bounds = network.predict_interval(table, interval).tolist()
        for answer, pair in zip(found, bounds, strict=True):
            answer["interval"] = pair
    return found


def _plain(value: Any) -> Any:
    """A prediction as JSON has it: null for what is no finite number."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def example(network: FittedNetwork) -> dict[str, Any]:
    """A row that can be sent: a usual value for each column where one is known, else null."""
    if takes_images(network):
        return {IMAGE: example_picture(network)}
    first = {feature.name: feature for feature in reversed(network.inputs.features)}
    return {name: _usual(first[name]) for name in network.columns}


def _usual(feature: Any) -> Any:
    """The middle of numbers and dates, a known word of texts, true of what may be true."""
    if feature.kind == NUMBER:
        value = float(f"{feature.center:.4g}")
        return int(value) if value.is_integer() else value
    if feature.kind == "boolean":
        return True
    if feature.kind == DATE:
        return _usual_date(feature.form, feature.center)
    for known in ("words", "order"):
        if getattr(feature, known, None):
            return getattr(feature, known)[0]
    return None


def _usual_date(form: str, seconds: float) -> Any:
    """A moment in a form of training; null for other forms."""
    if form in ("s", "ms"):
        return round(seconds) * (1000 if form == "ms" else 1)
    if form not in WRITTEN:
        return None
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=round(seconds))
    text = moment.strftime(WRITTEN[form])
    return int(text) if form == "ymd" else text
