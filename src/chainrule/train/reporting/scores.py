"""The verdict, the warnings, and the scores beside those of baselines."""

from __future__ import annotations

import math
import re
from html import escape

from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.html import table_of
from chainrule.train.reporting.verdict import measure, verdict

__all__ = ["answer", "scores"]

ERRORS = ("rmse", "mae")  # of several targets each has its own


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

    With intervals: where the score of other rows would lie in 95 of 100 cases. Of several targets
    each has a row of its own.
    """
    about = network.about
    targets = network.target.names if len(network.target.names) > 1 else []
    own = {f"{kind} {name}" for kind in ERRORS for name in targets}
    names, intervals = [n for n in about["scores"] if n not in own], about.get("intervals", {})
    tiles = "".join(_tile(n, about["scores"][n], intervals.get(n)) for n in names)
    models = {"this network": about["scores"], **about["baselines"]}
    rows = [
        [escape(label), *[_cell(n, known.get(n), models.values()) for n in names]]
        for label, known in models.items()
    ]
    head = ["model", *[measure(n).name for n in names]]
    kinds = dict.fromkeys([*names, *[n.partition(" ")[0] for n in about["scores"] if n in own]])
    meanings = "; ".join(f"{measure(n).name}: {measure(n).meaning}" for n in kinds)
    return (
        f'<div class="tiles">{tiles}</div>{table_of(head, rows)}'
        f"{_of_targets(network, targets) if own & set(about['scores']) else ''}"
        f'<p class="soft">{escape(meanings)}.</p>'
    )


def _tile(name: str, value: float, interval: list[float] | None) -> str:
    shown, between = measure(name), ""
    if interval is not None:
        between = f'<span class="soft">{shown(interval[0])} to {shown(interval[1])}</span>'
    return (
        f'<div class="tile" title="{escape(shown.meaning)}">{escape(shown.name)}'
        f"<b>{escape(shown(value))}</b>{between}</div>"
    )


def _of_targets(network: FittedNetwork, targets: list[str]) -> str:
    """The errors of each target beside those of the baselines, the best of them in bold."""
    about = network.about
    models = {"this network": about["scores"], **about["baselines"]}
    head = ["target", *[f"{measure(k).name}, {m}" for k in ERRORS for m in models]]
    rows = []
    for name in targets:
        cells = [
            _cell(f"{kind} {name}", own.get(f"{kind} {name}"), models.values())
            for kind in ERRORS
            for own in models.values()
        ]
        rows.append([escape(name), *cells])
    return f"<h3>Each target</h3>{table_of(head, rows)}"


def _cell(name: str, value: float | None, models: object) -> str:
    """A score; bold where no other model has a better one."""
    if value is None:
        return ""
    shown = measure(name)
    known = [m[name] for m in models if name in m]  # type: ignore[attr-defined]
    best = (min if shown.lower else max)((v for v in known if math.isfinite(v)), default=value)
    text = escape(shown(value))
    return f"<b>{text}</b>" if shown.ranked and value == best else text
