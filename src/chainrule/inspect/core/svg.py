"""Small charts as SVG text: for pages that stand alone and need no plotting library."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from html import escape

from chainrule.charts import COLORS

__all__ = [
    "bar_chart",
    "color_of",
    "confusion_chart",
    "curve_chart",
    "heat_chart",
    "histogram_chart",
    "line_chart",
    "scatter_chart",
]

WIDTH, HEIGHT = 520, 300
LEFT, RIGHT, TOP, BOTTOM = 72, 14, 30, 42
LEGEND = 18  # the height of a row of names below the chart


def color_of(i: int) -> str:
    """The color of curve i; what would be black has the color of the text, light on a dark page.

    >>> color_of(0), color_of(7)
    ('#0072B2', 'currentColor')
    """
    color = COLORS[i % len(COLORS)]
    return "currentColor" if color == "#000000" else color


def _ticks(low: float, high: float, count: int = 5, whole: bool = False) -> list[float]:
    """Round numbers from low to high; with ``whole`` no others than whole ones."""
    if high <= low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough)
    step = max(1, math.ceil(step)) if whole else step
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _label(value: float) -> str:
    """A number with four digits, in thousands (k), millions (M) or billions (G) where it is large.

    >>> [_label(v) for v in (0.25, 9000.0, 250000.0, -1.5e6)]
    ['0.25', '9000', '250k', '-1.5M']
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size <= abs(value) < 1e12:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"


class _Axis:
    """Numbers to pixels, on a linear or logarithmic scale."""

    whole = False  # whether only whole numbers have a meaning

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
            return _ticks(self.low, self.high, whole=self.whole)
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        steps = (1,) if self.high - self.low > 2 else (1, 2, 5)
        marks = [m * 10.0**p for p in powers for m in steps]
        return [t for t in marks if self.low <= math.log10(t) <= self.high]


def _titles(title: str, xlabel: str, ylabel: str) -> list[str]:
    return [
        f'<text x="{WIDTH / 2}" y="18" text-anchor="middle" font-weight="600">'
        f"{escape(_short(title, 60))}</text>",
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">'
        f"{escape(_short(xlabel, 60))}</text>",
        f'<text transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
        f'text-anchor="middle">{escape(ylabel)}</text>',
    ]


def _grid(x: _Axis, y: _Axis) -> list[str]:
    parts = []
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
    ".chart .dot{fill:#0072B2;fill:var(--mark,#0072B2);fill-opacity:.55}"
    ".chart .bar{fill:#0072B2;fill:var(--mark,#0072B2)}"
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
    dots: Mapping[str, tuple[float, float]] | None = None,
    span: Sequence[float] = (),
    whole: bool = False,
) -> str:
    """Curves through points (x, y); those named in ``faint`` are drawn thin, behind the others.

    ``dots`` are points on curves, by the names of these; ``span`` are values that the vertical axis
    reaches in any case; ``whole`` says that x are numbered things, like years. One curve with the
    name "" has no legend.
    """
    points = [p for some in curves.values() for p in some]
    if not points:
        raise ValueError(f"line_chart: {title!r} has no points to draw")
    xs = [a for a, _ in points]
    # One point gets room on both sides, as in a curve that has only begun.
    x = _Axis(xs if len(set(xs)) > 1 else [*xs, xs[0] + 1], LEFT, WIDTH - RIGHT)
    x.whole = whole or xlabel == "epoch"
    y = _Axis([*span, *[b for _, b in points]], HEIGHT - BOTTOM, TOP, log)
    plot = _grid(x, y)
    if mark is not None:
        plot.append(
            f'<line x1="{x(mark):.1f}" y1="{TOP}" x2="{x(mark):.1f}" y2="{HEIGHT - BOTTOM}" '
            'stroke="#888" stroke-dasharray="4 3" class="mark"/>'
        )
    for i, (name, some) in enumerate(curves.items()):
        color = color_of(i)
        plot.append(_curve(x, y, some, color, name in faint))
        if dots and name in dots:
            at, height = dots[name]
            plot.append(
                f'<circle cx="{x(at):.1f}" cy="{y(height):.1f}" r="5" fill="{color}" class="at"/>'
            )
    legend, rows = _legend(list(curves)) if any(curves) else ([], 0)
    parts = [*_titles(title, xlabel, ylabel), '<g class="plot">', *plot, "</g>", *legend]
    return _page(parts, title, height=HEIGHT + 4 + LEGEND * rows)


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


