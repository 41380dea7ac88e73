"""The columns of the data: what each is taken for, and what it holds."""

from __future__ import annotations

from html import escape
from typing import Any

from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.html import note, table

__all__ = ["columns"]

SHOWN = 60  # columns in the page
# Reasons that say no more than the kind does.
PLAIN = {"all values are numbers": ("number",)}
OPEN = 12  # up to which all are shown at once


def columns(network: FittedNetwork) -> str:
    """A row for each column."""
    about = network.about
    known = about.get("summary", [])
    if not known:
        return f"<p>{escape(', '.join(map(str, about['columns'][:SHOWN])))}</p>"
    head = ["column", "taken as", "missing", "values"]
    rows = [[c["column"], _role(about, c), _missing(about, c), c["values"]] for c in known[:SHOWN]]
    listed = table(head, rows, False)
    if len(known) > SHOWN:
        listed += note(f"and {len(known) - SHOWN} more")
    if len(known) > OPEN:
        listed = f"<details><summary>{len(known)} columns</summary>{listed}</details>"
    return listed


def _role(about: dict[str, Any], column: dict[str, Any]) -> str:
    """What a column is taken for, and why where that is known."""
    name = column["column"]
    if name in about.get("targets", [about["target"]]):
        return f"target ({column['kind']})"
    if name in about["left_out"]:
        return f"left out: {about['left_out'][name]}"
    role = about.get("roles", {}).get(name)
    if isinstance(role, dict):
        kind, why = str(role.get("kind", column["kind"])), str(role.get("why", ""))
        return f"{kind}: {why}" if why and kind not in PLAIN.get(why, ()) else kind
    return str(role or column["kind"])


def _missing(about: dict[str, Any], column: dict[str, Any]) -> str:
    count = column["missing"]
    return f"{count:,} ({count / max(1, about['rows']):.1%})" if count else "none"
