"""Blocks and links as a drawing: SVG text that opens and closes by a click."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise

from chainrule.inspect.structure.blocks import INK, KINDS, Block, Graph, Line
from chainrule.inspect.structure.nested import PAD, TOP, Arranged, Point, arranged, frame_title
from chainrule.inspect.structure.opening import script
from chainrule.inspect.structure.scene import Box, Edge, Label, heading, picture
from chainrule.inspect.structure.texts import LINE, MINUS, escaped, text
from chainrule.inspect.structure.tikz import Tikz

__all__ = ["Rendered", "curve", "rendered"]

STYLE = "[data-t]{cursor:pointer}[data-t]:focus{outline:none}[data-t]:focus>rect{stroke-width:2.5}"


def curve(points: list[Point]) -> str:
    """Points as a path: straight down, and bent across."""
    parts = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    for (a, b), (x, y) in pairwise(points):
        if (a, b) == (x, y):
            continue  # an arrow at its end would have no direction
        if a == x:
            parts.append(f"L{x:.1f},{y:.1f}")
        else:
            m = (b + y) / 2
            parts.append(f"C{a:.1f},{m:.1f},{x:.1f},{m:.1f},{x:.1f},{y:.1f}")
    return "".join(parts)


class Rendered:
    """A graph as SVG text and as numbers, as it is now."""

    def __init__(self, graph: Graph, title: str, subtitle: str):
        self.boxes: list[Box] = []
        self.labels: list[Label] = []
        self.edges: list[Edge] = []
        self.names: dict[Hashable, str] = {
            b.key: b.name or frame_title(b) for b in graph.everywhere()
        }
        self.numbers: dict[Hashable, int] = {b.key: i for i, b in enumerate(graph.everywhere())}
        self._links = 0
        self._tikz = Tikz()
        a = arranged(graph)
        head, top, wide, words = heading(title, subtitle)
        parts = self._graph(a, 0.0, 0.0, True)
        low = min([b.x for b in self.boxes] + [p[0] for e in self.edges for p in e.points])
        high = max(
            [b.x + b.width for b in self.boxes] + [p[0] for e in self.edges for p in e.points]
        )
        high = max(high, low + wide)
        self.area = (low - PAD, -top, high - low + 2 * PAD, a.height + top + PAD)
        self.labels += [
            Label(w.words, w.x + self.area[0], w.y - top, w.width, w.height) for w in words
        ]
        if any(b.inner is not None for b in graph.everywhere()):
            parts.append(script(a, self.numbers, top, wide))
        self.svg = picture(parts, title, self.area, head=head, style=STYLE)
        self.tikz = self._tikz.document()

    def _graph(self, a: Arranged, x: float, y: float, seen: bool) -> list[str]:
        """The links of a graph, then its blocks; (x, y) is where it lies in the picture."""
        numbers = list(range(self._links, self._links + len(a.routes)))
        self._links += len(a.routes)
        parts = []
        for number, route, points in zip(numbers, a.routes, a.paths(), strict=True):
            link = route.link
            arrow = "" if _is_end(link.target) else ' marker-end="url(#chainrule-arrow)"'
            dashed = ' stroke-dasharray="5 4"' if link.dashed else ""
            note = f"<title>{escaped(link.note)}</title>" if link.note else ""
            arrow += "" if not _is_end(link.source) else ' marker-start="url(#chainrule-dot)"'
            drawn = f'd="{curve(points)}"{arrow}{dashed}'
            parts.append(f'<path class="l" data-e="{number}" {drawn}>{note}</path>')
            if seen:
                source, target = self.names.get(link.source, ""), self.names.get(link.target, "")
                places = [(px + x, py + y) for px, py in points]
                self.edges.append(Edge(source, target, places, link.note, bent=True))
                dash = "dashed" if link.dashed else ""
                self._tikz.line(places, dash=dash, arrow=not _is_end(link.target), bent=True)
        rectangles = a.rectangles()
        blocks = a.graph.blocks
        return parts + [self._block(a, b, rectangles[b.key], x, y, seen) for b in blocks]

    def _block(
        self,
        a: Arranged,
        block: Block,
        rectangle: tuple[float, float, float, float],
        x: float,
        y: float,
        seen: bool,
    ) -> str:
        left, top, width, height = rectangle
        middle = left + width / 2
        if seen:
            found = Box(self.names[block.key], block.kind, left + x, top + y, width, height)
            found.frame, found.facts = block.open, block.facts
            self.boxes.append(found)
        number = self.numbers[block.key]
        inside = self._closed(block, middle + x, top + y, seen and not block.open)
        if block.key in a.inner:
            hidden = (' display="none"', "") if block.open else ("", ' display="none"')
            frame = self._frame(a, block, middle + x, top + y, seen and block.open)
            inside = (
                f'<g data-c="{number}"{hidden[0]}>{_button(block, number, inside)}</g>'
                f'<g data-o="{number}"{hidden[1]}>{frame}</g>'
            )
        return f'<g data-b="{number}" transform="translate({middle:.1f} {top:.1f})">{inside}</g>'

    def _closed(self, block: Block, x: float, y: float, seen: bool) -> str:
        """The box of a block, around the middle of its upper edge."""
        width, height = block.closed_width, block.closed_height
        fill, line = KINDS[block.kind]
        dashed = ' stroke-dasharray="6 3"' if block.shared else ""
        note = f"<title>{escaped(block.note)}</title>" if block.note else ""
        parts = [
            f'{note}<rect x="{-width / 2:.1f}" y="0" width="{width:.1f}" '
            f'height="{height:.1f}" rx="{block.radius:g}" fill="{fill}" stroke="{line}" '
            f'stroke-width="1.3"{dashed}/>'
        ]
        if seen:
            left = x - width / 2
            dashes = block.shared
            self._tikz.box(left, y, width, height, fill, line, radius=block.radius, dashed=dashes)
        first = (height - len(block.lines) * LINE) / 2 + 0.76 * LINE
        for i, words in enumerate(block.lines):
            at = first + i * LINE
            parts.append(_line(words, at))
            if seen:
                self.labels.append(
                    Label.at(words.words, x, y + at, words.size, words.bold, "middle")
                )
                middle = y + at - 0.35 * words.size
                style = words.size, words.bold, "middle", words.color
                self._tikz.words(words.words, x, middle, *style)
        if block.inner is not None:
            parts.append(_sign("+", width / 2 - 12, 11))
        if block.skips:
            parts.append(_skip(-width / 2 + 5, height))
        return "".join(parts)

    def _frame(self, a: Arranged, block: Block, x: float, y: float, seen: bool) -> str:
        """The frame of an open block, with all that is in it."""
        inner = a.inner[block.key]
        width, height = a.frame_width(block), inner.height + TOP + PAD
        number = self.numbers[block.key]
        _, line = KINDS[block.kind]
        dashed = ' stroke-dasharray="6 3"' if block.shared else ""
        note = f"<title>{escaped(block.note)}</title>" if block.note else ""
        title = frame_title(block)
        if seen:
            left = x - width / 2
            self.labels.append(Label.at(title, left + PAD, y + 16, 12, True, "start"))
            self._tikz.box(left, y, width, height, "#0072B2", line, frame=True, faint=0.035)
            self._tikz.words(title, left + PAD, y + 12, 12, True, "start", line)
        button = _button(
            block,
            number,
            f'{note}<rect x="{-width / 2:.1f}" y="0" width="{width:.1f}" height="{height:.1f}" '
            f'data-f="{number}" rx="6" fill="#0072B2" fill-opacity="0.035" stroke="{line}" '
            f'stroke-opacity="0.6"{dashed}/>'
            + text(title, -width / 2 + PAD, 16, bold=True, color=line)
            + _sign(MINUS, width / 2 - 12, 12),
        )
        left = -inner.placed.width / 2
        parts = self._graph(inner, x + left, y + TOP, seen)
        return f'{button}<g transform="translate({left:.1f} {TOP:g})">{"".join(parts)}</g>'


def _line(line: Line, at: float) -> str:
    color = "" if line.color == INK else line.color
    return text(line.words, 0, at, size=line.size, bold=line.bold, anchor="middle", color=color)


def _is_end(end: object) -> bool:
    return isinstance(end, tuple)


def _button(block: Block, number: int, inside: str) -> str:
    return (
        f'<g data-t="{number}" tabindex="0" role="button" '
        f'aria-expanded="{str(block.open).lower()}">{inside}</g>'
    )


def _sign(sign: str, x: float, y: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="#fff" stroke="#0072B2"/>' + text(
        sign, x, y + 4, anchor="middle", color="#0072B2"
    )


def _skip(x: float, height: float) -> str:
    """The sign that links inside pass over blocks."""
    return (
        f'<path d="M{x + 7:.1f},5C{x - 2:.1f},9,{x - 2:.1f},{height - 9:.1f},{x + 6:.1f},'
        f'{height - 6:.1f}" class="l" marker-end="url(#chainrule-arrow)">'
        "<title>paths part and join inside: a skip link, or branches</title></path>"
    )


def rendered(graph: Graph, title: str, subtitle: str = "") -> Rendered:
    """A graph as SVG text and as numbers."""
    return Rendered(graph, title, subtitle)
