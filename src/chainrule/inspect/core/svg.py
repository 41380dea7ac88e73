"""Small charts as SVG text: for pages that stand alone and need no plotting library."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from html import escape

from chainrule.inspect.core.charts import COLORS

__all__ = ["confusion_chart", "curve_chart", "line_chart", "scatter_chart"]

WIDTH, HEIGHT = 520, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 30, 42
LEGEND = 170  # to the right of the chart


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from low to high."""
    if high <= low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _label(value: float) -> str:
    return f"{value:.4g}"


class _Axis:
    """Numbers to pixels, on a linear or logarithmic scale."""

    def __init__(self, values: Sequence[float], start: float, stop: float, log: bool = False):
        known = [v for v in values if math.isfinite(v) and (not log or v > 0)]
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        self.log, self.start, self.stop = log, start, stop
        if log:
            low, high = math.log10(low), math.log10(high)
        pad = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
        self.low, self.high = low - pad, high + pad

    def __call__(self, value: float) -> float:
        v = math.log10(value) if self.log else value
        share = (v - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    def ticks(self) -> list[float]:
        if not self.log:
            return _ticks(self.low, self.high)
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        steps = (1,) if self.high - self.low > 2 else (1, 2, 5)
        marks = [m * 10.0**p for p in powers for m in steps]
        return [t for t in marks if self.low <= math.log10(t) <= self.high]


def _frame(x: _Axis, y: _Axis, title: str, xlabel: str, ylabel: str) -> list[str]:
    parts = [
        f'<text x="{WIDTH / 2}" y="18" text-anchor="middle" font-weight="600">'
        f"{escape(title)}</text>",
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">'
        f"{escape(xlabel)}</text>",
        f'<text transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
        f'text-anchor="middle">{escape(ylabel)}</text>',
    ]
    bottom = HEIGHT - BOTTOM
    for t in x.ticks():
        at = x(t)
        parts.append(
            f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{bottom}" class="grid"/>'
            f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{_label(t)}</text>'
        )
    for t in y.ticks():
        at = y(t)
        parts.append(
            f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}" class="grid"/>'
            f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_label(t)}</text>'
        )
    return parts


# A page may say by variables what is dark and what is light; alone, a chart is dark on white.
_STYLE = (
    "<style>.chart text{font:12px system-ui,sans-serif;fill:#222;fill:var(--ink,#222)}"
    ".chart .ground{fill:#fff;fill:var(--ground,#fff)}"
    ".chart .grid{stroke:#ddd;stroke:var(--line,#ddd);stroke-width:1}</style>"
)


def _page(parts: Sequence[str], title: str, width: float = WIDTH, height: float = HEIGHT) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(title)}" '
        f'class="chart">{_STYLE}<rect width="100%" height="100%" class="ground"/>'
        f"{''.join(parts)}</svg>"
    )


def line_chart(
    series: Mapping[str, Sequence[float]],
    title: str,
    xlabel: str = "epoch",
    ylabel: str = "",
    log: bool = False,
    mark: float | None = None,
) -> str:
    """Curves over 1, 2, 3, ...; ``mark`` draws a vertical line at an x.

    >>> line_chart({"train": [1.0, 0.5, 0.3]}, "loss")[:4]
    '<svg'
    """
    curves = {name: list(enumerate(values, 1)) for name, values in series.items()}
    return curve_chart(curves, title, xlabel, ylabel, log, mark)


def curve_chart(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    title: str,
    xlabel: str = "epoch",
    ylabel: str = "",
    log: bool = False,
    mark: float | None = None,
    faint: Collection[str] = (),
) -> str:
    """Curves through points (x, y); those named in ``faint`` are drawn thin, behind the others."""
    points = [p for some in curves.values() for p in some]
    if not points:
        raise ValueError(f"line_chart: {title!r} has no points to draw")
    xs = [a for a, _ in points]
    # One point gets room on both sides, as in a curve that has only begun.
    x = _Axis(xs if len(set(xs)) > 1 else [*xs, xs[0] + 1], LEFT, WIDTH - RIGHT)
    y = _Axis([b for _, b in points], HEIGHT - BOTTOM, TOP, log)
    parts = _frame(x, y, title, xlabel, ylabel)
    if mark is not None:
        parts.append(
            f'<line x1="{x(mark):.1f}" y1="{TOP}" x2="{x(mark):.1f}" y2="{HEIGHT - BOTTOM}" '
            'stroke="#888" stroke-dasharray="4 3" class="mark"/>'
        )
    for i, (name, some) in enumerate(curves.items()):
        color = COLORS[i % len(COLORS)]
        parts += [_curve(x, y, some, color, name in faint), _legend(i, name, color)]
    return _page(parts, title, WIDTH + LEGEND)


