"""Shapes at given places, written as SVG text and as TikZ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule.inspect.structure.blocks import INK
from chainrule.inspect.structure.scene import Box, Drawing, Edge, Label, heading, picture
from chainrule.inspect.structure.texts import SIZE, escaped, text

__all__ = ["Canvas", "Sketch"]

Point = tuple[float, float]
DASHES = {"": "", "dotted": "1.5 3", "dashed": "5 3"}
POINTS = 0.75  # of a TikZ point in a unit of the picture: 96 to the inch against 72


@dataclass
class Canvas:
    """Collects shapes, and where they are."""

    boxes: list[Box] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _shapes: list[str] = field(default_factory=list)
    _tikz_lines: list[str] = field(default_factory=list)
    _tikz_shapes: list[str] = field(default_factory=list)

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
        style = f"draw={_color(stroke)}, fill={_color(fill)}, line width=0.9pt"
        self._tikz_shapes.append(rf"\draw[{style}] {_at(x, y)} circle[radius={_pt(radius)}];")

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
        style = f"draw={_color(stroke)}, fill={_color(fill)}, rounded corners={_pt(radius)}"
        corners = f"{_at(left, top)} rectangle {_at(left + width, top + height)}"
        (self._tikz_lines if frame else self._tikz_shapes).append(rf"\draw[{style}] {corners};")

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
        style = [f"draw={_color(color)}", f"line width={_pt(width)}", *([dash] if dash else [])]
        style += ["-Stealth"] if arrow else []
        way = " -- ".join(_at(x, y) for x, y in points)
        self._tikz_lines.append(rf"\draw[{', '.join(style)}] {way};")

    def link(self, source: str, target: str, points: Sequence[Point], note: str) -> None:
        """A link that is seen by lines which it shares with others."""
        self.edges.append(Edge(source, target, list(points), note))

    def mark(self, x: float, y: float, size: float, state: str, color: str, note: str) -> None:
        """A crossing of lines that counts: a cross where it is trained, a square where frozen."""
        if state == "trained":
            path = f"M{x - size:.1f},{y - size:.1f}L{x + size:.1f},{y + size:.1f}"
            path += f"M{x - size:.1f},{y + size:.1f}L{x + size:.1f},{y - size:.1f}"
            shape, fill = f'<path d="{path}"', "none"
            ends = [_at(x - size, y - size), _at(x + size, y + size)]
            ends += [_at(x - size, y + size), _at(x + size, y - size)]
            drawn = rf"\draw[draw={_color(color)}, line width=1.8pt] {ends[0]} -- {ends[1]} "
            self._tikz_shapes.append(drawn + f"{ends[2]} -- {ends[3]};")
        else:
            half, fill = (1.6, color) if state == "pruned" else (size, "#ffffff")
            edge = f'width="{2 * half:.1f}" height="{2 * half:.1f}"'
            shape = f'<rect x="{x - half:.1f}" y="{y - half:.1f}" {edge}'
            style = f"draw={_color(color)}, fill={_color(fill)}, line width=1.5pt"
            corners = f"{_at(x - half, y - half)} rectangle {_at(x + half, y + half)}"
            self._tikz_shapes.append(rf"\draw[{style}] {corners};")
        style = f'fill="{fill}" stroke="{color}" stroke-width="2.2"'
        self._shapes.append(f"{shape} {style}>{_title(note)}</{shape[1:5].strip()}>")

    def dots(self, x: float, y: float) -> None:
        """Three dots below each other: some are left out."""
        for at in (y - 7, y, y + 7):
            self._shapes.append(f'<circle cx="{x:.1f}" cy="{at:.1f}" r="1.7" fill="#777777"/>')
            self._tikz_shapes.append(rf"\fill[gray] {_at(x, at)} circle[radius=1.3pt];")

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
        where = {"start": "anchor=west, ", "middle": "", "end": "anchor=east, "}[anchor]
        said = rf"\textbf{{{_latex(words)}}}" if bold else _latex(words)
        font = rf"font=\fontsize{{{size * POINTS:.1f}}}{{{size * POINTS * 1.2:.1f}}}\selectfont"
        style = f"{where}inner sep=0, {font}, text={_color(color or INK)}"
        self._tikz_shapes.append(rf"\node[{style}] at {_at(x, y)} {{{said}}};")

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
        tikz = _document([*self._tikz_lines, *self._tikz_shapes])
        return Sketch(
            title, self.boxes, [*self.labels, *labels], self.edges, *area, svg, _tikz=tikz
        )


@dataclass(repr=False)
class Sketch(Drawing):
    """A drawing that is also written as TikZ. ``links`` are the weights of a drawing of units."""

    links: list[Any] = field(default_factory=list)
    _tikz: str = ""

    def to_tikz(self) -> str:
        """The drawing as a LaTeX document of the class standalone."""
        return self._tikz


def _title(note: str) -> str:
    return f"<title>{escaped(note)}</title>" if note else ""


# --- TikZ -----------------------------------------------------------------------------------------


def _pt(length: float) -> str:
    return f"{length * POINTS:.2f}pt"


def _at(x: float, y: float) -> str:
    return f"({x * POINTS:.2f}pt,{-y * POINTS:.2f}pt)"


def _color(code: str) -> str:
    digits = code.lstrip("#")
    digits = "".join(d * 2 for d in digits) if len(digits) == 3 else digits
    red, green, blue = (int(digits[i : i + 2], 16) for i in (0, 2, 4))
    return f"{{rgb,255:red,{red};green,{green};blue,{blue}}}"


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "…": r"\ldots{}",
    "·": r"$\cdot$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{MINUS SIGN}": "$-$",
    "→": r"$\to$",
} | {c: f"\\{c}" for c in "&%$#_{}"}


def _latex(words: str) -> str:
    return re.sub(".", lambda m: _SPECIAL.get(m.group(), m.group()), words)


def _document(lines: Sequence[str]) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return (
        "\\documentclass[tikz, border=4pt]{standalone}\n"
        "\\usetikzlibrary{arrows.meta}\n"
        "\\begin{document}\n\\sffamily\n\\begin{tikzpicture}\n"
        f"{body}\n\\end{{tikzpicture}}\n\\end{{document}}\n"
    )
