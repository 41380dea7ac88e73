"""What is drawn: blocks that lead to each other, some of which hold others and can be opened."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from chainrule.inspect.structure.texts import LINE, SIZE, width_of

__all__ = ["KINDS", "Block", "Graph", "Line", "Link"]

# Fill and border of each kind: tints of the colors of Okabe and Ito.
KINDS = {
    "weights": ("#e3f0f8", "#0072B2"),
    "activation": ("#e0f3ec", "#009E73"),
    "norm": ("#fdf1d8", "#c98a00"),
    "recurrent": ("#f8e8f1", "#b3588c"),
    "module": ("#ffffff", "#0072B2"),
    "other": ("#f2f2f2", "#777777"),
    "operation": ("#f7f7f7", "#8a8a8a"),
    "input": ("#ffffff", "#333333"),
    "output": ("#e9e9e9", "#333333"),
    "parameter": ("#d5ecfa", "#3a8fbf"),
    "saved": ("#fde6d2", "#D55E00"),
    "failed": ("#fde4e1", "#c0221b"),
}
INK = "#222"
SIDE, END = 10.0, 7.0  # around the text of a block
MARK = 15.0  # room at each side for the sign that it can be opened


@dataclass
class Line:
    """A line of text in a block."""

    words: str
    bold: bool = False
    size: float = SIZE
    color: str = INK

    @property
    def width(self) -> float:
        """How wide it is."""
        return width_of(self.words, self.size, self.bold)


@dataclass(eq=False)
class Block:
    """A box with lines of text; ``inner`` is what it shows when it is open.

    ``note`` is shown when the pointer rests on it. ``round`` draws a circle or a pill. ``skips``
    says that links inside pass over blocks, ``shared`` that the same module stands elsewhere, too.
    """

    key: str
    lines: list[Line]
    kind: str = "other"
    note: str = ""
    round: bool = False
    inner: Graph | None = None
    open: bool = False
    skips: bool = False
    shared: bool = False
    name: str = ""  # for tables
    facts: dict[str, str] = field(default_factory=dict)  # for tables, too

    @property
    def closed_width(self) -> float:
        """The width of the box."""
        text = max((line.width for line in self.lines), default=0.0)
        marks = MARK if self.inner is not None or self.skips else 0.0
        return max(24.0, round(text + 2 * (SIDE + marks), 1))

    @property
    def radius(self) -> float:
        """Of the corners of the box."""
        return min(self.closed_height / 2, 14.0) if self.round else 4.0

    @property
    def straight_width(self) -> float:
        """The part of the upper edge that arrows can point to."""
        return self.closed_width - 2 * max(self.radius, 8.0)

    @property
    def closed_height(self) -> float:
        """The height of the box."""
        if self.round and len(self.lines) == 1:
            return 24.0
        return len(self.lines) * LINE + 2 * END


@dataclass
class Link:
    """An arrow from a block to another; ports tell arrows at one block apart.

    In the graph inside a block, the source may be an entry, ``("in", port)``, and the target an
    exit, ``("out", port)``.
    """

    source: Hashable
    target: Hashable
    out_port: Hashable = None
    in_port: Hashable = None
    note: str = ""
    dashed: bool = False


@dataclass
class Graph:
    """Blocks and the links between them; what comes in at the top and goes out at the bottom."""

    blocks: list[Block]
    links: list[Link]
    entries: list[Hashable] = field(default_factory=list)
    exits: list[Hashable] = field(default_factory=list)

    def everywhere(self) -> Iterator[Block]:
        """All blocks, those inside others included."""
        for block in self.blocks:
            yield block
            if block.inner is not None:
                yield from block.inner.everywhere()

    def seen(self) -> Iterator[Block]:
        """The blocks that are drawn now; an open one is a frame around others."""
        for block in self.blocks:
            yield block
            if block.open and block.inner is not None:
                yield from block.inner.seen()
