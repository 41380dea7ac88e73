"""Rows of JSON: what is wrong with them, by row, column and rule, and the table that they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from chainrule.data import Column, Table
from chainrule.data.columns import CATEGORY, NUMBER, meaning
from chainrule.train import FittedNetwork

__all__ = ["answers", "example", "ignored", "rule_of", "table_of", "wrong_with"]

SHOWN = 20  # mistakes that are listed at most
RULES = {
    NUMBER: "must be a finite number, or null where it is missing",
    "boolean": "must be true, false, a text that means one of them, or null where it is missing",
    "date": "must be a text with a date, or null where it is missing",
}
TEXTS = "must be a text, a number, true or false, or null where it is missing"

Row = Mapping[str, Any]


def rule_of(kind: str) -> str:
    """What a value of a column of this kind must be, in words."""
    return RULES.get(kind, TEXTS)


def wrong_with(rows: Sequence[Any], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """The mistakes in rows, each with its row (from 0), its column and the rule.

    >>> wrong_with([{"x": 1}, {"x": "big"}, {}], {"x": "number"})[0]["row"]
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
                rule = f"{rule_of(kind)}, got {_shown(row[name])}"
                found.append({"row": number, "column": name, "rule": rule})
        if len(found) >= SHOWN:
            break
    return found[:SHOWN]


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return True
    if kind == NUMBER:
        return not isinstance(value, bool) and _number(value) is not None
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, (str, int))


def _number(value: Any) -> float | None:
    """A JSON value as a finite number, NaN for a text that says it is missing; else None."""
    if not isinstance(value, (int, float, str)):
        return None
    meant = meaning(value)
    if meant is None and isinstance(value, str):
        return math.nan
    return meant if isinstance(meant, float) and math.isfinite(meant) else None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def ignored(rows: Sequence[Row], network: FittedNetwork) -> list[str]:
    """The names in rows that the network does not know."""
    names = dict.fromkeys([name for row in rows for name in row])
    read = network.columns
    known = {*read, *network.inputs.left_out, network.about.get("target")}
    return [name for name in names if name not in known]


def table_of(rows: Sequence[Row], columns: Mapping[str, str]) -> Table:
    """Rows that are right as a table.

    What a column holds follows from the network, not from the rows, so that the answer for a row
    does not depend on the rows that it is joined with.
    """
    return Table(
        [_column(name, kind, [row[name] for row in rows]) for name, kind in columns.items()]
    )


def _column(name: str, kind: str, values: list[Any]) -> Column:
    if kind == NUMBER:
        return Column(name, NUMBER, [math.nan if v is None else _number(v) for v in values])
    return Column(name, CATEGORY, [_word(v) for v in values])


def _word(value: Any) -> str | None:
    """A value as a text, as tables have it: whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = None if value is None else str(value).strip()
    return None if text is None or meaning(text) is None else text


def answers(
    network: FittedNetwork, table: Table, probabilities: bool, interval: float | None
) -> list[dict[str, Any]]:
    """For each row what is to be said of it: the prediction, and what else was asked for."""
    found: list[dict[str, Any]] = [{"prediction": _plain(v)} for v in network.predict(table)]
    if probabilities:
        classes = network.about["classes"]
        for row, p in zip(found, network.predict_proba(table).tolist(), strict=True):
            row["probabilities"] = dict(zip(classes, p, strict=True))
    if interval is not None:
        bounds = network.predict_interval(table, interval).tolist()
        for row, pair in zip(found, bounds, strict=True):
            row["interval"] = pair
    return found


def _plain(value: Any) -> Any:
    """A prediction as JSON has it: null for what is no finite number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def example(network: FittedNetwork) -> dict[str, Any]:
    """A row that can be sent: a usual value for each column."""
    return {name: _usual(network, name, kind) for name, kind in network.columns.items()}


def _usual(network: FittedNetwork, name: str, kind: str) -> Any:
    """The middle of numbers, a known word of texts."""
    feature = next((f for f in network.inputs.features if f.name == name), None)
    if kind == NUMBER:
        return float(f"{getattr(feature, 'center', 0.0):.4g}")
    for known in ("words", "order", "true"):
        if getattr(feature, known, None):
            return getattr(feature, known)[0]
    return None