def _legend(names: Sequence[str]) -> tuple[list[str], int]:
    """The names of curves in rows below the chart, and how many rows they need."""
    parts, at, row = [], float(LEFT), 0
    for i, name in enumerate(names):
        width = 34 + 7 * len(_short(name))
        if at + width > WIDTH and at > LEFT:
            at, row = float(LEFT), row + 1
        y = HEIGHT + 12 + LEGEND * row
        parts.append(
            f'<rect x="{at}" y="{y - 5}" width="16" height="3" fill="{color_of(i)}"/>'
            f'<text x="{at + 21}" y="{y}">{escape(_short(name))}</text>'
        )
        at += width
    return parts, row + 1


def scatter_chart(
    xs: Sequence[float],
    ys: Sequence[float],
    title: str,
    xlabel: str,
    ylabel: str,
    line: str = "equal",
    sizes: Sequence[float] | None = None,
    band: float | None = None,
) -> str:
    """Points, and the line on which both coordinates are equal, or y is zero (``line="zero"``).

    ``sizes`` are what the areas of the points are proportional to; ``band`` is how far from the
    line two more are drawn.
    """
    if not xs or len(xs) != len(ys):
        raise ValueError(
            f"scatter_chart: needs as many x as y, at least one, got {len(xs)} and {len(ys)}"
        )
    if line not in ("equal", "zero"):
        raise ValueError(f"scatter_chart: line must be 'equal' or 'zero', got {line!r}")
    both = [*xs, *ys] if line == "equal" else [*ys, 0.0]
    x = _Axis(both if line == "equal" else xs, LEFT, WIDTH - RIGHT)
    reach = [band, -band] if band is not None and line == "zero" else []
    y = _Axis([*both, *reach], HEIGHT - BOTTOM, TOP)
    slope = 1.0 if line == "equal" else 0.0
    low, high = (min(both), max(both)) if slope else (min(xs), max(xs))
    parts = [*_titles(title, xlabel, ylabel), *_grid(x, y)]
    for shift in (0.0, *([] if band is None else [band, -band])):
        first, last = low + slope * max(0.0, -shift), high - slope * max(0.0, shift)
        if first <= last:
            parts.append(
                f'<line x1="{x(first):.1f}" y1="{y(slope * first + shift):.1f}" '
                f'x2="{x(last):.1f}" y2="{y(slope * last + shift):.1f}" stroke="#888" '
                f'stroke-dasharray="{"1 3" if shift else "4 3"}"/>'
            )
    largest = max(sizes) if sizes else 1.0
    parts += [
        f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" '
        f'r="{2.5 if sizes is None else 3 + 9 * math.sqrt(sizes[i] / largest):.1f}" '
        'class="dot"/>'
        for i, (a, b) in enumerate(zip(xs, ys, strict=True))
        if math.isfinite(a) and math.isfinite(b)
    ]
    return _page(parts, title)


def histogram_chart(
    counts: Sequence[int], low: float, high: float, title: str, xlabel: str, ylabel: str
) -> str:
    """Bars upwards, of counts in bins of one width from ``low`` to ``high``; a line at zero."""
    if not counts or not low < high:
        raise ValueError(f"histogram_chart: {title!r} needs bins from a low to a high number")
    x, y = _Axis([low, high], LEFT, WIDTH - RIGHT), _Axis([0, max(counts)], HEIGHT - BOTTOM, TOP)
    step = (high - low) / len(counts)
    parts = [*_titles(title, xlabel, ylabel), *_grid(x, y)]
    for i, count in enumerate(counts):
        left, right = x(low + i * step), x(low + (i + 1) * step)
        between = f"{_label(low + i * step)} to {_label(low + (i + 1) * step)}"
        parts.append(
            f'<rect x="{left + 0.5:.1f}" y="{y(count):.1f}" width="{right - left - 1:.1f}" '
            f'height="{y(0) - y(count):.1f}" class="bar"><title>{between}: {count}</title></rect>'
        )
    if low < 0 < high:
        parts.append(
            f'<line x1="{x(0):.1f}" y1="{TOP}" x2="{x(0):.1f}" y2="{HEIGHT - BOTTOM}" '
            'stroke="#888" stroke-dasharray="4 3"/>'
        )
    return _page(parts, title)


