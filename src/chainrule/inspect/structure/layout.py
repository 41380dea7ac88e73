"""Where nodes stand and how edges run: our own layout of graphs in layers.

It knows boxes and edges between them and nothing of networks. Rows and their orders come from
:mod:`~chainrule.inspect.structure.layers`. Here each node gets its place across: in each row the
nodes keep their order and their distances and come as close as they can to where their neighbors
are (least squares under an order, solved by pooling), row after row, down and up; long edges are
made straight where there is room.

Down the page nothing is fixed here: a row is as high as its highest box, which may be opened and
closed. An edge leaves and enters boxes vertically, passes a row between its boxes, and bends only
in the gap between two rows, in which there is nothing else. So no edge runs through a box.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from chainrule.inspect.structure.layers import Layers, in_layers, ranks_of

__all__ = ["Placed", "layout", "settled"]

Key = Hashable
BETWEEN = 22.0  # boxes in a row
BESIDE = 12.0  # an edge that passes, to its neighbor
SWEEPS = 12
# How much a piece of an edge pulls, by how many of its ends are stand-ins: long edges go around
# chains of nodes, and not the other way round.
STRAIGHT = {0: 3.0, 1: 1.0, 2: 8.0}


@dataclass
class Placed:
    """A layout: the middle of each node across, its rows, what each edge passes on its way.

    ``gaps`` is the height of the room below each row but the last.
    """

    width: float
    rows: list[list[Key]]  # nodes only
    middle: dict[Key, float]
    passes: list[list[float]]  # of each edge, one place in each row between its ends
    gaps: list[float] = field(default_factory=list)

    @property
    def row_of(self) -> dict[Key, int]:
        """The row of each node."""
        return {n: r for r, row in enumerate(self.rows) for n in row}


def layout(
    widths: Mapping[Key, float],
    edges: Sequence[tuple[Key, Key]],
    first: Sequence[Key] = (),
    last: Sequence[Key] = (),
    gap: float = 26.0,
) -> Placed:
    """Places the nodes of an acyclic graph.

    Args:
        widths: of the nodes, which are its keys.
        edges: pairs of nodes; they point down.
        first: nodes for the top row, which nothing else is put in.
        last: nodes for the bottom row, which nothing else is put in.
        gap: the least height between two rows; half of it above ``last``.

    >>> placed = layout({"a": 40, "b": 40, "c": 40}, [("a", "b"), ("a", "c")])
    >>> placed.rows, [placed.middle[n] for n in "abc"], placed.width
    ([['a'], ['b', 'c']], [51.0, 20.0, 82.0], 102.0)
    """
    for source, target in edges:
        if source not in widths or target not in widths:
            raise ValueError(f"layout: the edge {source!r} -> {target!r} leads to no node")
    nodes = list(widths)
    layers = in_layers(nodes, edges, ranks_of(nodes, edges, first, last))
    sizes = {key: widths.get(key, 0.0) for row in layers.rows for key in row}
    stand_ins = {key for chain in layers.chains for key in chain[1:-1]}
    x = _places(layers, sizes, stand_ins)
    left = min((x[k] - sizes[k] / 2 for k in x), default=0.0)
    right = max((x[k] + sizes[k] / 2 for k in x), default=0.0)
    x = {k: round(v - left, 1) for k, v in x.items()}
    return Placed(
        round(right - left, 1),
        [[k for k in row if k not in stand_ins] for row in layers.rows],
        {k: x[k] for k in nodes},
        [[x[k] for k in chain[1:-1]] for chain in layers.chains],
        _gaps(layers, x, gap, bool(last)),
    )


def _gaps(layers: Layers, x: Mapping[Key, float], least: float, ends: bool) -> list[float]:
    """Higher where edges run far across, so that they are not too flat."""
    gaps = []
    for upper in layers.rows[:-1]:
        far = max((abs(x[a] - x[b]) for a in upper for b in layers.below[a]), default=0.0)
        gaps.append(round(min(least + far / 8, 3 * least), 1))
    if ends and gaps:
        gaps[-1] -= least / 2
    return gaps


# --- across ---------------------------------------------------------------------------------------


class _Rows:
    """Rows, and how far the middles of neighbors in them must be apart."""

    def __init__(self, layers: Layers, sizes: Mapping[Key, float], stand_ins: set[Key]):
        self.rows = layers.rows
        self.apart: list[list[float]] = []
        for row in self.rows:
            pairs = pairwise(row)
            self.apart.append(
                [
                    (sizes[a] + sizes[b]) / 2
                    + (BESIDE if a in stand_ins or b in stand_ins else BETWEEN)
                    for a, b in pairs
                ]
            )

    def packed(self) -> dict[Key, float]:
        """All rows from the same left edge."""
        x: dict[Key, float] = {}
        for row, apart in zip(self.rows, self.apart, strict=True):
            at = 0.0
            for i, key in enumerate(row):
                at += apart[i - 1] if i else 0.0
                x[key] = at
        return x


def _places(layers: Layers, sizes: Mapping[Key, float], stand_ins: set[Key]) -> dict[Key, float]:
    rows = _Rows(layers, sizes, stand_ins)
    x = rows.packed()
    pulls = {
        "down": _pulls(layers.above, stand_ins),
        "up": _pulls(layers.below, stand_ins),
    }
    both = {key: pulls["down"][key] + pulls["up"][key] for key in x}
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        near = both if sweep >= SWEEPS - 4 else pulls["down" if down else "up"]
        order = range(len(rows.rows)) if down else range(len(rows.rows) - 1, -1, -1)
        for r in order:
            _settle_row(rows.rows[r], rows.apart[r], near, x)
    _straighten(layers, rows, x, stand_ins)
    return x


Pull = list[tuple[Key, float]]


def _pulls(near: Mapping[Key, list[Key]], stand_ins: set[Key]) -> dict[Key, Pull]:
    return {
        key: [(n, STRAIGHT[(key in stand_ins) + (n in stand_ins)]) for n in found]
        for key, found in near.items()
    }


def _settle_row(
    row: Sequence[Key], apart: Sequence[float], near: Mapping[Key, Pull], x: dict[Key, float]
) -> None:
    wishes, weights = [], []
    for key in row:
        total = place = 0.0
        for other, weight in near[key]:
            total += weight
            place += weight * x[other]
        wishes.append(place / total if total else x[key])
        weights.append(total or 0.05)
    if len(row) == 1:
        x[row[0]] = wishes[0]
        return
    x.update(zip(row, settled(wishes, weights, apart), strict=True))


def settled(
    wishes: Sequence[float], weights: Sequence[float], apart: Sequence[float]
) -> list[float]:
    """The places closest to the wishes (weighted squares) in this order and at least so far apart.

    >>> settled([0.0, 0.0, 9.0], [1.0, 1.0, 1.0], [4.0, 4.0])
    [-2.0, 2.0, 9.0]
    """
    offset = 0.0
    groups: list[list[float]] = []  # of nodes that touch: where, weight, how many
    offsets = []
    for i, (wish, weight) in enumerate(zip(wishes, weights, strict=True)):
        offset += apart[i - 1] if i else 0.0
        offsets.append(offset)
        groups.append([wish - offset, weight, 1.0])
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            at, heavy, count = groups.pop()
            other = groups[-1]
            total = other[1] + heavy
            other[0] = (other[0] * other[1] + at * heavy) / total
            other[1], other[2] = total, other[2] + count
    starts = [at for at, _, count in groups for _ in range(int(count))]
    return [start + off for start, off in zip(starts, offsets, strict=True)]


def _straighten(layers: Layers, rows: _Rows, x: dict[Key, float], stand_ins: set[Key]) -> None:
    """Puts what can stand in one line there: chains of nodes, and the stand-ins of an edge."""
    where = {key: (r, i) for r, row in enumerate(rows.rows) for i, key in enumerate(row)}
    for line in [*_lines(layers, stand_ins), *(chain[1:-1] for chain in layers.chains)]:
        low, high = float("-inf"), float("inf")
        for key in line:
            r, i = where[key]
            row, apart = rows.rows[r], rows.apart[r]
            if i:
                low = max(low, x[row[i - 1]] + apart[i - 1])
            if i + 1 < len(row):
                high = min(high, x[row[i + 1]] - apart[i])
        if line and low <= high:
            middle = sum(x[key] for key in line) / len(line)
            x.update(dict.fromkeys(line, min(max(middle, low), high)))


def _lines(layers: Layers, stand_ins: set[Key]) -> list[list[Key]]:
    """Runs of nodes of which each has one node right below it that has one right above."""

    def only(near: Sequence[Key]) -> Key | None:
        found = [key for key in near if key not in stand_ins]
        return found[0] if len(found) == 1 else None

    nodes = [key for row in layers.rows for key in row if key not in stand_ins]
    follows: dict[Key, Key] = {}
    for key in nodes:
        below = only(layers.below[key])
        if below is not None and only(layers.above[below]) == key:
            follows[key] = below
    starts = set(follows) - set(follows.values())
    lines = []
    for key in nodes:
        if key in starts:
            line = [key]
            while line[-1] in follows:
                line.append(follows[line[-1]])
            lines.append(line)
    return lines
