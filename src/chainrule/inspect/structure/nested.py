"""The layout of blocks inside blocks.

Across, everything has its place once and for all: a block has the room that it needs when it is
open, and so do those inside it. Down the page places follow from what is open, by a rule that the
script in the picture applies, too: rows are as high as their highest block.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from chainrule.inspect.structure.blocks import Block, Graph, Link
from chainrule.inspect.structure.layout import Placed, layout
from chainrule.inspect.structure.texts import width_of

__all__ = ["PAD", "TOP", "Arranged", "Route", "arranged"]

PAD, TOP = 12.0, 24.0  # inside a frame: at its sides and bottom, and below its title
PORTS = 16.0  # between arrows at one side of a block
Point = tuple[float, float]
Rectangle = tuple[float, float, float, float]  # left, top, width, height


@dataclass
class Route:
    """How a link runs: its ends when blocks are closed and open, and what it passes."""

    link: Link
    rows: tuple[int, int]
    start: tuple[float, float]  # across, where the source is closed and where it is open
    stop: tuple[float, float]
    passes: list[float]


@dataclass
class Arranged:
    """A graph with a place across for everything in it."""

    graph: Graph
    placed: Placed
    routes: list[Route] = field(default_factory=list)
    inner: dict[str, Arranged] = field(default_factory=dict)

    def frame_width(self, block: Block) -> float:
        """The width of a block when it is open."""
        found = self.inner.get(block.key)
        if found is None:
            return block.closed_width
        title = width_of(frame_title(block), bold=True) + 2 * PAD + 20
        return max(found.placed.width + 2 * PAD, title)

    def width_of(self, block: Block) -> float:
        """The width of a block as it is now."""
        return self.frame_width(block) if block.open else block.closed_width

    def height_of(self, block: Block) -> float:
        """The height of a block as it is now."""
        if block.open and block.key in self.inner:
            return self.inner[block.key].height + TOP + PAD
        return block.closed_height

    @property
    def bands(self) -> list[tuple[float, float]]:
        """Top and bottom of each row."""
        found = []
        blocks: dict[Hashable, Block] = {block.key: block for block in self.graph.blocks}
        y = 0.0
        for r, row in enumerate(self.placed.rows):
            high = max((self.height_of(blocks[k]) for k in row if k in blocks), default=0.0)
            found.append((y, y + high))
            y += high + (self.placed.gaps[r] if r < len(self.placed.gaps) else 0.0)
        return found

    @property
    def height(self) -> float:
        """From the top of the first row to the bottom of the last."""
        bands = self.bands
        return bands[-1][1] if bands else 0.0

    def rectangles(self) -> dict[str, Rectangle]:
        """Left, top, width and height of each block as it is now."""
        bands, row_of = self.bands, self.placed.row_of
        found = {}
        for block in self.graph.blocks:
            top, bottom = bands[row_of[block.key]]
            width, height = self.width_of(block), self.height_of(block)
            left = self.placed.middle[block.key] - width / 2
            found[block.key] = (left, (top + bottom - height) / 2, width, height)
        return found

    def paths(self) -> list[list[Point]]:
        """The points of each link. Between them it is straight where it runs down, and bends in
        the rectangle of two points where it runs across."""
        bands, rectangles = self.bands, self.rectangles()
        return [self._path(route, bands, rectangles) for route in self.routes]

    def _path(
        self, route: Route, bands: list[tuple[float, float]], rectangles: dict[str, Rectangle]
    ) -> list[Point]:
        blocks: dict[Hashable, Block] = {b.key: b for b in self.graph.blocks}
        source, target = blocks.get(route.link.source), blocks.get(route.link.target)
        first, last = route.rows
        x = route.start[source is not None and source.open]
        y = bands[first][1]
        points = [(x, y)]
        if source is not None:
            _, top, _, height = rectangles[source.key]
            points.insert(0, (x, top + height))
        for row, at in enumerate(route.passes, first + 1):
            points += [(at, bands[row][0]), (at, bands[row][1])]
        x = route.stop[target is not None and target.open]
        points.append((x, bands[last][0]))
        if target is not None:
            points.append((x, rectangles[target.key][1]))
        else:
            points.append((x, bands[last][1] + PAD))  # the lower edge of the frame around it
        return [(round(x, 1), round(y, 1)) for x, y in points]


def frame_title(block: Block) -> str:
    """What is written on the frame of an open block."""
    return block.lines[0].words if block.lines else ""


def arranged(graph: Graph) -> Arranged:
    """Finds a place across for all blocks of a graph and for those inside them."""
    inner = {b.key: arranged(b.inner) for b in graph.blocks if b.inner is not None}
    result = Arranged(graph, Placed(0.0, [], {}, []), [], inner)
    entries: list[Hashable] = [("in", port) for port in graph.entries]
    exits: list[Hashable] = [("out", port) for port in graph.exits]
    widths: dict[Hashable, float] = dict.fromkeys(entries, 4.0)
    for block in graph.blocks:
        widths[block.key] = max(block.closed_width, result.frame_width(block))
    widths |= dict.fromkeys(exits, 4.0)
    edges = [(link.source, link.target) for link in graph.links]
    result.placed = layout(widths, edges, entries, exits)
    result.routes = _routes(result)
    return result


def _routes(a: Arranged) -> list[Route]:
    placed, row_of = a.placed, a.placed.row_of
    outs = _ports(a, incoming=False)
    ins = _ports(a, incoming=True)
    blocks: dict[Hashable, Block] = {b.key: b for b in a.graph.blocks}
    routes = []
    for i, link in enumerate(a.graph.links):
        start = _ends(a, blocks.get(link.source), link.source, link.out_port, outs, "out")
        stop = _ends(a, blocks.get(link.target), link.target, link.in_port, ins, "in")
        rows = row_of[link.source], row_of[link.target]
        routes.append(Route(link, rows, start, stop, placed.passes[i]))
    return routes


Ports = dict[tuple[Hashable, Hashable], float]


def _ports(a: Arranged, incoming: bool) -> Ports:
    """Where arrows touch closed blocks: side by side in the order of where they come from."""
    middle = a.placed.middle
    found: dict[Hashable, dict[Hashable, list[float]]] = {}
    for link, passes in zip(a.graph.links, a.placed.passes, strict=True):
        at = link.target if incoming else link.source
        port = link.in_port if incoming else link.out_port
        other = link.source if incoming else link.target
        far = (passes[-1] if incoming else passes[0]) if passes else middle[other]
        found.setdefault(at, {}).setdefault(port, []).append(far)
    widths: dict[Hashable, float] = {b.key: b.straight_width for b in a.graph.blocks}
    ports: Ports = {}
    for at, sides in found.items():
        order = sorted(sides, key=lambda p: sum(sides[p]) / len(sides[p]))
        room = widths.get(at, 0.0)
        step = min(PORTS, room / (len(order) - 1)) if len(order) > 1 and room > 8 else 0.0
        for i, port in enumerate(order):
            ports[at, port] = middle[at] + (i - (len(order) - 1) / 2) * step
    return ports


def _ends(
    a: Arranged, block: Block | None, key: Hashable, port: Hashable, ports: Ports, side: str
) -> tuple[float, float]:
    closed = ports[key, port]
    if block is None:
        return a.placed.middle[key], a.placed.middle[key]
    found = a.inner.get(block.key)
    if found is None or (side, port) not in found.placed.middle:
        return closed, closed
    left = a.placed.middle[key] - found.placed.width / 2
    return closed, left + found.placed.middle[side, port]
