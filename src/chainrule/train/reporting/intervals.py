"""Intervals of predictions: how far they reach, and how many held-out rows they hold."""

from __future__ import annotations

import math
from html import escape

from chainrule.inspect.core.svg import curve_chart
from chainrule.printing import readable
from chainrule.tensor import Tensor
from chainrule.train.fitted import FittedNetwork
from chainrule.train.intervals import half_width
from chainrule.train.reporting.html import framed, note, table
from chainrule.train.reporting.seen import seen_of

__all__ = ["USUAL", "half_widths", "intervals"]

USUAL = 0.9  # the level of which most is said
LEVELS = (0.5, 0.8, 0.9, 0.95)
DRAWN = 4  # targets with a curve
TWO_SIDED = 1.959964  # standard deviations that chance exceeds once in twenty times


def half_widths(network: FittedNetwork, level: float) -> list[float]:
    """How far an interval reaches to both sides of a prediction, for each target in its own unit;
    none where the network has no intervals."""
    kept = network.about.get("calibration", {})
    if network.task != "regression" or "errors" not in kept:
        return []
    reach = [half_width(column, kept["rows"], level) for column in kept["errors"]]
    return [r * s for r, s in zip(reach, network.target.spreads, strict=True)]


def intervals(network: FittedNetwork) -> str:
    """Of each level how far it reaches and what share of the held-out rows it holds, beside what
    it should hold."""
    if not half_widths(network, USUAL):
        return ""
    seen = seen_of(network)
    off = (seen.true - seen.said).abs()
    several = len(seen.names) > 1
    rows = [
        [*([name] if several else []), *_line(network, off[:, k], k, level)]
        for k, name in enumerate(seen.names)
        for level in LEVELS
    ]
    head = ["level", "reach", "held-out rows in it", "by chance"]
    shown = {name: _curve(network, off[:, k], k) for k, name in enumerate(seen.names) if k < DRAWN}
    curves = {name if several else "held-out rows": points for name, points in shown.items()}
    ideal = {"as it should be": [(0.0, 0.0), (1.0, 1.0)]}
    chart = curve_chart(
        {**curves, **ideal},
        "What intervals hold",
        "level of the interval",
        "share of held-out rows in it",
        faint=tuple(ideal),
        span=(0.0, 1.0),
    )
    words = " ".join(_words(network, off[:, k], k) for k in range(len(seen.names))[:DRAWN])
    listed = table(["target", *head] if several else head, rows)
    return (
        f'<p>{escape(words)}</p><div class="beside">{framed(chart)}<div>{listed}'
        + note(
            "Intervals reach as far as predictions were off on "
            f"{network.about['calibration']['rows']:,} rows that were not learned from (split "
            "conformal prediction), for all rows alike. By chance: where the share lies in 19 of "
            "20 cases if the rows are of the same kind."
        )
        + "</div></div>"
    )


def _line(network: FittedNetwork, off: Tensor, k: int, level: float) -> list[str]:
    half = half_widths(network, level)[k]
    low, high = _by_chance(network, len(off), level)
    reach = f"±{readable(half)}" if math.isfinite(half) else "without end"
    return [f"{level:.0%}", reach, f"{_share(off, half):.1%}", f"{low:.1%} to {high:.1%}"]


def _share(off: Tensor, half: float) -> float:
    return float((off <= half).double().mean())


def _by_chance(network: FittedNetwork, rows: int, level: float) -> tuple[float, float]:
    """Between which shares held-out rows lie in an interval that is right, for both samples vary:
    the rows that gave the interval and those that are looked at."""
    known = network.about["calibration"]["rows"]
    half = TWO_SIDED * math.sqrt(level * (1 - level) * (1 / rows + 1 / known))
    return max(0.0, level - half), min(1.0, level + half)


def _curve(network: FittedNetwork, off: Tensor, k: int) -> list[tuple[float, float]]:
    levels = [i / 20 for i in range(1, 20)]
    return [(level, _share(off, half_widths(network, level)[k])) for level in levels]


def _words(network: FittedNetwork, off: Tensor, k: int) -> str:
    half, share = half_widths(network, USUAL)[k], _share(off, half_widths(network, USUAL)[k])
    low, high = _by_chance(network, len(off), USUAL)
    names = network.target.names
    whose = f" of {names[k]}" if len(names) > 1 else ""
    if not math.isfinite(half):
        rows = network.about["calibration"]["rows"]
        return f"{rows} rows are too few for an interval{whose} of {USUAL:.0%}."
    said = (
        f"The interval{whose} of {USUAL:.0%} reaches {readable(half)} to both sides and holds "
        f"{share:.1%} of the {len(off):,} held-out rows"
    )
    if share < low:
        return f"{said}, less than it says: these rows are of another kind than those before."
    if share > high:
        return f"{said}, more than it says: it is wider than it need be."
    return f"{said}: what it says, within chance."
