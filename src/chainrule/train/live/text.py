"""Curves as lines of text: dots of braille, or plain signs where a terminal has no others."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chainrule.charts import spans_decades
from chainrule.train.live.curves import STEP, Points

__all__ = ["Frame", "Look", "text_chart", "visible"]

# The dots of a sign of braille, by row and column.
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
SIGNS = "*o+x#"
# Of the curves, from the colors that every kind of color vision tells apart; steps are gray.
ANSI = ("38;5;32", "38;5;208", "38;5;36", "38;5;175", "38;5;178")
GRAY = "38;5;245"
LEFT = 10  # characters of numbers and axis


@dataclass(frozen=True)
class Look:
    """What a terminal can show."""

    braille: bool = True
    color: bool = True

    def painted(self, text: str, code: str) -> str:
        """The text in a color, if there are any."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text.strip() else text


class _Raster:
    """Cells of text with the dots that are set in them, and whose they are."""

    def __init__(self, width: int, height: int, braille: bool):
        self.width, self.height, self.braille = width, height, braille
        self.across, self.down = (2, 4) if braille else (1, 1)
        self.cells: dict[tuple[int, int], tuple[int, int]] = {}  # dots, curve

    def dot(self, x: int, y: int, curve: int) -> None:
        row, column = y // self.down, x // self.across
        if 0 <= row < self.height and 0 <= column < self.width:
            bit = DOTS[y % 4][x % 2] if self.braille else 1
            before = self.cells.get((row, column), (0, curve))
            dots = bit | (before[0] if before[1] == curve or self.braille else 0)
            self.cells[row, column] = dots, curve

    def line(self, start: tuple[int, int], end: tuple[int, int], curve: int) -> None:
        steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
        for i in range(steps + 1):
            x, y = (a + (b - a) * i / steps for a, b in zip(start, end, strict=True))
            self.dot(round(x), round(y), curve)

    def sign(self, row: int, column: int) -> tuple[str, int]:
        """The sign of a cell, and the curve it belongs to (-1: none)."""
        dots, curve = self.cells.get((row, column), (0, -1))
        if not dots:
            return " ", -1
        if self.braille:
            return chr(0x2800 + dots), curve
        return "." if curve == 0 else SIGNS[(curve - 1) % len(SIGNS)], curve


@dataclass(frozen=True)
class Frame:
    """What charts below one another have in common: width, room for names, and the epochs."""

    width: int
    right: int
    epochs: tuple[float, float]

    @classmethod
    def of(cls, panels: Iterable[Mapping[str, Points]], width: int) -> Frame:
        """The frame that curves need."""
        curves = [item for panel in panels for item in panel.items()]
        right = max([len(_end(name, points)) for name, points in curves if name != STEP], default=0)
        xs = [x for _, points in curves for x, _ in points]
        first = math.floor(min(xs)) if any(name == STEP for name, _ in curves) else min(xs)
        return cls(width, right + 2, (first, max(*xs, first + 1)))


def text_chart(
    curves: Mapping[str, Points], title: str, height: int, frame: Frame, look: Look
) -> list[str]:
    """A chart of curves over epochs, in ``height`` lines.

    The axis is logarithmic if the values span two decades. Each curve ends at its name and its
    last value, so that it is known without colors, too.
    """
    log = spans_decades(y for points in curves.values() for _, y in points)
    raster = _Raster(max(8, frame.width - LEFT - frame.right), max(3, height - 3), look.braille)
    order = [STEP, *(name for name in curves if name != STEP)]
    drawn = {
        name: [(x, math.log10(y) if log else y) for x, y in curves[name]]
        for name in order
        if name in curves
    }
    if STEP in drawn:
        drawn[STEP] = _averaged(drawn[STEP], frame.epochs, raster.width * raster.across)
    ys = [y for points in drawn.values() for _, y in points]
    limits = _widened(min(ys), max(ys))
    last_rows = {}
    for name, points in drawn.items():
        dots = [_place(raster, p, frame.epochs, limits) for p in points]
        for a, b in zip(dots, dots[1:] or dots, strict=False):
            raster.line(a, b, order.index(name))
        last_rows[name] = dots[-1][1] // raster.down
    from_above = sorted((n for n in drawn if n != STEP), key=lambda n: -curves[n][-1][1])
    ends = {n: _end(n, curves[n]) for n in from_above}
    labels = _labels(ends, last_rows, order, raster.height)
    head = " " * LEFT + title + (" (log axis)" if log else "")
    return [
        head[: frame.width],
        *_lines(raster, limits, log, labels, look),
        *_x_axis(raster.width, frame.epochs, look),
    ]


