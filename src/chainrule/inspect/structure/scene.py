"""Drawings as SVG text, with the places of all that is in them as numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from chainrule.inspect.core.pages import page
from chainrule.inspect.core.results import Diagram
from chainrule.inspect.structure.texts import SIZE, text, width_of
from chainrule.printing import text_table

__all__ = ["FONT", "Box", "Drawing", "Edge", "Label", "picture"]

FONT = "Helvetica,Arial,'Liberation Sans',sans-serif"
ARROW = (
    '<marker id="chainrule-arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" '
    'markerHeight="7" orient="auto"><path d="M0 0.8L8 4L0 7.2z" fill="#555"/></marker>'
    '<marker id="chainrule-dot" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="5" '
    'markerHeight="5"><circle cx="4" cy="4" r="3.5" fill="#555"/></marker>'
)


@dataclass
class Box:
    """A block in a drawing: where it is, and what it stands for.

    A frame holds other boxes; a round one is the circle in its square.
    """

    name: str
    kind: str
    x: float
    y: float
    width: float
    height: float
    frame: bool = False
    facts: dict[str, str] = field(default_factory=dict)
    round: bool = False


@dataclass
class Label:
    """A text in a drawing: the rectangle that it fills."""

    words: str
    x: float
    y: float
    width: float
    height: float

    @classmethod
    def at(
        cls, words: str, x: float, baseline: float, size: float, bold: bool, anchor: str
    ) -> Label:
        """The rectangle of a text that is written at a place."""
        width = width_of(words, size, bold)
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * width
        return cls(words, left, baseline - 0.78 * size, width, size)


@dataclass
class Edge:
    """A link in a drawing, by the names of its ends and the points that it runs through.

    Between two points it is straight, or, if it is ``bent``, inside the rectangle of both.
    """

    source: str
    target: str
    points: list[tuple[float, float]]
    note: str = ""
    bent: bool = False


@dataclass(repr=False)
class Drawing(Diagram):
    """A drawing of a network: SVG text, and the places of boxes, texts and links as numbers.

    Places are in the units of the picture, whose left upper corner is ``(x, y)``.
    """

    title: str
    boxes: list[Box]
    labels: list[Label]
    edges: list[Edge]
    x: float
    y: float
    width: float
    height: float
    svg: str
    _tikz: str = field(default="", kw_only=True)

    def __str__(self) -> str:
        shown = [b for b in self.boxes if not b.frame]
        columns = list(dict.fromkeys(key for box in shown for key in box.facts))
        rows = [[b.name, b.kind, *(b.facts.get(c, "") for c in columns)] for b in shown]
        table = text_table(["box", "kind", *columns], rows, rule=True)
        return f"{self.title}\n{len(shown)} boxes, {len(self.edges)} links\n\n{table}"

    def to_html(self) -> str:
        """The drawing as a page that stands alone."""
        return page(self.title, f'<div class="frame">{self.svg}</div>')

    def to_tikz(self) -> str:
        """The drawing as a LaTeX document of the class standalone."""
        return self._tikz

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the drawing as ``*.svg``, as a page, ``*.html``, or for LaTeX, ``*.tex``."""
        target = Path(path)
        if target.suffix in (".html", ".htm"):
            target.write_text(self.to_html(), "utf-8")
        elif target.suffix == ".tex":
            target.write_text(self.to_tikz(), "utf-8")
        else:
            return super().save(path)
        return target


def picture(
    parts: Sequence[str],
    title: str,
    box: tuple[float, float, float, float],
    *,
    head: str = "",
    style: str = "",
) -> str:
    """SVG text of parts, on a light ground that is readable on dark pages, too."""
    x, y, width, height = (f"{v:g}" for v in (round(v, 1) for v in box))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{x} {y} {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{escape(title)}" '
        f'font-family="{FONT}" font-size="{SIZE:g}">'
        f"<style>.l{{fill:none;stroke:#555;stroke-width:1.3}}{style}</style><defs>{ARROW}</defs>"
        f'<rect class="ground" x="{x}" y="{y}" width="{width}" height="{height}" rx="6" '
        f'fill="#fff"/><g class="head" transform="translate({x} {y})">{head}</g>'
        f"{''.join(parts)}</svg>"
    )


def heading(title: str, subtitle: str = "") -> tuple[str, float, float, list[Label]]:
    """A title as SVG text, its height and width, and its labels from the corner of the picture."""
    parts = [text(title, 12, 22, size=15, bold=True)]
    labels = [Label.at(title, 12, 22, 15, True, "start")]
    if subtitle:
        parts.append(text(subtitle, 12, 40, size=11, color="#555"))
        labels.append(Label.at(subtitle, 12, 40, 11, False, "start"))
    wide = max(label.width for label in labels)
    return "".join(parts), 56.0 if subtitle else 38.0, wide, labels
