"""Shapes at given places, written as SVG text and as TikZ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule.inspect.structure.scene import Box, Drawing, Edge, Label, heading, picture
from chainrule.inspect.structure.texts import SIZE, escaped, text
from chainrule.inspect.structure.tikz import Tikz

__all__ = ["Canvas", "Sketch"]

Point = tuple[float, float]
DASHES = {"": "", "dotted": "1.5 3", "dashed": "5 3"}


@dataclass
class Canvas:
    """Collects shapes, and where they are."""

    boxes: list[Box] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _shapes: list[str] = field(default_factory=list)
    _tikz: Tikz = field(default_factory=Tikz)

    def circle(
        self,
        name: str,
        x: float,
        y: float,
        radius: float,
        *,
        kind: str = "unit",
        fill: str = "#ffffff",
        stroke: str = "#333333",
        note: str = "",
        facts: dict[str, str] | None = None,
    ) -> None:
        """A circle around a place."""
        box = Box(name, kind, x - radius, y - radius, 2 * radius, 2 * radius, facts=facts or {})
        box.round = True
        self.boxes.append(box)
        self._shapes.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{fill}" stroke="{stroke}" '
            f'stroke-width="1.3">{_title(note)}</circle>'
        )
        self._tikz.circle(x, y, radius, fill, stroke)

    def box(
        self,
        name: str,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        kind: str = "box",
        fill: str = "#ffffff",
        stroke: str = "#333333",
        radius: float = 4.0,
        note: str = "",
        frame: bool = False,
        facts: dict[str, str] | None = None,
    ) -> None:
        """A rectangle around a place; a frame may hold other shapes."""
        left, top = x - width / 2, y - height / 2
        self.boxes.append(Box(name, kind, left, top, width, height, frame, facts or {}))
        drawn = self._lines if frame else self._shapes
        drawn.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'rx="{radius:g}" fill="{fill}" stroke="{stroke}" stroke-width="1.3">'
            f"{_title(note)}</rect>"
        )
        self._tikz.box(left, top, width, height, fill, stroke, radius=radius, frame=frame)

    def line(
        self,
        source: str,
        target: str,
        points: Sequence[Point],
        *,
        color: str = "#555555",
        width: float = 1.3,
        dash: str = "",
        arrow: bool = False,
        note: str = "",
        edge: bool = True,
    ) -> None:
        """A line through points; ``edge`` says whether it stands for a link."""
        if edge:
            self.edges.append(Edge(source, target, list(points), note))
        path = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashes = f' stroke-dasharray="{DASHES[dash]}"' if dash else ""
        end = ' marker-end="url(#chainrule-arrow)"' if arrow else ""
        self._lines.append(
            f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{width:.2f}"{dashes}'
            f"{end}>{_title(note)}</path>"
        )
        self._tikz.line(points, color=color, width=width, dash=dash, arrow=arrow)

    def link(self, source: str, target: str, points: Sequence[Point], note: str) -> None:
        """A link that is seen by lines which it shares with others."""
        self.edges.append(Edge(source, target, list(points), note))

    def mark(self, x: float, y: float, size: float, state: str, color: str, note: str) -> None:
        """A crossing of lines that counts: a cross where it is trained, a square where frozen."""
        if state == "trained":
            path = f"M{x - size:.1f},{y - size:.1f}L{x + size:.1f},{y + size:.1f}"
            path += f"M{x - size:.1f},{y + size:.1f}L{x + size:.1f},{y - size:.1f}"
            shape, fill = f'<path d="{path}"', "none"
            self._tikz.cross(x, y, size, color)
        else:
            half, fill = (1.6, color) if state == "pruned" else (size, "#ffffff")
            edge = f'width="{2 * half:.1f}" height="{2 * half:.1f}"'
            shape = f'<rect x="{x - half:.1f}" y="{y - half:.1f}" {edge}'
            self._tikz.square(x, y, half, fill, color)
        style = f'fill="{fill}" stroke="{color}" stroke-width="2.2"'
        self._shapes.append(f"{shape} {style}>{_title(note)}</{shape[1:5].strip()}>")

    def dots(self, x: float, y: float) -> None:
        """Three dots below each other: some are left out."""
        for at in (y - 7, y, y + 7):
            self._shapes.append(f'<circle cx="{x:.1f}" cy="{at:.1f}" r="1.7" fill="#777777"/>')
            self._tikz.dot(x, at)

    def words(
        self,
        words: str,
        x: float,
        y: float,
        *,
        size: float = SIZE,
        bold: bool = False,
        anchor: str = "middle",
        color: str = "",
    ) -> None:
        """A text whose middle line is at y."""
        if not words:
            return
        baseline = y + 0.35 * size
        self.labels.append(Label.at(words, x, baseline, size, bold, anchor))
        self._shapes.append(
            text(words, x, baseline, size=size, bold=bold, anchor=anchor, color=color)
        )
        self._tikz.words(words, x, y, size, bold, anchor, color)

    def sketch(self, title: str, subtitle: str, pad: float = 14.0) -> Sketch:
        """All of it as a drawing."""
        head, top, wide, told = heading(title, subtitle)
        things: list[Box | Label] = [*self.boxes, *self.labels]
        spots = [(b.x, b.y, b.x + b.width, b.y + b.height) for b in things]
        spots += [(x, y, x, y) for e in self.edges for x, y in e.points]
        left, upper = min(s[0] for s in spots), min(s[1] for s in spots)
        right = max(left + wide, *(s[2] for s in spots))
        lower = max(s[3] for s in spots)
        area = (left - pad, upper - top, right - left + 2 * pad, lower - upper + top + pad)
        labels = [Label(w.words, w.x + area[0], w.y + area[1], w.width, w.height) for w in told]
        svg = picture([*self._lines, *self._shapes], title, area, head=head)
        tikz = self._tikz.document()
        return Sketch(
            title, self.boxes, [*self.labels, *labels], self.edges, *area, svg, _tikz=tikz
        )


@dataclass(repr=False)
class Sketch(Drawing):
    """A drawing of units: ``links`` are its weights."""

    links: list[Any] = field(default_factory=list)


def _title(note: str) -> str:
    return f"<title>{escaped(note)}</title>" if note else ""