def _end(name: str, points: Points) -> str:
    return f"{name} {points[-1][1]:.4g}"


def _averaged(points: Points, epochs: tuple[float, float], columns: int) -> Points:
    """The mean of the points of each column: of many steps, a line and not a cloud."""
    found: dict[int, list[tuple[float, float]]] = {}
    for x, y in points:
        found.setdefault(int((x - epochs[0]) / (epochs[1] - epochs[0]) * columns), []).append(
            (x, y)
        )
    return [
        (sum(x for x, _ in some) / len(some), sum(y for _, y in some) / len(some))
        for some in found.values()
    ]


def _widened(low: float, high: float) -> tuple[float, float]:
    """Limits that are not equal."""
    return (low, high) if high > low else (low - (abs(low) or 1) / 10, high + (abs(high) or 1) / 10)


def _place(
    raster: _Raster, point: tuple[float, float], x: tuple[float, float], y: tuple[float, float]
) -> tuple[int, int]:
    across, down = raster.width * raster.across - 1, raster.height * raster.down - 1
    share = (point[0] - x[0]) / (x[1] - x[0]), (y[1] - point[1]) / (y[1] - y[0])
    return round(share[0] * across), round(share[1] * down)


def _labels(
    ends: Mapping[str, str], rows: Mapping[str, int], order: list[str], height: int
) -> dict[int, tuple[str, int]]:
    """What stands at the right of each row: names from above, none in the place of another."""
    placed: dict[int, tuple[str, int]] = {}
    for k, name in enumerate(ends):
        free = max(rows[name], max(placed, default=-1) + 1)
        row = min(free, height - (len(ends) - k))
        if row >= 0:
            placed[row] = ends[name], order.index(name)
    return placed


def _lines(
    raster: _Raster,
    limits: tuple[float, float],
    log: bool,
    labels: Mapping[int, tuple[str, int]],
    look: Look,
) -> list[str]:
    low, high = limits
    bar, tick = ("│", "┤") if look.braille else ("|", "+")
    every = max(2, (raster.height - 1) // 4)
    lines = []
    for row in range(raster.height):
        numbered = row % every == 0 and (row == 0 or row + every // 2 < raster.height)
        value = high - (high - low) * (row + 0.5 * (row > 0)) / raster.height
        number = f"{10**value if log else value:.3g}" if numbered else ""
        text, code = "", ""
        name, curve = labels.get(row, ("", 0))
        for column in range(raster.width):
            sign, owner = raster.sign(row, column)
            code = _code(owner) if owner >= 0 else ""
            text += look.painted(sign, code)
        end = f"  {look.painted(name, _code(curve))}" if name else ""
        lines.append(f"{number:>{LEFT - 2}} {tick if numbered else bar}{text}{end}".rstrip())
    return lines


def _code(curve: int) -> str:
    return GRAY if curve == 0 else ANSI[(curve - 1) % len(ANSI)]


def _x_axis(width: int, epochs: tuple[float, float], look: Look) -> list[str]:
    corner, dash = ("└", "─") if look.braille else ("+", "-")
    first, last = f"{epochs[0]:.4g}", f"epoch {epochs[1]:.4g}"
    gap = " " * max(1, width - len(first) - len(last))
    return [f"{'':{LEFT - 1}}{corner}{dash * width}", f"{'':{LEFT}}{first}{gap}{last}"]


def visible(line: str) -> int:
    """How many characters of a line are seen."""
    return len(re.sub(r"\x1b\[[0-9;]*m", "", line))
