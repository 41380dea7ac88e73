"""Graphs in layers: in which row a node stands, and in which order the nodes of a row do.

The first two steps of Sugiyama's method: rows by the longest path, so that every edge points down;
a stand-in for an edge in each row that it passes; rows ordered by the barycenters of their
neighbors, up and down, and then by swapping neighbors while edges cross less often.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["Layers", "in_layers", "ranks_of"]

Key = Hashable
SWEEPS = 12
SWAPS = 6  # rounds of swapping neighbors at most


@dataclass
class Layers:
    """Rows of nodes from the top: a node is a key, a stand-in is ``(edge number, row)``.

    ``chains`` has, for each edge, what it passes: source, stand-ins, target.
    """

    rows: list[list[Key]]
    chains: list[list[Key]]
    above: dict[Key, list[Key]] = field(default_factory=dict)
    below: dict[Key, list[Key]] = field(default_factory=dict)

    def crossings(self) -> int:
        """How often edges cross."""
        return sum(_crossings(upper, lower, self.below) for upper, lower in pairwise(self.rows))


def ranks_of(
    nodes: Sequence[Key],
    edges: Sequence[tuple[Key, Key]],
    first: Sequence[Key] = (),
    last: Sequence[Key] = (),
) -> dict[Key, int]:
    """The row of each node: below all that lead to it, and sources close to what they lead to.

    ``first`` stand in the top row, ``last`` in one below all others.

    >>> ranks_of("abc", [("a", "b"), ("b", "c"), ("a", "c")])
    {'a': 0, 'b': 1, 'c': 2}
    """
    order = _topological(nodes, edges)
    after: dict[Key, list[Key]] = {n: [] for n in nodes}
    before: dict[Key, list[Key]] = {n: [] for n in nodes}
    for source, target in edges:
        after[source].append(target)
        before[target].append(source)
    tops, ends = set(first), set(last)
    rank = dict.fromkeys(nodes, 0)
    for n in order:
        start = 1 if tops and n not in tops else 0
        rank[n] = max([start, *(rank[b] + 1 for b in before[n])])
    for n in reversed(order):
        if n not in tops and not before[n] and after[n]:
            rank[n] = min(rank[a] for a in after[n]) - 1
    bottom = max([rank[n] + 1 for n in nodes if n not in ends], default=0)
    for n in ends:
        rank[n] = max(bottom, 1 if tops else 0)
    return rank


def _topological(nodes: Sequence[Key], edges: Sequence[tuple[Key, Key]]) -> list[Key]:
    waiting = dict.fromkeys(nodes, 0)
    after: dict[Key, list[Key]] = {n: [] for n in nodes}
    for source, target in edges:
        waiting[target] += 1
        after[source].append(target)
    order = [n for n in nodes if not waiting[n]]
    for n in order:  # grows while it is read
        for a in after[n]:
            waiting[a] -= 1
            if not waiting[a]:
                order.append(a)
    if len(order) < len(waiting):
        stuck = [n for n in nodes if waiting[n]][:3]
        raise ValueError(f"layout: the graph has a cycle through {stuck}")
    return order


def in_layers(
    nodes: Sequence[Key],
    edges: Sequence[tuple[Key, Key]],
    ranks: Mapping[Key, int],
) -> Layers:
    """Rows in an order in which edges cross seldom."""
    rows: list[list[Key]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    for n in nodes:
        rows[ranks[n]].append(n)
    chains: list[list[Key]] = []
    for i, (source, target) in enumerate(edges):
        passed: list[Key] = [(i, r) for r in range(ranks[source] + 1, ranks[target])]
        for key, r in zip(passed, range(ranks[source] + 1, ranks[target]), strict=True):
            rows[r].append(key)
        chains.append([source, *passed, target])
    layers = Layers(rows, chains)
    for row in rows:
        for key in row:
            layers.above[key], layers.below[key] = [], []
    for chain in chains:
        for upper, lower in pairwise(chain):
            layers.below[upper].append(lower)
            layers.above[lower].append(upper)
    _order(layers)
    return layers


def _order(layers: Layers) -> None:
    best, fewest = [list(row) for row in layers.rows], layers.crossings()
    for sweep in range(SWEEPS):
        if not fewest:
            break
        _sweep(layers, down=sweep % 2 == 0)
        count = layers.crossings()
        if count < fewest:
            best, fewest = [list(row) for row in layers.rows], count
    layers.rows = best
    for _ in range(SWAPS):
        if not fewest or not any(_swapped(layers, r) for r in range(len(layers.rows))):
            break


def _sweep(layers: Layers, down: bool) -> None:
    """Each row in the order of the mean places of its neighbors in the row before."""
    rows, toward = (layers.rows, layers.above) if down else (layers.rows[::-1], layers.below)
    for fixed, row in pairwise(rows):
        at = {key: i for i, key in enumerate(fixed)}
        mean = {
            key: sum(at[n] for n in toward[key]) / len(toward[key]) if toward[key] else float(i)
            for i, key in enumerate(row)
        }
        row.sort(key=mean.__getitem__)


def _swapped(layers: Layers, r: int) -> bool:
    """Swaps neighbors in a row while edges cross less often for it; whether any were."""
    row, found = layers.rows[r], False
    beside = [
        ({key: i for i, key in enumerate(layers.rows[q])}, near)
        for q, near in ((r - 1, layers.above), (r + 1, layers.below))
        if 0 <= q < len(layers.rows)
    ]
    for i in range(len(row) - 1):
        left, right = row[i], row[i + 1]
        gain = 0
        for at, near in beside:
            a = sorted(at[n] for n in near[left])
            b = sorted(at[n] for n in near[right])
            gain += _inversions(a, b) - _inversions(b, a)
        if gain > 0:
            row[i], row[i + 1], found = right, left, True
    return found


def _inversions(left: list[int], right: list[int]) -> int:
    """How many edges of the left node cross edges of the right one; both sorted."""
    return sum(bisect_left(right, place) for place in left)


def _crossings(upper: Sequence[Key], lower: Sequence[Key], below: Mapping[Key, list[Key]]) -> int:
    at = {key: i for i, key in enumerate(lower)}
    seen: list[int] = []
    count = 0
    for key in upper:
        ends = sorted(at[n] for n in below[key])
        count += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
        for end in ends:
            insort(seen, end)
    return count