def heat_chart(rows: Sequence[Sequence[float]], title: str, caption: str) -> str:
    """Cells that are the darker the larger their values are; nothing below zero is shown."""
    if not rows or not rows[0]:
        raise ValueError(f"heat_chart: {title!r} has no values to draw")
    cell = min(28.0, 250 / max(len(rows), len(rows[0])))
    most = max(max(row) for row in rows) or 1.0
    left = (WIDTH - len(rows[0]) * cell) / 2
    parts = [
        f'<text x="{WIDTH / 2}" y="18" text-anchor="middle" font-weight="600">'
        f"{escape(title)}</text>"
    ]
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            share = max(0.0, value / most)
            parts.append(
                f'<rect x="{left + j * cell:.1f}" y="{TOP + i * cell:.1f}" width="{cell:.1f}" '
                f'height="{cell:.1f}" class="bar" fill-opacity="{share:.3f}">'
                f"<title>row {i}, column {j}: {_label(value)}</title></rect>"
            )
    bottom = TOP + len(rows) * cell
    parts.append(
        f'<rect x="{left:.1f}" y="{TOP}" width="{len(rows[0]) * cell:.1f}" '
        f'height="{len(rows) * cell:.1f}" fill="none" stroke="#888"/>'
        f'<text x="{WIDTH / 2}" y="{bottom + 18:.1f}" text-anchor="middle">{escape(caption)}</text>'
    )
    return _page(parts, title, WIDTH, bottom + 28)


def bar_chart(
    values: Mapping[str, float], title: str, xlabel: str, span: Sequence[float] = ()
) -> str:
    """A bar to the right for each value, or to the left for one below zero, from above.

    ``span`` are values that the axis reaches in any case.

    >>> bar_chart({"width": 0.5, "length": 2.0}, "Importance", "increase of the error")[:4]
    '<svg'
    """
    if not values:
        raise ValueError(f"bar_chart: {title!r} has no values to draw")
    left = 24 + 7 * min(24, max(len(name) for name in values))
    bottom = TOP + 22 * len(values)
    x = _Axis([0.0, *span, *values.values()], left, WIDTH - RIGHT)
    parts = [
        f'<text x="{WIDTH / 2}" y="18" text-anchor="middle" font-weight="600">'
        f"{escape(title)}</text>",
        f'<text x="{(left + WIDTH - RIGHT) / 2}" y="{bottom + 36}" text-anchor="middle">'
        f"{escape(xlabel)}</text>",
    ]
    parts += [
        f'<line x1="{x(t):.1f}" y1="{TOP}" x2="{x(t):.1f}" y2="{bottom}" class="grid"/>'
        f'<text x="{x(t):.1f}" y="{bottom + 16}" text-anchor="middle">{_label(t)}</text>'
        for t in x.ticks()
    ]
    for i, (name, value) in enumerate(values.items()):
        y = TOP + 22 * i + 3
        start, width = min(x(0), x(value)), abs(x(value) - x(0))
        parts.append(
            f'<rect x="{start:.1f}" y="{y}" width="{width:.1f}" height="16" rx="2" '
            f'class="bar"><title>{escape(name)}: {_label(value)}</title></rect>'
            f'<text x="{left - 6}" y="{y + 12}" text-anchor="end">{escape(_short(name))}</text>'
        )
    return _page(parts, title, WIDTH, bottom + 46)


def _short(name: str, most: int = 24) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


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