def _curve(
    x: _Axis, y: _Axis, points: Sequence[tuple[float, float]], color: str, faint: bool
) -> str:
    places = [
        (f"{x(a):.1f}", f"{y(b):.1f}")
        for a, b in points
        if math.isfinite(b) and (not y.log or b > 0)
    ]
    if len(places) == 1:  # a line of one point is not seen
        at, height = places[0]
        return f'<circle cx="{at}" cy="{height}" r="3" fill="{color}"/>'
    how = 'stroke-width="1" stroke-opacity="0.45"' if faint else 'stroke-width="1.8"'
    path = " ".join(",".join(place) for place in places)
    return f'<polyline points="{path}" fill="none" stroke="{color}" {how}/>'


def _legend(i: int, name: str, color: str) -> str:
    at = TOP + 12 + 16 * i
    return (
        f'<rect x="{WIDTH}" y="{at - 5}" width="14" height="3" fill="{color}"/>'
        f'<text x="{WIDTH + 20}" y="{at}">{escape(name[:22])}</text>'
    )


def scatter_chart(
    xs: Sequence[float], ys: Sequence[float], title: str, xlabel: str, ylabel: str
) -> str:
    """Points, and the line on which both coordinates are equal."""
    if not xs or len(xs) != len(ys):
        raise ValueError(
            f"scatter_chart: needs as many x as y, at least one, got {len(xs)} and {len(ys)}"
        )
    both = [*xs, *ys]
    x, y = _Axis(both, LEFT, WIDTH - RIGHT), _Axis(both, HEIGHT - BOTTOM, TOP)
    parts = _frame(x, y, title, xlabel, ylabel)
    low, high = min(both), max(both)
    parts.append(
        f'<line x1="{x(low):.1f}" y1="{y(low):.1f}" x2="{x(high):.1f}" y2="{y(high):.1f}" '
        'stroke="#888" stroke-dasharray="4 3"/>'
    )
    parts += [
        f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="2.5" fill="{COLORS[0]}" fill-opacity="0.55"/>'
        for a, b in zip(xs, ys, strict=True)
        if math.isfinite(a) and math.isfinite(b)
    ]
    return _page(parts, title)


def confusion_chart(matrix: Sequence[Sequence[int]], labels: Sequence[str], title: str) -> str:
    """A confusion matrix: true classes as rows, predicted ones as columns."""
    n = len(matrix)
    if n == 0 or any(len(row) != n for row in matrix) or len(labels) != n:
        raise ValueError(f"confusion_chart: needs a square matrix and a label for each of {n} rows")
    cell = max(22.0, min(46.0, 420 / n))
    left = 30 + 7 * min(18, max(len(str(name)) for name in labels))
    top = 54
    parts = [
        f'<text x="{left + n * cell / 2}" y="18" text-anchor="middle" font-weight="600">'
        f"{escape(title)}</text>",
        f'<text x="{left + n * cell / 2}" y="36" text-anchor="middle">predicted</text>',
        f'<text transform="translate(12 {top + n * cell / 2}) rotate(-90)" text-anchor="middle">'
        "true</text>",
    ]
    for i, row in enumerate(matrix):
        total = sum(row) or 1
        name = escape(str(labels[i])[:18])
        y = top + i * cell
        parts.append(
            f'<text x="{left - 6}" y="{y + cell / 2 + 4:.1f}" text-anchor="end">{name}</text>'
        )
        for j, count in enumerate(row):
            # A few mistakes among many should be seen, too.
            share = count / total if i == j else math.sqrt(count / total)
            color = "0,114,178" if i == j else "213,94,0"
            ink = ' style="fill:#fff"' if share > 0.55 else ""
            at = left + j * cell
            parts.append(
                f'<rect x="{at:.1f}" y="{y:.1f}" width="{cell:.1f}" height="{cell:.1f}" '
                f'fill="rgba({color},{share:.3f})" stroke="#ccc"/>'
            )
            if count:
                parts.append(
                    f'<text x="{at + cell / 2:.1f}" y="{y + cell / 2 + 4:.1f}" '
                    f'text-anchor="middle"{ink}>{count}</text>'
                )
    bottom = top + n * cell
    for j, label in enumerate(labels):
        at, text = left + (j + 0.5) * cell, escape(str(label)[:18])
        if len(text) <= 3:
            parts.append(f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{text}</text>')
        else:
            turned = f'transform="translate({at - 4:.1f} {bottom + 12}) rotate(60)"'
            parts.append(f"<text {turned}>{text}</text>")
    longest = min(18, max(len(str(name)) for name in labels))
    return _page(parts, title, left + n * cell + 60, bottom + 20 + 7 * longest)
