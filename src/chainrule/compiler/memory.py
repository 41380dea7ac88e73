"""Where the values of a program lie: one arena, in which the dead make room for the living."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.compiler.chains import Chain
from chainrule.compiler.program import Program, refs_in

__all__ = ["LINE", "Plan", "lifetimes", "planned"]

LINE = 64  # bytes of a line of the cache, at which every value begins
PAGE = 4096
APART = 13  # lines


class Plan:
    """Offsets of the values of a program in an arena of so many bytes."""

    def __init__(self, offsets: dict[int, int], size: int, unplanned: int):
        self.offsets, self.size = offsets, size
        self.unplanned = unplanned  # bytes if every value had a place of its own


def lifetimes(program: Program, chains: Sequence[Chain] = ()) -> dict[int, tuple[int, int]]:
    """For each value in the arena the instruction that makes it, and the last that needs it.

    A value lives as long as any view of it. Inputs live from the start, and what is returned, or
    becomes a gradient, to the end. The instructions of a chain run at the same time; its
    temporaries lie elsewhere.
    """
    end = len(program.instructions)
    spans = {i: (c.begin, c.end - 1) for c in chains for i in range(c.begin, c.end)}
    elsewhere = {slot for c in chains for slot in c.temporaries}
    first: dict[int, int] = dict.fromkeys(program.inputs, -1)
    last: dict[int, int] = dict.fromkeys(program.inputs, -1)

    root = program.root
    for number, step in enumerate(program.instructions):
        begin, until = spans.get(number, (number, number))
        for slot in step.makes():
            if program.slots[root(slot)].kind == "made" and root(slot) not in elsewhere:
                first.setdefault(root(slot), begin)
                last[root(slot)] = until
        for slot in step.reads():
            if root(slot) in first:
                last[root(slot)] = until
    for slot in [*refs_in(program.result), *[s for _, s in program.grads]]:
        if root(slot) in first:
            last[root(slot)] = end
    return {slot: (start, last[slot]) for slot, start in first.items()}


def planned(program: Program, chains: Sequence[Chain] = ()) -> Plan:
    """The largest first, each at the lowest place that is free for its whole life."""
    lives = lifetimes(program, chains)
    sizes = {slot: _lines(program.slots[slot].span()) for slot in lives}
    offsets: dict[int, int] = {}
    placed: list[tuple[int, int, tuple[int, int]]] = []  # offset, size, life
    for slot in sorted(lives, key=lambda s: (-sizes[s], s)):
        offset = 0
        for begin, size, life in sorted(placed):
            meets = life[0] <= lives[slot][1] and lives[slot][0] <= life[1]
            if meets and begin < offset + sizes[slot] and offset < begin + size:
                offset = begin + size
        offsets[slot] = offset
        placed.append((offset, sizes[slot], lives[slot]))
    total = max([o + s for o, s, _ in placed], default=0)
    return Plan(offsets, total, sum(sizes.values()))


def _lines(size: int) -> int:
    """Whole lines; large values are set apart, so that no two of them begin at the same place of a
    page: the processor takes a load for one of what was just stored if only the page differs."""
    lines = max((size + LINE - 1) // LINE, 1)
    return (lines + (APART if size >= PAGE else 0)) * LINE
