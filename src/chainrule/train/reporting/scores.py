"""The verdict, the warnings, and the scores beside those of baselines."""

from __future__ import annotations

import math
import re
from html import escape

from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.html import table_of
from chainrule.train.reporting.verdict import measure, verdict

__all__ = ["answer", "scores"]


def answer(network: FittedNetwork) -> str:
    """The verdict in one sentence, what warns of it, and what to try."""
    found = verdict(network)
    warned = "".join(
        f'<div class="finding"><b>Warning:</b> {escape(str(text))}</div>'
        for text in network.about.get("warnings", [])
    )
    warned += "".join(
        f'<div class="finding"><b>Note:</b> {_marked(str(text))}</div>'
        for text in network.about.get("notes", [])
    )
    tried = "".join(f"<li>{_marked(text)}</li>" for text in found.advice)
    more = f"<ul>{tried}</ul>" if tried else ""
    return f'<div class="verdict {found.level}"><p>{escape(found.sentence)}</p></div>{warned}{more}'


def _marked(text: str) -> str:
    """Text in which `what stands so` is code."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(text))


def scores(network: FittedNetwork) -> str:
    """Tiles with the scores, and the table of the network and its baselines; best ones stand out.

    With intervals: where the score of other rows would lie in 95 of 100 cases.
    """
    about = network.about
    names, intervals = list(about["scores"]), about.get("intervals", {})
    tiles = ""
    for n in names:
        shown, value = measure(n), about["scores"][n]
        between = ""
        if n in intervals:
            low, high = intervals[n]
            between = f'<span class="soft">{shown(low)} to {shown(high)}</span>'
        tiles += (
            f'<div class="tile" title="{escape(shown.meaning)}">{escape(shown.name)}'
            f"<b>{escape(shown(value))}</b>{between}</div>"
        )
    models = {"this network": about["scores"], **about["baselines"]}
    rows = [
        [escape(label), *[_cell(n, own.get(n), models.values()) for n in names]]
        for label, own in models.items()
    ]
    head = ["model", *[measure(n).name for n in names]]
    meanings = "; ".join(f"{measure(n).name}: {measure(n).meaning}" for n in names)
    return (
        f'<div class="tiles">{tiles}</div>{table_of(head, rows)}'
        f'<p class="soft">{escape(meanings)}.</p>'
    )


def _cell(name: str, value: float | None, models: object) -> str:
    """A score; bold where no other model has a better one."""
    if value is None:
        return ""
    shown = measure(name)
    known = [m[name] for m in models if name in m]  # type: ignore[attr-defined]
    best = (min if shown.lower else max)((v for v in known if math.isfinite(v)), default=value)
    text = escape(shown(value))
    return f"<b>{text}</b>" if value == best else text
