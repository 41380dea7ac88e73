"""Parts of a computation in the order in which they happened, and the graph that they make.

A part needs values and gives values, which are known by keys; a part may hold others. From that
follow the links: each value comes from the part that gave it last. A part that hands a value
through has given it, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from chainrule.inspect.structure.blocks import Block, Graph, Link

__all__ = ["Part", "graph_of"]

Value = Hashable


@dataclass(eq=False)
class Part:
    """Something that happened: what it needed and gave, and what happened in it.

    ``signature`` says what looks alike, for folding what is repeated.
    """

    block: Block
    needs: list[Value]
    gives: list[Value]
    inside: list[Part] | None = None
    signature: Hashable = None
    count: int = 0  # of operations in it, where fewer are shown
    after: Part | None = None  # drawn below this one, although no value is known to link them

    @property
    def key(self) -> str:
        """That of its block."""
        return self.block.key


@dataclass
class _Flow:
    """Where values are held, and which of them each link carries."""

    holder: dict[Value, Hashable]
    carried: dict[tuple[Hashable, Hashable], list[Value]] = field(default_factory=dict)

    def take(self, value: Value, by: Hashable) -> None:
        """Notes that a value is needed; one that nobody holds is a constant."""
        source = self.holder.get(value)
        if source is not None:
            self.carried.setdefault((source, by), []).append(value)


def graph_of(
    parts: Sequence[Part],
    entries: Mapping[Value, Hashable],
    exits: Sequence[frozenset[Value]],
    notes: Mapping[Value, str],
) -> Graph:
    """The graph of parts, with those inside them.

    Args:
        parts: in the order in which they happened.
        entries: values from outside, and the port at which each comes in.
        exits: sets of values that go out together.
        notes: what is said of a value on the links that carry it.
    """
    flow = _Flow({value: ("in", port) for value, port in entries.items()})
    for part in parts:
        for value in dict.fromkeys(part.needs):
            flow.take(value, part.key)
        flow.holder.update(dict.fromkeys(part.gives, part.key))
    for port in exits:
        for value in port:
            flow.take(value, ("out", port))
    links = [
        Link(
            source,
            target,
            frozenset(values),
            source,
            "\n".join(dict.fromkeys(notes.get(v, "") for v in values)).strip(),
        )
        for (source, target), values in flow.carried.items()
    ]
    links += [
        Link(p.after.key, p.key, "after", p.after.key, dashed=True)
        for p in parts
        if p.after is not None and (p.after.key, p.key) not in flow.carried
    ]
    for part in parts:
        if part.inside is not None:
            _fill(part, links, flow, notes)
    graph = Graph([p.block for p in parts], links, list(dict.fromkeys(entries.values())))
    graph.exits = list(exits)
    return graph


def _fill(part: Part, links: Sequence[Link], flow: _Flow, notes: Mapping[Value, str]) -> None:
    """The graph inside a part, whose entries and exits are its links in the graph around it."""
    entries = {
        value: source
        for (source, target), values in flow.carried.items()
        if target == part.key
        for value in values
    }
    outs = [k.out_port for k in links if k.source == part.key and isinstance(k.out_port, frozenset)]
    part.block.inner = graph_of(part.inside or [], entries, list(dict.fromkeys(outs)), notes)
    part.block.skips = has_skips(part.block.inner)


def has_skips(graph: Graph) -> bool:
    """Whether paths part and join again, here or deeper inside."""
    if any(block.skips for block in graph.blocks):
        return True
    before: dict[Hashable, list[Hashable]] = {}
    for link in graph.links:
        before.setdefault(link.target, []).append(link.source)

    def behind(start: Hashable) -> set[Hashable]:
        found, waiting = {start}, [start]
        while waiting:
            fresh = [n for n in before.get(waiting.pop(), ()) if n not in found]
            found.update(fresh)
            waiting += fresh
        return found

    for near in before.values():
        reached: set[Hashable] = set()
        for source in near if len(near) > 1 else ():
            found = behind(source)
            if reached & found:
                return True
            reached |= found
    return False
