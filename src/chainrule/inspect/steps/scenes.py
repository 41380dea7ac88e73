"""Small scenes of cells and words, drawn as SVG text or by matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Cell", "Scene", "Words", "number", "shade"]

FONT = 11


@dataclass(frozen=True)
class Cell:
    """A square with a number in it; ``mark`` is the color of a thick border."""

    x: float
    y: float
    size: float
    text: str = ""
    fill: str = "#ffffff"
    mark: str = ""
    dashed: bool = False


@dataclass(frozen=True)
class Words:
    """A line of text; ``x`` is its left edge."""

    x: float
    y: float
    text: str
    bold: bool = False


@dataclass
class Scene:
    """Cells and words on a ground of some width and height."""

    width: float
    height: float
    cells: list[Cell] = field(default_factory=list)
    words: list[Words] = field(default_factory=list)

    def to_svg(self) -> str:
        """The scene as SVG text."""
        parts = [_cell_svg(cell) for cell in self.cells]
        parts += [
            f'<text x="{w.x:.1f}" y="{w.y:.1f}" font-weight="{600 if w.bold else 400}">'
            f"{escape(w.text)}</text>"
            for w in self.words
        ]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:.0f} '
            f'{self.height:.0f}" width="{self.width:.0f}" role="img" '
            # On a narrow screen it is scrolled rather than shrunk until nothing can be read.
            f'style="min-width:{0.8 * self.width:.0f}px">'
            f"<style>text{{font:{FONT}px system-ui,sans-serif;fill:#222}}</style>"
            f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>'
        )

    def draw(self, ax: Axes) -> None:
        """Draws the scene into axes, which become a ground without ticks."""
        from matplotlib.patches import Rectangle

        ax.set(xlim=(0, self.width), ylim=(self.height, 0), aspect="equal")
        ax.set_axis_off()
        for c in self.cells:
            ax.add_patch(
                Rectangle(
                    (c.x, c.y), c.size, c.size, facecolor=c.fill,
                    edgecolor=c.mark or "#bbbbbb", linewidth=1.8 if c.mark else 0.7,
                    linestyle="--" if c.dashed else "-", zorder=2 if c.mark else 1,
                )
            )  # fmt: skip
            middle = c.x + c.size / 2, c.y + c.size / 2
            size = 7 * _font(c, FONT) / FONT
            ax.text(*middle, c.text, ha="center", va="center", fontsize=size, zorder=3)
        for w in self.words:
            ax.text(w.x, w.y, w.text, fontsize=8, weight="bold" if w.bold else "normal")


def _font(c: Cell, usual: float) -> float:
    """As large as the cell has room for the text."""
    return min(usual, (c.size - 3) / (0.6 * max(1, len(c.text))))


def _cell_svg(c: Cell) -> str:
    font = _font(c, FONT)
    middle = c.x + c.size / 2, c.y + c.size / 2 + font / 3
    small = "" if font == FONT else f' style="font-size:{font:.1f}px"'
    dash = ' stroke-dasharray="3 2"' if c.dashed else ""
    return (
        f'<rect x="{c.x:.1f}" y="{c.y:.1f}" width="{c.size:.1f}" height="{c.size:.1f}" '
        f'fill="{c.fill}" stroke="{c.mark or "#bbb"}" stroke-width="{2.5 if c.mark else 1}"{dash}/>'
        f'<text x="{middle[0]:.1f}" y="{middle[1]:.1f}" text-anchor="middle"{small}>'
        f"{escape(c.text)}</text>"
    )


def number(value: float) -> str:
    """A number in few characters.

    >>> number(3.0), number(-0.51234), number(12345.6)
    ('3', '-0.51', '1.2e+04')
    """
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 10_000:
        return str(int(value))
    return f"{value:.2f}" if 0.01 <= abs(value) < 100 else f"{value:.2g}"


def shade(value: float, largest: float) -> str:
    """A pale color: orange below zero, blue above, the paler the nearer to it; red for no number.

    >>> shade(0.0, 1.0), shade(1.0, 1.0)
    ('#ffffff', '#80b8d8')
    """
    if not math.isfinite(value):
        return "#ffd6d6"
    share = max(-1.0, min(1.0, value / largest if largest > 0 else 0.0))
    strong: Sequence[int] = (0, 114, 178) if share >= 0 else (213, 94, 0)
    mixed = [round(255 - abs(share) * 0.5 * (255 - c)) for c in strong]
    return "#" + "".join(f"{c:02x}" for c in mixed)
