"""What the doctor found before and after training, where one was asked."""

from __future__ import annotations

from html import escape
from typing import Any

from chainrule.train.reporting.html import table

__all__ = ["health"]


def health(about: dict[str, Any]) -> str:
    """The findings, each with its remedy, and the lines of the preflight."""
    if "findings" not in about:
        return ""
    found = "".join(_finding(f) for f in about["findings"])
    checks = [[c["name"], _outcome(c), c["reason"]] for c in about["preflight"]]
    lines = table(["preflight", "", ""], checks, numbers=False) if checks else ""
    return (found or "<p>The doctor found nothing.</p>") + lines


def _finding(f: dict[str, Any]) -> str:
    place = f" in <code>{escape(f['layer'])}</code>" if f["layer"] else ""
    return (
        f'<div class="finding {escape(f["severity"])}"><b>{escape(f["severity"])}: '
        f"{escape(f['rule'])}</b>{place}<br>{escape(f['sentence'])}<br>"
        f"<em>Remedy: {escape(f['remedy'])}</em></div>"
    )


def _outcome(check: dict[str, Any]) -> str:
    return {True: "passes", False: "fails", None: "not looked at"}[check["passed"]]
