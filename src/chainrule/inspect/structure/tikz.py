"""Shapes as a LaTeX document: TikZ in the class standalone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from chainrule.inspect.structure.blocks import INK

__all__ = ["Tikz"]

Point = tuple[float, float]
POINTS = 0.75  # of a TikZ point in a unit of the picture: 96 to the inch against 72


@dataclass
class Tikz:
    """Collects shapes: frames below lines, lines below all else."""

    frames: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    shapes: list[str] = field(default_factory=list)

    def circle(self, x: float, y: float, radius: float, fill: str, stroke: str) -> None:
        """A circle around a place."""
        style = f"draw={_color(stroke)}, fill={_color(fill)}, line width=0.9pt"
        self.shapes.append(rf"\draw[{style}] {_at(x, y)} circle[radius={_pt(radius)}];")

    def box(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        fill: str,
        stroke: str,
        *,
        radius: float = 4.0,
        frame: bool = False,
        faint: float = 1.0,
        dashed: bool = False,
    ) -> None:
        """A rectangle; ``faint`` is how much of its color a frame has."""
        style = f"draw={_color(stroke)}, fill={_color(fill)}, rounded corners={_pt(radius)}"
        style += f", fill opacity={faint:g}" if faint < 1 else ""
        style += ", dashed" if dashed else ""
        corners = f"{_at(left, top)} rectangle {_at(left + width, top + height)}"
        (self.frames if frame else self.shapes).append(rf"\draw[{style}] {corners};")

    def square(self, x: float, y: float, half: float, fill: str, stroke: str) -> None:
        """A small square around a place."""
        style = f"draw={_color(stroke)}, fill={_color(fill)}, line width=1.5pt"
        corners = f"{_at(x - half, y - half)} rectangle {_at(x + half, y + half)}"
        self.shapes.append(rf"\draw[{style}] {corners};")

    def cross(self, x: float, y: float, size: float, color: str) -> None:
        """Two strokes across each other."""
        ends = [_at(x - size, y - size), _at(x + size, y + size)]
        ends += [_at(x - size, y + size), _at(x + size, y - size)]
        drawn = rf"\draw[draw={_color(color)}, line width=1.8pt] {ends[0]} -- {ends[1]} "
        self.shapes.append(drawn + f"{ends[2]} -- {ends[3]};")

    def dot(self, x: float, y: float) -> None:
        """A small gray dot."""
        self.shapes.append(rf"\fill[gray] {_at(x, y)} circle[radius=1.3pt];")

    def line(
        self,
        points: Sequence[Point],
        *,
        color: str = "#555555",
        width: float = 1.3,
        dash: str = "",
        arrow: bool = False,
        bent: bool = False,
    ) -> None:
        """A line through points; a bent one runs down at each and across between them."""
        style = [f"draw={_color(color)}", f"line width={_pt(width)}", *([dash] if dash else [])]
        style += ["-Stealth"] if arrow else []
        way = _bent(points) if bent else " -- ".join(_at(x, y) for x, y in points)
        self.lines.append(rf"\draw[{', '.join(style)}] {way};")

    def words(
        self, words: str, x: float, y: float, size: float, bold: bool, anchor: str, color: str
    ) -> None:
        """A text whose middle line is at y."""
        where = {"start": "anchor=west, ", "middle": "", "end": "anchor=east, "}[anchor]
        said = rf"\textbf{{{_latex(words)}}}" if bold else _latex(words)
        font = rf"font=\fontsize{{{size * POINTS:.1f}}}{{{size * POINTS * 1.2:.1f}}}\selectfont"
        style = f"{where}inner sep=0, {font}, text={_color(color or INK)}"
        self.shapes.append(rf"\node[{style}] at {_at(x, y)} {{{said}}};")

    def document(self) -> str:
        """All of it, to be given to LaTeX."""
        body = "\n".join(f"  {line}" for line in (*self.frames, *self.lines, *self.shapes))
        return (
            "\\documentclass[tikz, border=4pt]{standalone}\n"
            "\\usetikzlibrary{arrows.meta}\n"
            "\\begin{document}\n\\sffamily\n\\begin{tikzpicture}\n"
            f"{body}\n\\end{{tikzpicture}}\n\\end{{document}}\n"
        )


def _bent(points: Sequence[Point]) -> str:
    parts = [_at(*points[0])]
    for (a, b), (x, y) in pairwise(points):
        if (a, b) == (x, y):
            continue  # an arrow at its end would have no direction
        middle = (b + y) / 2
        curve = f" .. controls {_at(a, middle)} and {_at(x, middle)} .. "
        parts.append((" -- " if a == x else curve) + _at(x, y))
    return "".join(parts)


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
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{MINUS SIGN}": "$-$",
    "→": r"$\to$",
    "÷": r"$\div$",
    "√": r"$\surd$",
} | {c: f"\\{c}" for c in "&%$#_{}"}
_LETTERS = frozenset("äöüÄÖÜßàâáåçèéêëíîïñóôøùúûÀÂÁÅÇÈÉÊËÍÎÏÑÓÔØÙÚÛ")


def _latex(words: str) -> str:
    """Words that LaTeX sets as they are; what it has no letter for is a question mark."""
    return "".join(
        _SPECIAL.get(c) or (c if " " <= c <= "~" or c in _LETTERS else "?") for c in words
    )
